#pragma once

#include <tessera/nn/layer/fft.hpp>

namespace tessera::detail {

inline c10::string_view norm_name(fft_norm n) {
  return n == fft_norm::backward ? "backward" : n == fft_norm::ortho ? "ortho" : "forward";
}

/// A box without elements of n along a dimension, which hangs on another one.
inline at::Tensor of_nothing(const at::Tensor& x, index_t d, index_t n) {
  std::vector<index_t> sizes = x.sizes().vec();
  if (sizes[static_cast<std::size_t>(d)] > 0) sizes[static_cast<std::size_t>(d)] = n;
  return x.sum(d, true).expand(sizes);
}

/// The transform of a whole dimension, of which there are n elements before a real one and behind its inverse.
inline at::Tensor transformed(const at::Tensor& x, index_t d, const fourier& f, index_t n) {
  const bool half = f.halves(static_cast<int>(d));
  if (x.numel() == 0) {
    const at::ScalarType complex = at::toComplexType(x.scalar_type());
    if (half && f.inverse) return of_nothing(x.is_complex() ? at::real(x) : x, d, n);
    return of_nothing(x.to(complex), d, half ? x.size(d) / 2 + 1 : x.size(d));
  }
  const c10::string_view norm = norm_name(f.norm);
  if (half) return f.inverse ? at::fft_irfft(x, n, d, norm) : at::fft_rfft(x, std::nullopt, d, norm);
  return f.inverse ? at::fft_ifft(x, std::nullopt, d, norm) : at::fft_fft(x, std::nullopt, d, norm);
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const engine::fourier& layer) {
  const auto& all =
      c.bound.once<engine::fourier_steps>([&] { return engine::steps_of(layer, c.bound.inputs[0].from->layout()); });
  at::Tensor x = c.used();
  for (int i = 0; i < all.steps.count; ++i) {
    if (i > 0) x = c.exchanged(x, static_cast<std::size_t>(i - 1));
    for (int d : all.steps[i].dims) x = tessera::detail::transformed(x, d, layer, all.raw.dims[d].extent);
  }
  x = x.resolve_conj();  // an inverse one of real numbers is a view, which would be copied beside what leaves
  return c.bound.leaving(x);
}

}  // namespace tessera::nn
