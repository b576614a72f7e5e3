// The algebra alone: a partition, a plan, its picture, and a budget that the compiler keeps. No LibTorch, no MPI.
#include <tessera/core.hpp>
#include <tessera/inspect/picture.hpp>

#include <cstdio>

namespace ts = tessera;

struct row : ts::axis<2> {};  // an axis of the worker grid is a type, so every message can name it
struct col : ts::axis<3> {};
using grid = ts::mesh<row, col>;

using tiles = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<10, 7>, double>;
using slabs = ts::tensor<ts::partition<grid, ts::whole, ts::blocks<row, col>>, ts::shape_of<10, 7>, double>;

using turn = ts::primitive<tiles, slabs>;  // a linear map; so is its adjoint
static_assert(ts::Primitive<turn>);
static_assert(std::is_same_v<ts::adjoint<ts::adjoint<turn>>, turn>);
static_assert(turn::cost().total == turn::cost().lower_bound);  // it moves what must be moved, no more
static_assert(turn::cost().busiest <= 10, "a budget: no worker receives more than 10 elements");

int main() {
  const ts::layout from = ts::value_of<tiles>.layout;
  const ts::layout to = ts::value_of<slabs>.layout;
  std::printf("%s\n", ts::text_of(from).c_str());
  std::printf("%s\n", ts::picture(from).c_str());
  std::printf("%s\n", ts::text_of(to).c_str());
  std::printf("%s\n", ts::picture(to).c_str());
  std::printf("%s", ts::plan_text(from, to).c_str());
}
