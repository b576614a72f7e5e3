#include "subjects.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/operation/attention/attention.hpp>
#include <tessera/operation/layer/layer_values.hpp>
#include <tessera/operation/layer/normalisation_layers.hpp>

namespace conformance::training {
namespace {

/// A parameter of a block by its serial key.
struct block_parameter {
  std::string name;  ///< the case's
  recipe value;
  bool turned = false;  ///< a weight that the case stores [in, out]
  bool fused = false;   ///< queries, keys and values in one
};
using block_parameters = std::map<std::string, block_parameter>;

/// What blocks have in common.
struct block_form {
  index_t heads = 1;
  bool per_head = false;  ///< fused features stand head by head: key, query, value
  bool causal = false;
};

/// Fused features in the serial order of the library, all queries, all keys, all values, or back in the case's.
at::Tensor reordered(const at::Tensor& x, const block_form& form, bool back) {
  const index_t features = x.size(0) / (3 * form.heads);
  if (!form.per_head || features * 3 * form.heads != x.size(0)) return x;
  const at::Tensor order = at::tensor({1, 0, 2}, at::kLong);
  if (back) return x.unflatten(0, {3, form.heads, features}).transpose(0, 1).index_select(1, order).flatten(0, 2);
  return x.unflatten(0, {form.heads, 3, features}).index_select(1, order).transpose(0, 1).flatten(0, 2);
}

at::Tensor serial_value(const block_parameter& p, const block_form& form) {
  const at::Tensor x = p.turned ? p.value.whole().t() : p.value.whole();
  return (p.fused ? reordered(x, form, false) : x).contiguous();
}
at::Tensor case_value(const at::Tensor& serial, const block_parameter& p, const block_form& form) {
  const at::Tensor x = p.fused ? reordered(serial, form, true) : serial;
  return p.turned ? x.t() : x;
}

/// The axes that cut a parameter anywhere.
axis_names axes_that_cut(const layout& x) {
  static_vector<text, engine::max_axes> axes;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::cut) axes.push(x.mesh.axes[a].name);
  return axis_names(axes);
}

/// Writes blocks of the library's layers, as a world cuts them.
class block_writer {
 public:
  block_writer(const block_form& form, const block_parameters& parameters, const std::map<std::string, layout>& lying,
               const layout& stream)
      : form_(form), parameters_(parameters), lying_(lying), stream_(stream) {}

  nn::dynamic_flow attention(const nn::dynamic_flow& x, const std::string& qkv, const std::string& proj) const {
    const index_t fused = parameters_.at(qkv + ".weight").value.shape()[parameters_.at(qkv + ".weight").turned ? 1 : 0];
    const auto [q, k, v] = x | nn::under(qkv, nn::heads_layer{.heads = form_.heads,
                                                              .key_heads = form_.heads,
                                                              .features = fused / (3 * form_.heads),
                                                              .bias = has(qkv + ".bias"),
                                                              .cut_out = cut(qkv)});
    const nn::dynamic_flow y = form_.causal ? nn::attention<causal>{}(q, k, v) : nn::attention<>{}(q, k, v);
    return row(y, proj);
  }
  nn::dynamic_flow mlp(const nn::dynamic_flow& x, const std::string& fc1, const std::string& fc2) const {
    return row(
        gelu(x |
             nn::under(fc1, nn::linear_layer{.out = outputs(fc1), .bias = has(fc1 + ".bias"), .cut_out = cut(fc1)})),
        fc2);
  }
  nn::dynamic_flow norm(const nn::dynamic_flow& x, const std::string& name) const {
    return x | nn::under(name, nn::layer_norm<>{});
  }

 private:
  bool has(const std::string& key) const { return parameters_.count(key) != 0; }
  axis_names cut(const std::string& layer) const { return axes_that_cut(lying_.at(layer + ".weight")); }
  index_t outputs(const std::string& layer) const {
    const block_parameter& w = parameters_.at(layer + ".weight");
    return w.value.shape()[w.turned ? 1 : 0];
  }
  nn::dynamic_flow row(const nn::dynamic_flow& x, const std::string& layer) const {
    return x | nn::under(layer, nn::linear_layer{.out = outputs(layer),
                                                 .bias = has(layer + ".bias"),
                                                 .cut_in = cut(layer),
                                                 .output_as = stream_});
  }

  const block_form& form_;
  const block_parameters& parameters_;
  const std::map<std::string, layout>& lying_;
  const layout& stream_;
};

/// Gradients of a network by serial key, and how many elements of each a worker stores.
struct block_gradients {
  std::map<std::string, at::Tensor> serial;
  std::map<std::string, index_t> stored;

  void operator()(const nn::parameter& p) {
    const auto [of, fresh] = serial.try_emplace(p.key());
    if (fresh) of->second = at::zeros(p.serial_sizes(), p.stored().local().options().device(at::kCPU));
    p.part_of(of->second).copy_(full_tensor(attempt::gradient(p.stored())).to(at::kCPU));
    stored[p.key()] += p.stored().local().numel();
  }
};

using written = std::function<nn::dynamic_flow(const block_writer&, const nn::dynamic_flow&)>;

/// The case of a network of blocks: every parameter must lie as the world says, results and gradients be the expected
/// ones.
task of_blocks(reading& c, const block_form& form, const block_parameters& parameters, const written& write) {
  const recipe x = c.tensor("x");
  const std::optional<recipe> cotangent = c.maybe("cotangent");
  const std::optional<numbers> expected = c.result("y");
  const std::map<std::string, numbers> gradients = c.gradients();
  for (const auto& [name, said] : gradients)
    if (name != "x" && std::none_of(parameters.begin(), parameters.end(),
                                    [&wanted = name](const auto& p) { return p.second.name == wanted; }))
      throw unbuilt(fmt::format("the gradient of '{}'", name));
  return c.in_each_world([&](world& w) -> body {
    std::map<std::string, layout> lying;
    for (const auto& [key, p] : parameters) lying[key] = w.lying(p.name, p.value.shape());
    const layout stream = w.lying("x", x.shape());
    const layout y = w.names("y") ? w.lying("y", x.shape()) : stream;
    return [=](attempt& a) {
      nn::program p;
      p.output(write(block_writer(form, parameters, lying, stream), p.input({stream, a.element})));
      nn::dynamic_network net{a.team, seed{1}, p};
      nn::state_dict begins;
      for (const auto& [key, one] : parameters) begins[key] = serial_value(one, form).to(a.type());
      nn::assign(net, begins);
      const tensor<dyn> input = a.leaf(x, stream);
      const tensor<dyn> result = to(y, net(input));
      a.compare("y", result, expected);
      if (!cotangent) return;
      a.backward(result, *cotangent);
      const auto wanted = [&](const std::string& name) {
        return gradients.count(name) == 0 ? std::nullopt : std::optional(gradients.at(name));
      };
      a.compare("the gradient of x", attempt::gradient(input), wanted("x"));
      block_gradients found;
      net.each_parameter([&](const nn::parameter& one) { found(one); });
      for (const auto& [key, one] : parameters) {
        a.compare_whole("the gradient of " + one.name, case_value(found.serial.at(key), one, form), wanted(one.name));
        index_t mine = 1;
        for (const engine::interval& i : box_of(lying.at(key), a.team->rank())) mine *= i.size();
        if (found.stored.at(key) != mine)
          a.fail(fmt::format("{} elements of {} are stored, not {}", found.stored.at(key), one.name, mine));
      }
    };
  });
}

block_form form_of(reading& c) {
  block_form form;
  form.heads = c.given().integer("heads");
  form.per_head = c.word("order", {"qkv", "kqv_per_head"}) == "kqv_per_head";
  form.causal = c.given().flag("causal");
  if (form.heads < 1) throw unbuilt("no heads");
  return form;
}

}  // namespace

/// Self-attention with fused projections, of the library's layers.
task attention_block(reading& c) {
  const bool in_out = c.word("storage", {"out_in", "in_out"}) == "in_out";
  block_parameters parameters;
  for (const auto& [key, name] : {std::pair("qkv", "qkv"), std::pair("proj", "proj")}) {
    const std::string weight = fmt::format("w_{}", name);
    const std::string bias = fmt::format("b_{}", name);
    parameters.emplace(fmt::format("{}.weight", key),
                       block_parameter{weight, c.tensor(weight), in_out, std::string_view(key) == "qkv"});
    if (c.has(bias))
      parameters.emplace(fmt::format("{}.bias", key),
                         block_parameter{bias, c.tensor(bias), false, std::string_view(key) == "qkv"});
  }
  return of_blocks(c, form_of(c), parameters,
                   [](const block_writer& w, const nn::dynamic_flow& x) { return w.attention(x, "qkv", "proj"); });
}

/// Pre-norm blocks of attention and MLP, of the library's layers.
task transformer_block(reading& c) {
  if (c.number("eps", 1e-5) != 1e-5) throw unbuilt("another number added to variances than LibTorch's");
  const index_t depth = c.given().integer("depth");
  block_parameters parameters;
  for (const auto& [name, said] : c.entries("parameters"))
    parameters.emplace(name, block_parameter{name, recipe(said), false, name.find(".qkv.") != std::string::npos});
  return of_blocks(c, form_of(c), parameters, [depth](const block_writer& w, const nn::dynamic_flow& x) {
    nn::dynamic_flow y = x;
    for (index_t i = 0; i < depth; ++i) {
      const auto at = [&](const char* part) { return fmt::format("blocks.{}.{}", i, part); };
      y = y + w.attention(w.norm(y, at("norm1")), at("attn.qkv"), at("attn.proj"));
      y = y + w.mlp(w.norm(y, at("norm2")), at("mlp.fc1"), at("mlp.fc2"));
    }
    return y;
  });
}

}  // namespace conformance::training
