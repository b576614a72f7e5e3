#pragma once

#include <tessera/operation/memory/bytes_held.hpp>
#include <tessera/operation/plan/layer_plan.hpp>
#include <tessera/plan/narrowing.hpp>
#include <tessera/plan/phase.hpp>

namespace tessera::detail {

/// The memory of a worker for a change of layout.
struct change_memory {
  index_t before = 0;     ///< the box that it begins with
  index_t behind = 0;     ///< the box that it ends with
  index_t between = 0;    ///< of what lies between exchanges, as far as it adds to both
  index_t returning = 0;  ///< the same of its adjoint
  index_t whole = 0;      ///< what it begins with is a view of so much, to which its gradient is padded
  index_t room = 0;       ///< what it begins with may take so much memory
  index_t padding = 0;    ///< what lies between on the way there
  bool changes = false;   ///< it is a node of autograd's graph, whose gradient is a box of its own
  bool fresh = false;     ///< what it ends with is no view of what it begins with
  bool frozen = false;    ///< nothing comes back
  bool released = false;  ///< what it ends with goes behind forward and is made again for backward
};

// The most that the boxes between exchanges add to the last: each lies beside the one before it.
constexpr index_t between(const change& c, element e) {
  const phases all = tessera::phases_of(c);
  index_t most = 0;
  for (int i = 0; i + 1 < all.count; ++i) {
    const index_t next = i + 2 < all.count ? bytes_held(all[i + 1].to(), e) : 0;
    most = larger(most, capped_sum(bytes_held(all[i].to(), e), next));
  }
  return most;
}

constexpr change_memory memory_of(const layout& from, const layout& to, element e) {
  change_memory m;
  m.before = bytes_held(from, e);
  m.behind = bytes_held(to, e);
  const change there = change_between(from, to);
  m.changes = !there.steps.empty();
  m.fresh = !stays(there);
  if (!m.changes) return m;
  m.between = between(there, e);
  if (has_cotangent(e)) m.returning = between(change_between(cotangent(to), cotangent(from)), e);
  return m;
}

/// What a worker takes for a change between its begin and its end, beside both boxes. It is what lies between
/// exchanges, and the number that stands for the end.
constexpr index_t travelling_between(const layout& from, const layout& to, element e) {
  const change c = change_between(from, to);
  return stays(c) ? 0 : capped_sum(between(c, e), index_t{sizeof(double)});
}

/// The memory of a worker for a layer, in bytes.
struct layer_memory {
  static_vector<change_memory, 4> operands;
  static_vector<change_memory, 4> results;
  static_vector<change_memory, 8> parameters;
  index_t stored = 0;      ///< by its parameters
  index_t learned = 0;     ///< by those of them that have gradients
  index_t held = 0;        ///< by what is gathered of them and held, with its gradient
  index_t travelling = 0;  ///< by gradients of these on their way, which do not share bundles
  index_t buffers = 0;
  index_t beside = 0;           ///< what its operation makes besides its results, and keeps
  index_t remembered = 0;       ///< what it makes on its way to them, and keeps for its backward alone
  index_t scratch = 0;          ///< what it takes while it runs
  index_t returning = 0;        ///< what its backward does
  index_t later = 0;            ///< the same when its result's gradient is gone
  bool differentiable = false;  ///< its result has a gradient
  saved_tensors saves;
};

}  // namespace tessera::detail
