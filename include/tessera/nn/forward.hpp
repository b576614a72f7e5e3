#pragma once

#include <tessera/nn/parameter.hpp>
#include <tessera/nn/pooling.hpp>
#include <tessera/tensor/tied.hpp>

namespace tessera::nn {

/// (raw → output) ∘ (x · w) ∘ (input → used), plus the bias: every linear layer and convolution. Products and bias of half types are
/// added in a wider type and rounded once; terms that other workers add are rounded before they go.
inline at::Tensor forward_contraction(const team_handle& team, const layer_plan& p, const contraction& what, const at::Tensor& input,
                                      const std::vector<parameter>& parameters) {
  const holding raw = held_by(p.raw, team->rank());
  const at::Tensor x = what.kernels.empty() ? change_layout(team, p.input, p.used, input)
                                            : detail::windowed(team, p.input, p.used, input, raw, what.feature + 1, what.kernels, 0);
  const at::Tensor w = parameters[0].use();
  const at::ScalarType e = x.scalar_type();
  const at::ScalarType sums = !what.kernels.empty() ? detail::convolved_in(e) : at::isReducedFloatingType(e) ? at::kFloat : e;
  const std::vector<index_t> sizes = detail::sizes_of(raw);
  at::Tensor y;
  if (x.numel() == 0 || w.numel() == 0 || std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) {
    y = detail::empty_result(raw, {x, w});
  } else if (what.kernels.empty()) {
    y = at::matmul(x.to(sums), w.to(sums).t());
  } else {
    const detail::kernel_lists k(what.kernels);
    y = at::convolution(x.to(sums), w.to(sums), {}, k.step, k.zero, k.dilation, false, k.zero, x.size(what.feature) / w.size(1));
  }
  y = change_layout(team, p.raw, p.output, detail::tied(p.raw == p.output ? y : y.to(e), {x, w}));
  if (!what.bias) return y.to(e);
  std::vector<index_t> along(static_cast<std::size_t>(y.dim()), 1);
  const at::Tensor b = parameters[1].use();
  along[static_cast<std::size_t>(what.feature < 0 ? y.dim() + what.feature : what.feature)] = b.numel();
  return (y.to(sums) + b.to(sums).view(along)).to(e);
}

/// Padding and slices ∘ (blocks → what is kept).
inline at::Tensor forward_widened(const team_handle& team, const layer_plan& p, const static_vector<sliding, 8>& widths, const at::Tensor& input) {
  const holding raw = held_by(p.raw, team->rank());
  const at::Tensor x = detail::windowed(team, p.input, p.used, input, raw, p.used.dims.count - widths.count, widths, 0);
  const std::vector<index_t> sizes = detail::sizes_of(raw);
  if (x.numel() == 0 || std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return detail::empty_result(raw, {x});
  return x * 1;
}

/// The layers as functions of their plan: a layer of one's own has its `forward`, the others are found by what their type has.
template <class L>
at::Tensor forward(const team_handle& team, const layer_plan& p, const at::Tensor& x, const std::vector<parameter>& parameters) {
  if constexpr (requires { L::forward(team, p, x, parameters); }) return L::forward(team, p, x, parameters);
  else if constexpr (requires { L::weights(); }) return forward_contraction(team, p, L::weights(), x, parameters);
  else if constexpr (requires { L::pool(); }) return forward_pooling(team, p, L::pool(), x).values;
  else if constexpr (requires { L::widths(p.input); }) return forward_widened(team, p, L::widths(p.input), x);
  else if constexpr (std::is_same_v<L, relu>) return at::relu(x);
  else if constexpr (std::is_same_v<L, flatten>) return x.reshape(detail::sizes_of(held_by(p.output, team->rank())));
  else return change_layout(team, p.input, p.output, x);
}

}  // namespace tessera::nn
