#pragma once

#include <tessera/plan/change.hpp>

namespace tessera {

/// What workers do of a change between two meetings: one of its steps, or a Fold with its Move where two workers sum
/// for both. It points to the steps, which whoever made the change keeps.
struct phase {
  const engine::step* steps = nullptr;
  int count = 0;

  constexpr phase() = default;
  constexpr phase(const engine::step& one) : steps(&one), count(1) {}
  constexpr phase(const engine::step* first, int n) : steps(first), count(n) {}

  constexpr bool is_product() const { return count == 2; }  ///< of a Fold and the Move of what it gave
  constexpr const layout& from() const { return steps[0].from; }
  constexpr const layout& to() const { return steps[count - 1].to; }
  constexpr bool adds() const { return steps[0].kind == engine::map::fold; }
  constexpr combine with() const { return steps[0].with; }
};

namespace engine {

/// The plan of a phase. For a Fold and a Move it is the product of their plans: each worker that will hold an element
/// adds its terms itself. It delivers each term once, because they deliver each element once.
///
///  (M F)(r ← s) = Σ_m M(r ← m) F(m ← s)
class phase_plan {
 public:
  constexpr explicit phase_plan(const phase& p)
      : first_(p.steps[0].plan()), then_(p.is_product() ? p.steps[1].plan() : transfer()), both_(p.is_product()) {}

  /// The layouts before it, and after it.
  constexpr const cutting& before() const { return first_.kind() == map::fold ? first_.target() : first_.source(); }
  constexpr const cutting& after() const {
    return both_ ? then_.target() : first_.kind() == map::fold ? first_.source() : first_.target();
  }

  /// Whether one of its maps moves anything between workers.
  constexpr bool carries() const { return cost_of(first_).messages > 0 || (both_ && cost_of(then_).messages > 0); }

  /// Calls visit(message) for every box that arrives at a world rank. In a product of `phases_of`, the boxes of one
  /// sender come as he sends them: by who has them in between.
  template <class Visit>
  constexpr void receives(int rank, Visit&& visit) const {
    if (!both_) return first_.receives(rank, visit);
    then_.receives(rank, [&](const message& moved) {
      first_.receives(moved.from,
                      [&](const message& term) { shared(term.from, rank, term.where, moved.where, visit); });
    });
  }

  /// Calls visit(message) for every box that leaves a world rank.
  template <class Visit>
  constexpr void sends(int rank, Visit&& visit) const {
    if (!both_) return first_.sends(rank, visit);
    first_.sends(rank, [&](const message& term) {
      then_.sends(term.to, [&](const message& moved) { shared(rank, moved.to, term.where, moved.where, visit); });
    });
  }

 private:
  template <class Visit>
  static constexpr void shared(int from, int to, const box& one, const box& other, Visit& visit) {
    message m{from, to, one};
    for (int d = 0; d < one.count; ++d) {
      m.where[d] = overlap(one[d], other[d]);
      if (m.where[d].empty()) return;
    }
    visit(m);
  }

  transfer first_;
  transfer then_;
  bool both_;
};

}  // namespace engine

namespace detail {

// How many workers add up each element, where a change does nothing else to axes than that, and than giving copies
// another placement; else 0.
constexpr index_t workers_adding(const layout& from, const layout& to) {
  if (!(from.mesh == to.mesh)) return 0;
  index_t workers = 1;
  for (int a = 0; a < from.placements.count; ++a) {
    const axis_placement& f = from.placements[a];
    const axis_placement& t = to.placements[a];
    if (f == t) continue;
    if (f.kind == placement::cut || f.kind == placement::on ||
        (t.kind != placement::replicate && t.kind != placement::invariant))
      return 0;
    if (f.kind == placement::partial) workers *= from.mesh.axes[a].extent;
  }
  return workers;
}

// Whether a Fold and a Move only add up terms of two workers each, for both of them.
constexpr bool adds_in_pairs(const step& fold, const step& move) {
  if (fold.kind != map::fold || move.kind != map::move || workers_adding(fold.from, move.to) != 2) return false;
  for (const dimension& d : move.to.dims)
    if (d.kind != cover::tiled) return false;
  layout terms = move.to;
  terms.placements = fold.from.placements;
  return same(terms, fold.from);
}

// What workers receive that each get another's box, of tiles.
constexpr cost boxes_cost(const layout& x) {
  index_t copies = 1;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind != placement::cut && x.placements[a].kind != placement::on)
      copies = capped_product(copies, x.mesh.axes[a].extent);
  cost c{copies, 1, copies, copies, 1};
  for (int d = 0; d < x.dims.count; ++d) {
    const index_t n = x.dims[d].extent;
    if (n == 0) return {};
    const parts cut(x, d);
    c.total = c.lower_bound = capped_product(c.total, n);
    c.busiest = capped_product(c.busiest, cut.largest());
    c.messages = capped_product(c.messages, cut.holders({0, n}));
  }
  return c;
}

}  // namespace detail

namespace engine {

/// The phases of a change, one after the other.
using phases = static_vector<phase, 4>;

}  // namespace engine

namespace detail {

constexpr phases phases_of_steps(const step* steps, int count) {
  phases all = no_items<phase, 4>;
  if (count == 2 && adds_in_pairs(steps[0], steps[1])) all.push({steps, 2});
  else
    for (int i = 0; i < count; ++i) all.push(steps[i]);
  return all;
}

}  // namespace detail

/// The phases of a change: one for each step, but one alone for a sum of two workers for both. The two send each other
/// their boxes and meet once, and as many elements move as in two phases. The phases point into the change.
constexpr engine::phases phases_of(const change& c) { return detail::phases_of_steps(c.steps.begin(), c.steps.count); }
engine::phases phases_of(change&&) = delete;

namespace engine {

/// The cost of a phase of a change. Refuses the value when an extent or lengths are not known.
constexpr cost cost_of(const phase& p) {
  if (!p.is_product()) return cost_of(p.steps[0].plan());
  throw_if_lengths_unknown(p.to());
  return detail::boxes_cost(p.to());
}

/// The cost of a change: the sum over its phases.
constexpr cost cost_of(const change& c) {
  cost sum;
  for (const phase& p : phases_of(c)) sum += cost_of(p);
  return sum;
}

}  // namespace engine

}  // namespace tessera
