#pragma once

#include <tessera/nn/network/node_stages.hpp>

namespace tessera::nn::engine {

TESSERA_INLINE node_stages::node_stages(const text& axis, const pipeline::assignment& how, const mesh_value& mesh)
    : axis_(mesh.find(axis)),
      given_(how.given.begin(), how.given.end()),
      through_(how.through.data, static_cast<std::size_t>(how.through.size)),
      how_(how) {
  if (axis_ < 0) throw error(refusal{code::axis_not_in_mesh, axis, mesh.axes.count});
  how_.given = given_;
  how_.through = text(through_.data(), how.through.size);
  of_ = how_.over(static_cast<int>(mesh.axes[axis_].extent));
}

TESSERA_INLINE void node_stages::begin() {
  ++unit_;
  if (learns_) costs_.emplace_back();
}

TESSERA_INLINE void node_stages::share_out() {
  const pipeline::shares all = pipeline::shared_out(how_, costs_, of_.stages);
  tessera::engine::check(all.why, "stages");
  part_ = pipeline::parts_of(all);
  moved_.clear();
  learns_ = false;
  unit_ = -1;
}

TESSERA_INLINE int node_stages::place_of(const program_value& x) const {
  return made_in(x) < 0 ? of_.stage_of(part_now()) : of_.stages + part_now();
}

TESSERA_INLINE static_vector<layout, 3> node_stages::leads(const program_value& from, const layout& lies) const {
  const int now = part_now(), stage = of_.stage_of(now), before = made_in(from);
  const bool same = before >= 0 ? of_.stage_of(before) == stage : is_on_stage(lies, axis_, stage);
  const bool turns = same && before >= 0 && before == now - 1;  // a move that leads to the same place begins a chunk
  if (before == now || (same && !turns)) return static_vector<layout, 3>();
  const way_to_stage way = way_between(lies, axis_, stage, same || before < 0 ? text() : how_.through);
  tessera::engine::check(way.why, "stages");
  return way.over;
}

TESSERA_INLINE void node_stages::added(int node, const layer_plan& p, const operand_elements& elements,
                                       int times_again) {
  if (!learns_) made_in_[node] = part_now();
  else if (!moving_) costs_.back() += cost_in_stage(p, elements, how_.rows, times_again);
}

}  // namespace tessera::nn::engine
