#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/plan/expert_rule.hpp>

namespace tessera {

namespace engine {

/// Linear layers of one input; in the serial model they are one, whose outputs are theirs in turn.
struct projection {
  /// One of them: the names of its weight and bias, and the extents of its outputs, the outermost of which may be cut.
  struct part {
    const char* weight = nullptr;
    const char* bias = nullptr;
    static_vector<index_t, 4> outputs;

    constexpr index_t count() const {
      index_t n = 1;
      for (index_t extent : outputs) n = detail::capped_product(n, extent);
      return n;
    }
  };

  static_vector<part, 3> parts = no_items<part, 3>;
  index_t experts = contraction::none;  ///< how many the input's first dimension has, each with weights of its own
  bool bias = true;
  static_vector<text, max_axes> cut_out = {};  ///< axes that cut the outputs; those of the input's features unless said
  bool has_element = false;                    ///< the weights are stored in one of their own, not that of the input
  tessera::element element{};
  refusal why = {};  ///< what does not fit in the options themselves

  constexpr bool by_expert() const { return experts >= 0; }
};

}  // namespace engine

namespace detail {

/// Queries in groups of one key, keys and values.
constexpr projection heads_of(index_t heads, index_t key_heads, index_t features) {
  projection p;
  if (key_heads < 1 || heads < 1 || heads % key_heads != 0 || features < 1) {
    p.why = refusal{code::heads_do_not_divide, heads, key_heads};
    return p;
  }
  static_vector<index_t, 4> query;
  static_vector<index_t, 4> key;
  for (index_t n : {key_heads, heads / key_heads, features}) query.push(n);
  for (index_t n : {key_heads, features}) key.push(n);
  p.parts.push({"q_weight", "q_bias", query});
  p.parts.push({"k_weight", "k_bias", key});
  p.parts.push({"v_weight", "v_bias", key});
  return p;
}
/// A gate and what it lets through.
constexpr projection gate_of(index_t out) {
  projection p;
  if (out < 0) p.why = refusal{code::extent_negative, 0, out};
  static_vector<index_t, 4> outputs;
  outputs.push(out);
  p.parts.push({"gate_weight", "gate_bias", outputs});
  p.parts.push({"up_weight", "up_bias", outputs});
  return p;
}
/// The same for each of so many experts.
constexpr projection gate_of_each(index_t experts, index_t out) {
  projection p = gate_of(out);
  p.experts = experts;
  if (experts < 0) p.why = refusal{code::extent_negative, 0, experts};
  return p;
}
/// The dimensions of a weight, as extents or as letters: [outputs…, input], by expert [expert, input, outputs…]; null:
/// it has none.
template <class List, class Outputs, class One>
constexpr List dims_of_weight(const Outputs& outputs, const One* expert, const One* input) {
  List all;
  if (expert != nullptr) all.push(*expert);
  if (expert != nullptr && input != nullptr) all.push(*input);
  for (const One& o : outputs) all.push(o);
  if (expert == nullptr && input != nullptr) all.push(*input);
  return all;
}
/// A projection with what options say of it.
template <class... Options>
constexpr projection read_projection(const option_kinds& taken, projection p) {
  const contraction c = read_options<Options...>(taken).weights;
  p.bias = c.bias;
  p.cut_out = c.cut_out;
  p.has_element = c.has_element;
  p.element = c.element;
  p.why = first_of(p.why, c.why);
  return p;
}

}  // namespace detail

namespace engine {

/// Plans a projection: x[…, in] (x → used) with w[outputs…, in] gives y[…, outputs…] for each part, cut by its first
/// output. By experts: x[e, …, in] with w[e, in, outputs…] gives y[e, …, outputs…].
constexpr layer_plan plan_of(const projection& layer, const tensor_value& of) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  const layout& x = of.layout;
  const int features = x.dims.count - 1;
  const int least = layer.by_expert() ? 1 : 0;  // dimensions before the features
  if (features < least) return refused_layer(refusal{code::layer_takes_other_dimensions, least + 1, x.dims.count});
  if (x.dims[features].extent == dynamic) return refused_layer(refusal{code::extent_not_static, features});
  if (layer.by_expert())
    if (const refusal r = detail::check_experts(x, layer.experts); !r.ok()) return refused_layer(r);
  layer_plan p;
  unsigned taken = 0;
  auto axes = detail::found(x.mesh, layer.cut_out, taken, p.why);
  if (!p.why.ok()) return p;
  layout used = x;
  if (layer.by_expert()) detail::tile_experts(used);
  for (int level = 0; level < x.levels(features); ++level) {
    const int a = x.cutter(features, level);
    if (layer.cut_out.empty()) axes.push(a);
    used.set_placement(a, {});
  }
  for (int a : axes) used.set_placement(a, {});
  if (p.why = check_change(x, used); !p.why.ok()) return p;
  p.add_input(x, used);
  p.saves = saved_tensors::saving(1);

  signature multiply;
  multiply.kind = linearity::multilinear;
  const letters batch = letters_of(features);
  multiply.operands.push(batch);
  multiply.operands[0].push('Z');
  const int first = layer.by_expert() ? 2 : 0;  // the dimension of weight and bias that the outputs begin at
  const char input = 'Z';
  const char row = 'Y';  // of a bias by expert, that all slots share
  const char* const expert = layer.by_expert() ? &batch[0] : nullptr;
  const index_t in = x.dims[features].extent;
  const index_t one = 1;
  const auto lies = [&](const projection::part& part, const index_t* inputs) {
    const auto extents = detail::dims_of_weight<static_vector<index_t, 6>>(
        part.outputs, layer.by_expert() ? &layer.experts : nullptr, inputs);
    layout w = layer.by_expert() ? detail::weight_of_each(used, extents) : weight_for(used, extents);
    for (int a : axes) w.cut_by(first, a);
    return w;
  };
  index_t whole = 0;
  for (const auto& part : layer.parts) whole = detail::capped_sum(whole, part.count());
  index_t begin = 0;
  for (const auto& part : layer.parts) {
    const int outputs = part.outputs.count;
    if (features + outputs > max_dimensions) return refused_layer(refusal{code::too_many, features + outputs});
    parameter_value w;
    w.name = part.weight;
    w.used = lies(part, &in);
    w.stored = stored_form(w.used);
    w.initial = init::usual(in);
    w.has_element = layer.has_element;
    w.element = layer.element;
    w.as_operand = true;
    w.serial = {"weight", first, outputs, begin, whole};
    if (p.why = first_of(check(w.used), check_count(w.used)); !p.why.ok()) return p;

    signature s = multiply;
    const letters own = letters_of(outputs, 'A');
    s.operands.push(detail::dims_of_weight<letters>(own, expert, &input));
    s.result = batch;
    for (char letter : own) s.result.push(letter);
    static_vector<operand, 4> operands = no_items<operand, 4>;
    operands.push({used, false});
    operands.push({w.used, false});
    const inferred y = infer(s, operands);
    if (p.why = first_of(y.why, check_count(y.layout)); !p.why.ok()) return p;
    p.add_output(y.layout);
    p.saves.weights |= 1u << p.parameters();
    p.add_parameter(w);
    p.add_product(
        {p.raw_extents(p.outputs() - 1), p.weight_extents(p.parameters() - 1).only(layer.by_expert() ? 1 : outputs)});
    if (layer.bias) {
      parameter_value b = w;
      b.name = part.bias;
      b.serial.name = "bias";
      b.used = lies(part, layer.by_expert() ? &one : nullptr);
      b.stored = stored_form(b.used);
      signature add;
      add.kind = linearity::additive;
      add.operands.push(s.result);
      add.operands.push(detail::dims_of_weight<letters>(own, expert, layer.by_expert() ? &row : nullptr));
      add.result = s.result;
      operands[0] = {y.layout, false};
      operands[1] = {b.used, false};
      if (p.why = infer(add, operands).why; !p.why.ok()) return p;
      p.add_parameter(b);
    }
    begin += part.count();
  }
  // gradients of the operand by parts are added up, those of views in another
  if (layer.parts.count > 1) p.take_back(used, of.element, features > 1 ? 2 : 1);
  return p;
}

}  // namespace engine

namespace nn {

/// Queries [n, t, KeyHeads, Heads / KeyHeads, Features], keys and values [n, t, KeyHeads, Features] of x[n, t, in], for
/// attention. Heads that share a key are neighbours and are cut together. In the serial model they are one linear layer
/// with the rows q | k | v.
///
/// Options: `cut_out<axes…>` cuts the heads, `no_bias`, `weights_as<element>`.
template <index_t Heads, index_t KeyHeads, index_t Features, class... Options>
struct heads : engine::described_layer<heads<Heads, KeyHeads, Features, Options...>> {
  static constexpr const char* name = "heads";
  static constexpr int results = 3;
  static constexpr engine::option_kinds takes{engine::option_kind::cut_out, engine::option_kind::bias,
                                              engine::option_kind::weights};
  static constexpr engine::projection description() {
    return tessera::detail::read_projection<Options...>(takes, tessera::detail::heads_of(Heads, KeyHeads, Features));
  }
};

/// A gate and what it lets through, each [n, …, Out], of x[n, …, in]: `auto [gate, up] = x | gated<64>{}; silu(gate) *
/// up`. In the serial model they are one linear layer of 2 · Out outputs, the gate's first.
///
/// Options: `cut_out<axes…>`, `no_bias`, `weights_as<element>`.
template <index_t Out, class... Options>
struct gated : engine::described_layer<gated<Out, Options...>> {
  static constexpr const char* name = "gated";
  static constexpr int results = 2;
  static constexpr engine::option_kinds takes{engine::option_kind::cut_out, engine::option_kind::bias,
                                              engine::option_kind::weights};
  static constexpr engine::projection description() {
    return tessera::detail::read_projection<Options...>(takes, tessera::detail::gate_of(Out));
  }
};

/// The same of each expert, each [Experts, …, Out], of x[Experts, …, in]: a `gated` layer where the expert's slots are.
/// In the serial model they are one layer of `experts` with 2 · Out outputs, the gate's first.
///
/// Options: those of `gated`.
template <index_t Experts, index_t Out, class... Options>
struct gated_experts : engine::described_layer<gated_experts<Experts, Out, Options...>> {
  static constexpr const char* name = "gated_experts";
  static constexpr int results = 2;
  static constexpr engine::option_kinds takes = gated<Out>::takes;
  static constexpr engine::projection description() {
    return tessera::detail::read_projection<Options...>(takes, tessera::detail::gate_of_each(Experts, Out));
  }
};

}  // namespace nn

template <index_t Heads, index_t KeyHeads, index_t Features, class... Options>
inline constexpr kind engine::kind_of<nn::heads<Heads, KeyHeads, Features, Options...>> = kind::layer;
template <index_t Out, class... Options>
inline constexpr kind engine::kind_of<nn::gated<Out, Options...>> = kind::layer;
template <index_t Experts, index_t Out, class... Options>
inline constexpr kind engine::kind_of<nn::gated_experts<Experts, Out, Options...>> = kind::layer;

}  // namespace tessera
