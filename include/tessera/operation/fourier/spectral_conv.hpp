#pragma once

#include <tessera/operation/fourier/fft.hpp>

namespace tessera {

namespace engine {

/// A convolution by a kernel that has few wave numbers: complex weights of each of them, for all pairs of channels.
struct spectral {
  index_t out = 0;
  static_vector<index_t, 3> modes;  ///< wave numbers below these, of both signs in all dimensions but the last
  refusal why = {};

  /// The dimensions behind the first two.
  constexpr fourier transform() const {
    fourier f;
    f.real = true;
    for (int i = 0; i < modes.count; ++i) f.dims.push(2 + i);
    return f;
  }
  constexpr bool is_last(int d) const { return d == modes.count + 1; }
  /// How many wave numbers are kept of a dimension.
  constexpr index_t kept(int d) const { return (is_last(d) ? 1 : 2) * modes[d - 2]; }
};

/// The local transforms of a spectral convolution, where the tensor lies for each, and where it is multiplied.
struct spectral_steps {
  static_vector<fourier_step, 3> steps;
  static_vector<layout, 3> given;  ///< what the steps before it give
  layout mixed;                    ///< all channels of some wave numbers, as the last step gives them
  layout product;                  ///< the same, where channels had to move once more
};

}  // namespace engine

namespace detail {

constexpr refusal check_spectral(const spectral& layer, const tensor_value& x) {
  const int dims = layer.modes.count;
  if (!layer.why.ok()) return layer.why;
  if (dims < 1) return refusal{code::transform_dimensions, dims};
  if (x.layout.dims.count != dims + 2)
    return refusal{code::layer_takes_other_dimensions, dims + 2, x.layout.dims.count};
  if (layer.out < 1) return refusal{code::extent_negative, 1, layer.out};
  for (int d = 1; d < dims + 2; ++d) {
    const index_t n = x.layout.dims[d].extent;
    if (n == dynamic) return refusal{code::extent_not_static, d};
    if (d == 1) continue;
    const index_t most = layer.is_last(d) ? n / 2 + 1 : n / 2;
    if (n < 1 || layer.modes[d - 2] < 1 || layer.modes[d - 2] > most)
      return refusal{code::transform_modes, d, layer.modes[d - 2], most};
  }
  for (int d = 0; d < 2; ++d)  // gradients of weights are summed over both
    if (x.layout.dims[d].kind == cover::haloed && !x.layout.has_each_once(d)) return refusal{code::haloed_summed, 0, d};
  return first_of(check_transform(layer.transform(), x.element), plan_elementwise(x.layout, linearity::additive).why);
}

/// The axes that cut the channels cut wave numbers instead, where there are any yet.
constexpr void mix_channels(const fourier_route& route, layout& at) {
  int best = -1;
  for (int t : route.dims)
    if (route.is_done(t) && (best < 0 || route.fit(at, 1, t) > route.fit(at, 1, best))) best = t;
  if (best >= 0 && at.levels(1) > 0) route.give_axes(at, 1, best);
}

constexpr layout with_channels(layout x, index_t n) {
  set_extent(x, 1, n);
  return x;
}

}  // namespace detail

namespace engine {

constexpr spectral_steps steps_of(const spectral& layer, const layout& x) {
  const fourier f = layer.transform();
  fourier_route route{x, f.dims, 0, 0};
  spectral_steps all;
  layout at = detail::with_whole_dims(x, f.dims);
  const auto may_follow = [&](int d, unsigned done) { return f.may_follow(d, done); };
  const auto gives = [&](int d, index_t) { return layer.kept(d); };
  layout given = at;
  for (int left = f.dims.count; left > 0;) {
    const fourier_step s = detail::step_at(route, at, may_follow, gives);
    if (s.dims.empty()) {
      given = at;
      detail::turn_to_next(route, at, may_follow);
      bool last = true;
      for (int d : f.dims) last = last && (route.is_done(d) || at.levels(d) == 0);
      if (last) detail::mix_channels(route, at);
    } else {
      left -= s.dims.count;
      all.steps.push(s);
      all.given.push(given);
    }
  }
  all.mixed = all.product = at;
  detail::mix_channels(route, all.product);
  return all;
}

/// Plans a spectral convolution: it transforms, multiplies the wave numbers that are kept, and goes back the same way.
/// Weights are cut as the wave numbers that they multiply.
constexpr layer_plan plan_of(const spectral& layer, const tensor_value& in) {
  const layout& x = in.layout;
  if (const refusal r = detail::check_spectral(layer, in); !r.ok()) return refused_layer(r);
  const spectral_steps s = steps_of(layer, x);
  const element complex = detail::complex_of(in.element);
  const index_t channels = x.dims[1].extent;
  const auto out = [&](const layout& of) { return detail::with_channels(of, layer.out); };
  layout raw = out(s.steps[0].held);
  const layout y = lies_as(raw, x, layer.transform().dims);
  layer_plan p;
  p.why = first_of(check_change(x, s.steps[0].held), check_change(raw, y));
  p.add_input(x, s.steps[0].held);
  const auto exchange = [&](const layout& from, const layout& to) {
    p.why = first_of(p.why, check_change(from, to));
    p.add_exchange(from, to, complex);
  };
  const bool again = !(s.mixed == s.product);
  for (int i = 1; i < s.steps.count; ++i) exchange(s.given[i], s.steps[i].held);
  if (again) {
    exchange(s.mixed, s.product);
    exchange(out(s.product), out(s.mixed));
  }
  for (int i = s.steps.count; --i > 0;) exchange(out(s.steps[i].held), out(s.given[i]));
  p.add_output(raw, y, in.element);

  static_vector<index_t, 5> extents;
  extents.push(channels);
  extents.push(layer.out);
  for (int i = 0; i < layer.modes.count; ++i) extents.push(layer.kept(2 + i));
  layout w = weight_for(s.product, extents);
  for (int a = 0; a < w.placements.count; ++a)
    if (const axis_placement& r = s.product.placements[a]; r.kind == placement::cut && r.dimension > 1)
      w.placements[a] = r;
  for (int d = 2; d < w.dims.count; ++d) w.dims[d] = s.product.dims[d];
  const double most = 1 / (static_cast<double>(channels) * static_cast<double>(layer.out));
  p.add_parameter({"weight", stored_form(w), w, init::uniform(0, most), true, complex});
  p.saves = saved_tensors::saving(0, 1);
  p.remember(s.product, complex);
  // half of the last dimension's wave numbers, and for backward all; what is exchanged counts as well
  layout half = detail::with_channels(s.steps[0].held, detail::larger(channels, layer.out));
  const int last = x.dims.count - 1;
  if (const index_t n = half.dims[last].extent; n != dynamic) detail::set_extent(half, last, n / 2 + 1);
  for (int d = 2; d < last; ++d)
    if (half.dims[d].extent != dynamic && half.dims[d].extent < layer.kept(d))
      detail::set_extent(half, d, layer.kept(d));
  bool moves = false;
  for (int i = 1; i < s.steps.count; ++i) moves = moves || !same(s.given[i], s.steps[i].held);
  const index_t times = moves ? 1 : 2;
  p.take(half, complex, 2 * times - 1);
  layout odd = half;  // half of n real numbers are n + 2
  if (half.dims[last].extent != dynamic) detail::set_extent(odd, last, 2);
  p.take(odd, in.element);
  p.take_back(half, complex, times);
  p.take_back(s.steps[0].held, complex, times);
  for (int i = 0; i < s.steps.count; ++i) {  // there, and back by the exchanges in the other order
    bool real = false;
    for (int d : s.steps[i].dims) real = real || layer.is_last(d);
    const int back = p.exchanges() - i;
    for (const held_extents& of :
         {i == 0 ? p.used_extents() : p.brought_extents(i - 1), i == 0 ? p.raw_extents() : p.sent_extents(back)})
      detail::count_transform(p, of, s.steps[i].dims, real);
  }
  p.add_product({p.made_extents(), p.weight_extents().only(1)}, 4);  // complex numbers
  return p;
}

}  // namespace engine

namespace nn {

/// irfft(w · rfft(x)) over one to three dimensions behind the first two, x[n, c, …] real; w[c, Out, …] complex of the
/// wave numbers −Modes … Modes − 1 of each dimension, of the last 0 … Modes − 1 (Li et al. 2021).
template <index_t Out, index_t... Modes>
struct spectral_conv : engine::described_layer<spectral_conv<Out, Modes...>> {
  static constexpr const char* name = "spectral_conv";
  static constexpr engine::spectral description() {
    engine::spectral s;
    s.out = Out;
    constexpr int count = sizeof...(Modes);
    if (count > s.modes.capacity) s.why = refusal{code::transform_dimensions, count};
    else (s.modes.push(Modes), ...);
    return s;
  }
};

/// `spectral_conv` as a value: `spectral_conv_layer{.out = 8, .modes = {12, 12}}`.
struct spectral_conv_layer {
  static constexpr const char* name = "spectral_conv";
  index_t out = 0;
  engine::per_dimension modes{};

  constexpr engine::spectral description() const {
    engine::spectral s;
    s.out = out;
    if (modes.count() > s.modes.capacity) s.why = refusal{code::transform_dimensions, modes.count()};
    for (int i = 0; i < modes.count() && s.why.ok(); ++i) s.modes.push(modes[i]);
    return s;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn

template <index_t Out, index_t... Modes>
inline constexpr kind engine::kind_of<nn::spectral_conv<Out, Modes...>> = kind::layer;

}  // namespace tessera
