#include "gathering.hpp"
#include "linear_parts.hpp"
#include "subjects.hpp"

#include "../running.hpp"

#include <cmath>

namespace conformance::training {
namespace {

/// What is given of attention over a cut time axis.
struct attention_given {
  std::map<std::string, recipe> tensors;  ///< keys, queries, values, their weights and biases
  std::optional<recipe> mask;
  index_t heads = 1;
  bool causal = false;
};

/// A projection of the case, or none.
std::optional<linear_part> projection_of(world& w, const attention_given& g, const std::string& of, const layout& x) {
  const auto weight = g.tensors.find("w_" + of);
  if (weight == g.tensors.end()) return {};
  const auto bias = g.tensors.find("b_" + of);
  const std::optional<recipe> b = bias == g.tensors.end() ? std::nullopt : std::optional(bias->second);
  const linear_names named{"w_" + of, "b_" + of};
  linear_tensors lie = lying_in(w, named, weight->second, b, false);
  lie.x = x;
  return linear_part{linear_link(lie), weight->second, b, false, named};
}

/// Heads as a dimension before the rows: [batch, rows, features] as [batch, heads, rows, features of one].
at::Tensor by_head(const at::Tensor& x, index_t heads) {
  return x.unflatten(-1, {heads, x.size(-1) / heads}).transpose(1, 2);
}

/// softmax(k qᵀ/√d) v for each head and row of k: queries and values are gathered, and the rest is this worker's. A row
/// that excludes all gives 0.
tensor<dyn> attended(const attention_given& g, const tensor<dyn>& k, const tensor<dyn>& q, const tensor<dyn>& v,
                     const at::Tensor& mask, index_t chunk) {
  layout with = gathered(k.layout(), 1);
  const auto beside = [&](const tensor<dyn>& x) {  // as the keys lie along all other axes
    layout lies = with;
    lies.dims[2] = x.layout().dims[2];
    return lies;
  };
  const double scale = 1 / std::sqrt(static_cast<double>(k.layout().dims[2].extent / g.heads));
  const at::Tensor rows = by_head(k.local(), g.heads) * scale;
  const tensor<dyn> each = in_chunks(q, 1, 1, chunk, [&](const tensor<dyn>& some) -> tensor<dyn> {
    layout lies = k.layout();
    lies.dims[2] = uncut(some.layout().dims[1].extent);
    layout heads = lies;  // [batch, rows, columns · heads], heads outermost, so that columns stand side by side
    heads.dims.push(lies.dims[2]);
    heads.dims[2] = uncut(g.heads);
    const at::Tensor s = rows.matmul(by_head(some.local(), g.heads).transpose(-2, -1));
    return {k.team(), heads, s.transpose(1, 2)};
  });
  at::Tensor s = each.local().transpose(1, 2);
  at::Tensor nothing;
  if (mask.defined()) {
    const at::Tensor excluded = mask.unsqueeze(1);
    nothing = excluded.all(-1, true);
    s = s.masked_fill(excluded.logical_and(nothing.logical_not()), -INFINITY);
  }
  const tensor<dyn> all = to(beside(v), v);
  at::Tensor p = at::softmax(s, -1);
  if (nothing.defined()) p = p.masked_fill(nothing, 0);
  const at::Tensor y = p.matmul(by_head(all.local(), g.heads)).transpose(1, 2).flatten(2);
  layout lies = k.layout();
  lies.dims[2] = v.layout().dims[2];
  return {k.team(), lies, y};
}

/// What a worker's rows exclude, by a mask that lies as the keys do, and by their order; undefined where nothing is.
at::Tensor excluded_here(const attention_given& g, const layout& keys, const std::optional<layout>& masks, int rank) {
  at::Tensor mask;
  if (g.mask) mask = g.mask->box(*masks, rank, at::kBool);
  if (!g.causal) return mask;
  const engine::interval rows = box_of(keys, rank)[1];
  const at::Tensor row = at::arange(rows.lo, rows.lo + rows.size(), at::kLong).unsqueeze(1);
  const at::Tensor later = (at::arange(keys.dims[1].extent, at::kLong).unsqueeze(0) > row).unsqueeze(0);
  return mask.defined() ? mask.logical_or(later) : later;
}

}  // namespace

/// Attention over a cut time axis: queries and values are gathered, scores stay with the rows of the keys.
task attention(reading& c) {
  if (c.kind() == "memory")
    throw unbuilt("attention that never has rows by rows: the library's own takes the sequence whole");
  if (c.kind() == "refused")
    throw unbuilt("attention over a cut time axis is composed here, so nothing of the library refuses it");
  attention_given g;
  for (const char* name : {"keys", "queries", "values", "w_keys", "w_queries", "w_values", "w_composition", "b_keys",
                           "b_queries", "b_values", "b_composition"})
    if (c.has(name)) g.tensors.emplace(name, c.tensor(name));
  for (const char* name : {"keys", "queries", "values"})
    if (g.tensors.count(name) == 0 || g.tensors.at(name).shape().size() != 3)
      throw unbuilt(fmt::format("no {} [batch, rows, features]", name));
  g.mask = c.maybe("mask");
  if (c.has("heads")) g.heads = c.given().integer("heads");
  g.causal = c.given().flag("causal");
  const bool with_gradient = c.given().flag("gradient", true);
  c.given().flag("distributed", true);  // on one worker the plain form is the same
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  const std::optional<numbers> expected = c.result("y");
  const std::map<std::string, numbers> gradients = c.gradients();
  for (const auto& [name, said] : gradients)
    if (g.tensors.count(name) == 0) throw unbuilt(fmt::format("the gradient of '{}'", name));
  return c.in_each_world([&](world& w) -> body {
    std::map<std::string, layout> lying;
    std::map<std::string, linear_part> parts;
    for (const char* name : {"keys", "queries", "values"}) {
      lying[name] = w.lying(name, g.tensors.at(name).shape());
      if (const auto part = projection_of(w, g, name, lying[name])) parts.emplace(name, *part);
    }
    const auto behind = [&](const char* name) {
      return parts.count(name) == 0 ? lying.at(name) : parts.at(name).of.plan.output();
    };
    if (behind("keys").dims[2].extent % g.heads != 0 || behind("values").dims[2].extent % g.heads != 0)
      throw unbuilt("heads that do not divide the features");
    layout y = behind("keys");
    y.dims[2] = behind("values").dims[2];
    if (const auto part = projection_of(w, g, "composition", y)) {
      parts.emplace("composition", *part);
      y = part->of.plan.output();
    }
    const std::optional<layout> masks = g.mask ? std::optional(w.lying("mask", g.mask->shape())) : std::nullopt;
    for (int i = 0; masks && i < w.mesh().size(); ++i)
      if (const int rank = w.mesh().rank(w.mesh().at(i)); !(box_of(*masks, rank)[1] == box_of(behind("keys"), rank)[1]))
        throw unbuilt("a mask whose rows lie otherwise than the keys'");
    if (w.names("y")) y = w.lying("y", extents_of(y));
    return [=](attempt& a) {
      const at::AutoGradMode mode(with_gradient);
      std::map<std::string, tensor<dyn>> leaves;
      std::map<std::string, running_link> layers;
      for (const auto& [name, p] : parts) {
        serial_state begins;
        begins.parameters.push_back(p.weight.whole().to(a.type()));
        if (p.bias) begins.parameters.push_back(p.bias->whole().to(a.type()));
        layers.emplace(name, running_link(a.team, p.of, begins, a.element));
      }
      const auto through = [&](const std::string& name, const tensor<dyn>& x) {
        const auto layer = layers.find(name);
        return layer == layers.end() ? x : layer->second(x, true);
      };
      for (const char* name : {"keys", "queries", "values"})
        leaves.emplace(name, a.leaf(g.tensors.at(name), lying.at(name)));
      const tensor<dyn> k = through("keys", leaves.at("keys"));
      const at::Tensor mask = excluded_here(g, k.layout(), masks, a.team->rank());
      const tensor<dyn> heads =
          attended(g, k, through("queries", leaves.at("queries")), through("values", leaves.at("values")),
                   mask.defined() ? mask.to(device_of(*a.team)) : mask, a.chunk);
      const tensor<dyn> result = to(y, through("composition", heads));
      if (!with_gradient && result.local().requires_grad()) a.fail("a run without gradients has a graph");
      a.compare("y", result, expected);
      if (!cotangent) return;
      a.backward(result, *cotangent);
      for (const auto& [name, said] : gradients) {
        const auto leaf = leaves.find(name);
        if (leaf != leaves.end()) a.compare("the gradient of " + name, attempt::gradient(leaf->second), said);
        else
          a.compare("the gradient of " + name,
                    attempt::gradient(layers.at(name.substr(2)).state.parameters[name[0] == 'w' ? 0 : 1].stored()),
                    said);
      }
    };
  });
}

}  // namespace conformance::training
