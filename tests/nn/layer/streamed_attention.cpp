// Attention whose keys and values come part by part, beside LibTorch's of the whole sequence.

#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/operation/layer/attention.hpp>

#include <cmath>
#include <limits>

using namespace tessera;
using namespace tessera::testing;

namespace streamed_attention {

/// One attention: samples, queries, keys, heads of the keys, queries of each, features of keys and of values.
struct sizes {
  index_t samples, queries, keys, heads, each, features, values;
};
struct form {
  bool causal = false;
  bool masked = false;
  index_t rows = 0;
};

/// softmax(q kᵀ / √d) v of [n, t, g, r, d], [n, s, g, d], [n, s, g, e], by differentiable functions of LibTorch.
at::Tensor serial(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask, bool causal) {
  at::Tensor s = at::einsum("btgrd,bsgd->btgrs", {q, k}) / std::sqrt(static_cast<double>(q.size(-1)));
  at::Tensor hidden = at::zeros({q.size(0), q.size(1), 1, 1, k.size(1)}, at::kBool);
  if (causal)
    hidden =
        hidden.logical_or(at::ones({q.size(1), k.size(1)}, at::kBool).triu(1).view({1, q.size(1), 1, 1, k.size(1)}));
  if (mask.defined()) hidden = hidden.logical_or(mask.unsqueeze(2).unsqueeze(2));
  const at::Tensor nothing = hidden.all(-1, true);
  s = s.masked_fill(hidden, -1e300);
  const at::Tensor p = at::softmax(s, -1).masked_fill(nothing, 0);
  return at::einsum("btgrs,bsge->btgre", {p, v}).flatten(2);
}

layout lying(const mesh_value& m, std::initializer_list<index_t> extents, int dim, bool zigzag) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  for (index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  for (int a = 0; dim >= 0 && a < m.axes.count; ++a) x.cut_by(dim, a, a > 0);
  if (dim >= 0) x.dims[dim].zigzag = zigzag;
  return x;
}

template <class M>
std::string differs(const team<M>& t, const sizes& n, const form& f, bool zigzag, at::ScalarType type) {
  const mesh_value& m = M::value;
  const layout of_q = lying(m, {n.samples, n.queries, n.heads, n.each, n.features}, 1, zigzag);
  const layout of_k = lying(m, {n.samples, n.keys, n.heads, n.features}, 1, zigzag);
  const layout of_v = lying(m, {n.samples, n.keys, n.heads, n.values}, 1, zigzag);
  const layout of_mask = lying(m, {n.samples, n.queries, n.keys}, 1, zigzag);
  const auto global = [&](const layout& x, std::uint64_t salt) {
    return global_of(extents_of(x), numbers{salt}).to(type);
  };
  std::vector<at::Tensor> whole{global(of_q, 1), global(of_k, 2), global(of_v, 3)};
  at::Tensor mask;
  // a query that sees nothing, one that sees nothing of a part, others at random
  if (f.masked) {
    mask = (global_of(extents_of(of_mask), numbers{4}) > 0.3);
    mask.select(1, n.queries / 2).fill_(true);
    mask.narrow(1, 0, 1).narrow(2, 0, n.keys / 2).fill_(true);
  }
  std::vector<tensor<dyn>> x;
  const layout lies[]{of_q, of_k, of_v};
  for (std::size_t i = 0; i < 3; ++i) {
    x.push_back(distribute(t, lies[i], whole[i].clone()));
    x.back().requires_grad();
    whole[i].requires_grad_();
  }
  if (f.masked) x.push_back(distribute(t, of_mask, mask));

  nn::program p;
  std::vector<nn::dynamic_flow> flows;
  for (const tensor<dyn>& one : x) flows.push_back(p.input({one.layout(), one.type()}));
  const nn::attention_layer layer{.causal = f.causal, .streamed = true, .rows = f.rows};
  p.output(f.masked ? layer(flows[0], flows[1], flows[2], flows[3]) : layer(flows[0], flows[1], flows[2]));
  const nn::dynamic_network net(t, seed{1}, p);
  const tensor<dyn> y = net(x)[0];

  const bool half = at::isReducedFloatingType(type);
  const double near = type == at::kDouble ? 1e-11 : type == at::kFloat ? 1e-4 : 4e-2;
  const auto far = [&](const at::Tensor& a, const tensor<dyn>& b) {
    const at::Tensor off = (a.detach().to(at::kDouble) - full_tensor(b).detach().to(at::kDouble)).abs();
    return off.numel() > 0 && !(off.max().template item<double>() <= near);
  };
  std::vector<at::Tensor> wide;
  for (const at::Tensor& one : whole) wide.push_back(one.detach().to(at::kDouble).requires_grad_());
  const at::Tensor wanted = serial(wide[0], wide[1], wide[2], mask, f.causal);
  if (far(wanted, y)) return "the result";

  const at::Tensor g = global(y.layout(), 5).requires_grad_();
  tensor<dyn> own_g = distribute(t, cotangent(y.layout()), g.detach().clone());
  own_g.requires_grad();
  const at::Tensor wide_g = g.detach().to(at::kDouble).requires_grad_();
  std::vector<at::Tensor> leaves{x[0].local(), x[1].local(), x[2].local()};
  const auto first = torch::autograd::grad({y.local()}, leaves, {own_g.local()}, true, !half);
  const auto first_wanted = torch::autograd::grad({wanted}, wide, {wide_g}, true, true);
  for (std::size_t i = 0; i < 3; ++i)
    if (far(first_wanted[i], {x[0].team(), cotangent(lies[i]), first[i]})) return "gradient " + std::to_string(i);
  if (half) return "";
  std::vector<at::Tensor> seeds, wide_seeds;
  for (std::size_t i = 0; i < 3; ++i) {
    wide_seeds.push_back(global(lies[i], 6 + i).to(at::kDouble));
    seeds.push_back(distribute(t, lies[i], global(lies[i], 6 + i)).local());
  }
  leaves.push_back(own_g.local());
  wide.push_back(wide_g);
  const auto second = torch::autograd::grad(first, leaves, seeds);
  const auto second_wanted = torch::autograd::grad(first_wanted, wide, wide_seeds);
  for (std::size_t i = 0; i < 4; ++i)
    if (far(second_wanted[i], {x[0].team(), i < 3 ? cotangent(lies[i]) : y.layout(), second[i]}))
      return "second gradient " + std::to_string(i);
  return "";
}

template <int P>
struct sequence : axis<P> {};

template <class M>
std::string all_differences(std::initializer_list<at::ScalarType> types) {
  const auto out = in_team<M>([&](const team<M>& t) -> std::string {
    std::string all;
    int number = 0;
    const sizes every[]{{2, 8, 8, 2, 1, 4, 4},
                        {1, 7, 7, 1, 2, 4, 4},
                        {2, 5, 5, 2, 1, 3, 2},
                        {1, 3, 9, 1, 1, 4, 4},
                        {1, 13, 13, 1, 1, 2, 2}};
    for (const sizes& n : every)
      for (const bool causal : {false, true})
        for (const bool masked : {false, true})
          for (const bool zigzag : {false, true})
            for (const index_t rows : {0, 1, 3})
              for (const at::ScalarType type : types) {
                if (causal && n.queries != n.keys) continue;
                if (!tried(number++)) continue;
                const std::string why = differs(t, n, {causal, masked, rows}, zigzag, type);
                if (!why.empty())
                  all += fmt::format("{} queries, {} keys, {} and {} features,{}{}{} by {} in {}: {}\n", n.queries,
                                     n.keys, n.features, n.values, causal ? " causal" : "", masked ? " masked" : "",
                                     zigzag ? " zigzag" : "", rows, c10::toString(type), why);
              }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("attention by parts is attention, with gradients of two orders", "[law][runtime][gradient]") {
  CHECK(all_differences<mesh<sequence<1>>>({at::kDouble}) == "");
  CHECK(all_differences<mesh<sequence<2>>>({at::kDouble, at::kFloat, at::kBFloat16}) == "");
  CHECK(all_differences<mesh<sequence<3>>>({at::kDouble}) == "");
  CHECK(all_differences<mesh<sequence<4>>>({at::kDouble, at::kBFloat16}) == "");
}

TEST_CASE("pieces with more scores than are held at once are met in several", "[law][runtime][gradient]") {
  const auto out = in_team<mesh<sequence<2>>>([](const team<mesh<sequence<2>>>& t) -> std::string {
    const sizes n{4, 600, 600, 2, 1, 3, 2};  // 2,400 queries by head on each, so some hundred keys at once
    std::string all;
    for (const bool causal : {false, true})
      if (const std::string why = differs(t, n, {causal, causal, 0}, causal, at::kDouble); !why.empty())
        all += fmt::format("{}: {}\n", causal ? "causal" : "whole", why);
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("features become heads, as many as divide them", "[law][runtime]") {
  using pair = mesh<sequence<2>>;
  const auto out = in_team<pair>([](const team<pair>& t) -> std::string {
    const mesh_value& m = pair::value;
    std::string all;
    for (const bool streams : {false, true}) {
      const layout lies = lying(m, {2, 6, 8}, streams ? 1 : -1, false);
      std::vector<tensor<dyn>> x;
      std::vector<at::Tensor> whole;
      for (std::uint64_t i = 0; i < 3; ++i) {
        whole.push_back(global_of({2, 6, 8}, numbers{i}));
        x.push_back(distribute(t, lies, whole.back()));
      }
      nn::program p;
      std::vector<nn::dynamic_flow> in;
      for (const tensor<dyn>& one : x) in.push_back(p.input({one.layout(), one.type()}));
      p.output(nn::attention_layer{.streamed = streams, .heads = 4}(in[0], in[1], in[2]));
      const nn::dynamic_network net(t, seed{1}, p);
      const auto heads = [&](std::size_t i) { return whole[i].unflatten(-1, {4, 2}); };
      const at::Tensor wanted = serial(heads(0).unsqueeze(3), heads(1), heads(2), {}, false);
      if ((full_tensor(net(x)[0]) - wanted).abs().max().item<double>() > 1e-12) all += streams ? "streamed" : "whole";
    }
    return all;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("attention that does not fit is refused by code", "[refusal]") {
  const mesh_value& m = mesh<sequence<2>>::value;
  const auto plan = [&](const nn::attention_layer& layer, const layout& q, const layout& k, const layout& v,
                        const std::optional<tensor_value>& mask = {}) {
    const element e = element::float32;
    return (mask ? layer.plan({q, e}, {k, e}, {v, e}, *mask) : layer.plan({q, e}, {k, e}, {v, e})).why;
  };
  const layout x = lying(m, {1, 4, 6}, 1, false);
  const layout four = lying(m, {1, 4, 4}, 1, false);
  const nn::attention_layer streams{.streamed = true, .heads = 3};
  CHECK(plan(streams, x, x, x).ok());
  CHECK(plan({.streamed = true, .heads = 4}, x, x, x).is(code::features_not_of_heads));
  CHECK(plan(streams, x, x, four).is(code::features_not_of_heads));
  CHECK(plan({.streamed = true, .rows = -1, .heads = 3}, x, x, x).is(code::rows_not_positive));
  CHECK(plan({.heads = 3}, x, x, x).is(code::dimension_needed_whole));
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::boolean}).ok());
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 3}, 1, false), element::boolean}).is(code::extents_differ));
  CHECK(plan(streams, x, x, x, tensor_value{lying(m, {1, 4, 4}, 1, false), element::float32}).is(code::wrong_element));
  CHECK(plan({.causal = true, .streamed = true, .heads = 3}, x, lying(m, {1, 8, 6}, 1, false),
             lying(m, {1, 8, 6}, 1, false))
            .is(code::extents_differ));
}

}  // namespace streamed_attention
