#pragma once

#include <tessera/nn/parameter/state_tensor.hpp>

namespace tessera::nn {

/// State that a layer keeps from call to call and no optimizer steps: running statistics, counters. It has no
/// cotangent.
class buffer : public engine::state_tensor {
 public:
  /// Begins with its initial values, by path and global index.
  buffer(const team_handle& team, std::string_view name, const buffer_value& of, const seed& s)
      : engine::state_tensor(team, name, of.stored, of.initial, of.element, s, name, {}, of.only_here) {}

  /// Another buffer of the same values.
  buffer clone() const { return buffer(copy()); }

  /// This worker's box.
  const at::Tensor& value() const { return stored().local(); }
  /// Takes the values of a box that lies as this one; copies must be given copies.
  void set(const at::Tensor& box) const {
    const at::NoGradGuard no_record;
    value().copy_(box);
  }

 private:
  explicit buffer(engine::state_tensor values) : engine::state_tensor(std::move(values)) {}
};

}  // namespace tessera::nn
