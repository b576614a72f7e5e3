#pragma once

#include <tessera/tensor/operations.hpp>

namespace tessera {

namespace detail {

TESSERA_INLINE void check_held(const tensor<dyn>& x) {
  if (!x.layout().mesh.contains(x.team()->rank()))
    throw error(refusal{code::holds_nothing, x.team()->rank()}, x.team()->label());
}

// Real numbers in double; a complex one is two.
inline at::Tensor in_double(const at::Tensor& t) {
  const at::Tensor x = as_stored(t.detach());
  return (x.is_complex() ? at::view_as_real(x) : x).to(at::kDouble);
}

}  // namespace detail

TESSERA_INLINE double pairing(const tensor<dyn>& x, const tensor<dyn>& y, call_site at) {
  engine::check(engine::check_same({y.layout(), y.type()}, {cotangent(x.layout()), y.type()}), *x.team());
  const at::NoGradGuard no_record;
  const layout& l = x.layout();
  at::Tensor own = at::zeros({}, detail::options_of(*x.team(), at::kDouble));
  if (detail::is_first_copy(x, placement::invariant))
    own = (detail::in_double(x.local()) * detail::in_double(y.local())).sum();
  layout terms;
  terms.mesh = l.mesh;
  for (int a = 0; a < l.placements.count; ++a) terms.placements.push({placement::partial});
  layout all = terms;
  for (auto& r : all.placements) r = {};
  return engine::change_layout(x.team(), terms, all, own, at).item<double>();
}

}  // namespace tessera
