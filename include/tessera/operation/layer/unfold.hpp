#pragma once

#include <tessera/operation/layer/contraction_values.hpp>
#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/value_options.hpp>
#include <tessera/operation/rule/split_dimension.hpp>

namespace tessera {

namespace engine {

/// Every window of one or two dimensions of space, its taps behind one another as channels.
struct unfold_description {
  static_vector<sliding, 8> kernels;
  refusal why;  ///< what does not fit in the options themselves

  constexpr index_t taps() const {
    index_t all = 1;
    for (const sliding& s : kernels) all *= s.kernel;
    return all;
  }
  constexpr refusal check(const tensor_value& x) const {
    if (!why.ok()) return why;
    if (kernels.count < 1 || kernels.count > 2)
      return refusal{code::layer_takes_other_dimensions, 4, kernels.count + 2};
    if (x.layout.dims.count != kernels.count + 2)
      return refusal{code::layer_takes_other_dimensions, kernels.count + 2, x.layout.dims.count};
    for (int i = 0; i < kernels.count; ++i)
      if (const refusal r = kernels[i].check(2 + i, dynamic); !r.ok()) return r;
    return has_cotangent(x.element) ? refusal{} : refusal{code::no_function_of_element, static_cast<int>(x.element)};
  }
};

/// The sum of windows that overlap.
struct fold_description {
  unfold_description windows;
  contraction gives;  ///< where the windows of a transposed convolution lie: they reach as far without gaps
};

/// Plans it: windows ∘ (blocks → haloed).
constexpr layer_plan plan_of(const unfold_description& layer, const tensor_value& in) {
  if (const refusal r = layer.check(in); !r.ok()) return refused_layer(r);
  const layout& x = in.layout;
  layout used = x;
  if (const refusal r = detail::hold_together(used, 1, 1); !r.ok()) return refused_layer(r);
  if (const refusal r = detail::hold_windows(used, 2, layer.kernels.items, layer.kernels.count); !r.ok())
    return refused_layer(r);
  if (const refusal r = check_change(x, used); !r.ok()) return refused_layer(r);
  const letters own = letters_of(x.dims.count);
  signature s = signature{}.linear().scaled(own[1], layer.taps());
  s.operands.push(own);
  s.result = own;
  for (int i = 0; i < layer.kernels.count; ++i) s = s.windowed(own[2 + i], layer.kernels[i]);
  layer_plan p = detail::local(used, s, x);
  p.saves = saved_tensors::saving(0);
  p.saves.windows = layer.kernels;
  p.saves.copies = p.saves.returning = 1;
  p.saves.begins_as_operand = true;
  return p;
}

/// Plans its transpose: (terms → blocks) ∘ sums of windows; each worker adds what its own windows give.
constexpr layer_plan plan_of(const fold_description& layer, const tensor_value& in) {
  if (const refusal r = first_of(layer.gives.why, layer.windows.check(in)); !r.ok()) return refused_layer(r);
  const layout& x = in.layout;
  const letters own = letters_of(x.dims.count);
  layout used = x;
  layer_plan p;
  p.why = detail::hold_together(used, 1, layer.windows.taps());
  signature s;
  for (int i = 0; i < layer.gives.kernels.count && p.why.ok(); ++i) {
    const int d = 2 + i;
    const index_t n = x.dims[d].extent;
    p.why = layer.gives.check(i, d, n);
    if (!p.why.ok()) break;
    const index_t m = layer.gives.outputs(i, n);
    if (n == dynamic) {  // terms of what nobody can count do not lie anywhere
      p.why = detail::hold_window(used, d, layer.gives.needs(i), m, layer.gives.keeps(i, n));
      s = s.resampled(own[d], layer.gives.needs(i), m);
    } else {
      p.why = detail::hold_together(used, d, 1);
      s = s.spread(own[d], layer.gives.kernels[i].needs(), m);
    }
  }
  if (p.why.ok()) p.why = check_change(x, used);
  if (!p.why.ok()) return p;
  inferred y = detail::outer_part(used, 1, layer.windows.taps());
  if (y.why.ok()) y = detail::reshaped(y.layout, own, own, s.linear());
  layout whole = y.layout;
  for (int d = 2; d < whole.dims.count; ++d) {
    if (whole.dims[d].kind == cover::tiled) continue;
    whole.dims[d].tile();
    if (!layer.gives.keeps(d - 2, x.dims[d].extent)) whole.dims[d].balance(1);
  }
  p.why = y.why;
  p.add_input(x, used);
  p.add_output(y.layout, whole);
  p.saves = saved_tensors::saving(0);
  p.saves.spreads = true;
  p.saves.copies = 1;
  p.saves.copies_back = 2;
  p.saves.begins_as_operand = true;
  p.saves.windows = layer.gives.kernels;
  return p;
}

}  // namespace engine

namespace detail {

constexpr unfold_description unfolded(const kernel_options& k) {
  unfold_description u;
  u.why = k.check();
  if (u.why.ok()) u.kernels = k.list();
  return u;
}

// The windows of a folding, and what they give: as far beyond the last of them as `output_size` or `output_padding`
// says, within a step.
constexpr fold_description folded(const unfold_description& windows, const contraction& more) {
  fold_description f{windows, more};
  f.gives.transposed = true;
  f.gives.kernels = windows.kernels;
  for (sliding& s : f.gives.kernels) {
    s.kernel = s.reach();
    s.dilation = 1;
  }
  return f;
}

}  // namespace detail

namespace nn {

/// The windows of a convolution as channels: y[n, c·k + t, …] = x[n, c, stride·… + dilation·t − padding], t the tap of
/// k, over one or two dimensions. Flattened behind the channels it is im2col.
///
/// Options: `kernel<…>`, `stride`, `padding`, `padding_at`, `dilation`.
template <class... Options>
struct unfold : engine::described_layer<unfold<Options...>> {
  static constexpr const char* name = "unfold";
  static constexpr engine::option_kinds takes{engine::option_kind::kernel, engine::option_kind::stride,
                                              engine::option_kind::padding, engine::option_kind::dilation};
  static constexpr engine::unfold_description description() {
    const auto o = tessera::detail::read_options<Options...>(takes);
    return {o.kernels, o.weights.why};
  }
};

/// Its transpose, the sum of windows that overlap, y[n, c, stride·i + dilation·t − padding] = Σ x[n, c·k + t, i]; it
/// gives as much as `conv_transpose` does. Behind `unflatten` it is col2im.
///
/// Options: those of `unfold`, and `output_size` or `output_padding`.
template <class... Options>
struct fold : engine::described_layer<fold<Options...>> {
  static constexpr const char* name = "fold";
  static constexpr engine::option_kinds takes{engine::option_kind::kernel, engine::option_kind::stride,
                                              engine::option_kind::padding, engine::option_kind::dilation,
                                              engine::option_kind::output_padding};
  static constexpr engine::fold_description description() {
    const auto o = tessera::detail::read_options<Options...>(takes);
    return tessera::detail::folded({o.kernels, o.weights.why}, o.weights);
  }
};

/// `unfold` as a value.
struct unfold_layer {
  static constexpr const char* name = "unfold";
  engine::per_dimension kernel{};
  engine::per_dimension stride{};
  engine::per_dimension padding{};
  engine::per_dimension dilation{};

  constexpr engine::unfold_description description() const {
    return tessera::detail::unfolded({kernel, stride, padding, dilation});
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `fold` as a value: `fold_layer{.kernel = {3, 3}, .stride = {2}, .output_size = {9, 8}}`.
struct fold_layer {
  static constexpr const char* name = "fold";
  engine::per_dimension kernel{};
  engine::per_dimension stride{};
  engine::per_dimension padding{};
  engine::per_dimension output_padding{};
  engine::per_dimension output_size{};  ///< instead of it
  engine::per_dimension dilation{};

  constexpr engine::fold_description description() const {
    const conv_transpose_layer ends{1, kernel, stride, padding, output_padding, output_size, dilation};
    return tessera::detail::folded(tessera::detail::unfolded({kernel, stride, padding, dilation}), ends.description());
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::unfold<Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::fold<Options...>> = kind::layer;

}  // namespace tessera
