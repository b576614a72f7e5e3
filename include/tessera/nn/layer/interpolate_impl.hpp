#pragma once

#include <tessera/nn/kernel/weighted_rows.hpp>
#include <tessera/nn/layer/interpolate.hpp>

#include <cmath>

namespace tessera::detail {

/// From the place of an output to that of the next, as LibTorch computes it in this arithmetic.
template <class Real>
Real step_of(const resampling& r) {
  if (r.align_corners) return r.m > 1 ? static_cast<Real>(r.n - 1) / static_cast<Real>(r.m - 1) : 0;
  return r.factor > 0 ? static_cast<Real>(1 / r.factor) : static_cast<Real>(r.n) / static_cast<Real>(r.m);
}

/// The input below the place of an output, and how far the place is from it. That of the nearest neighbours is found in
/// float whatever the element is, as LibTorch's gradient finds it.
template <class Real>
struct sample_point {
  index_t below = 0;
  Real beyond = 0;
};
template <class Real>
sample_point<Real> sample_point_of(const resampling& r, index_t y) {
  const auto below = [&](auto at) {
    return smaller(static_cast<index_t>(std::floor(static_cast<float>(at))), r.n - 1);
  };
  if (r.mode == interpolation::nearest) return {below(step_of<float>(r) * static_cast<float>(y))};
  if (r.mode == interpolation::nearest_exact)
    return {below((static_cast<double>(y) + 0.5) * static_cast<double>(step_of<float>(r)))};
  const Real half = static_cast<Real>(0.5), step = step_of<Real>(r);
  Real at = r.align_corners ? step * static_cast<Real>(y) : std::fma(step, static_cast<Real>(y) + half, -half);
  if (r.mode == interpolation::linear) at = std::max(at, Real{0});
  return {below(at), std::min(std::max(at - static_cast<Real>(below(at)), Real{0}), Real{1})};
}

/// The cubic kernel of Keys (1981) with a = −3/4, at a distance up to 2.
constexpr double cubic_weight(double d) {
  constexpr double a = -0.75;
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : a * (((d - 5) * d + 8) * d - 4);
}

/// The weight of the input that many behind the one below the place.
constexpr double weight_at(interpolation mode, index_t tap, double beyond) {
  const double distance = tap > 0 ? static_cast<double>(tap) - beyond : beyond - static_cast<double>(tap);
  return mode == interpolation::cubic ? cubic_weight(distance) : 1 - distance;
}

/// The outputs of a range as weighted rows of the inputs of another. An input outside that range is replaced by the
/// nearest inside.
template <class Real>
weighted_rows<Real> rows_of(const resampling& r, const interval& inputs, const interval& outputs) {
  const bool kept = r.keeps();
  const reach reached = kept ? reach{} : reach_of(r.mode);
  weighted_rows<Real> rows(inputs.size());
  for (index_t y = outputs.lo; y < outputs.hi; ++y) {
    if (r.mode == interpolation::area) {
      const interval covered = r.covers(y);
      for (index_t i = covered.lo; i < covered.hi; ++i) rows.add(i - inputs.lo, 1 / static_cast<Real>(covered.size()));
      rows.end_row();
      continue;
    }
    const sample_point<Real> p = kept ? sample_point<Real>{y} : sample_point_of<Real>(r, y);
    for (index_t t = -reached.before; t <= reached.after; ++t)
      rows.add(clamped(clamped(p.below + t, 0, r.n - 1), inputs.lo, inputs.hi - 1) - inputs.lo,
               static_cast<Real>(weight_at(r.mode, t, p.beyond)));
    rows.end_row();
  }
  return rows;
}

/// The weighted rows that interpolate the outputs of a box from the inputs of another.
template <class Real>
using shared_combining = std::shared_ptr<const combining<Real>>;
template <class Real>
shared_combining<Real> combining_of(const upsampling& layer, const local_boxes& where, c10::Device device) {
  const local_box &has = where.operands[0], &makes = where.result;
  matrices<Real> along;
  for (int i = 0; i < layer.count(); ++i)
    along.push_back(rows_of<Real>(layer.over(i, has.extents[2 + i]), has.held[2 + i][0], makes.held[2 + i][0]));
  return std::make_shared<const combining<Real>>(std::move(along), device);
}

/// x by by(Real{}): what interpolates elements of double or of float, as which half types are added.
template <class By>
at::Tensor interpolated(const at::Tensor& x, const By& by) {
  return in_float(
      [&](const at::Tensor& in) {
        return in.scalar_type() == at::kDouble ? combined(by(double{}), in) : combined(by(float{}), in);
      },
      x);
}

/// Refuses a tensor that is not the box of the inputs, and outputs that have none.
inline refusal check_window(const at::Tensor& x, const upsampling& layer, const local_boxes& where) {
  const local_box &has = where.operands[0], &makes = where.result;
  if (const refusal r = first_of(layer.check(), check_plain(x)); !r.ok()) return r;
  for (index_t dims : {x.dim(), index_t{has.held.count}, index_t{makes.held.count}})
    if (dims != layer.count() + 2) return refusal{code::layer_takes_other_dimensions, layer.count() + 2, dims};
  if (!x.is_floating_point())
    return refusal{code::no_function_of_element, static_cast<int>(element_of_scalar(x.scalar_type()))};
  for (int d = 0; d < has.held.count; ++d) {
    if (x.size(d) != has.size(d)) return refusal{code::wrong_local_shape, d, has.size(d), x.size(d)};
    if (d < 2) continue;
    if (const refusal r = layer.check(d - 2, has.extents[d]); !r.ok()) return r;
    if (has.size(d) == 0 && makes.size(d) > 0) return refusal{code::nothing_to_resample, d, 0, makes.size(d)};
  }
  return {};
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor interpolate(const at::Tensor& x, const engine::upsampling& layer, const local_boxes& where) {
  engine::check(tessera::detail::check_window(x, layer, where));
  return tessera::detail::interpolated(
      x, [&](auto real) { return tessera::detail::combining_of<decltype(real)>(layer, where, x.device()); });
}

namespace engine {

TESSERA_INLINE at::Tensor forward_upsampling(const bound_layer& b, const upsampling& layer, const at::Tensor& input) {
  const at::Tensor x = b.ready(input);
  if (b.is_empty) return tessera::detail::empty_result(b.outputs, {x});
  return tessera::detail::interpolated(x, [&](auto real) -> const auto& {
    using found = tessera::detail::shared_combining<decltype(real)>;
    return b.once<found>([&] {
      check(tessera::detail::check_window(x, layer, b.boxes()));
      return tessera::detail::combining_of<decltype(real)>(layer, b.boxes(), x.device());
    });
  });
}

}  // namespace engine

}  // namespace tessera::nn
