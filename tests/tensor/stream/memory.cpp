// What a stream holds at once, as LibTorch reports it, beside what its plan says.

#include "tests/support/tensors.hpp"

#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/tensor/einsum.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

using namespace tessera;
using namespace tessera::testing;

namespace streamed_memory {

struct line : axis<4> {};
using workers = mesh<line>;

layout rows_of(index_t rows, index_t columns) {
  layout x;
  x.mesh = workers::value;
  x.placements.resize(1);
  x.dims.resize(2);
  x.dims[0].extent = rows;
  x.dims[1].extent = columns;
  x.cut_by(0, 0);
  return x;
}

struct held {
  index_t forward = 0, backward = 0;
};

held planned(const signature& op, const layout& a, const layout& b, element e) {
  const tensor_value x{a, e}, y{b, e};
  functions::engine::product_value f;
  f.op = op;
  layer_plan p = tessera::detail::plan_function(f, x, y);
  p.saves = functions::engine::footprint_of(functions::engine::saved::operands);
  operand_elements of;
  for (int i = 0; i < 2; ++i) of.push(e);
  const tessera::detail::layer_memory m = tessera::detail::memory_of(p, of);
  // backward: both gradients as well
  return {m.scratch + m.results[0].behind,
          m.returning + tessera::detail::bytes_held(a, e) + tessera::detail::bytes_held(b, e)};
}

held found(const team<workers>& t, const signature& op, const layout& a, const layout& b, at::ScalarType type) {
  tensor<dyn> x = distribute(t, a, at::ones(extents_of(a), type));
  tensor<dyn> y = distribute(t, b, at::ones(extents_of(b), type));
  x.requires_grad();
  y.requires_grad();
  held all;
  memory_count taken;
  const tensor<dyn> z = einsum(op, x, y);
  all.forward = taken.peak();
  const at::Tensor g = at::ones(z.local().sizes(), z.local().options());
  const std::int64_t before = taken.now();
  taken.restart_peak();
  torch::autograd::grad({z.local()}, {x.local(), y.local()}, {g});
  all.backward = taken.peak() - before;
  return all;
}

TEST_CASE("a stream holds what its plan says, to 5 %, however long the sequence is", "[law][plan][runtime]") {
  const struct {
    const char* text;
    layout a, b;
  } all[]{{"td,sd->ts", rows_of(512, 64), rows_of(512, 64)},
          {"ts,sd->td", rows_of(512, 512), rows_of(512, 64)},
          {"ts,td->sd", rows_of(512, 512), rows_of(512, 64)}};
  for (const auto& one : all)
    for (const index_t rows : {8, 32, 128}) {
      INFO(one.text << " by " << rows);
      const signature op = operation(one.text).multilinear().streamed('s', rows);
      const held said = planned(op, one.a, one.b, element::float32);
      const auto out = in_team<workers>([&](const team<workers>& t) { return found(t, op, one.a, one.b, at::kFloat); });
      REQUIRE(out.errors() == "");
      for (const auto& each : out.results) {
        CHECK(static_cast<double>(each->forward) == Approx(static_cast<double>(said.forward)).epsilon(0.05));
        CHECK(static_cast<double>(each->backward) == Approx(static_cast<double>(said.backward)).epsilon(0.05));
      }
    }
}

}  // namespace streamed_memory
