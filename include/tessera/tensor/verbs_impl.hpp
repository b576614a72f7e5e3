#pragma once

#include <tessera/tensor/memory/own_memory.hpp>
#include <tessera/tensor/verbs.hpp>

#include <atomic>

namespace tessera {

namespace detail {

inline tensor<dyn> carry(const std::shared_ptr<bound_change>& change, const tensor<dyn>& x, const call_site& at) {
  const at::Tensor y = in_own_memory(run({x.team(), change, x.local(), at, x.lineage()}, x.local()), x.local());
  return tensor_of(x.team(), change->to(), y, lineage_of(text("change").hash, {x.lineage()}));
}

/// The layout of a type for a tensor that is to go there: extents and lengths that the type does not know are the
/// tensor's.
inline layout target_of(layout target, const tensor<dyn>& x) {
  for (int d = 0; d < target.dims.count; ++d) {
    const dimension& here = x.layout().dims[d];
    target.dims[d].extent = here.extent;
    if (target.dims[d].bounds != learned) continue;
    // Learned lengths stay with the axes that they were learned on.
    bool alike = here.bounds != nullptr && target.levels(d) == x.layout().levels(d);
    for (int l = 0; alike && l < target.levels(d); ++l) {
      const int a = x.layout().cutter(d, l);
      alike = target.mesh.axes[target.cutter(d, l)].name == x.layout().mesh.axes[a].name;
    }
    if (!alike) throw error(refusal{code::lengths_not_known, d}, x.team()->label());
    target.dims[d].bounds = here.bounds;
  }
  return target;
}

TESSERA_INLINE std::size_t next_verb() {
  static std::atomic<std::size_t> verbs{0};
  return verbs++;
}

TESSERA_INLINE const std::shared_ptr<bound_change>& change_of(const running_verb& v, const tensor<dyn>& x) {
  team_state& team = *x.team();
  std::shared_ptr<bound_change>& last = team.kept<change_cache>().of_verb(v.number);
  if (last && last->from() == x.where() && last->serves(team.doing())) return last;
  const shared_layout_handle there = team.intern(target_of(v.target.layout, x));
  const std::shared_ptr<bound_change> fresh = bound_change_of(team, x.where(), there, v.target.element, team.doing());
  return team.kept<change_cache>().of_verb(v.number) = fresh;
}

TESSERA_INLINE tensor<dyn> carry(const running_verb& v, const tensor<dyn>& x, call_site at) {
  return carry(change_of(v, x), x, at);
}

}  // namespace detail

TESSERA_INLINE tensor<dyn> to(const layout& target, const tensor<dyn>& x, call_site at) {
  const engine::shared_layout_handle there = x.team()->intern(target);
  const std::shared_ptr<engine::bound_change> change =
      detail::bound_change_of(*x.team(), x.where(), there, x.type(), x.team()->doing());
  return detail::carry(change, x, at);
}

}  // namespace tessera
