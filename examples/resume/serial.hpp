#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "model.hpp"

namespace resume {

using weights = std::map<std::string, at::Tensor>;

namespace detail {

/// A linear layer in the numbers of its input; weights are rounded to them where they are used.
inline at::Tensor linear(const at::Tensor& x, const weights& w, const std::string& key) {
  const auto rounded = [&](const std::string& of) {
    const auto there = w.find(key + of);
    return there == w.end() ? at::Tensor() : there->second.to(x.scalar_type());
  };
  return at::linear(x, rounded(".weight"), rounded(".bias"));
}

inline at::Tensor normalised(const at::Tensor& x, const weights& w, const std::string& key) {
  return at::rms_norm(x, {width}, w.at(key + ".weight"));
}

inline at::Tensor serial_block(const at::Tensor& x, const weights& w, const std::string& path,
                               at::ScalarType computed) {
  const auto by_head = [](const at::Tensor& t) { return t.unflatten(-1, {heads, features}).transpose(1, 2); };
  const auto qkv = linear(normalised(x, w, path + "0").to(computed), w, path + "1").chunk(3, -1);
  const at::Tensor a =
      at::scaled_dot_product_attention(by_head(qkv[0]), by_head(qkv[1]), by_head(qkv[2]), std::nullopt, 0, true);
  const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), w, path + "2").to(x.scalar_type());
  const auto both = linear(normalised(y, w, path + "3").to(computed), w, path + "4").chunk(2, -1);
  return y + linear(at::silu(both[0]) * both[1], w, path + "5").to(x.scalar_type());
}

}  // namespace detail

/// The mean loss of the transformer in plain LibTorch, on one worker.
inline at::Tensor serial_loss(const weights& w, const at::Tensor& inputs, const at::Tensor& labels,
                              at::ScalarType computed) {
  at::Tensor x = at::embedding(w.at("table.weight"), inputs) + w.at("order.weight");
  for (const char* path : {"0.", "1."}) x = detail::serial_block(x, w, path, computed);
  const at::Tensor scores = detail::linear(detail::normalised(x, w, "2").to(computed), w, "table");
  return at::cross_entropy_loss(scores.to(x.scalar_type()).flatten(0, 1), labels.flatten());
}

}  // namespace resume
