#pragma once
// Attention whose keys and values come part by part, wherever they lie, beside that of the whole sequence in double.

#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/operation/attention/attention.hpp>

#include <cmath>
#include <limits>

namespace streamed_attention {

using namespace tessera;
using namespace tessera::testing;

/// One attention: samples, queries, keys, heads of the keys, queries of each, features of keys and of values.
struct sizes {
  index_t samples, queries, keys, heads, each, features, values;
};
struct form {
  bool causal = false;
  bool masked = false;
  index_t rows = 0;
  bool slides = false;
  index_t before = 0, after = 0;
  bool adds = false;  ///< a mask of numbers, some of them −∞
  int over = 0;       ///< so many axes, the first ones, bring all rows of some heads
  bool streamed = true;
  std::vector<index_t> lengths = {};  ///< cumulative, of packed sequences
  double dropped = 0;                 ///< the share of weights that are dropped
  bool chooses = false;               ///< over these axes or along them
  int cuts_keys = 0;                  ///< so many axes, the first ones, cut the keys; all where none are said
  std::vector<index_t> bounds = {};   ///< where parts begin and the last one ends; balanced where nothing is said
  int turned = 0;                     ///< so far the parts are dealt on

  /// What queries [t] do not see of keys [s], by their places.
  at::Tensor hidden(index_t queries, index_t keys) const {
    const at::Tensor i = at::arange(queries, at::kLong).unsqueeze(1), j = at::arange(keys, at::kLong);
    at::Tensor all = at::zeros({queries, keys}, at::kBool);
    if (causal) all = all.logical_or(j > i);
    if (slides) all = all.logical_or(i - j > before).logical_or(j - i > after);
    if (lengths.empty()) return all;
    const at::Tensor ends = at::tensor(lengths, at::kLong);
    return all.logical_or(at::searchsorted(ends, i, false, true) != at::searchsorted(ends, j, false, true));
  }
};

/// softmax(q kᵀ / √d) v of [n, t, g, r, d], [n, s, g, d], [n, s, g, e], by differentiable functions of LibTorch.
/// Weights are multiplied by those kept, of [n, t, g, r, s].
inline at::Tensor serial(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask,
                         const form& f, const at::Tensor& kept = {}) {
  at::Tensor s = at::einsum("btgrd,bsgd->btgrs", {q, k}) / std::sqrt(static_cast<double>(q.size(-1)));
  at::Tensor hidden = f.hidden(q.size(1), k.size(1)).view({1, q.size(1), 1, 1, k.size(1)});
  if (mask.defined()) {
    const at::Tensor never = f.adds ? mask.detach() == -std::numeric_limits<double>::infinity() : mask;
    hidden = hidden.logical_or(never.unsqueeze(2).unsqueeze(2));
    if (f.adds) s = s + mask.masked_fill(never, 0).unsqueeze(2).unsqueeze(2);
  }
  const at::Tensor nothing = hidden.all(-1, true);
  s = s.masked_fill(hidden, -1e300);
  at::Tensor p = at::softmax(s, -1).masked_fill(nothing, 0);
  if (kept.defined()) p = p * kept;
  return at::einsum("btgrs,bsge->btgre", {p, v}).flatten(2);
}

/// By what the weights of the next step are multiplied: drawn of all places at once.
inline at::Tensor kept_weights(const nn::dynamic_network& net, const sizes& n, const form& f) {
  const nn::state_dict state = nn::state_of(net);
  const tessera::detail::drawn_numbers now(state.at("0.key").cpu(), state.at("0.draws").cpu());
  tessera::detail::holding all;
  tessera::detail::global_index extents;
  for (const index_t extent : {n.samples, n.queries, n.heads, n.each, n.keys}) {
    all.push({{{0, extent}}, 1});
    extents.push(extent);
  }
  const at::Tensor dropped = now.below(tessera::detail::box_runs(all, extents), f.dropped);
  return dropped.logical_not().to(at::kDouble) / (1 - f.dropped);
}

inline layout lying(const mesh_value& m, std::initializer_list<index_t> extents, int dim, bool zigzag, int axes = 0) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  for (index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  for (int a = 0; dim >= 0 && a < (axes > 0 ? axes : m.axes.count); ++a) x.cut_by(dim, a, a > 0);
  if (dim >= 0) x.dims[dim].zigzag = zigzag;
  return x;
}

/// What differs on the workers of a line, on their devices.
inline std::string differs(const team_handle& t, const sizes& n, const form& f, bool zigzag, at::ScalarType type) {
  const mesh_value& m = t->mesh();
  const at::Device device = device_of(*t);
  const auto lie = [&](std::initializer_list<index_t> extents, int axes) {
    layout x = lying(m, extents, 1, zigzag, axes);
    if (!f.bounds.empty()) x.dims[1].bounds = f.bounds.data();
    x.dims[1].turned = f.turned;
    return x;
  };
  const layout of_q = lie({n.samples, n.queries, n.heads, n.each, n.features}, 0);
  const layout of_k = lie({n.samples, n.keys, n.heads, n.features}, f.cuts_keys);
  const layout of_v = lie({n.samples, n.keys, n.heads, n.values}, f.cuts_keys);
  const layout of_mask = lie({n.samples, n.queries, n.keys}, 0);
  const auto global = [&](const layout& x, std::uint64_t salt) {
    return global_of(extents_of(x), numbers{salt}).to(type);
  };
  std::vector<at::Tensor> whole{global(of_q, 1), global(of_k, 2), global(of_v, 3)};
  at::Tensor mask;
  // a query that sees nothing, one that sees nothing of a part, others at random
  if (f.masked || f.adds) {
    mask = (global_of(extents_of(of_mask), numbers{4}) > 0.3);
    mask.select(1, n.queries / 2).fill_(true);
    mask.narrow(1, 0, 1).narrow(2, 0, n.keys / 2).fill_(true);
  }
  std::vector<tensor<dyn>> x;
  const layout lies[]{of_q, of_k, of_v, of_mask};
  for (std::size_t i = 0; i < 3; ++i) {
    x.push_back(distribute(t, lies[i], whole[i].clone().to(device)));
    x.back().requires_grad();
    whole[i].requires_grad_();
  }
  if (f.masked) x.push_back(distribute(t, of_mask, mask.to(device)));
  if (f.adds) {
    const at::Tensor added = global(of_mask, 4).masked_fill(mask, -std::numeric_limits<double>::infinity());
    whole.push_back(added.requires_grad_());
    x.push_back(distribute(t, of_mask, whole[3].detach().clone().to(device)));
    x.back().requires_grad();
  }
  if (!f.lengths.empty())
    x.push_back(distribute(t, lying(m, {static_cast<index_t>(f.lengths.size())}, -1, false),
                           at::tensor(f.lengths, at::kLong).to(device)));

  nn::program p;
  std::vector<nn::dynamic_flow> flows;
  for (const tensor<dyn>& one : x) flows.push_back(p.input({one.layout(), one.type()}));
  static_vector<text, max_axes> over = no_items<text, max_axes>;
  for (int a = 0; a < f.over; ++a) over.push(m.axes[a].name);
  const nn::attention_layer layer{.causal = f.causal,
                                  .streamed = f.streamed,
                                  .rows = f.rows,
                                  .slides = f.slides,
                                  .before = f.before,
                                  .after = f.after,
                                  .over = tessera::engine::axis_names(over),
                                  .probability = f.dropped,
                                  .fewest_bytes = f.chooses,
                                  .added_mask = f.adds};
  p.output(x.size() > 3 ? layer(flows[0], flows[1], flows[2], flows[3]) : layer(flows[0], flows[1], flows[2]));
  const nn::dynamic_network net(t, seed{1}, p);
  const at::Tensor kept = f.dropped > 0 ? kept_weights(net, n, f) : at::Tensor();
  const tensor<dyn> y = net(x)[0];

  const bool half = at::isReducedFloatingType(type);
  const double near = type == at::kDouble ? 1e-11 : type == at::kFloat ? 1e-4 : 4e-2;
  const auto far = [&](const at::Tensor& a, const tensor<dyn>& b) {
    const at::Tensor off = (a.detach().to(at::kDouble) - full_tensor(b).detach().cpu().to(at::kDouble)).abs();
    return off.numel() > 0 && !(off.max().template item<double>() <= near);
  };
  std::vector<at::Tensor> wide;
  for (const at::Tensor& one : whole) wide.push_back(one.detach().to(at::kDouble).requires_grad_());
  const at::Tensor wanted = serial(wide[0], wide[1], wide[2], f.adds ? wide[3] : mask, f, kept);
  const std::size_t leaves_of = whole.size();
  if (far(wanted, y)) return "the result";

  const at::Tensor g = global(y.layout(), 5).requires_grad_();
  tensor<dyn> own_g = distribute(t, cotangent(y.layout()), g.detach().clone().to(device));
  own_g.requires_grad();
  const at::Tensor wide_g = g.detach().to(at::kDouble).requires_grad_();
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < leaves_of; ++i) leaves.push_back(x[i].local());
  const auto first = torch::autograd::grad({y.local()}, leaves, {own_g.local()}, true, !half);
  const auto first_wanted = torch::autograd::grad({wanted}, wide, {wide_g}, true, true);
  for (std::size_t i = 0; i < leaves_of; ++i)
    if (far(first_wanted[i], {x[0].team(), cotangent(lies[i]), first[i]})) return "gradient " + std::to_string(i);
  if (half) return "";
  std::vector<at::Tensor> seeds, wide_seeds;
  for (std::size_t i = 0; i < leaves_of; ++i) {
    wide_seeds.push_back(global(lies[i], 6 + i).to(at::kDouble));
    seeds.push_back(distribute(t, lies[i], global(lies[i], 6 + i).to(device)).local());
  }
  leaves.push_back(own_g.local());
  wide.push_back(wide_g);
  const auto second = torch::autograd::grad(first, leaves, seeds);
  const auto second_wanted = torch::autograd::grad(first_wanted, wide, wide_seeds);
  for (std::size_t i = 0; i <= leaves_of; ++i)
    if (far(second_wanted[i], {x[0].team(), i < leaves_of ? cotangent(lies[i]) : y.layout(), second[i]}))
      return "second gradient " + std::to_string(i);
  return "";
}

}  // namespace streamed_attention
