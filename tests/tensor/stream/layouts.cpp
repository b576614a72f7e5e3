// Streamed products of operands that lie in every way: the result, its gradients, and what moves, beside what the plan
// says.

#include "tests/support/tensors.hpp"

#include <tessera/tensor/einsum.hpp>

using namespace tessera;
using namespace tessera::testing;

namespace streamed_layouts {

struct line : axis<2> {};
struct lane : axis<3> {};
using grid = mesh<line, lane>;

constexpr index_t own_parts[]{0, 1, 1, 4, 9, 9, 13};
constexpr auto scores = operation("btd,bsd->bts").multilinear().streamed('s', 2);
constexpr auto mixed = operation("bts,bsd->btd").multilinear().streamed('s', 3);
constexpr auto both = operation("bts,btd->bsd").multilinear().streamed('s', 2);
constexpr auto all_at_once = operation("btd,bsd->bts").multilinear().streamed('s');

/// A tensor of this many elements a dimension, cut: entries are {dimension, axis, joined}.
layout lying(std::initializer_list<index_t> extents, std::initializer_list<std::array<int, 3>> cuts) {
  layout x;
  x.mesh = grid::value;
  x.placements.resize(2);
  for (index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  for (const auto& c : cuts) x.cut_by(c[0], c[1], c[2] != 0);
  return x;
}
layout with(layout x, int dim, const std::function<void(dimension&)>& change) {
  change(x.dims[dim]);
  return x;
}

struct placed {
  const char* what;
  signature op;
  layout a, b;
};

std::vector<placed> all_placed() {
  const layout queries = lying({2, 5, 3}, {{1, 0, 0}, {1, 1, 0}});
  std::vector<placed> all;
  all.push_back({"one cut inside the other", scores, queries, lying({2, 13, 3}, {{1, 0, 0}, {1, 1, 0}})});
  all.push_back({"the other order", scores, queries, lying({2, 13, 3}, {{1, 1, 0}, {1, 0, 0}})});
  all.push_back({"two axes as one", scores, queries, lying({2, 13, 3}, {{1, 0, 0}, {1, 1, 1}})});
  all.push_back({"queries by the other axis", scores, lying({2, 5, 3}, {{1, 1, 0}}), lying({2, 13, 3}, {{1, 0, 0}})});
  all.push_back({"features by the other axis", scores, lying({2, 5, 3}, {{1, 0, 0}, {2, 1, 0}}),
                 lying({2, 13, 3}, {{1, 0, 0}, {2, 1, 0}})});
  all.push_back({"samples by the other axis", scores, lying({2, 5, 3}, {{1, 0, 0}, {0, 1, 0}}),
                 lying({2, 13, 3}, {{1, 0, 0}, {0, 1, 0}})});
  all.push_back({"all at once", all_at_once, queries, lying({2, 13, 3}, {{1, 0, 0}, {1, 1, 0}})});
  const layout keys = lying({2, 13, 3}, {{1, 0, 0}, {1, 1, 0}});
  all.push_back({"a zigzag", scores, queries,
                 with(lying({2, 13, 3}, {{1, 0, 0}, {1, 1, 1}}), 1, [](dimension& d) { d.zigzag = true; })});
  all.push_back({"a zigzag that is summed", mixed, lying({2, 5, 13}, {{1, 0, 0}, {1, 1, 0}}),
                 with(lying({2, 13, 3}, {{1, 0, 0}, {1, 1, 1}}), 1, [](dimension& d) { d.zigzag = true; })});
  all.push_back({"a turned deal", scores, queries, with(keys, 1, [](dimension& d) { d.turned = 4; })});
  all.push_back({"parts of any length", scores, queries, with(keys, 1, [](dimension& d) { d.bounds = own_parts; })});
  all.push_back({"grains", scores, queries, with(keys, 1, [](dimension& d) { d.set_grain(2); })});
  all.push_back({"summed", mixed, lying({2, 5, 13}, {{1, 0, 0}, {1, 1, 0}}), keys});
  all.push_back({"copies of what comes", scores, lying({2, 5, 3}, {{1, 0, 0}}), lying({2, 13, 3}, {{1, 0, 0}})});
  all.push_back(
      {"sent by two axes", both, lying({2, 5, 13}, {{1, 0, 0}, {1, 1, 0}}), lying({2, 5, 3}, {{1, 0, 0}, {1, 1, 0}})});
  all.push_back({"sent by one", both, lying({2, 5, 13}, {{1, 0, 0}}), lying({2, 5, 3}, {{1, 0, 0}})});
  all.push_back({"sent, features cut", both, lying({2, 5, 13}, {{1, 0, 0}}), lying({2, 5, 3}, {{1, 0, 0}, {2, 1, 0}})});
  all.push_back({"nothing is cut there", scores, queries, lying({2, 13, 3}, {})});
  return all;
}

traffic_value planned(const placed& c) {
  const tensor_value x{c.a, element::float64}, y{c.b, element::float64};
  functions::engine::product_value f;
  f.op = c.op;
  layer_plan p;
  for (const exchange_value& e : f.exchanges(x, y)) p.add_exchange(e.from, e.to, e.element, true, e.streams);
  operand_elements e;
  e.push(element::float64);
  return traffic_of(p, e);
}

struct counted {
  index_t bytes = 0, messages = 0;
};

struct findings {
  std::string why;
  counted forward, backward;
};

findings found(const team<grid>& t, const placed& c) {
  findings all;
  const at::Tensor a = global_of(extents_of(c.a), numbers{1}).requires_grad_();
  const at::Tensor b = global_of(extents_of(c.b), numbers{2}).requires_grad_();
  tensor<dyn> x = distribute(t, c.a, a.detach().clone());
  tensor<dyn> y = distribute(t, c.b, b.detach().clone());
  x.requires_grad();
  y.requires_grad();
  std::string text;
  for (const letters& l : c.op.operands) text.append(text.empty() ? "" : ",").append(l.begin(), l.end());
  text.append("->").append(c.op.result.begin(), c.op.result.end());
  const auto far = [](const at::Tensor& u, const at::Tensor& v) {
    return (u.detach() - v.detach()).abs().max().item<double>() > 1e-12;
  };
  const auto since = [&](const counted& before) {
    return counted{x.team()->total.bytes - before.bytes, x.team()->total.messages - before.messages};
  };
  const counted none;
  const counted begin = since(none);
  const tensor<dyn> z = einsum(c.op, x, y);
  all.forward = since(begin);
  const at::Tensor wanted = at::einsum(text, {a, b});
  if (far(full_tensor(z), wanted)) all.why += "the result; ";
  const at::Tensor g = global_of(extents_of(z.layout()), numbers{3});
  const tensor<dyn> back{x.team(), cotangent(z.layout()), distribute(t, cotangent(z.layout()), g).local()};
  const counted then = since(none);
  const auto gradients = torch::autograd::grad({z.local()}, {x.local(), y.local()}, {back.local()});
  all.backward = since(then);
  const auto serial = torch::autograd::grad({wanted}, {a, b}, {g});
  if (far(full_tensor(tensor<dyn>{x.team(), cotangent(c.a), gradients[0]}), serial[0])) all.why += "a's gradient; ";
  if (far(full_tensor(tensor<dyn>{x.team(), cotangent(c.b), gradients[1]}), serial[1])) all.why += "b's gradient; ";
  return all;
}

TEST_CASE("streams take and give parts however they lie, and move what their plans say", "[law][plan][runtime]") {
  for (const placed& c : all_placed()) {
    INFO(c.what);
    const auto out = in_team<grid>([&](const team<grid>& t) { return found(t, c); });
    CHECK(out.errors() == "");
    counted forward, backward;
    for (const auto& one : out.results) {
      if (!one) continue;
      CHECK(one->why == "");
      forward.bytes += one->forward.bytes;
      forward.messages += one->forward.messages;
      backward.bytes += one->backward.bytes;
      backward.messages += one->backward.messages;
    }
    const traffic_value said = planned(c);
    CHECK(said.forward.bytes == forward.bytes);
    CHECK(said.backward.bytes == backward.bytes);
    CHECK(said.forward.messages == forward.messages);
    CHECK(said.backward.messages == backward.messages);
    CHECK(said.forward.bytes == said.forward.lower_bound_bytes);
  }
}

TEST_CASE("the type of a streamed product is that of the product of what comes", "[law][plan]") {
  using queries = tensor<partition<grid, whole, blocks<line, lane>, whole>, shape_of<2, 5, 3>, double>;
  using keys = tensor<partition<grid, whole, blocks<line, lane>, whole>, shape_of<2, 13, 3>, double>;
  using products = decltype(einsum<scores>(queries(), keys()));
  static_assert(
      std::is_same_v<products, tensor<partition<grid, whole, blocks<line, lane>, whole>, shape_of<2, 5, 13>, double>>);
  using sums = decltype(einsum<both>(products(), queries()));
  static_assert(
      std::is_same_v<sums, tensor<partition<grid, whole, blocks<line, lane>, whole>, shape_of<2, 13, 3>, double>>);
}

TEST_CASE("streams that say nothing are refused by code", "[refusal]") {
  const layout queries = lying({2, 5, 3}, {{1, 0, 0}});
  const auto told_of = [&](const signature& op, const layout& a, const layout& b) {
    return infer(op, {{{a, false}, {b, false}}, 2}).why;
  };
  const layout keys = lying({2, 13, 3}, {{1, 0, 0}});
  CHECK(told_of(operation("btd,bsd->bts").multilinear().streamed('s').streamed('t'), queries, keys)
            .is(code::role_does_not_fit));
  CHECK(told_of(operation("btd,bsd->bts").multilinear().streamed('x'), queries, keys).is(code::role_does_not_fit));
  CHECK(told_of(operation("btd,bsd->bts").multilinear().streamed('s', -1), queries, keys).is(code::role_does_not_fit));
  CHECK(told_of(operation("bts,bsd->btd").multilinear().streamed('s'), lying({2, 5, 13}, {{2, 1, 0}}), keys)
            .is(code::streamed_unalike));
  // each worker has all queries, and would add the parts of keys in an order of its own
  for (const layout& all_of_them : {lying({2, 5, 13}, {}), lying({2, 5, 13}, {{1, 1, 0}})})
    CHECK(
        told_of(operation("bts,bsd->btd").multilinear().streamed('s'), all_of_them, keys).is(code::streamed_to_copies));
  CHECK(told_of(operation("bts,bsd->bts").nonlinear().streamed('s'), lying({2, 5, 13}, {}), keys).ok());
  layout copies = queries;  // all use it alike, so no gradient of theirs can differ
  copies.set_placement(0, {placement::invariant});
  CHECK(told_of(operation("btd,bsd->bts").multilinear().streamed('s'), copies, keys).is(code::invariant_mixed));
}

}  // namespace streamed_layouts
