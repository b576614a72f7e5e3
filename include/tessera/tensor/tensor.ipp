#pragma once

#include <tessera/tensor/tensor.hpp>

namespace tessera {

TESSERA_INLINE tensor<dyn>::tensor(const team_handle& team, const tessera::layout& layout, at::Tensor local) : tensor(detail::tensor_of(team, layout, std::move(local))) {
  fingerprint f;
  f << layout;
  const movement made(layout, layout);
  const activity what{.what = "making a tensor", .moves = &made, .element = type()};
  if (team->inside()) team->agree(f.value(), what.what, [&] { return text_of(what); });
}

TESSERA_INLINE tensor<dyn>& tensor<dyn>::requires_grad() {
  check(check_gradient(layout(), type()), *team());
  local_.set_requires_grad(true);
  return *this;
}
TESSERA_INLINE tensor<dyn> tensor<dyn>::grad() const {
  const bool kept = local().is_leaf() || local().retains_grad();
  const at::Tensor g = kept ? local().grad() : at::Tensor();
  if (!g.defined()) throw error(refusal{code::no_gradient}, team()->label());
  return detail::tensor_of(team(), cotangent(layout()), g);
}
TESSERA_INLINE void tensor<dyn>::backward(bool keep_graph, bool create_graph) const {
  check(detail::check_start(layout(), type()), *team());
  if (!local().requires_grad()) throw error(refusal{code::no_gradient}, team()->label());
  local().backward(detail::seed_of(*this), keep_graph || create_graph, create_graph);
}

namespace detail {

TESSERA_INLINE tensor<dyn> tensor_of(const team_handle& team, placement_handle where, at::Tensor local) {
  tensor<dyn> t;
  t.team_ = team;
  t.where_ = std::move(where);
  t.local_ = std::move(local);
  return t;
}
TESSERA_INLINE tensor<dyn> tensor_of(const team_handle& team, const layout& x, element e, at::Tensor local) {
  placement_handle where = team->place(x);
  check_local(local, *where, e, *team);
  return tensor_of(team, std::move(where), std::move(local));
}
TESSERA_INLINE tensor<dyn> tensor_of(const team_handle& team, const layout& x, at::Tensor local) {
  if (!team) throw error(refusal{code::undefined_tensor});
  if (!local.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const element e = element_of_scalar(local.scalar_type());
  return tensor_of(team, x, e, std::move(local));
}

TESSERA_INLINE refusal check_fits(const tensor_value& given, tensor_value typed) {
  for (int d = 0; d < typed.layout.dims.count && d < given.layout.dims.count; ++d) {
    dimension& expected = typed.layout.dims[d];
    if (expected.extent == dynamic) expected.extent = given.layout.dims[d].extent;
    if (expected.bounds == learned) expected.bounds = given.layout.dims[d].bounds;
  }
  return check_same(given, typed);
}

TESSERA_INLINE bool is_first_copy(const tensor<dyn>& of, role copies) {
  const layout& x = of.layout();
  coordinates at;
  if (!cutting{x}.locate(of.team()->rank(), at)) return false;
  for (int a = 0; a < x.roles.count; ++a)
    if (x.roles[a].kind == copies && at[a] != 0) return false;
  return true;
}

TESSERA_INLINE at::Tensor seed_of(const tensor<dyn>& loss) {
  return is_first_copy(loss, role::replicate) ? at::ones_like(loss.local()) : at::zeros_like(loss.local());
}

}  // namespace detail

TESSERA_INLINE at::Tensor global(const tensor<dyn>& x, call_site at) {
  layout whole = x.layout();
  for (auto& r : whole.roles) r = {};
  for (auto& d : whole.dims) {
    dimension uncut;
    uncut.extent = d.extent;
    d = uncut;
  }
  const at::NoGradGuard no_record;
  const during now(*x.team(), {.why = purpose::state, .what = "gathering a global tensor", .at = at});
  return change_layout(x.team(), x.layout(), whole, x.local().detach(), at);
}

}  // namespace tessera
