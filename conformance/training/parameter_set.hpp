#pragma once
// Parameters of a case, shown as a network shows its own: what takes a network takes them.

#include "attempt.hpp"

#include <tessera/nn/parameter/parameter.hpp>

#include <deque>

namespace conformance::training {

class parameter_set {
 public:
  explicit parameter_set(const team_handle& team) : team_(team) {}
  parameter_set(const parameter_set&) = delete;
  parameter_set& operator=(const parameter_set&) = delete;

  /// Adds a parameter that is stored so, with a value that every worker has.
  const nn::parameter& add(const std::string& name, const layout& stored, element e, const at::Tensor& value) {
    parameter_value of;
    of.name = names_.emplace_back(name).c_str();
    of.stored = of.used = stored;
    const nn::parameter& p = all_.emplace_back(team_, name, of, e, seed{1});
    p.assign(value);
    return p;
  }

  const team_handle& team() const { return team_; }
  template <class Visit>
  void each_parameter(const Visit& visit) const {
    for (const nn::parameter& p : all_) visit(p);
  }
  template <class Visit>
  void each_buffer(const Visit&) const {}

 private:
  team_handle team_;
  std::deque<std::string> names_;
  std::deque<nn::parameter> all_;
};

}  // namespace conformance::training
