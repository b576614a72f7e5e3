#pragma once

#include <tessera/plan/change.hpp>

namespace tessera {

/// What workers do of a change between two meetings: a Move, a Fold, or a Fold and the Move of what it gave, where whoever will have an element
/// adds up its terms himself.
struct phase {
  step first;
  step then;          ///< of both: the Move
  bool both = false;

  constexpr phase() = default;
  constexpr phase(const step& s) : first(s) {}
  constexpr phase(const step& fold, const step& move) : first(fold), then(move), both(true) {}

  constexpr const layout& from() const { return first.from; }
  constexpr const layout& to() const { return both ? then.to : first.to; }
  constexpr bool adds() const { return first.what == map::fold; }
};

/// The plan of a phase; that of both is the product of theirs, so it delivers each term once because they deliver each element once.
///
///  (M F)(r ← s) = Σ_m M(r ← m) F(m ← s)
class phase_plan {
 public:
  constexpr explicit phase_plan(const phase& p) : first_(p.first.plan()), then_(p.both ? p.then.plan() : transfer()), both_(p.both) {}

  /// Who holds what before it, and after it.
  constexpr const cutting& before() const { return first_.what() == map::fold ? first_.target() : first_.source(); }
  constexpr const cutting& after() const { return both_ ? then_.target() : first_.what() == map::fold ? first_.source() : first_.target(); }

  /// Whether anything moves between workers.
  constexpr bool carries() const { return cost_of(first_).messages > 0 || (both_ && cost_of(then_).messages > 0); }

  /// Calls take(message) for every box that arrives at a world rank. Of both, the boxes of one sender come in the order in which he sends them,
  /// by who has them in between.
  template <class Take>
  constexpr void receives(int rank, Take&& take) const {
    if (!both_) return first_.receives(rank, take);
    then_.receives(rank, [&](const message& moved) {
      first_.receives(moved.from, [&](const message& term) { shared(term.from, rank, term.where, moved.where, take); });
    });
  }

  /// Calls take(message) for every box that leaves a world rank.
  template <class Take>
  constexpr void sends(int rank, Take&& take) const {
    if (!both_) return first_.sends(rank, take);
    first_.sends(rank, [&](const message& term) {
      then_.sends(term.to, [&](const message& moved) { shared(rank, moved.to, term.where, moved.where, take); });
    });
  }

 private:
  template <class Take>
  static constexpr void shared(int from, int to, const box& one, const box& other, Take& take) {
    message m{from, to, one};
    for (int d = 0; d < one.count; ++d) {
      m.where[d] = overlap(one[d], other[d]);
      if (m.where[d].empty()) return;
    }
    take(m);
  }

  transfer first_;
  transfer then_;
  bool both_ = false;
};

namespace detail {

// Whether a change only adds up terms of two workers each, for both of them.
constexpr bool adds_in_pairs(const change& c) {
  if (c.steps.count != 2 || c.steps[0].what != map::fold || c.steps[1].what != map::move) return false;
  const layout& from = c.steps[0].from;
  const layout& to = c.steps[1].to;
  if (!(from.mesh == to.mesh)) return false;
  layout terms = to;
  int workers = 1;
  for (int a = 0; a < from.roles.count; ++a) {
    const role f = from.roles[a].kind;
    const role t = to.roles[a].kind;
    if (from.roles[a] == to.roles[a]) continue;
    if (f == role::cut || f == role::on || (t != role::replicate && t != role::invariant)) return false;
    if (f == role::partial) workers *= from.mesh.axes[a].extent;
    terms.roles[a] = from.roles[a];
  }
  for (const dimension& d : to.dims)
    if (d.kind != cover::tiled) return false;
  return workers == 2 && same(terms, from);
}

// What workers receive that each get a box like their own.
constexpr cost boxes_cost(const layout& x) {
  index_t copies = 1;
  for (int a = 0; a < x.roles.count; ++a)
    if (x.roles[a].kind != role::cut && x.roles[a].kind != role::on) copies = capped_product(copies, x.mesh.axes[a].extent);
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

/// The phases of a change, in which it moves what its steps move.
using phases = static_vector<phase, 4>;

/// Each step is one, but a sum of two workers for both: they send each other their boxes, which are as many elements as in two phases, and meet
/// once instead of twice.
constexpr phases phases_of(const change& c) {
  phases all = no_items<phase, 4>;
  if (detail::adds_in_pairs(c)) all.push({c.steps[0], c.steps[1]});
  else
    for (const step& s : c.steps) all.push(s);
  return all;
}

/// What a change moves: the sum over its phases.
/// Refuses the value when an extent or lengths are not known.
constexpr cost cost_of(const change& c) {
  if (detail::adds_in_pairs(c)) {
    insist_on_lengths(c.steps[0].from);
    return detail::boxes_cost(c.steps[0].from);
  }
  cost sum;
  for (const step& s : c.steps) sum += cost_of(s.plan());
  return sum;
}

}  // namespace tessera
