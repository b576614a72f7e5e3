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

/// Gives a network the parameters of a state dict that every worker has; keys, shapes and element types must be its own.
template <class Network>
void assign(Network& net, const state_dict& state) {
  index_t expected = 0;
  net.each_parameter([&](const parameter&) { ++expected; });
  const auto found = static_cast<index_t>(state.size());
  net.each_parameter([&](const parameter& p) {
    std::vector<index_t> sizes;
    for (const dimension& d : p.stored().layout().dims) sizes.push_back(d.extent);
    const at::ScalarType type = p.stored().local().scalar_type();
    const auto given = state.find(p.path());
    if (given == state.end()) throw error(refusal{code::other_parameters, expected, found}, p.path() + " is missing");
    const at::Tensor& t = given->second;
    if (t.sizes() != at::IntArrayRef(sizes) || t.scalar_type() != type)
      throw error(refusal{code::other_parameters, expected, found},
                  c10::str(p.path(), " is ", t.scalar_type(), t.sizes(), " and not ", type, at::IntArrayRef(sizes)));
  });
  if (expected != found) throw error(refusal{code::other_parameters, expected, found});
  net.each_parameter([&](parameter& p) { p.assign(state.at(p.path())); });
}

}  // namespace tessera::nn
