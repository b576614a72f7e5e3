#pragma once
// The layers of a chain in one process, by LibTorch's own.

#include "serial.hpp"

#include <range/v3/view/zip.hpp>

namespace conformance {

/// Lists of kernels as LibTorch takes them.
struct kernel_lists {
  template <class Kernels>
  explicit kernel_lists(const Kernels& kernels) {
    for (const sliding& s : kernels) {
      kernel.push_back(s.kernel);
      step.push_back(s.stride);
      padding.push_back(s.before);
      dilation.push_back(s.dilation);
    }
  }
  integers kernel, step, padding, dilation;
};

/// Equal widths before and after each dimension as LibTorch wants them, the last dimension first.
inline integers both_sides(const integers& padding) {
  integers widths;
  for (std::size_t k = padding.size(); k-- > 0;) widths.insert(widths.end(), {padding[k], padding[k]});
  return widths;
}

/// LibTorch's own interpolation.
inline at::Tensor interpolated(const at::Tensor& x, const upsampling& what) {
  const integers sizes(what.sizes.begin(), what.sizes.end());
  const std::vector<double> factors(what.factors.begin(), what.factors.end());
  const at::OptionalIntArrayRef to = sizes.empty() ? std::nullopt : at::OptionalIntArrayRef(sizes);
  const auto by = factors.empty() ? std::nullopt : std::optional<at::ArrayRef<double>>(factors);
  const bool linear = what.mode == tessera::interpolation::linear;
  switch (what.count()) {
    case 1: return linear ? at::upsample_linear1d(x, to, what.align_corners, by) : at::upsample_nearest1d(x, to, by);
    case 2: return linear ? at::upsample_bilinear2d(x, to, what.align_corners, by) : at::upsample_nearest2d(x, to, by);
    default:
      return linear ? at::upsample_trilinear3d(x, to, what.align_corners, by) : at::upsample_nearest3d(x, to, by);
  }
}

/// One link on one process.
struct serial_layer {
  const link& of;
  const at::Tensor& x;
  const serial_state& state;
  bool training;

  std::optional<at::Tensor> parameter(std::size_t i) const {
    return i < state.parameters.size() ? std::optional(state.parameters[i]) : std::nullopt;
  }

  at::Tensor operator()(const repartition_description&) const { return x; }

  at::Tensor operator()(const contraction& what) const {
    kernel_lists k(what.kernels);
    const auto bias = what.bias ? parameter(1) : std::nullopt;
    if (what.by_expert()) {
      const at::Tensor y = at::einsum("ecsi,eio->ecso", {x, state.parameters[0]});
      return bias ? y + bias->unsqueeze(1) : y;
    }
    if (k.kernel.empty()) return at::linear(x, state.parameters[0], bias);
    at::Tensor padded = x;
    if (what.kernels[0].edge != boundary::zero) {
      constexpr const char* modes[]{"constant", "reflect", "replicate", "circular"};
      padded = at::pad(x, both_sides(k.padding), modes[static_cast<int>(what.kernels[0].edge)]);
      k.padding.assign(k.padding.size(), 0);
    }
    return at::convolution(padded, state.parameters[0], bias, k.step, k.padding, k.dilation, false,
                           integers(k.kernel.size(), 0), what.groups);
  }

  at::Tensor operator()(const pooling& what) const {
    const kernel_lists k(what.kernels);
    if (what.is == pooling::kind::max) switch (k.kernel.size()) {
        case 1: return at::max_pool1d(x, k.kernel, k.step, k.padding, k.dilation);
        case 2: return at::max_pool2d(x, k.kernel, k.step, k.padding, k.dilation);
        default: return at::max_pool3d(x, k.kernel, k.step, k.padding, k.dilation);
      }
    // Zeros count, and LibTorch's 3-D averages refuse an image that is smaller than the kernel before they pad it.
    const at::Tensor padded = at::constant_pad_nd(x, both_sides(k.padding), 0);
    if (std::any_of(k.dilation.begin(), k.dilation.end(), [](index_t d) { return d != 1; })) {
      // LibTorch's averages have no dilation: a convolution of each channel by itself with equal weights.
      integers ones{x.size(1), 1};
      ones.insert(ones.end(), k.kernel.begin(), k.kernel.end());
      const integers none(k.kernel.size(), 0);
      const at::Tensor equal = at::full(ones, 1.0 / static_cast<double>(c10::multiply_integers(k.kernel)), x.options());
      return at::convolution(padded, equal, {}, k.step, none, k.dilation, false, none, x.size(1));
    }
    switch (k.kernel.size()) {
      case 1: return at::avg_pool1d(padded, k.kernel, k.step);
      case 2: return at::avg_pool2d(padded, k.kernel, k.step);
      default: return at::avg_pool3d(padded, k.kernel, k.step);
    }
  }

  at::Tensor operator()(const normalisation& what) const {
    const auto last = x.sizes().slice(static_cast<std::size_t>(x.dim() - what.groups.last));
    if (!what.centred) return at::rms_norm(x, last, parameter(0), what.eps);
    if (!what.groups.by_channel) return at::layer_norm(x, last, parameter(0), parameter(1), what.eps);
    if (!what.tracked)
      return at::batch_norm(x, parameter(0), parameter(1), {}, {}, true, what.momentum, what.eps, false);
    if (training) state.buffers[2].add_(1);
    return at::batch_norm(x, parameter(0), parameter(1), state.buffers[0], state.buffers[1], training, what.momentum,
                          what.eps, false);
  }

  at::Tensor operator()(const lookup& what) const { return at::embedding(state.parameters[0], x, what.padding_row()); }

  at::Tensor operator()(const upsampling& what) const { return interpolated(x, what); }

  /// The whole of what has the window of x, and its edges beyond it.
  at::Tensor operator()(const windowed& part) const {
    const local_box &has = part.where.operands[0], &makes = part.where.result;
    at::Tensor y = x;
    for (int d = 2; d < has.held.count; ++d) {
      const index_t first = has.first(d);
      y = y.index_select(d, at::arange(has.extents[d]).clamp(first, first + has.size(d) - 1) - first);
    }
    y = interpolated(y, part.what);
    for (int d = 2; d < makes.held.count; ++d) y = y.narrow(d, makes.first(d), makes.size(d));
    return y;
  }

  at::Tensor operator()(const loss& what) const {
    const at::Tensor target = target_of(of.plan.given(), element_of(x));
    const bool by_batch = what.by == nn::reduction::batch_mean;
    const auto by = what.by == nn::reduction::none   ? at::Reduction::None
                    : what.by == nn::reduction::mean ? at::Reduction::Mean
                                                     : at::Reduction::Sum;
    switch (what.what) {
      case loss::kind::l1: return at::l1_loss(x, target, by);
      case loss::kind::squares: return at::mse_loss(x, target, by);
      case loss::kind::poisson: return at::poisson_nll_loss(x, target, true, false, 1e-8, by);
      case loss::kind::entropy: return at::binary_cross_entropy(x, target, {}, by);
      case loss::kind::entropy_of_logits: return at::binary_cross_entropy_with_logits(x, target, {}, {}, by);
      case loss::kind::divergence: break;
    }
    const at::Tensor y = at::kl_div(x, target, by);
    return by_batch ? y / x.size(0) : y;
  }

 private:
  static element element_of(const at::Tensor& x) {
    return x.scalar_type() == at::kDouble ? element::float64 : element::float32;
  }
};

/// The chain in one process.
inline at::Tensor serially(const chain& links, at::Tensor x, const std::vector<serial_state>& states, bool training) {
  for (const auto& [link, state] : ranges::views::zip(links, states))
    x = std::visit(serial_layer{link, x, state, training}, link.what);
  return x;
}

}  // namespace conformance
