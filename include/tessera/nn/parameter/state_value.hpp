#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

#include <concepts>
#include <string>
#include <vector>

namespace tessera::nn::engine {

/// A leaf of autograd's graph with its name.
struct named_leaf {
  std::string name;
  at::Tensor leaf;
};

/// A tensor of a training run, and how workers hold it. It is a serial tensor, or has one dimension, in which several
/// of these lie end to end.
struct state_value {
  std::string name;
  tensor<dyn> lies;
  bool stepped = true;                ///< an optimizer steps it if it asks for a gradient; else it is a buffer
  bool alike = true;                  ///< copies of it are equal
  std::vector<named_leaf> members{};  ///< the serial tensors that lie in it, whole on every worker; none: it is one
  at::Tensor waiting{};               ///< its gradient while that may not be read

  /// Throws while its gradient waits for others of its window.
  void check_reduced() const;
};

/// A tensor that every worker of a team has whole.
tensor<dyn> whole_everywhere(const team_handle& team, const at::Tensor& t);

/// Each member of a value as it lies itself: in one dimension, cut where the value is.
std::vector<tensor<dyn>> members_of(const state_value& v);

/// What has state that is no network's: what is stepped, and what stands beside it.
template <class T>
concept shows_values = requires(const T& of) {
  { of.values() } -> std::same_as<const std::vector<state_value>&>;
};

/// A tensor that an optimizer steps, seen at who has it.
struct stepped_tensor {
  const std::string* name;
  const tensor<dyn>* lies;

  const at::Tensor& leaf() const { return lies->local(); }
  const at::Tensor& gradient() const { return leaf().grad(); }
};

/// Those of a network, by path, or of what shows its state. Throws while their gradients wait.
template <class T>
std::vector<stepped_tensor> stepped_tensors(const T& of) {
  std::vector<stepped_tensor> all;
  if constexpr (shows_values<T>) {
    for (const state_value& v : of.values()) {
      if (!v.stepped) continue;
      v.check_reduced();
      all.push_back({&v.name, &v.lies});
    }
  } else {
    for (const auto& [path, p] : tessera::detail::parameters_by_key(of)) {
      p->check_reduced();
      all.push_back({&p->path(), &p->stored()});
    }
  }
  return all;
}

/// The team that speaks for a network, or for what shows its state.
template <class T>
team_handle team_that_steps(const T& of) {
  if constexpr (shows_values<T>) return of.team();
  else return tessera::detail::team_of(of);
}

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/state_value_impl.hpp>
#endif
