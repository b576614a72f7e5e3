#pragma once

#include <tessera/comm/device/device_boxes.hpp>
#include <tessera/tensor/box/neutral.hpp>
#include <tessera/tensor/box/view_of.hpp>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <tessera/tensor/box/aten.hpp>

#include <limits>
#include <span>
#include <vector>

namespace tessera {

namespace detail {

/// CUDA's handle of the stream on which a device computes now; refused where LibTorch does not give it.
template <class Guard>
CUstream_st* current_stream_of(const Guard& guard) {
  const c10::Stream now = guard.getStream(guard.getDevice());
  if constexpr (requires { guard.getStreamNativeHandle(now); })
    return static_cast<CUstream_st*>(guard.getStreamNativeHandle(now));
  else throw error(refusal{code::stream_untold});
}

}  // namespace detail

/// Boxes in the memory of this thread's current device of a kind, copied and combined by LibTorch's kernels.
class torch_boxes final : public engine::device_boxes {
 public:
  explicit torch_boxes(c10::DeviceType kind) : kind_(kind) {}

  int kind() const override { return static_cast<int>(kind_); }
  CUstream_st* current() const override { return detail::current_stream_of(c10::impl::VirtualGuardImpl(kind_)); }

  void copy(const engine::region& from, const engine::region& to, CUstream_st* on) override {
    const c10::StreamGuard here(stream(on));
    view(as_bits(to)).copy_(view(as_bits(from)), true);
  }

  void combine_terms(std::span<const engine::region> terms, const engine::region& to, combine with,
                     CUstream_st* on) override {
    const c10::StreamGuard here(stream(on));
    at::Tensor result = view(to);
    const bool logical = with == combine::any || with == combine::all;
    if (terms.size() == 1) {
      const at::Tensor one = view(terms[0]);
      result.copy_(logical ? one.ne(0) : one, true);
      return;
    }
    const at::ScalarType wide =
        terms.size() > 2 ? detail::signed_type(engine::sums_in(to.element)) : result.scalar_type();
    const auto term = [&](std::size_t i) {
      return logical ? view(terms[i]).ne(0) : ordered(view(terms[i]).to(wide), to.element, with);
    };
    at::Tensor sum = combined(term(0), term(1), with);
    for (std::size_t i = 2; i < terms.size(); ++i) sum = combined(sum, term(i), with);
    result.copy_(ordered(sum, to.element, with), true);
  }

  void fill_neutral(const engine::region& to, combine with, CUstream_st* on) override {
    const c10::StreamGuard here(stream(on));
    engine::fill_neutral(view(to), to.element, with);
  }

 private:
  // LibTorch knows a stream that it did not make by its address.
  c10::Stream stream(CUstream_st* on) const {
    return c10::Stream(c10::Stream::UNSAFE, c10::impl::VirtualGuardImpl(kind_).getDevice(),
                       reinterpret_cast<c10::StreamId>(on));
  }

  // LibTorch makes 0 and 1 of the bits of a truth value, which a Move leaves as they are.
  static engine::region as_bits(engine::region r) {
    if (r.element == element::boolean) r.element = element::uint8;
    return r;
  }

  // Of unsigned integers as signed ones, so that the larger of one kind is the larger of the other; and back.
  static at::Tensor ordered(const at::Tensor& x, element e, combine with) {
    if (!engine::is_wide_unsigned(e) || (with != combine::max && with != combine::min)) return x;
    if (e == element::uint16) return x.bitwise_xor(std::numeric_limits<std::int16_t>::min());
    if (e == element::uint32) return x.bitwise_xor(std::numeric_limits<std::int32_t>::min());
    return x.bitwise_xor(std::numeric_limits<std::int64_t>::min());
  }

  static at::Tensor combined(const at::Tensor& a, const at::Tensor& b, combine with) {
    switch (with) {
      case combine::max: return at::maximum(a, b);
      case combine::min: return at::minimum(a, b);
      case combine::prod: return a.mul(b);
      case combine::any: return a.logical_or(b);
      case combine::all: return a.logical_and(b);
      case combine::sum: break;
    }
    return a.add(b);
  }

  at::Tensor view(const engine::region& r) const { return detail::view_of(r, kind_); }

  c10::DeviceType kind_;
};

}  // namespace tessera
