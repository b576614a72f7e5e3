#pragma once

#include <tessera/operation/fourier/route.hpp>
#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/layer/options.hpp>

namespace tessera {

namespace engine {

/// A discrete Fourier transform over some dimensions. A real one has half of the last of them, n / 2 + 1 elements.
struct fourier {
  transformed_dims dims;
  bool inverse = false;
  bool real = false;
  fft_norm norm = fft_norm::backward;
  index_t length = 0;  ///< real, inverse: n of the last dimension; 0: 2 (m − 1) of m elements
  bool has_output = false;
  layout output = {};  ///< its covers and placements
  refusal why = {};    ///< what does not fit in the options themselves

  constexpr bool halves(int d) const { return real && d == dims[dims.count - 1]; }
  /// How many elements there are of a dimension of n.
  constexpr index_t gives(int d, index_t n) const {
    if (!halves(d)) return n;
    return !inverse ? n / 2 + 1 : length > 0 ? length : 2 * (n - 1);
  }
  /// Whether a dimension may be next: real elements become complex ones first, and real again last.
  constexpr bool may_follow(int d, unsigned done) const {
    if (!real || dims.count == 1) return true;
    int left = 0;
    for (int one : dims) left += (done >> one & 1u) == 0;
    return inverse ? halves(d) == (left == 1) : halves(d) || left < dims.count;
  }
};

/// One local transform of several dimensions, which are whole.
struct fourier_step {
  layout held;            ///< its operand
  transformed_dims dims;  ///< in this order
};

/// A transform as local ones, between which the tensor moves.
struct fourier_steps {
  static_vector<fourier_step, 3> steps;
  layout raw;  ///< what the last one gives
};

}  // namespace engine

namespace detail {

constexpr element complex_of(element e) {
  return e == element::float32 || e == element::complex64 ? element::complex64 : element::complex128;
}
constexpr element real_of(element e) {
  return complex_of(e) == element::complex64 ? element::float32 : element::float64;
}

/// Refuses dimensions that are none, and lengths that no transform has.
constexpr refusal check_transform(const fourier& f, const layout& x) {
  if (!f.why.ok()) return f.why;
  const int count = f.dims.count;
  if (count < 1) return refusal{code::transform_dimensions, count};
  for (int i = 0; i < count; ++i) {
    const int d = f.dims[i];
    if (d < 0 || d >= x.dims.count) return refusal{code::dimension_not_there, d, x.dims.count};
    for (int before = 0; before < i; ++before)
      if (f.dims[before] == d) return refusal{code::transform_dimensions, count};
    const index_t n = x.dims[d].extent;
    if (n == dynamic) {
      if (f.halves(d)) return refusal{code::extent_not_static, d};
      continue;
    }
    const bool half = f.inverse && f.length > 0 && f.halves(d);
    if (n < 1 || f.gives(d, n) < 1 || (half && f.length / 2 + 1 != n))
      return refusal{code::transform_length, d, n, f.gives(d, n)};
  }
  return {};
}

/// Refuses elements that no transform takes.
constexpr refusal check_transform(const fourier& f, element e) {
  const bool taken = has_cotangent(e) && !is_half(e) && !(f.real && !f.inverse && is_complex(e));
  return taken ? refusal{} : refusal{code::no_function_of_element, static_cast<int>(e)};
}

/// A dimension of another extent, cut evenly.
constexpr void set_extent(layout& x, int d, index_t n) {
  if (x.dims[d].extent == n) return;
  x.dims[d] = {};
  x.dims[d].extent = n;
}

/// The memory of LibTorch's transforms, one dimension after another: what one gives to the next, and a copy with the
/// dimension last. An inverse one of real numbers has another of what it conjugates. Backward of half a dimension has
/// all of it.
constexpr void hold_transform(layer_plan& p, const fourier& f, const layout& last, element given) {
  const index_t several = f.dims.count > 1;
  p.saves = saved_tensors::saving(0);
  if (f.real && f.inverse) {  // complex numbers, as it exchanges them
    const index_t there = 2 + several, back = 2 + 2 * several;
    bool moves = false;
    for (int i = 0; i < p.exchanges(); ++i) moves = moves || !same(p.from(i), p.to(i));
    if (moves) p.saves.scratch = there, p.saves.returning = back;
    else p.take(last, complex_of(given), there), p.take_back(last, complex_of(given), back);
    return;
  }
  const index_t conjugates = f.inverse && !is_complex(given);
  p.saves.scratch = several + 1 + conjugates;
  p.saves.returning = f.real ? 6 : 3 + conjugates;
}

/// The usual count of fast transforms: 5/2 · n · log₂ n multiply-adds for n complex numbers, half of it for real ones.
constexpr void count_transform(layer_plan& p, const held_extents& of, const transformed_dims& dims, bool real) {
  counted_product& by = p.add_product({of}, 5);
  by.per = real ? 4 : 2;
  by.back = 1;  // the transform of the gradient
  for (int d : dims) by.lengths |= 1u << d;
}

/// Where a tensor lies whose dimensions that no axis cuts are held once.
constexpr layout with_whole_dims(layout x, const transformed_dims& dims) {
  for (int d : dims) {
    if (x.levels(d) > 0) continue;
    x.dims[d].tile();
    x.dims[d].balance(1);
  }
  return x;
}

/// The next dimensions that are transformed where the tensor lies: those that are whole, each when it may be.
template <class MayFollow, class Gives>
constexpr fourier_step step_at(fourier_route& route, layout& at, const MayFollow& may_follow, const Gives& gives) {
  fourier_step s{at, {}};
  for (bool found = true; found;) {
    found = false;
    for (int i = route.dims.count; i-- > 0;) {
      const int d = route.dims[i];
      if (route.is_done(d) || at.levels(d) > 0 || !may_follow(d, route.done)) continue;
      s.dims.push(d);
      route.done |= 1u << d;
      found = true;
    }
  }
  for (int d : s.dims) set_extent(at, d, gives(d, at.dims[d].extent));
  return s;
}

/// Makes the next dimension whole, and with it those whose axes go where they may stay until the end.
template <class MayFollow>
constexpr void turn_to_next(const fourier_route& route, layout& at, const MayFollow& may_follow) {
  for (int i = route.dims.count; i-- > 0;) {
    const int d = route.dims[i];
    if (route.is_done(d) || !may_follow(d, route.done)) continue;
    route.make_whole(at, d);
    break;
  }
  for (int d : route.dims) {
    const int t = route.is_done(d) || at.levels(d) == 0 ? -1 : route.partner(at, d);
    if (t >= 0 && route.fit(at, d, t) == fourier_route::stays) route.give_axes(at, d, t);
  }
}

}  // namespace detail

namespace engine {

/// The local transforms of a tensor that lies so, and where it lies for each.
constexpr fourier_steps steps_of(const fourier& f, const layout& x) {
  fourier_route route{x, f.dims};
  fourier_steps all;
  layout at = detail::with_whole_dims(x, f.dims);
  const auto may_follow = [&](int d, unsigned done) { return f.may_follow(d, done); };
  const auto gives = [&](int d, index_t n) { return n == dynamic ? n : f.gives(d, n); };
  unsigned every = 0;
  for (int d : f.dims) every |= 1u << d;
  while (route.done != every) {
    const fourier_step s = detail::step_at(route, at, may_follow, gives);
    if (s.dims.empty()) detail::turn_to_next(route, at, may_follow);
    else all.steps.push(s);
  }
  all.raw = at;
  return all;
}

/// Where the result lies: as the operand did, a dimension of another extent cut evenly, or as it is asked for.
constexpr layout lies_as(const layout& raw, const layout& home, const transformed_dims& dims) {
  layout y = raw;
  y.placements = home.placements;
  for (int d = 0; d < y.dims.count; ++d) {
    if (raw.dims[d].extent == home.dims[d].extent) y.dims[d] = home.dims[d];
    else if (home.levels(d) > 0) y.dims[d].balance(1);
  }
  for (int d : dims) {
    if (y.dims[d].kind == cover::tiled) continue;
    y.dims[d].tile();
    y.dims[d].balance(1);
  }
  return y;
}

/// Plans a transform: (whole → as asked) ∘ local transforms ∘ (given → whole).
constexpr layer_plan plan_of(const fourier& f, const tensor_value& in) {
  const layout& x = in.layout;
  if (const refusal r = first_of(detail::check_transform(f, x), detail::check_transform(f, in.element),
                                 plan_elementwise(x, linearity::additive).why);
      !r.ok())
    return refused_layer(r);
  const fourier_steps s = steps_of(f, x);
  layout y = lies_as(s.raw, x, f.dims);
  if (f.has_output) {
    if (f.output.dims.count != x.dims.count)
      return refused_layer(refusal{code::wrong_number_of_dimensions, f.output.dims.count, x.dims.count});
    y = f.output;
    for (int d = 0; d < y.dims.count; ++d) {
      y.dims[d].extent = s.raw.dims[d].extent;
      y.dims[d].tag = s.raw.dims[d].tag;
    }
  }
  const element complex = detail::complex_of(in.element);
  layer_plan p;
  p.why = first_of(check(y), check_change(x, s.steps[0].held), check_change(s.raw, y));
  p.add_input(x, s.steps[0].held);
  for (int i = 1; i < s.steps.count; ++i) {
    layout before = s.steps[i - 1].held;
    for (int d : s.steps[i - 1].dims) detail::set_extent(before, d, s.steps[i].held.dims[d].extent);
    p.why = first_of(p.why, check_change(before, s.steps[i].held));
    p.add_exchange(before, s.steps[i].held, complex);
  }
  p.add_output(s.raw, y, f.real && f.inverse ? detail::real_of(in.element) : complex);
  detail::hold_transform(p, f, s.steps[s.steps.count - 1].held, in.element);
  for (int i = 0; i < s.steps.count; ++i) {
    bool real = false;
    for (int d : s.steps[i].dims) real = real || f.halves(d);
    const held_extents of = real && f.inverse ? p.raw_extents() : i == 0 ? p.used_extents() : p.brought_extents(i - 1);
    detail::count_transform(p, of, s.steps[i].dims, real);
  }
  return p;
}

}  // namespace engine

}  // namespace tessera
