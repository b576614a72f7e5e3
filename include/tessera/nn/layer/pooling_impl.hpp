#pragma once

#include <tessera/nn/layer/pooling.hpp>
#include <tessera/tensor/box/grain_size.hpp>

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <array>

namespace tessera::detail {

/// How many elements the divisor of an average counts for each output along one dimension.
inline std::vector<index_t> window_counts(const interval& outputs, const sliding& asked, index_t n, bool padding) {
  std::vector<index_t> counts;
  for (index_t y = outputs.lo; y < outputs.hi; ++y) {
    index_t taps = 0;
    for (index_t k = 0; k < asked.kernel; ++k) {
      const index_t i = y * asked.stride - asked.before + k * asked.dilation;
      taps += padding ? i < n + asked.after : i >= 0 && i < n;
    }
    counts.push_back(taps);
  }
  return counts;
}

/// The divisor of the sums of windows: one number, or one for each output.
struct window_divisors {
  index_t all = 1;
  at::Tensor each;

  window_divisors(const pooling& layer, const layout& x, const holding& outputs, c10::Device device)
      : all(layer.divisor) {
    if (all > 0) return;
    all = 1;
    at::Tensor product = at::ones({}, at::kDouble);
    bool alike = true;
    for (int i = 0; i < layer.kernels.count; ++i) {
      const std::vector<index_t> counts =
          window_counts(outputs[2 + i][0], layer.kernels[i], x.dims[2 + i].extent, layer.counts_padding);
      alike = alike && counts.front() > 0 && std::equal(counts.begin() + 1, counts.end(), counts.begin());
      all *= counts.front();
      product = product.unsqueeze(-1) * at::tensor(counts, at::kDouble);
    }
    if (alike) return;
    all = 1;
    each = product.to(device);
  }
};

/// The sum of each window by a number; LibTorch's averages have no dilation, so those are a convolution of each feature
/// by itself.
inline at::Tensor window_sums(const at::Tensor& ready, const kernel_lists& k, index_t by) {
  for (index_t d : k.dilation) {
    if (d == 1) continue;
    std::vector<index_t> ones = k.kernel;
    ones.insert(ones.begin(), {ready.size(1), 1});
    const at::Tensor sums = at::convolution(ready, at::ones(ones, ready.options()), {}, k.step, k.padding, k.dilation,
                                            false, k.zero, ready.size(1));
    return by == 1 ? sums : sums / by;
  }
  switch (k.kernel.size()) {
    case 1:
      return at::avg_pool2d(ready.unsqueeze(-2), {1, k.kernel[0]}, {1, k.step[0]}, {0, k.padding[0]}, false, true, by)
          .squeeze(-2);
    case 2: return at::avg_pool2d(ready, k.kernel, k.step, k.padding, false, true, by);
    default: return at::avg_pool3d(ready, k.kernel, k.step, k.padding, false, true, by);
  }
}

/// The padding of a maximum: the lowest value of the element type.
inline at::Scalar lowest(at::ScalarType type) {
  switch (type) {
    case at::kByte: return std::int64_t{std::numeric_limits<std::uint8_t>::lowest()};
    case at::kChar: return std::int64_t{std::numeric_limits<std::int8_t>::lowest()};
    case at::kShort: return std::int64_t{std::numeric_limits<std::int16_t>::lowest()};
    case at::kInt: return std::int64_t{std::numeric_limits<std::int32_t>::lowest()};
    case at::kLong: return std::numeric_limits<std::int64_t>::lowest();
    default: return -std::numeric_limits<double>::infinity();
  }
}

/// Local flat indices of maxima in the padded box as flat indices in the global tensor. In a window without anything
/// above the lowest value, LibTorch's local index is its first position. If that is padding, the first tap inside the
/// tensor is meant.
inline at::Tensor global_indices(at::Tensor local, const at::Tensor& ready, const layout& x, const holding& raw,
                                 const static_vector<sliding, 8>& kernels, const kernel_lists& k) {
  at::Tensor global = at::zeros_like(local);
  index_t stride = 1;
  for (int i = kernels.count - 1; i >= 0; --i) {
    const index_t extent = ready.size(2 + i);
    const index_t begin = stretch(raw[2 + i], kernels[i].needs()).lo + k.padding[static_cast<std::size_t>(i)];
    const at::Tensor at = local.remainder(extent) + begin;
    global = global + at::where(at < 0, at.remainder(kernels[i].dilation), at) * stride;
    local = local.div(extent, "floor");
    stride *= x.dims[2 + i].extent;
  }
  return global;
}

/// The part of the box that each output covers, along three dimensions.
using covered_parts = std::array<std::vector<interval>, 3>;

/// The place of the maximum of each output's window, in each box of x[boxes, …]. Of equal elements it is the first, of
/// NaNs the last, as LibTorch finds them.
template <class T>
void find_maxima(const T* x, const std::array<index_t, 3>& extents, const covered_parts& covered, std::int64_t* found) {
  for (const interval& i : covered[0])
    for (const interval& j : covered[1])
      for (const interval& k : covered[2]) {
        index_t at = (i.lo * extents[1] + j.lo) * extents[2] + k.lo;
        T most = -std::numeric_limits<T>::infinity();
        for (index_t a = i.lo; a < i.hi; ++a)
          for (index_t b = j.lo; b < j.hi; ++b)
            for (index_t c = k.lo; c < k.hi; ++c) {
              const index_t here = (a * extents[1] + b) * extents[2] + c;
              if (!(x[here] > most) && x[here] == x[here]) continue;
              most = x[here];
              at = here;
            }
        *found++ = at;
      }
}

/// Flat indices, global ones, of flat indices in boxes that begin there.
inline at::Tensor moved_indices(at::Tensor local, const local_box& of) {
  at::Tensor global = at::zeros_like(local);
  index_t stride = 1;
  for (int d = of.held.count; d-- > 2;) {
    global += (local.remainder(of.size(d)) + of.first(d)) * stride;
    local = local.div(of.size(d), "floor");
    stride *= of.extents[d];
  }
  return global;
}

}  // namespace tessera::detail

namespace tessera::nn::engine {

TESSERA_INLINE pooled forward_pooling(const bound_layer& b, const adaptive_max_pool_description& layer,
                                      const at::Tensor& input, bool indices) {
  const at::Tensor x = b.ready(input).contiguous();
  if (b.is_empty)
    return {b.depends_on_all(detail::empty_result(b.outputs, {x}), {x}),
            at::empty(b.sizes, x.options().dtype(at::kLong))};
  const local_box &has = b.boxes().operands[0], &makes = b.boxes().result;
  std::array<index_t, 3> extents{1, 1, 1};
  detail::covered_parts covered{{{{0, 1}}, {{0, 1}}, {{0, 1}}}};
  for (int i = layer.covers.count(), d = 3; i-- > 0;) {
    extents[static_cast<std::size_t>(--d)] = has.size(2 + i);
    std::vector<interval>& along = covered[static_cast<std::size_t>(d)];
    along.clear();
    for (index_t y = makes.first(2 + i); y < makes.first(2 + i) + makes.size(2 + i); ++y) {
      const interval all = layer.covers.over(i, has.extents[2 + i]).covers(y);
      along.push_back({all.lo - has.first(2 + i), all.hi - has.first(2 + i)});
    }
  }
  const at::Tensor on_host = x.cpu();
  at::Tensor found = at::empty(b.sizes, at::kLong);
  const index_t boxes = x.size(0) * x.size(1), reads = x.numel() / boxes, writes = found.numel() / boxes;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "adaptive_max_pool", [&] {
    at::parallel_for(0, boxes, 1 + tessera::detail::grain_size / (1 + reads), [&](index_t begin, index_t end) {
      for (index_t n = begin; n < end; ++n)
        detail::find_maxima(on_host.const_data_ptr<scalar_t>() + n * reads, extents, covered,
                            found.mutable_data_ptr<std::int64_t>() + n * writes);
    });
  });
  found = found.to(x.device());
  const at::Tensor y = x.flatten(2).gather(2, found.flatten(2)).view(b.sizes);
  return {b.depends_on_all(y, {x}), indices ? detail::moved_indices(found, has) : at::Tensor()};
}

TESSERA_INLINE pooled forward_pooling(const bound_layer& b, const pooling& layer, const at::Tensor& input,
                                      bool indices) {
  const layout& used = b.inputs[0].to->layout();
  static_vector<sliding, 8> kernels;
  for (int i = 0; i < layer.kernels.count; ++i) kernels.push(layer.over(i, used.dims[2 + i].extent));
  const bool max = layer.is == pooling::kind::max;
  const at::Scalar outside = max ? detail::lowest(input.scalar_type()) : at::Scalar(0);
  const detail::window_reading& reading = b.reads(2, kernels, outside, builtin_padding::half);
  auto edges = indices ? std::nullopt
                       : b.by_edges<tessera::detail::window_edges>(input, 2, kernels, builtin_padding::half, reading);
  const at::Tensor x = edges ? input : b.ready(input, reading);
  if (b.is_empty)
    return {b.depends_on_all(detail::empty_result(b.outputs, {x}), {x}),
            at::empty(b.sizes, x.options().dtype(at::kLong))};
  const auto of_windows = [&](const auto& pool) {
    return edges ? edges->compute(pool, pool) : pool(x, reading.lists());
  };
  if (!max) {  // a sum may be too large for a half type where its mean is not
    const auto& by = b.once<detail::window_divisors>(
        [&] { return detail::window_divisors(layer, used, b.outputs, device_of(*b.team)); });
    const at::ScalarType e = input.scalar_type(), sums = detail::added_in(e);
    const at::Tensor y = of_windows([&](const at::Tensor& read, const detail::kernel_lists& k) {
      return detail::window_sums(read.to(sums), k, by.all);
    });
    return {b.depends_on_all((by.each.defined() ? y / by.each.to(sums) : y).to(e), {x}), {}};
  }
  const auto maxima = [&](const at::Tensor& read, const detail::kernel_lists& k) {
    switch (kernels.count) {
      case 1: return at::max_pool1d_with_indices(read, k.kernel, k.step, k.padding, k.dilation, false);
      case 2: return at::max_pool2d_with_indices(read, k.kernel, k.step, k.padding, k.dilation, false);
      default: return at::max_pool3d_with_indices(read, k.kernel, k.step, k.padding, k.dilation, false);
    }
  };
  if (!indices) return {b.depends_on_all(of_windows([&](auto&&... a) { return std::get<0>(maxima(a...)); }), {x}), {}};
  const auto [y, local] = maxima(x, reading.lists());
  return {b.depends_on_all(y, {x}), detail::global_indices(local, x, used, b.outputs, kernels, reading.lists())};
}

}  // namespace tessera::nn::engine
