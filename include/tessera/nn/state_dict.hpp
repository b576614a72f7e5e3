#pragma once

#include <tessera/nn/parameter.hpp>

#include <map>

namespace tessera::nn {

/// Global tensors under the serial model's keys.
using state_dict = std::map<std::string, at::Tensor>;

/// The parameters of a network as global tensors, on every worker.
template <class Network>
state_dict state_of(const Network& net) {
  state_dict all;
  net.each_parameter([&](const parameter& p) { all[p.path()] = global(p.stored()).clone(); });
  return all;
}

/// Gives a network the parameters of a state dict that every worker has; keys and shapes must be its own.
template <class Network>
void assign(Network& net, const state_dict& state) {
  index_t expected = 0;
  net.each_parameter([&](const parameter&) { ++expected; });
  net.each_parameter([&](const parameter& p) {
    const auto found = state.find(p.path());
    bool fits = found != state.end() && found->second.dim() == p.stored().layout().rank() &&
                found->second.scalar_type() == p.stored().local().scalar_type();
    for (int d = 0; fits && d < p.stored().layout().rank(); ++d) fits = found->second.size(d) == p.stored().layout().dims[d].extent;
    if (!fits) throw error(refusal{code::file_does_not_fit, expected, static_cast<index_t>(state.size())}, p.path());
  });
  if (expected != static_cast<index_t>(state.size()))
    throw error(refusal{code::file_does_not_fit, expected, static_cast<index_t>(state.size())});
  net.each_parameter([&](parameter& p) { p.assign(state.at(p.path())); });
}

}  // namespace tessera::nn
