#pragma once

#include <tessera/tensor/box/neutral.hpp>
#include <tessera/tensor/distribute.hpp>

#include <vector>

namespace tessera::detail {

TESSERA_INLINE void agree_on_open(const tensor<dyn>& x, const layout& typed) {
  std::vector<int> open;
  std::vector<std::uint64_t> extents;
  for (int d = 0; d < x.layout().dims.count; ++d) {
    if (typed.dims[d].extent != dynamic) continue;
    open.push_back(d);
    extents.push_back(static_cast<std::uint64_t>(x.layout().dims[d].extent));
  }
  if (!open.empty() && x.team()->inside()) x.team()->agree_on_extents(open, extents);
}

TESSERA_INLINE tensor<dyn> distribute_value(const team_handle& team, layout x, element e, const at::Tensor& global,
                                            bool from_anywhere) {
  tessera::engine::check(check_plain(global), *team);
  if (global.dim() != x.dims.count) throw error(refusal{code::ranks_differ, x.dims.count, global.dim()}, team->label());
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].extent == dynamic) x.dims[d].extent = global.size(d);
    if (x.dims[d].extent != global.size(d))
      throw error(refusal{code::extents_differ, d, x.dims[d].extent, global.size(d)}, team->label());
  }
  tessera::engine::check(first_of(check_element(e, global.scalar_type()), check_known(x)), *team);
  at::Tensor part = global.detach();
  int d = 0;
  for (const intervals& held : held_by(x, team->rank())) {
    std::vector<at::Tensor> pieces;
    for (const interval& i : held) pieces.push_back(part.narrow(d, i.lo, i.size()));
    part = pieces.size() == 1 ? pieces[0] : at::cat(pieces, d);
    ++d;
  }
  const c10::Device device = from_anywhere ? device_of(*team) : global.device();
  const at::Tensor box = part.to(part.options().device(device), false, true, at::MemoryFormat::Contiguous);
  return first_term(tensor_of(team, x, box, next_lineage(*team, x.mesh)));
}

TESSERA_INLINE tensor<dyn> first_term(tensor<dyn> x) {
  for (const axis_placement& r : x.layout().placements)
    if (r.kind == placement::partial && !is_first_copy(x, placement::partial))
      fill_neutral(x.local(), x.type(), r.with);
  return x;
}

TESSERA_INLINE tensor<dyn> distribute_value(const team_handle& team, const layout& x, const at::Tensor& global,
                                            const call_site& line) {
  tessera::engine::check(check_plain(global), *team);
  const tensor<dyn> taken = distribute_value(team, x, element_of_scalar(global.scalar_type()), global);
  agree_on_layout(taken);
  compare_entry(taken, line, global);
  return taken;
}

}  // namespace tessera::detail
