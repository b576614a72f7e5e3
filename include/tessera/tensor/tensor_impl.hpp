#pragma once

#include <tessera/tensor/comparing.hpp>
#include <tessera/tensor/memory/own_memory.hpp>

namespace tessera {

TESSERA_INLINE tensor<dyn>::tensor(const team_handle& team, const tessera::layout& layout, at::Tensor local,
                                   call_site at)
    : tensor(detail::tensor_of(team, layout, std::move(local))) {
  detail::agree_on_layout(*this);
  lineage_ = detail::next_lineage(*team, layout.mesh);
  detail::compare_entry(*this, at);
}

TESSERA_INLINE tensor<dyn>& tensor<dyn>::requires_grad() {
  engine::check(engine::check_gradient(layout(), type()), *team());
  local_.set_requires_grad(true);
  return *this;
}
TESSERA_INLINE tensor<dyn> tensor<dyn>::grad() const {
  const bool kept = local().is_leaf() || local().retains_grad();
  const at::Tensor g = kept ? local().grad() : at::Tensor();
  if (!g.defined()) throw error(refusal{code::no_gradient}, team()->label());
  return detail::tensor_of(team(), cotangent(layout()), g);
}
TESSERA_INLINE void tensor<dyn>::backward(bool keep_graph, bool create_graph, call_site at) const {
  engine::check(detail::check_start(layout(), type()), *team());
  if (!local().requires_grad()) throw error(refusal{code::no_gradient}, team()->label());
  detail::compare_backward(*this, at);
  local().backward(detail::seed_of(*this), keep_graph || create_graph, create_graph);
}

namespace detail {

TESSERA_INLINE tensor<dyn> tensor_of(const team_handle& team, shared_layout_handle where, at::Tensor local,
                                     std::uint64_t lineage) {
  tensor<dyn> t;
  t.lineage_ = lineage;
  t.team_ = team;
  t.where_ = std::move(where);
  t.local_ = std::move(local);
  return t;
}
TESSERA_INLINE tensor<dyn> tensor_of(const team_handle& team, const layout& x, element e, at::Tensor local,
                                     std::uint64_t lineage) {
  shared_layout_handle where = team->intern(x);
  check_local(local, *where, e, *team);
  return tensor_of(team, std::move(where), std::move(local), lineage);
}
TESSERA_INLINE tensor<dyn> tensor_of(const team_handle& team, const layout& x, at::Tensor local,
                                     std::uint64_t lineage) {
  if (!team) throw error(refusal{code::undefined_tensor});
  if (!local.defined()) throw error(refusal{code::undefined_tensor}, team->label());
  const element e = element_of_scalar(local.scalar_type());
  return tensor_of(team, x, e, std::move(local), lineage);
}

TESSERA_INLINE void agree_on_layout(const tensor<dyn>& x) {
  const layout& lies = x.layout();
  fingerprint f;
  f << lies;
  const movement made(lies, lies);
  const call_context context{.name = "making a tensor", .moves = &made, .element = x.type()};
  if (x.team()->inside()) x.team()->agree(f.value(), context.name, [&] { return text_of(context); });
}

TESSERA_INLINE refusal check_fits(const tensor_value& given, tensor_value typed) {
  for (int d = 0; d < typed.layout.dims.count && d < given.layout.dims.count; ++d) {
    dimension& expected = typed.layout.dims[d];
    if (expected.extent == dynamic) expected.extent = given.layout.dims[d].extent;
    if (expected.bounds == learned) expected.bounds = given.layout.dims[d].bounds;
  }
  return check_same(given, typed);
}

TESSERA_INLINE bool is_first_copy(const tensor<dyn>& of, placement copies) {
  const layout& x = of.layout();
  coordinates at;
  if (!cutting{x}.locate(of.team()->rank(), at)) return false;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == copies && at[a] != 0) return false;
  return true;
}

TESSERA_INLINE at::Tensor seed_of(const tensor<dyn>& loss) {
  return is_first_copy(loss, placement::replicate) ? at::ones_like(loss.local()) : at::zeros_like(loss.local());
}

}  // namespace detail

TESSERA_INLINE at::Tensor full_tensor(const tensor<dyn>& x, call_site at) {
  team_state& team = *x.team();
  layout whole;
  whole.mesh = team.mesh();
  whole.placements.resize(whole.mesh.axes.count);
  for (const engine::dimension& d : x.layout().dims) {
    engine::dimension uncut;
    uncut.extent = d.extent;
    whole.dims.push(uncut);
  }
  const at::NoGradGuard no_record;
  const engine::scoped_context now(team, {.why = purpose::state, .name = "gathering a global tensor", .at = at});
  const at::Tensor all = engine::change_layout(x.team(), x.layout(), whole, x.local().detach(), at);
  if (!team.inside()) throw error(refusal{code::holds_nothing, team.rank()}, text_of(team.doing()));
  return detail::in_own_memory(all, x.local());
}

}  // namespace tessera
