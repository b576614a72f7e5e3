#pragma once

#include <tessera/tensor/empty_result.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera::detail {

/// The positions that the outputs of one worker read along a dimension, those beyond the edge included: one stretch, counted
/// on around the end where the outputs run around it.
inline interval stretch(const intervals& outputs, const window& w) {
  const index_t lo = outputs[0].lo;
  return {w.first(lo), w.last(lo + size_of(outputs) - 1) + 1};
}

/// Where each position of a stretch lies in memory: positions beyond the edge of n elements read what the boundary says.
inline std::vector<index_t> places(const interval& read, const intervals& held, boundary edge, index_t n) {
  std::vector<index_t> all;
  for (index_t i = read.lo; i < read.hi; ++i) {
    index_t e = i;
    if (edge == boundary::periodic) e = modulo(i, n);
    if (edge == boundary::replicate) e = clamp(i, 0, n - 1);
    if (edge == boundary::reflect) e = i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    all.push_back(position(held, e));
  }
  return all;
}

/// What the outputs of one worker read beyond its box: a frame around it, of what lies outside a tensor with a zero boundary.
///
/// `of` is the layout of the box, whose dimensions from `first` on the kernels slide over.
inline frame frame_for(const layout& of, int rank, const holding& outputs, int first, const static_vector<sliding, 8>& kernels,
                       const at::Scalar& outside) {
  const holding mine = held_by(of, rank);
  frame around{{}, {}, outside};
  around.before.resize(of.dims.count);
  around.behind.resize(of.dims.count);
  for (int i = 0; i < kernels.count; ++i) {
    if (kernels[i].edge != boundary::zero) continue;
    const int d = first + i;
    const interval read = stretch(outputs[d], kernels[i].needs());
    const interval& held = mine[d][0];
    const bool apart = read.hi <= held.lo || read.lo >= held.hi;  // padding alone
    around.before[d] = std::max<index_t>(0, apart ? read.size() : held.lo - read.lo);
    around.behind[d] = std::max<index_t>(0, apart ? 0 : read.hi - held.hi);
  }
  return around;
}

/// Gives a box in its frame exactly the positions that its outputs read: gathered beyond the edge, trimmed where it holds more.
inline at::Tensor trimmed(at::Tensor x, const layout& of, int rank, const holding& outputs, int first,
                          const static_vector<sliding, 8>& kernels) {
  const holding mine = held_by(of, rank);
  for (int i = 0; i < kernels.count; ++i) {
    const int d = first + i;
    const interval read = stretch(outputs[d], kernels[i].needs());
    if (kernels[i].edge == boundary::zero) {
      const interval& held = mine[d][0];
      const bool apart = read.hi <= held.lo || read.lo >= held.hi;
      const index_t begin = apart ? 0 : std::max<index_t>(0, read.lo - held.lo);
      if (x.size(d) != read.size()) x = x.narrow(d, begin, read.size());
      continue;
    }
    const std::vector<index_t> at = places(read, mine[d], kernels[i].edge, of.dims[d].extent);
    bool in_order = true;
    for (std::size_t k = 1; k < at.size(); ++k) in_order = in_order && at[k] == at[k - 1] + 1;
    x = in_order ? x.narrow(d, at[0], static_cast<index_t>(at.size())) : x.index_select(d, at::tensor(at, at::kLong));
  }
  return x;
}

/// The box of `input` that the outputs of this worker read under its kernels: input → used, in a frame, trimmed. A worker whose
/// box or outputs are empty gets its box of `used`.
inline at::Tensor windowed(const team_handle& team, const layout& input, const layout& used, const at::Tensor& x, const holding& outputs,
                           int first, const static_vector<sliding, 8>& kernels, const at::Scalar& outside) {
  const int rank = team->rank();
  const auto empty = [](const holding& h) { return std::any_of(h.begin(), h.end(), [](const intervals& i) { return size_of(i) == 0; }); };
  if (empty(outputs) || empty(held_by(used, rank))) return change_layout(team, input, used, x);
  const frame around = frame_for(used, rank, outputs, first, kernels, outside);
  return trimmed(change_layout(team, team->place(input), team->place(used), x, around), used, rank, outputs, first, kernels);
}

/// The element in which a convolution adds the products of a half type, to round once behind it: float where oneDNN adds them one
/// by one, else double, as LibTorch's other kernel for float is Winograd's, and a half type shows its errors.
inline at::ScalarType convolved_in(at::ScalarType e) {
  if (!at::isReducedFloatingType(e)) return e;
  return at::hasMKLDNN() && at::globalContext().userEnabledMkldnn() ? at::kFloat : at::kDouble;
}

/// The options of kernels as LibTorch takes them; padding is done already.
struct kernel_lists {
  std::vector<index_t> kernel, step, dilation, zero;
  explicit kernel_lists(const static_vector<sliding, 8>& kernels) {
    for (const sliding& s : kernels) {
      kernel.push_back(s.kernel);
      step.push_back(s.stride);
      dilation.push_back(s.dilation);
      zero.push_back(0);
    }
  }
};

}  // namespace tessera::detail
