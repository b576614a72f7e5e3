#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "model.hpp"

namespace fno {

using weights = std::map<std::string, at::Tensor>;

namespace detail {

/// The low modes of real fields, mixed, as real fields again.
inline at::Tensor serial_spectral(const at::Tensor& x, const at::Tensor& w) {
  const at::Tensor z = at::fft_rfft2(x);
  const auto some = [&](std::int64_t first, std::int64_t weight) {
    return at::einsum("ncyx,coyx->noyx", {z.narrow(2, first, low).narrow(3, 0, low), w.narrow(2, weight, low)});
  };
  const at::Tensor between = at::zeros({x.size(0), x.size(1), size - 2 * low, low}, z.options());
  const at::Tensor y = at::cat({some(0, 0), between, some(size - low, low)}, 2);
  return at::fft_irfft2(at::constant_pad_nd(y, {0, z.size(3) - low}), at::IntArrayRef({size, size}));
}

}  // namespace detail

/// The operator in plain LibTorch, by transforms of real fields: N x 1 x n x n in and out.
inline at::Tensor serial_operator(const weights& w, const at::Tensor& u) {
  const auto points = [&](const at::Tensor& x, const std::string& key) {
    return at::conv2d(x, w.at(key + ".weight"), w.at(key + ".bias"));
  };
  const auto layer = [&](const at::Tensor& x, const std::string& key) {
    return detail::serial_spectral(x, w.at(key + ".modes.weight")) + points(x, key + ".points");
  };
  const at::Tensor first = at::gelu(layer(points(u, "lift"), "0"));
  return points(layer(at::gelu(layer(first, "1")), "2"), "last");
}

}  // namespace fno
