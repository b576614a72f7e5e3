#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// A tensor that a checkpoint keeps: where it lies, this worker's box of it, and what it is of a serial tensor. Several
/// may be parts of one serial tensor, under one key.
struct kept_tensor {
  std::string key;
  layout lies;  ///< a tiling, with copies along its invariant and replicate axes
  element type{};
  at::Tensor local;  ///< undefined where it is made later
  serial_view serial;
  std::vector<index_t> serial_sizes;
  bool optional = false;  ///< a file may lack it
  bool alike = true;      ///< copies are equal; else the first one's values count
  /// Where its elements lie end to end in an optimizer's leaf: from which one on. It then lies in one dimension, in the
  /// serial tensor's order.
  std::optional<index_t> flat_from{};
  shared_layout_handle holds{};  ///< the bounds at which `lies` is cut

  /// The tensors that a layer keeps, under its key behind a prefix.
  static kept_tensor of(const state_tensor& t, const std::string& before);
  /// A tensor of its own shape.
  static kept_tensor of(std::string key, const tensor<dyn>& t);
  /// A part of a leaf, of a serial tensor that has this leaf's bounds.
  at::Tensor part_of(const at::Tensor& leaf) const {
    return flat_from ? leaf.narrow(0, *flat_from, local.numel()) : leaf;
  }
};

/// A box of a serial tensor that lies in one piece in a worker's own box of a part of it.
struct serial_piece {
  std::vector<index_t> begin;    ///< in the serial tensor
  std::vector<index_t> extents;  ///< its extents there
  std::vector<index_t> own_begin;
  std::vector<index_t> own_extents;  ///< in the worker's box

  index_t elements() const;
  /// The piece where it lies in a worker's box, which is contiguous, in the shape that it has in the serial tensor.
  at::Tensor in(const at::Tensor& local) const;
};

/// A worker's box of a tensor's serial one, under a layout.
std::vector<serial_piece> pieces_of(const kept_tensor& t, const layout& lies, int rank);

/// Chooses the copy of each tensor that is written and read: the first of those whose workers have the fewest bytes of
/// earlier tensors. A function of layouts alone, so workers agree on it unasked.
class chosen_copies {
 public:
  explicit chosen_copies(const mesh_value& workers) : workers_(workers) {}

  /// The tensor's layout with one copy of each element.
  layout next(const kept_tensor& t);

 private:
  mesh_value workers_;
  std::map<int, index_t> bytes_;  // by world rank
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/kept_tensor_impl.hpp>
#endif
