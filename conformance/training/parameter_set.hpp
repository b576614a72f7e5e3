#pragma once
// Parameters of a case, shown as a network shows its own: what takes a network takes them.

#include "attempt.hpp"

#include <tessera/nn/parameter/buffer.hpp>
#include <tessera/nn/parameter/parameter.hpp>

#include <deque>

namespace conformance::training {

class parameter_set {
 public:
  explicit parameter_set(const team_handle& team) : team_(team) {}
  parameter_set(const parameter_set&) = delete;
  parameter_set& operator=(const parameter_set&) = delete;

  /// Adds a parameter that is stored so, of zeros.
  const nn::parameter& add(const std::string& name, const layout& stored, element e) {
    parameter_value of;
    of.name = names_.emplace_back(name).c_str();
    of.stored = of.used = stored;
    of.initial = init::zeros();
    return all_.emplace_back(team_, name, of, e, seed{1});
  }
  /// The same with a value that every worker has.
  const nn::parameter& add(const std::string& name, const layout& stored, element e, const at::Tensor& value) {
    const nn::parameter& p = add(name, stored, e);
    p.assign(value);
    return p;
  }
  /// The same of a buffer.
  const nn::buffer& add_buffer(const std::string& name, const layout& stored, element e) {
    const buffer_value of{names_.emplace_back(name).c_str(), stored, init::zeros(), e};
    return buffers_.emplace_back(team_, name, of, seed{1});
  }

  const team_handle& team() const { return team_; }
  template <class Visit>
  void each_parameter(const Visit& visit) const {
    for (const nn::parameter& p : all_) visit(p);
  }
  template <class Visit>
  void each_buffer(const Visit& visit) const {
    for (const nn::buffer& b : buffers_) visit(b);
  }

 private:
  team_handle team_;
  std::deque<std::string> names_;
  std::deque<nn::parameter> all_;
  std::deque<nn::buffer> buffers_;
};

}  // namespace conformance::training
