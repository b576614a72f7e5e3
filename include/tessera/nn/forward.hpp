#pragma once

#include <tessera/nn/parameter.hpp>
#include <tessera/operation/layers.hpp>

namespace tessera::detail {

/// Zeros of the raw box that hang on their operands: a worker without elements skips the local operation, never the backward.
inline at::Tensor empty_result(const box& raw, const at::TensorList& operands) {
  at::Tensor none = at::zeros({}, operands[0].options());
  for (const at::Tensor& x : operands) none = none + x.sum() * 0;
  return none.expand(sizes_of(raw)).clone();
}

/// Gives the local box exactly the inputs that its outputs need: padding where the tensor ends, trimmed where it holds more.
inline at::Tensor padded(const at::Tensor& x, const box& held, const box& outputs, int first,
                         const static_vector<sliding, 8>& kernels, double outside) {
  std::vector<index_t> widths;  // LibTorch wants the last dimension first
  bool any = false;
  for (int i = kernels.count - 1; i >= 0; --i) {
    const window w = kernels[i].needs();
    const interval& mine = held[first + i];
    const interval& out = outputs[first + i];
    const interval need{w.first(out.lo), w.last(out.hi - 1) + 1};
    const bool apart = need.hi <= mine.lo || need.lo >= mine.hi;  // padding alone
    widths.push_back(apart ? need.size() : mine.lo - need.lo);
    widths.push_back(apart ? -mine.size() : need.hi - mine.hi);
    any = any || widths.back() != 0 || widths[widths.size() - 2] != 0;
  }
  return any ? at::constant_pad_nd(x, widths, outside) : x;
}

struct strides {
  std::vector<index_t> kernel, step, dilation, zero, one;
  explicit strides(const static_vector<sliding, 8>& kernels) {
    for (const sliding& s : kernels) {
      kernel.push_back(s.kernel);
      step.push_back(s.stride);
      dilation.push_back(s.dilation);
      zero.push_back(0);
      one.push_back(1);
    }
  }
};

}  // namespace tessera::detail

namespace tessera::nn {

/// (raw → output) ∘ (x · w) ∘ (input → used), plus the bias: every linear layer and convolution.
inline at::Tensor forward_contraction(const team_handle& team, const layer_plan& p, const contraction& what, const at::Tensor& input,
                                      const std::vector<parameter>& parameters) {
  const at::Tensor x = change_layout(team, p.input, p.used, input);
  const at::Tensor w = parameters[0].use();
  const box held = box_of(p.used, team->rank());
  const box raw = box_of(p.raw, team->rank());
  at::Tensor y;
  if (x.numel() == 0 || volume(raw) == 0 || w.numel() == 0) {
    y = detail::empty_result(raw, {x, w});
  } else if (what.kernels.empty()) {
    y = at::matmul(x, w.t());
  } else {
    const detail::strides s(what.kernels);
    y = at::convolution(detail::padded(x, held, raw, what.feature + 1, what.kernels, 0), w, {}, s.step, s.zero, s.dilation, false,
                        s.zero, 1);
  }
  y = change_layout(team, p.raw, p.output, y);
  if (!what.bias) return y;
  std::vector<index_t> along(static_cast<std::size_t>(y.dim()), 1);
  along[static_cast<std::size_t>(what.feature < 0 ? y.dim() + what.feature : what.feature)] = -1;
  const at::Tensor b = parameters[1].use();
  if (b.numel() == 0) along[static_cast<std::size_t>(what.feature < 0 ? y.dim() + what.feature : what.feature)] = 0;
  return y + b.view(along);
}

/// The maximum of each window ∘ (blocks → haloed); outside the tensor lies the lowest value.
inline at::Tensor forward_max_pool(const team_handle& team, const layer_plan& p, const static_vector<sliding, 8>& kernels,
                                   const at::Tensor& input) {
  const at::Tensor x = change_layout(team, p.input, p.used, input);
  const box raw = box_of(p.raw, team->rank());
  if (x.numel() == 0 || volume(raw) == 0) return detail::empty_result(raw, {x});
  const detail::strides s(kernels);
  const at::Tensor ready =
      detail::padded(x, box_of(p.used, team->rank()), raw, 2, kernels, -std::numeric_limits<double>::infinity());
  switch (kernels.count) {
    case 1: return at::max_pool1d(ready, s.kernel, s.step, s.zero, s.dilation);
    case 2: return at::max_pool2d(ready, s.kernel, s.step, s.zero, s.dilation);
    default: return at::max_pool3d(ready, s.kernel, s.step, s.zero, s.dilation);
  }
}

/// The layers as functions of their plan: one for each kind, found by what the layer's type has.
template <class L>
at::Tensor forward(const team_handle& team, const layer_plan& p, const at::Tensor& x, const std::vector<parameter>& parameters) {
  if constexpr (requires { L::weights(); }) return forward_contraction(team, p, L::weights(), x, parameters);
  else if constexpr (requires { L::kernels(); }) return forward_max_pool(team, p, L::kernels(), x);
  else if constexpr (std::is_same_v<L, relu>) return at::relu(x);
  else if constexpr (std::is_same_v<L, flatten>) return x.reshape(detail::sizes_of(box_of(p.output, team->rank())));
  else return change_layout(team, p.input, p.output, x);
}

}  // namespace tessera::nn
