#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/shown.hpp"

#include <tessera/plan/all_reduce_cost.hpp>

#include <map>
#include <set>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

constexpr std::uint64_t seed = 20261120;

// Messages in some order.
struct by_words {
  bool operator()(const message& a, const message& b) const {
    const auto words = [](const message& m) {
      std::vector<index_t> all{m.from, m.to};
      for (const interval& i : m.where) all.insert(all.end(), {i.lo, i.hi});
      return all;
    };
    return words(a) < words(b);
  }
};

}  // namespace

TEST_CASE("a Fold and the Move of what it gave, as one phase, bring what they bring one after the other", "[law]") {
  dice d{seed + 2};
  using term = std::pair<int, oracle::element>;  // of whom
  int products = 0;
  for (int round = 0; round < trials(20'000); ++round) {
    const auto extents = roll_extents(d, 3, 6);
    const mesh_value mesh = roll_mesh(d, 3);
    const layout from = roll_layout(d, mesh, extents, {true, true, true, false, true});
    const layout to = roll_layout(d, d.once_in(3) ? roll_mesh(d, 3) : mesh, extents, {false, true, true, true, true});
    const change c = change_between(from, to);
    for (int i = 0; i + 1 < c.steps.count; ++i) {
      if (c.steps[i].kind != map::fold || c.steps[i + 1].kind != map::move) continue;
      ++products;
      const transfer fold = c.steps[i].plan();
      const transfer move = c.steps[i + 1].plan();
      const phase_plan both(phase(&c.steps[i], 2));
      const int world = oracle::world_of(from, to);
      std::multiset<message, by_words> sent;
      std::multiset<message, by_words> received;
      bool right = true;
      for (int r = 0; r < world; ++r) {
        std::map<int, std::multiset<term>> folded;
        const auto terms_of = [&](int worker) -> const std::multiset<term>& {
          const auto known = folded.find(worker);
          if (known != folded.end()) return known->second;
          std::multiset<term>& terms = folded[worker];
          fold.receives(worker, [&](const message& m) {
            for (const auto& e : oracle::elements(m.where)) terms.insert({m.from, e});
          });
          return terms;
        };
        std::multiset<term> wanted;
        move.receives(r, [&](const message& m) {
          const auto moved = oracle::elements(m.where);
          for (const term& t : terms_of(m.from))
            if (std::count(moved.begin(), moved.end(), t.second) > 0) wanted.insert(t);
        });
        std::multiset<term> got;
        both.receives(r, [&](const message& m) {
          received.insert(m);
          for (const auto& e : oracle::elements(m.where)) got.insert({m.from, e});
        });
        both.sends(r, [&](const message& m) { sent.insert(m); });
        right = right && got == wanted;
      }
      if (!right || sent != received)
        FAIL("seed " << seed + 2 << " round " << round << "\n" << shown(from) << "\n" << shown(to));
    }
  }
  WARN(products << " products, seed " << seed + 2);
  CHECK(products > trials(1000));
}

TEST_CASE("a sum of two workers for both is one phase, in which each receives the other's box", "[law]") {
  dice d{seed + 3};
  int pairs = 0;
  for (int round = 0; round < trials(20'000); ++round) {
    layout from = roll_layout(d, roll_mesh(d, 3), roll_extents(d, 3, 6), {true, true, true, false, true});
    layout to = from;
    const int cut = d.roll(0, 2);
    const bool is_cut = cut < from.dims.count && from.part_count(cut) > 1;
    const bool windows = is_cut && d.once_in(3) && from.dims[cut].extent % 2 == 0;  // of terms, end to end: tiles
    const bool turned = is_cut && !windows && d.once_in(3);                         // other boxes after than before
    const bool range = windows && d.once_in(3);                                     // copies under windows: two phases
    if (windows) {
      const index_t grain = d.roll(1, 2);
      dimension& terms = from.dims[cut];
      dimension& tiles = to.dims[cut];
      for (dimension* x : {&terms, &tiles}) x->balance(grain);
      tiles.set_grain(2 * grain);
      terms.kind = cover::pending;
      terms.needs = sliding{2, 2, 0, 0, 1}.needs();
      terms.outputs = terms.extent / 2;
      if (range) {
        tiles = terms;
        tiles.kind = cover::haloed;
      }
    }
    if (turned) to.dims[cut].turned = (from.dims[cut].turned + 1) % from.part_count(cut);
    int workers = 1;
    int axis = -1;
    for (int a = 0; a < from.placements.count; ++a) {
      if (from.placements[a].kind == placement::cut || from.placements[a].kind == placement::on || d.once_in(4))
        continue;
      const bool adds = from.placements[a].kind == placement::partial;
      if (adds || d.once_in(4)) to.placements[a] = {d.once_in(2) ? placement::replicate : placement::invariant};
      if (!adds) continue;
      workers *= from.mesh.axes[a].extent;
      if (from.mesh.axes[a].extent == 2) axis = a;
    }
    const change c = change_between(from, to);
    const phases all = phases_of(c);
    const bool pair = workers == 2 && !turned && !range;
    if (all.count != (pair ? 1 : c.steps.count))
      FAIL("seed " << seed + 3 << " round " << round << "\n" << shown(from) << "\n" << shown(to));
    if (!pair) continue;
    ++pairs;
    cost counted;
    bool right = true;
    const phase_plan plan(all[0]);
    for (int r = 0; r < oracle::world_of(from, to); ++r) {
      coordinates at;
      const bool here = from.mesh.locate(r, at);
      const auto box = oracle::held(from, r);
      std::map<int, std::multiset<oracle::element>> got;
      plan.receives(r, [&](const message& m) {
        for (const auto& e : oracle::elements(m.where)) got[m.from].insert(e);
      });
      std::map<int, std::multiset<oracle::element>> wanted;
      if (here && !box.empty()) {
        wanted[r] = {box.begin(), box.end()};
        at[axis] = 1 - at[axis];
        wanted[from.mesh.rank(at)] = wanted[r];
        const auto n = static_cast<index_t>(box.size());
        counted.total += n;
        counted.lower_bound += n;
        counted.busiest = std::max(counted.busiest, n);
        counted.messages += 1;
        counted.busiest_messages = 1;
      }
      right = right && got == wanted;
    }
    if (!right || !(counted == cost_of(c)) || !(counted == cost_between(from, to)))
      FAIL("seed " << seed + 3 << " round " << round << "\n" << shown(from) << "\n" << shown(to));
  }
  WARN(pairs << " pairs, seed " << seed + 3);
  CHECK(pairs > trials(500));
}
