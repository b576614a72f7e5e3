#pragma once

#include <tessera/plan/transfer.hpp>

#include <initializer_list>

namespace tessera::engine {

/// Whether a box lies without gaps inside the row-major storage of a larger box.
constexpr bool contiguous(const box& inner, const holding& storage) {
  int d = 0;
  while (d < inner.count && inner[d].size() == 1) ++d;
  for (++d; d < inner.count; ++d)
    if (inner[d].size() != size_of(storage[d])) return false;
  return true;
}

/// Elements that a world rank packs and unpacks while a plan runs: those of boxes that are not contiguous in its
/// storage.
constexpr index_t staging(const transfer& plan, int rank) {
  const bool fold = plan.kind() == map::fold;
  const holding in = (fold ? plan.target() : plan.source()).held_by(rank);
  const holding out = (fold ? plan.source() : plan.target()).held_by(rank);
  index_t n = 0;
  plan.sends(rank, [&](const message& m) {
    if (m.from != m.to && !contiguous(m.where, in)) n += volume(m.where);
  });
  plan.receives(rank, [&](const message& m) {
    if (m.from != m.to && (fold || !contiguous(m.where, out))) n += volume(m.where);
  });
  return n;
}

/// The most elements that any worker packs and unpacks, counted worker by worker.
constexpr index_t peak_staging(const transfer& plan) {
  index_t most = 0;
  for (const mesh_value* m : {&plan.source().of.mesh, &plan.target().of.mesh})
    for (int i = 0; i < m->size(); ++i) most = detail::larger(most, staging(plan, m->rank(m->at(i))));
  return most;
}

}  // namespace tessera::engine
