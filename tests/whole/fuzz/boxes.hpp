#pragma once
// The boxes of workers as LibTorch tensors: of any element, lying in memory in any way.

#include "oracle.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

namespace tessera::testing::fuzz {

/// Readies a thread for LibTorch: what it computes it computes itself.
inline void prepare_thread() {
  at::set_num_threads(1);
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

/// What values of an element are like.
struct nature {
  at::ScalarType type;
  bool boolean = type == at::kBool;
  bool complex = at::isComplexType(type);
  bool negative = !boolean && type != at::kByte && type != at::kUInt16 && type != at::kUInt32 && type != at::kUInt64;
  bool differentiable = at::isFloatingType(type) || complex;
};

/// The sizes of a worker's box: of one that holds nothing all are 0.
inline std::vector<index_t> sizes_of(const layout& x, const holder* w) {
  std::vector<index_t> n(static_cast<std::size_t>(x.dims.count), 0);
  for (std::size_t d = 0; w != nullptr && d < w->along.size(); ++d) n[d] = static_cast<index_t>(w->along[d].size());
  return n;
}

/// An uninitialised tensor: row-major, with dimensions reversed, with gaps between its elements, or inside a larger
/// one.
inline at::Tensor stored_as(const std::vector<index_t>& sizes, at::ScalarType type, int how) {
  std::vector<index_t> strides(sizes.size(), 1);
  index_t next = how == 2 ? 2 : 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t d = how == 1 ? i : sizes.size() - 1 - i;
    strides[d] = next;
    next *= std::max<index_t>(sizes[d], 1) + (how == 3 ? 1 : 0);
  }
  return at::empty_strided(sizes, strides, type);
}

/// A tensor of these values; imaginary parts where there are some.
inline at::Tensor tensor_of(const std::vector<index_t>& sizes, const nature& e, int memory,
                            const std::vector<double>& real, const std::vector<double>& imaginary) {
  at::Tensor t = stored_as(sizes, e.type, memory);
  const auto whole = [&](const std::vector<double>& v) {
    at::Tensor all = at::zeros(sizes, at::kDouble);
    std::copy(v.begin(), v.end(), all.data_ptr<double>());
    return all;
  };
  t.copy_(e.complex ? at::complex(whole(real), whole(imaginary)) : whole(real));
  return t;
}

inline std::vector<double> values_of(const at::Tensor& t, bool imaginary) {
  at::Tensor all = t.detach();
  if (at::isComplexType(t.scalar_type())) all = imaginary ? at::imag(all.resolve_conj()) : at::real(all.resolve_conj());
  all = all.to(at::kDouble).contiguous();
  return {all.data_ptr<double>(), all.data_ptr<double>() + all.numel()};
}

}  // namespace tessera::testing::fuzz
