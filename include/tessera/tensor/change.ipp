#pragma once

#include <tessera/tensor/change.hpp>

namespace tessera {

TESSERA_INLINE at::Tensor change_layout(const team_handle& team, const placement_handle& from, const placement_handle& to, const at::Tensor& x,
                                const frame& around, call_site at) {
  if (!x.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const element e = detail::element_of_scalar(x.scalar_type());
  return detail::run({team, detail::bound_change_of(*team, from, to, e, team->doing()), x, at}, x, around);
}
TESSERA_INLINE at::Tensor change_layout(const team_handle& team, const layout& from, const layout& to, const at::Tensor& x,
                                call_site at) {
  return change_layout(team, team->place(from), team->place(to), x, {}, at);
}

}  // namespace tessera
