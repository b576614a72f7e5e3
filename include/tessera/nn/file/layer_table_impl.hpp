#pragma once

#include <tessera/nn/file/layer_table.hpp>
#include <tessera/nn/file/route_in_file.hpp>

#include <tuple>

namespace tessera::nn {

namespace engine {

/// Refuses a layer of other than 1 to 4 operands.
inline void check_count(std::size_t operands, const char* name) {
  if (operands < 1 || operands > 4) throw error(refusal{code::wrong_number_of_operands, -1, operands}, name);
}

/// What `ask(options)` asks for, of whom nothing is said.
template <class Ask>
node_kind node_kind_of(const std::string& name, std::pair<int, int> operands, const Ask& ask) {
  node_kind k;
  k.name = name;
  std::tie(k.least, k.most) = operands;
  const file::json nothing = file::json::object();
  const mesh_value mesh;
  file::lists keep;
  static_cast<void>(ask(node_options(file::json_cursor(nothing, name), mesh, keep, &k.fields)));
  return k;
}

}  // namespace engine

TESSERA_INLINE layer_table::layer_table() {
  add_layers();
  add_functions();
}

TESSERA_INLINE void layer_table::add_layers() {
  using options = const node_options&;
  layer("linear", [](options o) {
    return linear_layer{o.number("out_features"),
                        o.flag("bias", true),
                        o.axes("cut_out"),
                        o.axes("cut_in"),
                        o.partition_setting("output_as"),
                        o.number("grain_out", 1),
                        o.element_setting("weights_as"),
                        o.flag("round_terms", false)};
  });
  layer("experts", [](options o) {
    return experts_layer{o.number("experts"),
                         o.number("out_features"),
                         o.flag("bias", true),
                         o.axes("cut_out"),
                         o.axes("cut_in"),
                         o.partition_setting("output_as"),
                         o.number("grain_out", 1),
                         o.element_setting("weights_as"),
                         o.flag("round_terms", false)};
  });
  layer("route", [](options o) { return tessera::detail::route_in_file(o); });
  layer("combine", [](options) { return combine{}; });
  layer("conv", [](options o) {
    const index_t out = o.number("out_channels");
    const engine::per_dimension kernel = o.numbers("kernel_size"), stride = o.numbers("stride", "1");
    const std::string rule = o.padding_rule("padding");
    return conv_layer{out,
                      kernel,
                      stride,
                      rule.empty() ? o.widths("padding", "0") : engine::per_dimension{},
                      o.numbers("dilation", "1"),
                      o.edges("padding_mode"),
                      o.number("groups", 1),
                      o.flag("bias", true),
                      o.axes("cut_out"),
                      o.axes("cut_in"),
                      o.partition_setting("output_as"),
                      o.number("grain_out", 1),
                      o.element_setting("weights_as"),
                      rule == "same",
                      o.flag("round_terms", false)};
  });
  layer("conv_transpose", [](options o) {
    return conv_transpose_layer{o.number("out_channels"),
                                o.numbers("kernel_size"),
                                o.numbers("stride", "1"),
                                o.widths("padding", "0"),
                                o.numbers("output_padding", "0"),
                                o.numbers("output_size", "by `output_padding`"),
                                o.numbers("dilation", "1"),
                                o.number("groups", 1),
                                o.flag("bias", true),
                                o.axes("cut_out"),
                                o.axes("cut_in"),
                                o.partition_setting("output_as"),
                                o.number("grain_out", 1),
                                o.element_setting("weights_as"),
                                o.flag("round_terms", false)};
  });
  layer("max_pool", [](options o) {
    return max_pool_layer{o.numbers("kernel_size"), o.numbers("stride", "the kernel's"), o.widths("padding", "0"),
                          o.numbers("dilation", "1"), o.flag("ceil_mode", false)};
  });
  layer("avg_pool", [](options o) {
    return avg_pool_layer{o.numbers("kernel_size"),
                          o.numbers("stride", "the kernel's"),
                          o.widths("padding", "0"),
                          o.numbers("dilation", "1"),
                          o.flag("ceil_mode", false),
                          o.flag("count_include_pad", true),
                          o.number("divisor_override", 0, "the window's size")};
  });
  layer("global_avg_pool", [](options) { return global_avg_pool{}; });
  layer("adaptive_avg_pool", [](options o) { return adaptive_avg_pool_layer{o.numbers("output_size")}; });
  layer("adaptive_max_pool", [](options o) { return adaptive_max_pool_layer{o.numbers("output_size")}; });
  layer("pixel_shuffle", [](options o) { return pixel_shuffle_layer{o.number("upscale_factor")}; });
  layer("pixel_unshuffle", [](options o) { return pixel_unshuffle_layer{o.number("downscale_factor")}; });
  layer("unfold", [](options o) {
    return unfold_layer{o.numbers("kernel_size"), o.numbers("stride", "1"), o.widths("padding", "0"),
                        o.numbers("dilation", "1")};
  });
  layer("fold", [](options o) {
    return fold_layer{o.numbers("kernel_size"),
                      o.numbers("stride", "1"),
                      o.widths("padding", "0"),
                      o.numbers("output_padding", "0"),
                      o.numbers("output_size", "by `output_padding`"),
                      o.numbers("dilation", "1")};
  });
  layer("upsample", [](options o) {
    return upsample_layer{o.reals("scale_factor", "`size` says it"), o.numbers("size", "`scale_factor` says it"),
                          o.interpolated("mode"), o.flag("align_corners", false), o.flag("antialias", false)};
  });
  layer("fft", [](options o) {
    return fft_layer{o.numbers("dim"), false, false, o.norm("norm"), 0, o.partition_setting("output_as")};
  });
  layer("ifft", [](options o) {
    return fft_layer{o.numbers("dim"), true, false, o.norm("norm"), 0, o.partition_setting("output_as")};
  });
  layer("rfft", [](options o) {
    return fft_layer{o.numbers("dim"), false, true, o.norm("norm"), 0, o.partition_setting("output_as")};
  });
  layer("irfft", [](options o) {
    return fft_layer{o.numbers("dim"),
                     true,
                     true,
                     o.norm("norm"),
                     o.number("n", 0, "2 (m − 1) of m elements"),
                     o.partition_setting("output_as")};
  });
  layer("spectral_conv", [](options o) { return spectral_conv_layer{o.number("out_channels"), o.numbers("modes")}; });
  layer("batch_norm", [](options o) {
    const engine::setting<double> momentum = o.real_or_null("momentum", 0.1, "means over all calls");
    return batch_norm_layer{o.real("eps", 1e-5), momentum.is_set() ? momentum.value() : 0.1, !momentum.is_set(),
                            o.flag("affine", true), o.flag("track_running_stats", true)};
  });
  layer("group_norm", [](options o) {
    return group_norm_layer{o.number("num_groups"), o.real("eps", 1e-5), o.flag("affine", true)};
  });
  layer("instance_norm", [](options o) {
    const engine::setting<double> momentum = o.real_or_null("momentum", 0.1, "means over all calls");
    return instance_norm_layer{o.real("eps", 1e-5), momentum.is_set() ? momentum.value() : 0.1, !momentum.is_set(),
                               o.flag("affine", false), o.flag("track_running_stats", false)};
  });
  layer("layer_norm", [](options o) {
    return layer_norm_layer{static_cast<int>(o.number("normalized_dims", 1)), o.real("eps", 1e-5),
                            o.flag("elementwise_affine", true), o.flag("bias", true)};
  });
  layer("rms_norm", [](options o) {
    return rms_norm_layer{static_cast<int>(o.number("normalized_dims", 1)),
                          o.real("eps", engine::eps_of_element, "the element's own"),
                          o.flag("elementwise_affine", true)};
  });
  layer("embedding", [](options o) {
    return embedding_layer{o.number("num_embeddings"),
                           o.number("embedding_dim"),
                           o.element("weights_as", element::float32),
                           o.axes("cut_out"),
                           o.axes("cut_in"),
                           o.partition_setting("output_as"),
                           o.number_setting("padding_idx"),
                           o.real_setting("max_norm"),
                           o.real_or_infinite("norm_type", 2),
                           o.flag("scale_grad_by_freq", false),
                           o.flag("frozen", false),
                           o.flag("sparse", false)};
  });
  layer("linear_cross_entropy", [](options o) {
    return linear_cross_entropy_layer{
        o.number("classes"),      o.axes("cut_out", "none"), o.element_setting("weights_as"),
        o.real("sample_rate", 1), o.flag("arcface", false),  o.real("margin", 0.5),
        o.real("scale", 64),      o.flag("easy", false)};
  });
  layer("heads", [](options o) {
    return heads_layer{o.number("heads"),    o.number("key_heads"), o.number("features"),
                       o.flag("bias", true), o.axes("cut_out"),     o.element_setting("weights_as")};
  });
  layer("gated", [](options o) {
    return gated_layer{o.number("out_features"), o.flag("bias", true), o.axes("cut_out"),
                       o.element_setting("weights_as")};
  });
  layer("gated_experts", [](options o) {
    return gated_experts_layer{o.number("experts"), o.number("out_features"), o.flag("bias", true), o.axes("cut_out"),
                               o.element_setting("weights_as")};
  });
  layer("cast", [](options o) { return cast_layer{o.element("to")}; });
  layer("dropout", [](options o) {
    return dropout_layer{o.real("p", 0.5), o.flag("channelwise", false), o.flag("alpha", false)};
  });
  layer("constant", [](options o) { return engine::constant_layer{o.tensor(), o.initial("values")}; });
  layer("pad", [](options o) { return pad_layer{o.pairs("widths"), o.edges("padding_mode")}; });
  layer("slice", [](options o) {
    return slice_layer{static_cast<int>(o.number("dim")), o.number("start", 0), o.number("end")};
  });
  layer("relu", [](options) { return relu{}; });
  layer("rrelu", [](options o) { return rrelu_layer{o.real("lower", 1.0 / 8), o.real("upper", 1.0 / 3)}; });
  layer("prelu", [](options o) { return prelu_layer{o.flag("channelwise", false), o.real("init", 0.25)}; });
  layer("flatten", [](options) { return flatten{}; });
  layer("repartition", [](options o) { return repartition_layer{o.partition("to")}; });
}

TESSERA_INLINE void layer_table::add_layer(const std::string& name, const placing& place, operand_counts operands) {
  const maker add = [place](const node_options& o, const std::vector<dynamic_flow>& x) {
    std::unique_ptr<tessera::detail::placed_node> layer = place(o);
    const engine::tiles_over over{o.axes("sharded_over").list(), o.times("gathered")};
    if (o.has("gathered") && !o.has("sharded_over")) o.here().fault("says gathered without sharded_over");
    o.refuse_others();
    engine::check_count(x.size(), layer->record.name);
    program& p = *x[0].in;
    return p.sharded_over(over, [&] {
      const bool shared = o.has("shared");
      const bool numbered = !layer->record.only_here;
      if (!shared && !o.has("path")) return p.add(std::move(layer), numbered, x);
      const auto back = p.enter(o.here().at(shared ? "shared" : "path").word(), shared);
      const std::vector<dynamic_flow> y = p.add(std::move(layer), false, x);
      p.leave(back);
      return y;
    });
  };
  const auto tell = [place, operands, name] { return engine::node_kind_of(name, operands, place); };
  layers_[name] = {add, tell};
}

TESSERA_INLINE void layer_table::add_function(const std::string& name, const calling& call, operand_counts operands) {
  const maker add = [call, operands, name](const node_options& o, const std::vector<dynamic_flow>& x) {
    engine::check_count(x.size(), name.c_str());
    const std::optional<dynamic_flow> y = call(o, x);
    if (!y) throw error(refusal{code::wrong_number_of_operands, operands.first, x.size()}, name);
    o.refuse_others();
    return std::vector{*y};
  };
  // A function asks before it is computed: whether its operands fit does not matter.
  const auto ask = [call, operands](const node_options& o) {
    layout any;
    for (int d = 0; d < 2; ++d) any.dims.push({}), any.dims[d].extent = 2;
    program p;
    const std::vector<dynamic_flow> x(static_cast<std::size_t>(operands.first), p.input({any, element::float32}));
    try {
      static_cast<void>(call(o, x));
    } catch (const std::exception&) {
    }
  };
  const auto tell = [ask, operands, name] { return engine::node_kind_of(name, operands, ask); };
  functions_[name] = {add, tell};
}

TESSERA_INLINE std::vector<engine::node_kind> layer_table::kinds(const std::map<std::string, entry>& of) {
  std::vector<engine::node_kind> all;
  for (const auto& one : of) all.push_back(one.second.tell());
  return all;
}

TESSERA_INLINE std::vector<dynamic_flow> layer_table::add(const node_options& o,
                                                          const std::vector<dynamic_flow>& x) const {
  const bool is_layer = o.has("layer");
  if (is_layer == o.has("function")) o.here().fault("names a \"layer\" or a \"function\", one of them");
  const std::string name = o.here().at(is_layer ? "layer" : "function").word();
  const auto& table = is_layer ? layers_ : functions_;
  const auto found = table.find(name);
  if (found == table.end()) throw error(refusal{code::program_layer_unknown}, o.here().path() + ": " + name);
  if (!is_layer && (o.has("path") || o.has("shared")))
    o.here().fault("is a function, which has no parameters and no path");
  try {
    if (o.has("recompute") && !x.empty())
      return x[0].in->recomputed_under(o.here().at("recompute").word(), x,
                                       [&](const auto& there) { return found->second.add(o, there); });
    return found->second.add(o, x);
  } catch (const error& e) {
    throw e.where().rfind(o.here().path(), 0) == 0
        ? e
        : e.at(o.here().path() + (e.where().empty() ? "" : ": " + e.where()));
  }
}

}  // namespace tessera::nn
