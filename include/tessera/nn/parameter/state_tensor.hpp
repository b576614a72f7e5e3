#pragma once

#include <tessera/operation/plan/layer_plan.hpp>
#include <tessera/tensor/random.hpp>

namespace tessera::nn::engine {

/// A tensor that belongs to a layer and that the state dict saves. A copy is a handle to the same values, as of
/// LibTorch's tensors.
class state_tensor {
 public:
  const std::string& path() const { return path_; }  ///< its place in the network: "0.weight", behind the seed's path
  /// the serial model's: its path, unless it is a view of another tensor
  const std::string& key() const { return key_; }
  const tensor<dyn>& stored() const { return stored_; }

  /// Assigns this worker's box of a global tensor that everybody has.
  void assign(const at::Tensor& global) const;

  /// The extents of the serial tensor, and the part of that which this one is, as a view of its own shape.
  std::vector<index_t> serial_sizes() const;
  at::Tensor part_of(const at::Tensor& serial) const;

  const serial_view& serial() const { return serial_; }
  bool only_here() const { return only_here_; }  ///< the serial model has none, so a state dict may lack it
  index_t serial_end() const;                    ///< behind its last element in the serial tensor

  /// Throws on every worker of its mesh unless the copies of it have the same bits; names it.
  void compare_copies() const;
  /// The same where everything is compared.
  void check_copies() const {
    if (stored_.team()->checks == checks::always) compare_copies();
  }
  /// Refuses a stored form whose element somebody changed.
  void check_element() const { check(tessera::detail::check_element(element_, stored_.local().scalar_type()), path_); }

 protected:
  /// Begins with its initial values, by path and global index; `key` is the serial model's for its name.
  state_tensor(const team_handle& team, std::string_view name, const layout& stored, const initial_value& initial,
               element e, const seed& s, std::string_view key, const serial_view& serial = {}, bool only_here = false);

  /// The same values in memory of their own.
  state_tensor copy() const {
    return with(stored_.local().detach().clone().set_requires_grad(stored_.local().requires_grad()));
  }
  /// The same tensor of the network in another one of LibTorch.
  state_tensor with(const at::Tensor& local) const;

 private:
  std::vector<index_t> sizes() const;
  std::vector<index_t> factors() const;  // its dimensions that are one in the serial tensor

  std::string path_;
  std::string key_;
  tensor<dyn> stored_;
  element element_;
  serial_view serial_;
  bool only_here_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/state_tensor_impl.hpp>
#endif
