#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <cstdint>

namespace fno {

/// Fields on the torus [0, 2π)², each N x 1 x n x n: how they begin, and what became of them.
struct flows_in_time {
  at::Tensor before, after;
};

namespace detail {

constexpr double viscosity = 0.1, duration = 0.5;
constexpr int time_steps = 20;

/// The wave numbers of the transform of real fields of n x n: of columns n, of rows n / 2 + 1.
struct wave_numbers {
  at::Tensor columns, rows, squared, resolved;

  explicit wave_numbers(std::int64_t n)
      : columns(at::fft_fftfreq(n, 1.0 / static_cast<double>(n), at::kDouble).unsqueeze(1)),
        rows(at::arange(n / 2 + 1, at::kDouble)),
        squared(at::square(columns) + at::square(rows)),
        // a product of what is resolved aliases to none of it
        resolved(at::logical_and(columns.abs() * 3 < n, rows * 3 < n)) {}
};

}  // namespace detail

/// `count` random smooth fields of root mean square 1, and their solutions of Burgers' equation ∂u/∂t + (∂x + ∂y) u²/2
/// = ν Δu after half a unit of time. Space is in Fourier modes without aliases. Time steps are the classical
/// Runge-Kutta method's, with Δ by its exponential.
inline flows_in_time burgers(std::int64_t count, std::int64_t n, std::uint64_t seed) {
  const detail::wave_numbers k(n);
  const at::Generator chance = at::detail::createCPUGenerator(seed);
  const at::Tensor noise = at::randn({count, 1, n, n}, chance, at::kDouble);
  const at::Tensor rough = at::fft_irfft2(at::fft_rfft2(noise) * at::exp(k.squared / -8), at::IntArrayRef({n, n}));
  const at::Tensor begin = rough / at::square(rough).mean({1, 2, 3}, true).sqrt();

  const double dt = detail::duration / detail::time_steps;
  const at::Tensor half = at::exp(k.squared * (-detail::viscosity * dt / 2)), whole = at::square(half);
  const at::Tensor slope = at::complex(at::zeros_like(k.squared), (k.columns + k.rows) / -2) * k.resolved;
  const auto change = [&](const at::Tensor& v) {
    return slope * at::fft_rfft2(at::square(at::fft_irfft2(v, at::IntArrayRef({n, n})))) * dt;
  };
  at::Tensor v = at::fft_rfft2(begin);
  for (int step = 0; step < detail::time_steps; ++step) {
    const at::Tensor a = change(v), b = change(half * (v + a / 2)), c = change(half * v + b / 2),
                     d = change(whole * v + half * c);
    v = whole * v + (whole * a + half * (b + c) * 2 + d) / 6;
  }
  return {begin, at::fft_irfft2(v, at::IntArrayRef({n, n}))};
}

}  // namespace fno
