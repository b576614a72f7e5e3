#pragma once

#include <tessera/nn/kernel/attended_queries.hpp>

#include <ATen/SDPBackend.h>
#include <tessera/tensor/box/aten.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace tessera::detail {

inline constexpr double no_weight = -std::numeric_limits<double>::infinity();

/// What queries read of some keys, and the logarithm of the sum of their weights.
struct attended {
  at::Tensor y, l;
};

/// LibTorch's fused kernels of attention that give these logarithms: that of the host, and on GPUs three. These are
/// cuDNN's, FlashAttention (Dao, 2023), and one for masks, floats and e ≠ d; none of them takes doubles.
///
/// Queries are [n, h, t, d], keys [n, h, s, d], values [n, h, s, e].
class fused_attention {
 public:
  fused_attention() = default;  ///< none of them fits
  fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool masked)
      : scale_(1 / std::sqrt(static_cast<double>(q.size(-1)))), features_{q.size(-1), k.size(-1), v.size(-1)} {
    if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return;
    alike_ = q.size(-1) == v.size(-1) && !masked;
    const bool floats = at::isFloatingType(q.scalar_type()) && q.scalar_type() != at::kDouble;
    if (q.is_cpu() ? q.size(-1) != v.size(-1) : !(q.is_cuda() && floats)) return;
    x_ = {aligned(q), aligned(k), aligned(v)};
    // The host's kernel meets at most 256 queries at once, and reads all keys again for the next ones: head by head.
    if (q.is_cpu() && q.size(-2) > engine::queries_of_one_reading) x_ = {x_[0], x_[1].contiguous(), x_[2].contiguous()};
    takes_ = kernel_for(x_[0], x_[1], x_[2]) != at::SDPBackend::math;
  }

  explicit operator bool() const { return takes_; }

  /// A block alone: all of it but those excluded [n, 1, t, s], with a bias of the scores, or a diagonal.
  attended attend(const nn::engine::attended_block& b, const at::Tensor& excluded, const at::Tensor& bias) const {
    const at::Tensor q = part(0, b.rows), k = part(1, b.keys), v = part(2, b.keys);
    const std::optional<at::Tensor> more = added(excluded, bias);
    const bool causal = is_causal(b, more);
    attended a;
    switch (kernel_for(q, k, v)) {
      case at::SDPBackend::cudnn_attention: {
        const auto all = at::_scaled_dot_product_cudnn_attention(q, k, v, std::nullopt, true, 0, causal, false, scale_);
        a = {std::get<0>(all), std::get<1>(all).reshape(q.sizes().slice(0, 3))};
        break;
      }
      case at::SDPBackend::flash_attention: {
        const auto all = at::_scaled_dot_product_flash_attention(q, k, v, 0, causal, false, scale_);
        a = {std::get<0>(all), std::get<1>(all)};
        break;
      }
      case at::SDPBackend::efficient_attention: {
        const auto all = at::_scaled_dot_product_efficient_attention(q, k, v, more, true, 0, causal, scale_);
        a = {std::get<0>(all), std::get<1>(all)};
        break;
      }
      default: std::tie(a.y, a.l) = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, causal, more, scale_);
    }
    return {a.y.narrow(-1, 0, features_[2]), a.l.narrow(-1, 0, q.size(-2))};
  }

  /// The shares of a block in the gradients of queries, keys and values, by results and logarithms of all keys.
  std::array<at::Tensor, 3> gradients(const nn::engine::attended_block& b, const at::Tensor& dy, const attended& whole,
                                      const at::Tensor& excluded, const at::Tensor& bias) const {
    const at::Tensor q = part(0, b.rows), k = part(1, b.keys), v = part(2, b.keys);
    const std::optional<at::Tensor> more = added(excluded, bias);
    const bool causal = is_causal(b, more);
    std::array<at::Tensor, 3> d;
    switch (kernel_for(q, k, v)) {
      case at::SDPBackend::cudnn_attention: {
        const at::Tensor seed = at::zeros({}, q.options().dtype(at::kLong));
        std::tie(d[0], d[1], d[2]) = at::_scaled_dot_product_cudnn_attention_backward(
            aligned(dy).contiguous(), q, k, v, aligned(whole.y).contiguous(), whole.l.contiguous().unsqueeze(-1), seed,
            seed, {}, {}, {}, q.size(2), k.size(2), 0, causal, scale_);
        break;
      }
      case at::SDPBackend::flash_attention: {
        const at::Tensor seed = at::empty({2}, q.options().dtype(at::kUInt64));
        std::tie(d[0], d[1], d[2]) = at::_scaled_dot_product_flash_attention_backward(
            aligned(dy), q, k, v, aligned(whole.y), whole.l.contiguous(), {}, {}, q.size(2), k.size(2), 0, causal, seed,
            at::empty({}, seed.options()), scale_);
        break;
      }
      case at::SDPBackend::efficient_attention: {
        // it reads results with heads behind rows, and the logarithms of 32 rows at once
        const at::Tensor y = aligned(whole.y).transpose(1, 2).contiguous().transpose(1, 2);
        const at::Tensor l = at::constant_pad_nd(whole.l, {0, (32 - q.size(2) % 32) % 32}, -no_weight).contiguous();
        const at::Tensor seed = at::zeros({}, q.options().dtype(at::kLong));
        const auto all = at::_scaled_dot_product_efficient_attention_backward(
            aligned(dy), q, k, v, more.value_or(at::Tensor()), y, l, seed, seed, 0, {true, true, true, false}, causal,
            scale_);
        d = {std::get<0>(all), std::get<1>(all), std::get<2>(all)};
        break;
      }
      default:
        std::tie(d[0], d[1], d[2]) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
            aligned(dy), q, k, v, aligned(whole.y), whole.l, 0, causal, more, scale_);
    }
    for (std::size_t i = 0; i < 3; ++i) d[i] = d[i].narrow(-1, 0, features_[i]);
    return d;
  }

 private:
  /// What LibTorch chooses for a block on a device.
  at::SDPBackend kernel_for(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
    if (q.is_cpu()) return at::SDPBackend::overrideable;
    const auto chosen = static_cast<at::SDPBackend>(at::_fused_sdp_choice(q, k, v));
    return alike_ || chosen == at::SDPBackend::math ? chosen : at::SDPBackend::efficient_attention;
  }

  /// As kernels load it: features side by side, and on devices by eights at multiples of 16 bytes.
  static at::Tensor aligned(const at::Tensor& x) {
    if (!x.is_cuda()) return x.stride(-1) == 1 ? x : x.contiguous();
    if (const std::int64_t more = (8 - x.size(-1) % 8) % 8; more > 0) return at::constant_pad_nd(x, {0, more});
    bool fits = x.stride(-1) == 1 && reinterpret_cast<std::uintptr_t>(x.const_data_ptr()) % 16 == 0;
    for (std::int64_t d = 0; d + 1 < x.dim(); ++d) fits = fits && x.stride(d) % 8 == 0;
    return fits ? x : x.clone(at::MemoryFormat::Contiguous);
  }

  static bool is_causal(const nn::engine::attended_block& b, const std::optional<at::Tensor>& more) {
    return b.sees == nn::engine::attended_block::shape::diagonal && !more;
  }

  at::Tensor part(std::size_t i, const engine::interval& rows) const { return x_[i].narrow(2, rows.lo, rows.size()); }

  /// What is added to scores: a bias, and −∞ where a key is excluded. Kernels of devices load it 16 elements at once,
  /// head by head.
  std::optional<at::Tensor> added(const at::Tensor& excluded, const at::Tensor& bias) const {
    if (!excluded.defined() && !bias.defined()) return std::nullopt;
    std::vector<std::int64_t> sizes = (bias.defined() ? bias : excluded).sizes().vec();
    if (excluded.defined()) sizes = at::infer_size(sizes, excluded.sizes());
    const std::int64_t keys = sizes.back();
    if (x_[0].is_cuda()) sizes.back() = (keys + 15) / 16 * 16;
    const at::Tensor all = at::zeros(sizes, x_[0].options()).narrow(-1, 0, keys);
    if (bias.defined()) all.add_(bias);
    if (excluded.defined()) all.masked_fill_(excluded, no_weight);
    if (x_[0].is_cpu()) return all;
    return all.expand({x_[0].size(0), x_[0].size(1), -1, -1});
  }

  bool takes_ = false;
  bool alike_ = false;  ///< features of queries and of values, and nothing is masked
  double scale_ = 1;
  std::array<std::int64_t, 3> features_{};
  std::array<at::Tensor, 3> x_;
};

}  // namespace tessera::detail
