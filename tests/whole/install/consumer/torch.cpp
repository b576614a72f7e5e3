#include <tessera/tensor/distribute.hpp>

namespace ts = tessera;

struct line : ts::axis<2> {};
using halves = ts::tensor<ts::partition<ts::mesh<line>, ts::blocks<line>>, ts::shape_of<5>, double>;

int main() {
  const at::Tensor x = at::arange(5, at::kDouble);
  for (int rank = 0; rank < 2; ++rank) {
    const ts::interval held = ts::engine::held_by(ts::value_of<halves>.layout, rank)[0][0];
    fmt::print("{}\n", x.slice(0, held.lo, held.hi).sum().item<double>());
  }
}
