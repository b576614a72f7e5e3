#pragma once

#include <tessera/tensor/change/change.hpp>

namespace tessera::engine {

TESSERA_INLINE at::Tensor change_layout(const team_handle& team, const shared_layout_handle& from,
                                        const shared_layout_handle& to, const at::Tensor& x, const padded_box& around,
                                        call_site at) {
  if (!x.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const element e = detail::element_of_scalar(x.scalar_type());
  return detail::run({team, detail::bound_change_of(*team, from, to, e, team->doing()), x, at}, x, around);
}
TESSERA_INLINE at::Tensor change_layout(const team_handle& team, const layout& from, const layout& to,
                                        const at::Tensor& x, call_site at) {
  return change_layout(team, team->intern(from), team->intern(to), x, {}, at);
}
TESSERA_INLINE at::Tensor change_layout_rounded(const team_handle& team, const shared_layout_handle& from,
                                                const shared_layout_handle& to, const at::Tensor& x, element as,
                                                call_site at) {
  const element own = detail::element_of_scalar(x.scalar_type());
  const call_context now = team->doing();
  detail::change_call call(team, detail::bound_change_of(*team, from, to, own, now), x, at);
  if (as == own || call.change->stays()) return detail::run(std::move(call), x);
  const at::Tensor y = [&] {
    const c10::AutoGradMode no_record(false);
    call_context context = call.context;
    context.element = as;
    const auto rounded = detail::bound_change_of(*team, from, to, as, now);
    return rounded->run(x.to(detail::scalar_type_of(as)), context).to(x.scalar_type());
  }();
  if (call.tracked) detail::record(y, x, detail::make_node<detail::change_backward>(std::move(call), padded_box()));
  return y;
}

}  // namespace tessera::engine
