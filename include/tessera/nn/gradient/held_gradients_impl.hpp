#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/plan/cutting.hpp>

#include <algorithm>
#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE held_gradients::held_gradients(const team_handle& team, std::vector<held_member> members,
                                              const tessera::engine::bundle_limits& limits)
    : travelling_bundles(team, "reducing gradients", {}), members_(std::move(members)) {
  const auto stored_of = [&](std::size_t m) -> const tensor<dyn>& { return members_[m].of->stored(); };
  const auto axes_of = [&](std::size_t m) {
    return tessera::engine::summed_axes(stored_of(m).layout(), members_[m].used->layout());
  };
  const auto place = [&](auto& packer, std::size_t m) -> tessera::engine::bundle_range {
    const layout& lies = stored_of(m).layout();
    const unsigned axes = axes_of(m);
    if (axes == 0) return {};
    return packer.add({lies.mesh, axes, stored_of(m).type()}, tessera::detail::bytes_held(lies, stored_of(m).type()));
  };
  for (std::size_t m = 0; m < members_.size(); ++m) numbers_.emplace(members_[m].of.get(), m);
  for (std::vector<std::size_t>& all :
       packed_backwards<tessera::engine::bundle_kind, 32>(members_.size(), limits, place)) {
    const std::size_t first = all.front();
    const layout& stored = stored_of(first).layout();
    const at::ScalarType type = stored_of(first).local().scalar_type();
    const unsigned axes = axes_of(first);
    coordinates at;
    const bool here = stored.mesh.locate(team->rank(), at);
    if (axes == 0 || !here) {
      add({team, cotangent(members_[first].used->layout()), cotangent(stored), type}, std::move(all), axes == 0);
      continue;
    }
    std::vector<gradient_bundle::range> ranges;
    index_t elements = 0;
    for (const std::size_t m : all) {  // end to end: what is exchanged has no gaps
      ranges.push_back({stored_of(m).local().sizes().vec(), elements});
      elements += stored_of(m).local().numel();
    }
    const mesh_value over = tessera::engine::summing_workers(stored.mesh, axes, at);
    add({team, flat_layout(over, elements, placement::partial), flat_layout(over, elements, placement::invariant),
         std::move(ranges), type},
        std::move(all));
  }
}

TESSERA_INLINE void held_gradients::listen(bool reduces, bool last, call_site at) {
  reduces_ = reduces;
  last_ = last;
  called_at(at);
}

TESSERA_INLINE void held_gradients::reduce_always(call_site at) {
  always_ = true;
  for (const held_member& one : members_) one.of->tell(one, self());
  listen(true, true, at);
}

TESSERA_INLINE void held_gradients::open_window(bool last, bool each, call_site at) {
  if (window_open_) throw error(refusal{code::two_windows}, team()->label());
  window_open_ = true;
  for (const held_member& one : members_) one.of->tell_in_window(one, self());
  listen(last || each, last, at);
}

TESSERA_INLINE void held_gradients::close_window() {
  window_open_ = false;
  for (const held_member& one : members_) one.of->tell_in_window(one, {});
  listen(always_, true, doing().at);
}

TESSERA_INLINE void held_gradients::comes() {
  if (is_first_of_pass() && reduces_) begin_pass();
}

TESSERA_INLINE void held_gradients::came(const held_member& where) {
  if (!reduces_) return;
  const auto [first, end] = numbers_.equal_range(where.of.get());
  const auto one = std::find_if(first, end, [&](const auto& n) { return members_[n.second] == where; });
  if (one == end) return;
  count(one->second);
  begin_complete();
}

TESSERA_INLINE at::Tensor held_gradients::take(std::size_t member) {
  return members_[member].of->take(members_[member].used, members_[member].as);
}

TESSERA_INLINE void held_gradients::give(const std::vector<std::size_t>& members, std::vector<at::Tensor> sums) {
  for (std::size_t m = 0; m < sums.size(); ++m) members_[members[m]].of->give(sums[m], last_);
}

TESSERA_INLINE void held_gradients::end_pass() {
  begin_rest();
  end_all();
  if (last_) let_go();  // else the next pass takes what was gathered
}

TESSERA_INLINE void held_gradients::let_go() {
  for (const held_member& one : members_) one.of->let_go();
}

TESSERA_INLINE void held_gradients::reduce(call_site at) {
  if (!team()->inside()) return;
  const auto waits = [](const held_member& one) { return one.of->waits(); };
  if (std::any_of(members_.begin(), members_.end(), waits)) {
    called_at(at);
    last_ = true;
    travel();
  }
  let_go();
}

}  // namespace tessera::nn::engine
