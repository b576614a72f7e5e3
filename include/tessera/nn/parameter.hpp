#pragma once

#include <tessera/operation/layer_plan.hpp>
#include <tessera/tensor/random.hpp>

namespace tessera::nn {

/// A learnable tensor: the stored form that the optimizer steps, and how layers see it. A copy is a handle to the same values, as
/// of LibTorch's tensors.
///
/// use : stored → used is a primitive, so its backward adds into the stored form's gradient: from replicate to invariant it is
/// the sum over the copies.
class parameter {
 public:
  /// Begins with its initial values, by path and global index.
  parameter(const team_handle& team, std::string_view name, const parameter_value& of, element e, const seed& s);

  /// Another parameter of the same values.
  parameter clone() const;

  const std::string& path() const { return path_; }  ///< the serial key: "0.weight", behind the seed's path
  const tensor<dyn>& stored() const { return stored_; }
  const layout& used() const { return used_->layout(); }

  /// What the layer's local operation takes. Checked mode compares the copies first: a step by hand may have made them differ.
  at::Tensor use() const;

  /// Assigns this worker's box of a global tensor that everybody has.
  void assign(const at::Tensor& global) const;

 private:
  parameter(std::string path, tensor<dyn> stored, placement_handle used) : path_(std::move(path)), stored_(std::move(stored)), used_(std::move(used)) {}

  std::string path_;
  tensor<dyn> stored_;
  placement_handle used_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter.ipp>
#endif
