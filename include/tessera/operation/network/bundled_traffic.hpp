#pragma once

#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/operation/memory/numbered.hpp>
#include <tessera/operation/network/tied_traffic.hpp>
#include <tessera/operation/plan/bundles.hpp>

#include <array>
#include <initializer_list>

namespace tessera::detail {

/// A parameter whose gradient travels in a bundle.
struct bundle_member {
  layout stored;
  bundle_kind kind;
  direction alone;  ///< what it would move by itself

  /// The elements of the workers that sum it, who differ from others along axes that are not summed: a worker's of
  /// each.
  constexpr index_t elements_of(int rank) const { return cutting{stored}.elements_of(rank); }
  /// Whether all workers have equally many.
  constexpr bool even() const {
    for (int d = 0; d < stored.dims.count; ++d)
      if (stored.dims[d].bounds != nullptr || stored.dims[d].grain() != 1 ||
          stored.dims[d].extent % stored.part_count(d) != 0)
        return false;
    for (const axis_placement& r : stored.placements)
      if (r.kind == placement::on) return false;
    return true;
  }
};

constexpr bool is_bundled(const layer_plan& p, int i) {
  return p.held(i) && !p.frozen(i) && summed_axes(p.stored(i), p.weight(i)) != 0;
}
constexpr int count_bundled(const layer_plan& p) {
  int n = 0;
  for (int i = 0; i < p.parameters(); ++i) n += is_bundled(p, i);
  return n;
}
// Calls visit(member) for each of a layer.
template <class Visit>
constexpr void each_bundled(const layer_plan& p, const operand_elements& e, const Visit& visit) {
  for (int i = 0; i < p.parameters(); ++i) {
    if (!is_bundled(p, i)) continue;
    const element own = p.parameter_element(i, e[0]);
    const unsigned axes = summed_axes(p.stored(i), p.weight(i));
    visit(bundle_member{p.stored(i), {p.stored(i).mesh, axes, own}, traffic_of_parameter(p, i, e).reduced});
  }
}
template <std::size_t N>
constexpr std::array<bundle_member, N> bundled_members(const layer_plan& p, const operand_elements& e) {
  std::array<bundle_member, N> all{};
  std::size_t n = 0;
  each_bundled(p, e, [&](const bundle_member& m) { all[n++] = m; });
  return all;
}

// Those of a layer, as constants of its own.
template <const auto* Record>
struct layer_bundled {
  static constexpr int count = count_bundled(Record->plan());
  static constexpr std::array<bundle_member, count> members = bundled_members<count>(Record->plan(), Record->elements);
  static constexpr const bundle_member* first = members.data();
};

/// Calls visit(terms, sums, alike) for each list of workers that sum a bundle. It is partial and becomes invariant, in
/// one dimension; `alike` lists have as much.
template <class Visit>
constexpr void each_sum(const bundle_kind& kind, const bundle_member* const* members, int count, Visit&& visit) {
  bool even = true;
  for (int m = 0; m < count; ++m) even = even && members[m]->even();
  for (int i = 0; i < kind.mesh.size(); ++i) {
    const coordinates at = kind.mesh.at(i);
    bool first = true;
    for (int a = 0; a < kind.mesh.axes.count; ++a) first = first && ((kind.axes >> a & 1u) == 0 || at[a] == 0);
    if (!first) continue;
    index_t elements = 0;
    for (int m = 0; m < count; ++m) elements += members[m]->elements_of(kind.mesh.rank(at));
    layout terms;
    terms.mesh = summing_workers(kind.mesh, kind.axes, at);
    terms.placements.resize(terms.mesh.axes.count);
    for (axis_placement& r : terms.placements) r.kind = placement::partial;
    dimension flat;
    flat.extent = elements;
    terms.dims.push(flat);
    layout sums = terms;
    for (axis_placement& r : sums.placements) r.kind = placement::invariant;
    visit(terms, sums, even ? kind.mesh.size() / terms.mesh.size() : 1);
    if (even) break;
  }
}

/// The traffic of a bundle in backward.
constexpr direction bundle_direction(const bundle_kind& kind, const bundle_member* const* members, int count) {
  direction all;
  index_t busiest = 0;
  each_sum(kind, members, count, [&](const layout& terms, const layout& sums, index_t alike) {
    const direction one = in_bytes(cost_between(terms, sums), kind.element);
    busiest = larger(busiest, one.busiest_worker_bytes);
    for (index_t k = 0; k < alike; ++k) all += one;
  });
  all.busiest_worker_bytes = busiest;
  return all;
}

/// What a worker takes for a bundle on its way, beside its terms and its sums.
constexpr index_t bundle_between(const bundle_kind& kind, const bundle_member* const* members, int count) {
  index_t most = 0;
  each_sum(kind, members, count, [&](const layout& terms, const layout& sums, index_t) {
    most = larger(most, travelling_between(terms, sums, kind.element));
  });
  return most;
}

/// Calls visit(kind, members, count) for each bundle of these members, in the order in which forward takes them. Their
/// count is the type's, or only known at run time.
template <int Count, class Visit>
constexpr void each_bundle(const bundle_member* const* members, int count, Visit&& visit) {
  bundle_packer<bundle_kind, 32> packer;
  numbered<int, Count> bundle_of{};
  numbered<const bundle_member*, Count> those{};
  make_room(count, bundle_of, those);
  int alone = 0;
  for (int m = count - 1; m >= 0; --m) {
    if (members[m] == nullptr) continue;
    const bundle_range lies = packer.add(members[m]->kind, bytes_held(members[m]->stored, members[m]->kind.element));
    bundle_of[m] = lies.alone() ? count + alone++ : lies.bundle;
  }
  for (int b = 0; b < count + alone; b = b + 1 == packer.count() ? count : b + 1) {
    int n = 0;
    for (int m = 0; m < count; ++m)
      if (members[m] != nullptr && bundle_of[m] == b) those[n++] = members[m];
    if (n > 0) visit(those[0]->kind, &those[0], n);
  }
}
template <int Count, class Visit>
constexpr void each_bundle(const bundle_member* const (&members)[Count], Visit&& visit) {
  each_bundle<Count>(members, Count, visit);
}

/// The traffic of these members' gradients in bundles instead of one by one.
template <int Count>
constexpr void in_bundles(direction& reduced, const bundle_member* const (&members)[Count]) {
  for (const index_t n : {reduced.bytes, reduced.lower_bound_bytes, reduced.messages})
    if (n == INT64_MAX) return;  // more than can be counted, which is refused
  for (const bundle_member* m : members)
    if (m != nullptr) reduced -= m->alone;
  each_bundle(members, [&](const bundle_kind& kind, const bundle_member* const* those, int n) {
    reduced += bundle_direction(kind, those, n);
  });
}

constexpr int total_of(std::initializer_list<int> all) {
  int sum = 0;
  for (const int n : all) sum += n;
  return sum;
}

// Calls use(members) with those of a program, if there are any; null for each that a node before has, or another stage.
template <const auto& Program, int... Node, class Use>
constexpr void with_bundled(indices<Node...>, Use&& use) {
  constexpr int count = total_of({layer_bundled<Program.nodes[Node].record>::count...});
  if constexpr (count > 0) {
    constexpr int counts[]{layer_bundled<Program.nodes[Node].record>::count...};
    constexpr const bundle_member* firsts[]{layer_bundled<Program.nodes[Node].record>::first...};
    const bundle_member* members[count]{};
    int n = 0;
    for (int i = 0; i < Program.count; ++i) {
      const bool taken = counts[i] > 0 && (taken_before(Program, i) || takes_tied(Program, i));
      for (int k = 0; k < counts[i]; ++k) members[n++] = taken ? nullptr : firsts[i] + k;
    }
    use(members);
  }
}

// What all bundles of a program take on their way.
template <const auto& Program, int... Node>
constexpr index_t bundles_between(indices<Node...> nodes) {
  index_t all = 0;
  with_bundled<Program>(nodes, [&](const auto& members) {
    each_bundle(members, [&](const bundle_kind& kind, const bundle_member* const* those, int n) {
      all = capped_sum(all, bundle_between(kind, those, n));
    });
  });
  return all;
}

}  // namespace tessera::detail
