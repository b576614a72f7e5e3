#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/one_axis.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("axes of extent 1 change neither verbs nor plans", "[law]") {
  dice d{20};
  for (int i = 0; i < 2000; ++i) {
    const auto extents = roll_extents(d, 3);
    const mesh_value mesh = roll_mesh(d, 3);
    const layout x = roll_layout(d, mesh, extents, {true, true, true, false, true});
    const layout y = roll_layout(d, mesh, extents, {true, true, true, d.once_in(3), true});
    const layout u = with_ones(d, x);
    const layout v = with_ones(d, y);
    INFO(i);
    REQUIRE((same(x, u) && same(y, v) && meet(u.mesh, v.mesh)));
    CHECK(verb_between(x, y) == verb_between(u, v));
    const cost plain = cost_of(change_between(x, y));
    const cost other = cost_of(change_between(u, v));
    CHECK((plain.total == other.total && plain.busiest == other.busiest && plain.messages == other.messages));
  }
}

TEST_CASE("only the innermost axes of a dimension change alone", "[plan]") {
  struct b : axis<3> {};
  struct c : axis<2> {};
  const auto cut = [](std::initializer_list<int> first, std::initializer_list<int> second, index_t grain = 1) {
    layout x;
    x.mesh = mesh<a, b, c>::value;
    x.placements.resize(3);
    dimension d;
    d.extent = 24;
    d.set_grain(grain);
    x.dims.push(d);
    d.set_grain(1);
    x.dims.push(d);
    for (int axis : first) x.cut_by(0, axis);
    for (int axis : second) x.cut_by(1, axis);
    return x;
  };
  CHECK(verb_between(cut({0, 1}, {}), cut({0}, {})) == verb::all_gather);
  CHECK(verb_between(cut({0, 1, 2}, {}), cut({0}, {})) == verb::all_gather);
  CHECK(verb_between(cut({0, 1}, {}), cut({1}, {})) == verb::repartition);
  CHECK(verb_between(cut({0}, {}), cut({0, 1}, {})) == verb::shard);
  CHECK(verb_between(cut({1}, {}), cut({0, 1}, {})) == verb::repartition);
  CHECK(verb_between(cut({0, 1}, {}), cut({1, 0}, {})) == verb::repartition);
  CHECK(verb_between(cut({0, 1}, {}), cut({0}, {1})) == verb::all_to_all);
  CHECK(verb_between(cut({0, 1}, {}), cut({1}, {0})) == verb::repartition);
  CHECK(verb_between(cut({0, 1}, {}), cut({0, 2}, {})) == verb::several);
  CHECK(verb_between(cut({0}, {}, 4), cut({0}, {})) == verb::repartition);
  CHECK(verb_between(cut({0, 1}, {}, 4), cut({0}, {})) == verb::repartition);
  CHECK(verb_between(cut({0}, {1}, 4), cut({0}, {})) == verb::repartition);
  layout terms = cut({1}, {});
  terms.placements[0] = {placement::partial};
  CHECK(verb_between(terms, cut({1, 0}, {})) == verb::reduce_scatter);
  CHECK(verb_between(terms, cut({0, 1}, {})) == verb::several);  // what b cuts moves, and terms are added
  CHECK(verb_between(cut({1, 0}, {}), terms) == verb::to_partial);
}

TEST_CASE("verbs that only add to what a worker holds, or only take from it, do so", "[law]") {
  dice d{21};
  int seen = 0;
  for (int i = 0; i < 4000; ++i) {
    const auto extents = roll_extents(d, 2, 12);
    const mesh_value mesh = roll_mesh(d, 3);
    const layout x = roll_layout(d, mesh, extents, {true, true, false, false});
    const layout y = roll_layout(d, mesh, extents, {true, true, false, false});
    const verb v = verb_between(x, y);
    const bool adds = v == verb::all_gather || v == verb::to_partial || v == verb::all_reduce || v == verb::copy_in;
    const bool takes = v == verb::shard || v == verb::reduce_scatter || v == verb::all_reduce || v == verb::copy_in;
    if (!adds && !takes) continue;
    ++seen;
    for (int n = 0; n < mesh.size(); ++n) {
      const int rank = mesh.rank(mesh.at(n));
      const box before = box_of(x, rank);
      const box after = box_of(y, rank);
      for (int k = 0; k < before.count; ++k) {
        const interval both = overlap(before[k], after[k]);
        INFO(i << ", " << name_of(v));
        if (adds) CHECK((before[k].empty() || both == before[k]));
        if (takes) CHECK((after[k].empty() || both == after[k]));
      }
    }
  }
  CHECK(seen > 300);
}

}  // namespace tessera::testing
