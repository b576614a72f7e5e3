#pragma once

#include <tessera/tensor/overlap.hpp>

#include <optional>
#include <vector>

namespace tessera::nn::engine {

/// A tensor of one dimension with one placement along all axes.
inline layout flat_layout(const mesh_value& mesh, index_t elements, placement everywhere) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(mesh.axes.count);
  for (int a = 0; a < mesh.axes.count; ++a) x.placements[a].kind = everywhere;
  tessera::engine::dimension flat;
  flat.extent = elements;
  x.dims.push(flat);
  return x;
}

/// Gradients that travel together: a one-dimensional tensor whose ranges are gradients of one element, or one gradient
/// with an adjoint of its own.
///
/// Σ over workers: partial → invariant or blocks, one change of layout for all of them. LibTorch leaves a gradient
/// where it was made, so packing the bundle as it begins costs one copy. Common memory of all gradients would cost that
/// too.
class gradient_bundle {
 public:
  /// A member's shape on this worker, and from which element of the bundle on it lies.
  struct range {
    std::vector<std::int64_t> sizes;
    index_t begin = 0;
  };

  /// Ranges that lie end to end in a tensor of one dimension, whose terms lie like one layout and become the other.
  /// What comes of them is a range a member, or all that this worker gets in one.
  gradient_bundle(const team_handle& team, const layout& terms, const layout& sums, std::vector<range> ranges,
                  at::ScalarType type, bool in_one = false);
  /// One tensor, whose terms lie like one layout and become the other.
  gradient_bundle(const team_handle& team, const layout& terms, const layout& sums, at::ScalarType type);

  /// Begins to sum over workers what each has of the members; what is undefined is zero. They compare which of them
  /// learn, as a number.
  void begin(std::vector<at::Tensor> terms, std::uint64_t learning, call_site at);
  /// The sums, times a factor: a tensor for each member, all in one memory that is nobody else's, or all in one.
  std::vector<at::Tensor> finish(double factor = 1);

  index_t bytes() const { return elements_ * static_cast<index_t>(of_.dtype().itemsize()); }

 private:
  at::Tensor packed(const std::vector<at::Tensor>& terms) const;
  std::vector<at::Tensor> ranges_of(const at::Tensor& all) const;

  team_handle team_;
  layout terms_;
  layout sums_;
  std::vector<range> ranges_;
  index_t elements_;
  at::TensorOptions of_;
  bool flat_;
  bool in_one_;
  bool moves_;            ///< else the terms are the sums
  bool narrows_ = false;  ///< each worker's sum is a part of its own terms
  std::vector<at::Tensor> kept_;
  std::optional<awaited<tensor<dyn>>> sum_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/gradient_bundle_impl.hpp>
#endif
