#pragma once

#include <tessera/tensor/change/lineage.hpp>

namespace tessera {

template <>
class tensor<dyn>;

namespace detail {

/// Compares, where it is due, which tensor enters on each worker, and its copies; or the whole that workers take parts
/// of, if given.
void compare_entry(const tensor<dyn>& x, const call_site& line, const at::Tensor& whole = {});

/// A local operation takes a leaf that is trained; its copies are compared with the next backward.
void note_leaf(const tensor<dyn>& x);

/// Where it is due, compares on a loss's workers which one begins a backward, and the copies of the leaves that local
/// operations took before. A leaf that one worker alone took is left out: it may do so for itself.
void compare_backward(const tensor<dyn>& loss, const call_site& line);

}  // namespace detail
}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/comparing_impl.hpp>
#endif
