#pragma once

#include <tessera/nn/parameter/state_tensor.hpp>
#include <tessera/nn/refusals.hpp>

#include <map>
#include <string>
#include <vector>

namespace tessera::detail {

/// Throws unless what lies under keys has the serial keys, shapes and element types of what a network keeps; says all
/// that differs. described(value) is as `described_tensor`.
template <class Value, class Described>
void check_state(const std::map<std::string, std::vector<const nn::engine::state_tensor*>>& kept,
                 const std::map<std::string, Value>& state, const std::string& from, Described&& described) {
  std::string wrong;
  const auto add = [&](const std::string& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  for (const auto& [key, parts] : kept) {
    const auto given = state.find(key);
    if (given == state.end()) {
      if (!parts[0]->only_here()) add(key + " is missing");
      continue;
    }
    const std::string wanted =
        c10::str(parts[0]->stored().local().scalar_type(), at::IntArrayRef(parts[0]->serial_sizes()));
    if (const std::string is = described(given->second); is != wanted) add(key + " is " + is + " and not " + wanted);
  }
  for (const auto& [key, t] : state)
    if (!kept.count(key)) add(key + " is unexpected");
  if (!wrong.empty()) throw error(refusal{code::other_parameters, kept.size(), state.size()}, from + wrong);
}

}  // namespace tessera::detail
