#pragma once

#include <tessera/nn/layer/fft_impl.hpp>
#include <tessera/nn/layer/spectral_conv.hpp>

namespace tessera::detail {

/// The wave numbers that are kept of a whole dimension.
inline at::Tensor kept_modes(const at::Tensor& x, index_t d, const spectral& layer) {
  const index_t m = layer.modes[static_cast<int>(d) - 2], n = x.size(d);
  if (x.numel() == 0) return of_nothing(x.to(at::toComplexType(x.scalar_type())), d, layer.kept(static_cast<int>(d)));
  if (layer.is_last(static_cast<int>(d))) return at::fft_rfft(x, std::nullopt, d).narrow(d, 0, m);
  const at::Tensor y = at::fft_fft(x, std::nullopt, d);
  return at::cat({y.narrow(d, 0, m), y.narrow(d, n - m, m)}, d);
}

/// The values at n places of a dimension of which some wave numbers are there.
inline at::Tensor values_of_modes(const at::Tensor& y, index_t d, const spectral& layer, index_t n) {
  const index_t m = layer.modes[static_cast<int>(d) - 2];
  const bool last = layer.is_last(static_cast<int>(d));
  if (y.numel() == 0) return of_nothing(last ? at::real(y) : y, d, n);
  if (last) return at::fft_irfft(y, n, d);
  std::vector<index_t> between = y.sizes().vec();
  between[static_cast<std::size_t>(d)] = n - 2 * m;
  return at::fft_ifft(at::cat({y.narrow(d, 0, m), at::zeros(between, y.options()), y.narrow(d, m, m)}, d), std::nullopt,
                      d);
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const engine::spectral& layer) {
  const layout& home = c.bound.inputs[0].from->layout();
  const auto& all = c.bound.once<engine::spectral_steps>([&] { return engine::steps_of(layer, home); });
  const bool again = !(all.mixed == all.product);
  std::size_t next = 0;
  at::Tensor x = c.used();
  for (int i = 0; i < all.steps.count; ++i) {
    if (i > 0) x = c.exchanged(x, next++);
    for (int d : all.steps[i].dims) x = tessera::detail::kept_modes(x, d, layer);
  }
  if (again) x = c.exchanged(x, next++);
  static constexpr const char* products[]{"nix,iox->nox", "nixy,ioxy->noxy", "nixyz,ioxyz->noxyz"};
  x = at::einsum(products[layer.modes.count - 1], {x, c.weight(0)});
  if (again) x = c.exchanged(x, next++);
  for (int i = all.steps.count; i-- > 0;) {
    const engine::transformed_dims& dims = all.steps[i].dims;
    for (int k = dims.count; k-- > 0;)
      x = tessera::detail::values_of_modes(x, dims[k], layer, home.dims[dims[k]].extent);
    if (i > 0) x = c.exchanged(x, next++);
  }
  return c.bound.leaving(x);
}

}  // namespace tessera::nn
