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

/// Gradients in one memory, which travel together: a tensor of one dimension, of which the gradients of leaves of one
/// element are ranges.
///
/// A leaf's `.grad` is its range, to which LibTorch adds. Sum over workers: partial → invariant, one change of layout
/// for all of them.
class gradient_bundle {
 public:
  /// A leaf, what it has for a gradient while the bundle waits, and from which element on its own lies.
  struct member {
    at::Tensor leaf;
    at::Tensor waiting;
    index_t begin = 0;
    at::Tensor range;  ///< its gradient, where one came since the window opened
    bool came = false;
  };

  /// The bundle of leaves of one element, of so many elements in all, on every worker of the team's mesh.
  gradient_bundle(const team_handle& team, std::vector<member> members, index_t elements);

  /// A window opens: leaves have no gradients, and what they had before is set aside.
  void open();
  /// LibTorch has added to a leaf's gradient, which is its range from the first time on.
  void arrived(std::size_t which);
  /// A backward that was not the last of its window is over: leaves have no gradient that could be stepped.
  void wait();
  /// Another one begins: leaves have their ranges again, but those whose gradients somebody let go.
  void go_on();

  /// Begins to sum over workers; what never came is zero.
  void begin(call_site at);
  /// The sums, times a factor, and what was there before, are the leaves' gradients.
  void finish(double factor);

  std::size_t count() const { return members_.size(); }
  const at::Tensor& leaf(std::size_t which) const { return members_[which].leaf; }
  index_t elements() const { return elements_; }

 private:
  at::Tensor range(const at::Tensor& of, const member& one) const;
  at::Tensor exchange_memory(const at::Tensor& with);
  bool others_have_ranges() const;

  team_handle team_;
  std::vector<member> members_;
  index_t elements_;
  layout terms_;
  layout sums_;
  at::Tensor memory_;  ///< its storage stays, and with it the ranges; what lies in it comes and goes
  at::Tensor before_;  ///< what leaves had when the window opened; none where they had nothing
  std::optional<awaited<tensor<dyn>>> sum_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/gradient_bundle_impl.hpp>
#endif
