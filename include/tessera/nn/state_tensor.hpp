#pragma once

#include <tessera/operation/layer_plan.hpp>
#include <tessera/tensor/random.hpp>

namespace tessera::nn {

/// A tensor that belongs to a layer and that the state dict saves. A copy is a handle to the same values, as of LibTorch's tensors.
class state_tensor {
 public:
  const std::string& path() const { return path_; }  ///< the serial key: "0.weight", behind the seed's path
  const tensor<dyn>& stored() const { return stored_; }

  /// Assigns this worker's box of a global tensor that everybody has.
  void assign(const at::Tensor& global) const;

  /// Refuses a stored form whose element somebody changed.
  void check_element() const { check(tessera::detail::check_element(element_, stored_.local().scalar_type()), path_); }

 protected:
  /// Begins with its initial values, by path and global index.
  state_tensor(const team_handle& team, std::string_view name, const layout& stored, const initial_value& initial, element e, const seed& s);

  /// The same values in memory of their own.
  state_tensor copy() const;

 private:
  std::string path_;
  tensor<dyn> stored_;
  element element_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/state_tensor.ipp>
#endif
