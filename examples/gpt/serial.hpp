#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "model.hpp"

namespace gpt {

using weights = std::map<std::string, at::Tensor>;

namespace detail {

inline at::Tensor normalised_rows(const at::Tensor& x) { return x * at::rsqrt(at::square(x).mean(-1, true) + 1e-5); }

inline at::Tensor serial_block(const at::Tensor& x, const weights& w, const std::string& path) {
  const auto linear = [&](const at::Tensor& in, const std::string& key) {
    return at::linear(in, w.at(path + key + ".weight"), w.at(path + key + ".bias"));
  };
  const auto by_head = [](const at::Tensor& t, std::int64_t repeated) {
    return t.unflatten(-1, {-1, features}).transpose(1, 2).repeat_interleave(repeated, 1);
  };
  const auto qkv = at::linear(normalised_rows(x), w.at(path + "0.weight"))
                       .split_with_sizes({heads * features, key_heads * features, key_heads * features}, -1);
  const at::Tensor a = at::scaled_dot_product_attention(by_head(qkv[0], 1), by_head(qkv[1], heads / key_heads),
                                                        by_head(qkv[2], heads / key_heads), std::nullopt, 0, true);
  const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), "1");
  const auto both = linear(normalised_rows(y), "2").chunk(2, -1);
  return y + linear(at::silu(both[0]) * both[1], "3");
}

}  // namespace detail

/// The transformer in plain LibTorch: rows of bytes in, scores of the next ones out.
inline at::Tensor serial_scores(const weights& w, const at::Tensor& inputs) {
  at::Tensor x = at::embedding(w.at("table.weight"), inputs) + w.at("order.weight");
  for (const char* path : {"0.", "1."}) x = detail::serial_block(x, w, path);
  return at::linear(detail::normalised_rows(x), w.at("table.weight"));
}

inline at::Tensor serial_loss(const weights& w, const at::Tensor& inputs, const at::Tensor& labels) {
  return at::cross_entropy_loss(serial_scores(w, inputs).flatten(0, 1), labels.flatten());
}

}  // namespace gpt
