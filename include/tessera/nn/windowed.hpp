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

/// Gives the local box exactly the positions that its outputs read: filled in beyond the edge, trimmed where it holds more.
///
/// `of` is the layout of x, whose dimensions from `first` on the kernels slide over; `outside` fills a zero boundary.
inline at::Tensor windowed(at::Tensor x, const layout& of, int rank, const holding& outputs, int first,
                           const static_vector<sliding, 8>& kernels, const at::Scalar& outside) {
  const holding mine = held_by(of, rank);
  std::vector<index_t> widths;  // LibTorch wants the last dimension first
  bool any = false;
  for (int i = kernels.count - 1; i >= 0; --i) {
    const int d = first + i;
    const interval read = stretch(outputs[d], kernels[i].needs());
    if (kernels[i].edge != boundary::zero) {
      const std::vector<index_t> at = places(read, mine[d], kernels[i].edge, of.dims[d].extent);
      bool in_order = true;
      for (std::size_t k = 1; k < at.size(); ++k) in_order = in_order && at[k] == at[k - 1] + 1;
      x = in_order ? x.narrow(d, at[0], static_cast<index_t>(at.size())) : x.index_select(d, at::tensor(at, at::kLong));
      widths.insert(widths.end(), {0, 0});
      continue;
    }
    const interval& held = mine[d][0];
    const bool apart = read.hi <= held.lo || read.lo >= held.hi;  // padding alone
    widths.push_back(apart ? read.size() : held.lo - read.lo);
    widths.push_back(apart ? -held.size() : read.hi - held.hi);
    any = any || widths.back() != 0 || widths[widths.size() - 2] != 0;
  }
  return any ? at::constant_pad_nd(x, widths, outside) : x;
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
