#pragma once

#include <tessera/nn/parameter.hpp>

namespace tessera::detail {

/// The serial model's key for a parameter of this name in the network.
inline std::string serial_key(std::string_view name, const parameter_value& of) {
  std::string key(name);
  if (of.serial.name != nullptr) key.replace(key.size() - std::string_view(of.name).size(), key.npos, of.serial.name);
  return key;
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE parameter::parameter(const team_handle& team, std::string_view name, const parameter_value& of, element e, const seed& s)
    : state_tensor(team, name, of.stored, of.initial, e, s, tessera::detail::serial_key(name, of), of.serial), used_(team->place(of.used)) {
  check(check_gradient(e), path());
  stored().local().set_requires_grad(true);
}

TESSERA_INLINE at::Tensor parameter::use() const {
  team_state& team = *stored().team();
  if (team.checked && team.inside()) team.agree_on_copies(stored().layout(), detail::hash_of(stored().local()), {.what = path().c_str()});
  return change_layout(stored().team(), stored().where(), used_, stored().local());
}

}  // namespace tessera::nn
