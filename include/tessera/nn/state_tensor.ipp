#pragma once

#include <tessera/nn/state_tensor.hpp>
#include <tessera/tensor/take.hpp>

namespace tessera::nn {

TESSERA_INLINE state_tensor::state_tensor(const team_handle& team, std::string_view name, const layout& stored, const initial_value& initial, element e,
                                          const seed& s)
    : path_(s.key(name)), element_(e) {
  check(check_known(stored), path_);
  stored_ = tessera::detail::tensor_of(team, stored, tessera::detail::initial_box(initial, stored, e, team->rank(), s, name));
}

TESSERA_INLINE state_tensor state_tensor::copy() const {
  state_tensor other = *this;
  const at::Tensor& local = stored_.local();
  other.stored_ = tessera::detail::tensor_of(stored_.team(), stored_.layout(), local.detach().clone().set_requires_grad(local.requires_grad()));
  return other;
}

TESSERA_INLINE void state_tensor::assign(const at::Tensor& global) const {
  const at::NoGradGuard no_record;
  stored_.local().copy_(detail::take_value(stored_.team(), stored_.layout(), stored_.type(), global).local());
}

}  // namespace tessera::nn
