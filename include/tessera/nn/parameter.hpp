#pragma once

#include <tessera/nn/state_tensor.hpp>

namespace tessera::nn {

/// A learnable tensor: the stored form that the optimizer steps, and how layers see it.
///
/// use : stored → used is a primitive, so its backward adds into the stored form's gradient: from replicate to invariant it is
/// the sum over the copies.
class parameter : public state_tensor {
 public:
  /// Begins with its initial values, by path and global index.
  parameter(const team_handle& team, std::string_view name, const parameter_value& of, element e, const seed& s);

  /// Another parameter of the same values.
  parameter clone() const { return {copy(), used_, released_, frozen_}; }

  /// The same parameter as another layer takes it, which lets it go behind forward or keeps it.
  parameter used_as(const layout& used, bool released) const { return {*this, stored().team()->place(used), released, frozen_}; }

  /// The same parameter seen through an alias, whose gradient a part that is recomputed finds by itself.
  parameter alias() const { return {with(at::alias(stored().local())), used_, released_, frozen_}; }

  const layout& used() const { return used_->layout(); }
  bool released() const { return released_; }
  bool frozen() const { return frozen_; }  ///< it has no gradient

  /// What the layer's local operation takes, converted to elements one after the other: rounded to its operand's, then widened to that of
  /// its sums. Checked mode compares the copies first: a step by hand may have made them differ.
  at::Tensor use(std::initializer_list<at::ScalarType> to = {}) const;

  /// The layer has given its results: the memory of what it took goes, if the parameter is released, until the first of their gradients
  /// comes back. Who stepped the parameter meanwhile gets one error in backward.
  void let_go(const std::vector<at::Tensor>& results) const;

 private:
  parameter(state_tensor values, placement_handle used, bool released, bool frozen)
      : state_tensor(std::move(values)), used_(std::move(used)), released_(released), frozen_(frozen) {}

  placement_handle used_;
  bool released_ = false;
  bool frozen_ = false;
  mutable at::Tensor taken_;  // by the layer that runs now, as converted
  mutable std::vector<at::ScalarType> converted_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter.ipp>
#endif
