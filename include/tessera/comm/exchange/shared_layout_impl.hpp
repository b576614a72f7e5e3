#pragma once

#include <tessera/comm/exchange/shared_layout.hpp>

namespace tessera::engine {

TESSERA_INLINE shared_layout::shared_layout(const tessera::layout& of, int rank, int world) : layout_(of) {
  mesh_value& mesh = layout_.mesh;
  index_t lowest = mesh.first;
  index_t highest = mesh.first;
  if (mesh.ranks == nullptr) {
    for (const axis_value& a : mesh.axes) (a.stride < 0 ? lowest : highest) += index_t{a.stride} * (a.extent - 1);
  } else {
    for (int i = 0; i < mesh.size(); ++i) ranks_.push_back(mesh.rank(mesh.at(i)));
    lowest = ranks_.empty() ? 0 : *std::min_element(ranks_.begin(), ranks_.end());
    highest = ranks_.empty() ? 0 : *std::max_element(ranks_.begin(), ranks_.end());
    mesh = row_major(mesh, 0, ranks_.data());
  }
  for (int d = 0; d < layout_.dims.count; ++d) {
    const index_t*& bounds = layout_.dims[d].bounds;
    if (bounds != nullptr && bounds != learned)
      bounds = bounds_.emplace_back(bounds, bounds + layout_.part_count(d) + 1).data();
  }
  // every worker of a mesh was started
  if (lowest < 0 || highest >= world) why_ = refusal{code::mesh_larger_than_world, mesh.size(), world};
  if (why_.ok()) why_ = first_of(check_known(layout_), check(layout_));
  if (!why_.ok()) return;
  for (const intervals& held : held_by(layout_, rank)) extents_.push(size_of(held));
}

}  // namespace tessera::engine
