#pragma once

#include <tessera/nn/parameter.hpp>
#include <tessera/tensor/take.hpp>

namespace tessera::nn {

TESSERA_INLINE parameter::parameter(const team_handle& team, std::string_view name, const parameter_value& of, element e, const seed& s)
    : path_(s.key(name)), used_(team->place(of.used)) {
  check(first_of(check_known(of.stored), has_cotangent(e) ? refusal{} : refusal{code::element_has_no_cotangent}), path_);
  at::Tensor values = tessera::detail::initial_box(of.initial, of.stored, e, team->rank(), s, name);
  values.set_requires_grad(true);
  stored_ = tessera::detail::tensor_of(team, of.stored, values);
}

TESSERA_INLINE parameter parameter::clone() const {
  const at::Tensor& local = stored_.local();
  return {path_, tessera::detail::tensor_of(stored_.team(), stored_.layout(), local.detach().clone().set_requires_grad(local.requires_grad())), used_};
}

TESSERA_INLINE at::Tensor parameter::use() const {
  team_state& team = *stored_.team();
  if (team.checked && team.inside()) team.agree_on_copies(stored_.layout(), detail::hash_of(stored_.local()), {.what = path_.c_str()});
  return change_layout(stored_.team(), stored_.where(), used_, stored_.local());
}

TESSERA_INLINE void parameter::assign(const at::Tensor& global) const {
  const at::NoGradGuard no_record;
  stored_.local().copy_(detail::take_value(stored_.team(), stored_.layout(), stored_.type(), global).local());
}

}  // namespace tessera::nn
