#include "linear_parts.hpp"
#include "subjects.hpp"

#include "../running.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

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

/// Whether numbers say true and false alone; others are a mask of numbers, which attention refuses unless it is told.
bool is_boolean(const at::Tensor& x) { return x.eq(0).logical_or(x.eq(1)).all().item<bool>(); }

/// softmax(k qᵀ/√d) v for each head and row of the keys: here keys ask, and queries are asked. A row that excludes all
/// gives 0.
tensor<dyn> attended(const attention_given& g, const tensor<dyn>& k, const tensor<dyn>& q, const tensor<dyn>& v,
                     const std::optional<tensor<dyn>>& mask, index_t chunk) {
  std::vector<tensor<dyn>> x{k, q, v};
  if (mask) x.push_back(*mask);
  nn::program p;
  std::vector<nn::dynamic_flow> in;
  for (const tensor<dyn>& one : x) in.push_back(p.input({one.layout(), one.type()}));
  const nn::attention_layer layer{.causal = g.causal, .streamed = true, .rows = chunk, .heads = g.heads};
  p.output(mask ? layer(in[0], in[1], in[2], in[3]) : layer(in[0], in[1], in[2]));
  const nn::dynamic_network net(k.team(), seed{0}, p);
  return net(x)[0];
}

/// What a worker takes of memory at most beyond keys, queries and values, forward and backward.
task memory_of(reading& c) {
  attention_given g;
  const index_t rows = c.given().integer("rows");
  const index_t features = c.given().integer("key_dim");
  g.heads = c.given().integer("heads");
  c.word("form", {"ring"});
  const auto most = c.expected("bytes_at_most").get<std::vector<std::int64_t>>();
  return c.in_each_world([=, &c](world& w) -> body {
    layout lies = whole(w.mesh(), {1, rows, features});
    for (int a = 0; a < w.mesh().axes.count; ++a) lies.cut_by(1, a);
    const std::int64_t may = most.at(c.number_of(w).value());
    return [=](attempt& run) {
      std::vector<tensor<dyn>> x;
      for (int i = 0; i < 3; ++i) x.push_back(run.leaf(recipe(json{{"gen", {i + 1, {1, rows, features}}}}), lies));
      const memory_count taken;
      const tensor<dyn> y = attended(g, x[0], x[1], x[2], std::nullopt, 0);
      y.local().sum().backward();
      if (taken.peak() > may) run.fail(fmt::format("{} bytes are held, not {} at most", taken.peak(), may));
    };
  });
}

}  // namespace

/// Attention over a cut time axis: queries and values come part by part, scores stay with the rows of the keys.
task attention(reading& c) {
  if (c.kind() == "memory") return memory_of(c);
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
    layout y = behind("keys");
    y.dims[2] = behind("values").dims[2];
    if (const auto part = projection_of(w, g, "composition", y)) {
      parts.emplace("composition", *part);
      y = part->of.plan.output();
    }
    const std::optional<layout> masks = g.mask ? std::optional(w.lying("mask", g.mask->shape())) : std::nullopt;
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
      std::optional<tensor<dyn>> mask;
      if (masks) mask = a.given(*g.mask, *masks, is_boolean(g.mask->whole()) ? at::kBool : a.type());
      const tensor<dyn> heads = attended(g, k, through("queries", leaves.at("queries")),
                                         through("values", leaves.at("values")), mask, a.chunk);
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
