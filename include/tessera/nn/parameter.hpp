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
  parameter clone() const { return {copy(), used_}; }

  /// The same parameter as another layer takes it.
  parameter used_as(const layout& used) const { return {*this, stored().team()->place(used)}; }

  const layout& used() const { return used_->layout(); }

  /// What the layer's local operation takes. Checked mode compares the copies first: a step by hand may have made them differ.
  at::Tensor use() const;

 private:
  parameter(state_tensor values, placement_handle used) : state_tensor(std::move(values)), used_(std::move(used)) {}

  placement_handle used_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter.ipp>
#endif
