#pragma once

#include <tessera/nn/parameter/state_value.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/plan/parts.hpp>

#include <algorithm>

namespace tessera::nn::engine {

TESSERA_INLINE void state_value::check_reduced() const {
  if (waiting.defined() && lies.local().grad().is_same(waiting))
    throw error(refusal{code::stepped_inside_window}, name);
}

TESSERA_INLINE tensor<dyn> whole_everywhere(const team_handle& team, const at::Tensor& t) {
  layout all = one_number(team->mesh());
  for (const index_t n : t.sizes()) {
    tessera::engine::dimension uncut;
    uncut.extent = n;
    all.dims.push(uncut);
  }
  return tessera::detail::tensor_of(team, team->intern(all), t);
}

TESSERA_INLINE std::vector<tensor<dyn>> members_of(const state_value& v) {
  std::vector<tensor<dyn>> all;
  const team_handle& team = v.lies.team();
  const tessera::engine::parts parts{v.lies.layout(), 0};
  const tessera::engine::interval mine = tessera::engine::held_by(v.lies.layout(), team->rank())[0][0];
  index_t begin = 0;
  for (const named_leaf& one : v.members) {
    const index_t end = begin + one.leaf.numel();
    std::vector<index_t> bounds{0};
    for (int k = 0; k < parts.count(); ++k) bounds.push_back(std::clamp(parts.held(k)[0].hi, begin, end) - begin);
    layout lies = v.lies.layout();
    lies.dims[0].extent = end - begin;
    if (parts.count() > 1) lies.dims[0].bounds = bounds.data();
    const index_t from = std::clamp(begin, mine.lo, mine.hi), to = std::clamp(end, mine.lo, mine.hi);
    all.push_back(tessera::detail::tensor_of(team, team->intern(lies),
                                             v.lies.local().detach().narrow(0, from - mine.lo, to - from)));
    begin = end;
  }
  return all;
}

}  // namespace tessera::nn::engine
