#include "tests/support/catch.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("rules for local operations, axis by axis", "[plan][refusal]") {
  struct a : axis<2> {};
  const auto of = [](placement kind, int cut_dim = 0) {
    layout x;
    x.mesh = mesh<a>::value;
    x.placements.resize(1);
    for (int i = 0; i < 2; ++i) {
      dimension d;
      d.extent = 4;
      x.dims.push(d);
    }
    if (kind == placement::cut) x.cut_by(cut_dim, 0);
    else x.placements[0] = {kind};
    return x;
  };
  const auto result = [&](linearity kind, const char* left, const layout& x, const char* right, const layout& y,
                          const char* out) {
    signature s;
    s.kind = kind;
    s.operands.push(named(left));
    s.operands.push(named(right));
    s.result = named(out);
    static_vector<operand, 4> operands;
    operands.push({x, false});
    operands.push({y, false});
    return infer(s, operands);
  };
  constexpr placement R = placement::replicate, P = placement::partial, I = placement::invariant, V = placement::cut,
                      O = placement::on;
  const auto sum = [&](placement x, placement y) {
    return result(linearity::additive, "ij", of(x), "ij", of(y), "ij");
  };
  const auto product = [&](placement x, placement y) {
    return result(linearity::multilinear, "ij", of(x), "ij", of(y), "ij");
  };
  const auto other = [&](placement x, placement y) {
    return result(linearity::nonlinear, "ij", of(x), "ij", of(y), "ij");
  };

  for (placement k : {R, P, I, V, O}) {
    CHECK(sum(k, k).why.ok());
    CHECK(sum(k, k).layout.placements[0].kind == k);
  }
  CHECK(sum(P, R).why.is(code::replicate_added_to_partial));
  CHECK(sum(R, P).why.is(code::replicate_added_to_partial));
  CHECK(sum(I, P).why.is(code::invariant_mixed));
  CHECK(sum(I, R).why.is(code::invariant_mixed));
  CHECK(sum(V, R).why.is(code::cut_unalike));
  CHECK(sum(O, R).why.is(code::held_on_one_coordinate));
  CHECK(product(R, R).layout.placements[0].kind == R);
  CHECK(product(P, R).layout.placements[0].kind == P);
  CHECK(product(R, P).layout.placements[0].kind == P);
  CHECK(product(I, I).layout.placements[0].kind == I);
  CHECK(product(V, V).layout.placements[0].kind == V);
  CHECK(product(P, P).why.is(code::product_of_partials));
  CHECK(product(I, R).why.is(code::invariant_mixed));
  CHECK(other(R, R).why.ok());
  CHECK(other(V, V).why.ok());
  CHECK(other(P, P).why.is(code::nonlinear_on_partial));
  layout most = of(P);  // the largest term of −x is not that of x
  most.placements[0].with = combine::max;
  CHECK(result(linearity::multilinear, "ij", most, "ij", of(R), "ij").why.is(code::nonlinear_on_partial));
  CHECK(result(linearity::additive, "ij", of(P), "ij", most, "ij").why.is(code::nonlinear_on_partial));
  CHECK(result(linearity::additive, "ij", most, "ij", of(P), "ij").why.is(code::nonlinear_on_partial));

  // Contractions: a tiling summed over is partial; an operand without the dimension must be whole.
  const auto matmul = [&](const layout& x, const layout& y) {
    return result(linearity::multilinear, "ik", x, "kj", y, "ij");
  };
  CHECK(matmul(of(V, 1), of(V, 0)).layout.placements[0].kind == P);
  CHECK(matmul(of(V, 0), of(R)).layout.placements[0].dimension == 0);
  CHECK(matmul(of(R), of(V, 1)).layout.placements[0].dimension == 1);
  CHECK(matmul(of(V, 1), of(R)).why.is(code::cut_unalike));
  CHECK(matmul(of(V, 0), of(P)).why.is(code::product_of_partials));
  layout haloed = of(V, 1);
  haloed.dims[1].kind = cover::haloed;
  haloed.dims[1].outputs = 4;
  haloed.dims[1].needs = sliding{3, 1, 1, 1, 1}.needs();
  layout beside = of(V, 0);
  beside.dims[0] = haloed.dims[1];
  CHECK(matmul(haloed, beside).why.is(code::haloed_summed));
  beside.dims[0].kind = cover::pending;
  haloed.dims[1].kind = cover::pending;
  CHECK(matmul(haloed, beside).why.is(code::product_of_partials));  // terms times terms
  beside.dims[0].kind = cover::haloed;
  CHECK(matmul(haloed, beside).layout.placements[0].kind == P);  // terms times copies, summed
  beside.dims[0].kind = cover::pending;
  CHECK(other(R, V).why.is(code::cut_unalike));
}

}  // namespace tessera::testing
