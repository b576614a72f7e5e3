#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>

#include "model.hpp"

namespace staged {

using weights = std::map<std::string, at::Tensor>;

namespace detail {

inline at::Tensor linear(const at::Tensor& x, const weights& w, const std::string& key) {
  const auto bias = w.find(key + ".bias");
  return at::linear(x, w.at(key + ".weight"), bias == w.end() ? at::Tensor() : bias->second);
}
inline at::Tensor normalised(const at::Tensor& x, const weights& w, const std::string& key) {
  return at::rms_norm(x, {width}, w.at(key + ".weight"));
}

/// All experts on all places, with gates of 0 where one is not chosen.
inline at::Tensor mixed(const at::Tensor& given, const weights& w, const std::string& path) {
  const at::Tensor x = given.flatten(0, 1);
  const at::Tensor all = at::softmax(at::linear(x, w.at(path + "router.weight")), 1);
  const auto [largest, chosen] = at::topk(all, 2, 1);
  const at::Tensor gates = at::zeros_like(all).scatter(1, chosen, largest / largest.sum(1, true));
  const auto of_each = [&](const at::Tensor& in, const std::string& layer) {
    return at::baddbmm(w.at(path + layer + ".bias"), in, w.at(path + layer + ".weight"));
  };
  const auto both = of_each(x.expand({experts, x.size(0), width}), "0").chunk(2, -1);
  return at::einsum("ne,eng->ng", {gates, of_each(at::silu(both[0]) * both[1], "1")}).view_as(given);
}

inline at::Tensor serial_block(const at::Tensor& x, const weights& w, const std::string& path) {
  const auto by_head = [](const at::Tensor& t) { return t.unflatten(-1, {heads, features}).transpose(1, 2); };
  const auto qkv = linear(normalised(x, w, path + "0"), w, path + "1").chunk(3, -1);
  const at::Tensor a =
      at::scaled_dot_product_attention(by_head(qkv[0]), by_head(qkv[1]), by_head(qkv[2]), std::nullopt, 0, true);
  const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), w, path + "2");
  const at::Tensor z = normalised(y, w, path + "3");
  if (w.contains(path + "4.router.weight")) return y + mixed(z, w, path + "4.");
  const auto both = linear(z, w, path + "4.0").chunk(2, -1);
  return y + linear(at::silu(both[0]) * both[1], w, path + "4.1");
}

}  // namespace detail

/// The mean loss of the transformer in plain LibTorch, in one process, of the whole batch.
inline at::Tensor serial_loss(const weights& w, const at::Tensor& inputs, const at::Tensor& labels) {
  at::Tensor x = at::embedding(w.at("table.weight"), inputs) + w.at("order.weight");
  for (int i = 0; i < blocks; ++i) x = detail::serial_block(x, w, std::to_string(i) + ".");
  const at::Tensor scores = detail::linear(detail::normalised(x, w, std::to_string(blocks)), w, "ends");
  return at::cross_entropy_loss(scores.flatten(0, 1), labels.flatten());
}

}  // namespace staged
