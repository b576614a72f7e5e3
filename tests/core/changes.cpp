#include "tests/support/catch.hpp"

#include "tests/support/generate.hpp"

#include <tessera/core.hpp>
#include <tessera/plan/staging.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct a : axis<4> {};

constexpr layout one_axis(placement kind) {
  layout x;
  x.mesh = mesh<a>::value;
  x.placements.resize(1);
  dimension d;
  d.extent = 12;
  x.dims.push(d);
  if (kind == placement::cut) x.cut_by(0, 0);
  else x.placements[0] = {kind};
  return x;
}

/// Elements received by all four workers, of 12 held whole: the table of changes of meaning.
constexpr index_t expected(placement from, placement to) {
  const index_t f = 36;  // (p − 1)/p of 12, four times
  if (from == placement::partial && (to == placement::replicate || to == placement::invariant)) return 2 * f;
  if (from == placement::partial && (to == placement::cut || to == placement::on)) return f;
  if (from == placement::cut && (to == placement::replicate || to == placement::invariant)) return f;
  if (from == placement::on && (to == placement::replicate || to == placement::invariant)) return f;
  if ((from == placement::on && to == placement::cut) || (from == placement::cut && to == placement::on)) return 9;
  return 0;
}

constexpr placement dual(placement r) {
  return r == placement::replicate ? placement::partial : r == placement::partial ? placement::replicate : r;
}

constexpr placement meanings[]{placement::replicate, placement::partial, placement::invariant, placement::on,
                               placement::cut};

}  // namespace

TEST_CASE("the table of 25 changes of meaning is closed and costs what it says") {
  for (placement from : meanings)
    for (placement to : meanings) {
      INFO(static_cast<int>(from) << " to " << static_cast<int>(to));
      const layout x = one_axis(from);
      const layout y = one_axis(to);
      CHECK(cost_of(change_between(x, y)).total == expected(from, to));
      CHECK(cost_of(change_between(x, y)).lower_bound == expected(from, to));
      CHECK(cost_of(change_between(cotangent(y), cotangent(x))).total == expected(dual(to), dual(from)));
      CHECK(same(cotangent(x), one_axis(dual(from))));
      CHECK((verb_between(x, y) == verb::nothing) == (from == to));
    }
}

TEST_CASE("axes of extent 1 change neither verbs nor plans") {
  dice d{20};
  for (int i = 0; i < 2000; ++i) {
    const auto extents = roll_extents(d, 3);
    const mesh_value mesh = roll_mesh(d, 3);
    const layout x = roll_layout(d, mesh, extents, {true, true, true, false});
    const layout y = roll_layout(d, mesh, extents, {true, true, true, d.once_in(3)});
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

TEST_CASE("only the innermost axes of a dimension change alone") {
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

TEST_CASE("verbs that only add to what a worker holds, or only take from it, do so") {
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

TEST_CASE("partial axes come first: P(a), V(b) to R, R over 4 x 4") {
  struct b : axis<4> {};
  layout from;
  from.mesh = mesh<a, b>::value;
  from.placements.resize(2);
  dimension d;
  d.extent = 16;
  from.dims.push(d);
  layout to = from;
  from.placements[0] = {placement::partial};
  from.cut_by(0, 1);
  const change c = change_between(from, to);
  REQUIRE(c.steps.size() == 2);
  CHECK(c.steps[0].kind == map::fold);
  CHECK(cost_of(c).busiest == 18);  // 3 summed, 15 gathered; gathered first it would be 36
}

TEST_CASE("gathering over the last axis of blocks<a, b> lands on blocks<a>, uneven or not") {
  struct b : axis<3> {};
  for (index_t n = 0; n < 40; ++n)
    for (index_t grain = 1; grain < 4; ++grain) {
      layout both;
      both.mesh = mesh<a, b>::value;
      both.placements.resize(2);
      dimension d;
      d.extent = n;
      d.set_grain(grain);
      both.dims.push(d);
      both.cut_by(0, 0);
      layout outer = both;
      both.cut_by(0, 1);
      for (int r = 0; r < 12; ++r) {
        const interval mine = box_of(outer, r)[0];
        interval gathered{INT64_MAX, 0};
        for (int j = 0; j < 3; ++j) {
          const interval part = box_of(both, r / 3 * 3 + j)[0];
          if (part.empty()) continue;
          gathered = {std::min(gathered.lo, part.lo), std::max(gathered.hi, part.hi)};
        }
        REQUIRE(((mine.empty() && gathered.hi == 0) || mine == gathered));
      }
    }
}

TEST_CASE("terms that end in one combine and begin in another are combined one way after the other") {
  const layout sums = one_axis(placement::partial);
  layout most = sums;
  most.placements[0] = partial_by(combine::max);
  for (const auto& [from, to] : {std::pair{sums, most}, std::pair{most, sums}}) {
    const change c = change_between(from, to);
    REQUIRE(c.steps.size() == 2);  // one Fold would combine all of it in one way
    CHECK(c.steps[0].kind == map::fold);
    CHECK(c.steps[0].with == from.placements[0].with);
    CHECK(c.steps[1].kind == map::fold);
    CHECK(c.steps[1].with == to.placements[0].with);
  }
  layout haloed = most;
  haloed.mesh.axes.push({text("b"), 2, 4});
  haloed.placements.push({});
  layout window = haloed;
  window.placements[0] = partial_by(combine::min);
  window.cut_by(0, 1);
  window.dims[0].kind = cover::haloed;
  window.dims[0].outputs = 12;
  window.dims[0].needs = sliding{3, 1, 1, 1, 1}.needs();
  const change c = change_between(haloed, window);
  REQUIRE(c.steps.size() > 1);
  CHECK(c.steps[c.steps.size() - 1].kind == map::move);  // terms first, then their halo: a Fold ends in a tiling
}

TEST_CASE("an axis of extent 1 changes no deal between meshes that do not meet") {
  layout from = one_axis(placement::partial);
  from.dims.push(from.dims[0]);
  from.mesh.axes.push({text("one"), 1, 1});
  from.placements.push({});
  from.cut_by(0, 1);
  layout to = from;
  to.mesh.axes[0] = {text("b"), 3, 1};
  to.placements[0] = {};
  to.cut_by(0, 0);
  to.set_placement(1, {placement::partial});  // no term is made along it
  to.dims[0].turned = 1;
  to.mesh.axes.push({text("c"), 2, 3});
  to.placements.push({});
  to.cut_by(1, 2);
  to.dims[1].kind = cover::haloed;
  to.dims[1].outputs = 12;
  to.dims[1].needs = sliding{3, 1, 1, 1, 1}.needs();
  const change c = change_between(from, to);
  REQUIRE(c.steps.size() == 2);
  CHECK(c.steps[0].kind == map::fold);
  CHECK(c.steps[1].kind == map::move);
  CHECK(c.steps[1].to.dims[0].turned == 1);
}

TEST_CASE("collectives are recognised") {
  const auto kind = [](const layout& x, const layout& y) {
    const change c = change_between(x, y);
    return c.steps.empty() ? collective::nothing : collective_of(c.steps[0].plan());
  };
  CHECK(kind(one_axis(placement::cut), one_axis(placement::replicate)) == collective::all_gather);
  CHECK(kind(one_axis(placement::partial), one_axis(placement::cut)) == collective::reduce_scatter);
  CHECK(kind(one_axis(placement::on), one_axis(placement::invariant)) == collective::broadcast);
  CHECK(kind(one_axis(placement::partial), one_axis(placement::on)) == collective::reduce);
  CHECK(kind(one_axis(placement::on), one_axis(placement::cut)) == collective::scatter);
  CHECK(kind(one_axis(placement::cut), one_axis(placement::on)) == collective::gather);
  CHECK(kind(one_axis(placement::replicate), one_axis(placement::cut)) == collective::nothing);
  layout haloed = one_axis(placement::cut);
  const sliding three{3, 1, 1, 1, 1};
  haloed.dims[0].kind = cover::haloed;
  haloed.dims[0].outputs = three.outputs(12);
  haloed.dims[0].needs = three.needs();
  CHECK(kind(one_axis(placement::cut), haloed) == collective::neighbours);
  CHECK(kind(cotangent(haloed), one_axis(placement::cut)) == collective::neighbours);
  const sliding wide{11, 1, 5, 5, 1};
  haloed.dims[0].outputs = wide.outputs(12);
  haloed.dims[0].needs = wide.needs();
  CHECK(kind(one_axis(placement::cut), haloed) == collective::general);
}

TEST_CASE("axes of extent 1 do not change what a transfer is") {
  struct one : axis<1> {};
  const auto kind = [](const layout& x, const layout& y) { return collective_of({map::move, x, y}); };
  layout x;
  x.mesh = mesh<a, one>::value;
  x.placements.resize(2);
  dimension d;
  d.extent = 12;
  x.dims.push(d);
  layout y = x;
  const index_t uneven[]{0, 4, 6, 9, 12};
  x.cut_by(0, 0);
  x.dims[0].bounds = uneven;
  y.cut_by(0, 1);
  y.cut_by(0, 0);  // inside the other axis, which is level 1
  CHECK(kind(x, y) == collective::neighbours);
  CHECK(kind(one_axis(placement::cut), y) == collective::nothing);
  layout gathered = one_axis(placement::replicate);
  CHECK(kind(y, gathered) == collective::all_gather);
}

TEST_CASE("what crosses an axis, and what must be staged") {
  struct b : axis<2> {};
  layout tiles;
  tiles.mesh = mesh<a, b>::value;
  tiles.placements.resize(2);
  dimension d;
  d.extent = 8;
  tiles.dims.push(d);
  tiles.dims.push(d);
  layout rows = tiles;
  tiles.cut_by(0, 0);  // four bands of 2 x 8, each in two halves of 2 x 4
  tiles.cut_by(1, 1);
  rows.cut_by(0, 0);  // the same bands, each in two rows
  rows.cut_by(0, 1);
  const transfer turn{map::move, tiles, rows};
  CHECK(crossing(turn, text("a")) == 0);
  CHECK(crossing(turn, text("b")) == cost_of(turn).total);
  CHECK(cost_of(turn).total == 8 * 4);
  CHECK(staging(turn, 0) == 0);  // half a row is contiguous on both sides
  layout columns = tiles;
  columns.set_placement(0, {});
  columns.set_placement(1, {});
  columns.cut_by(1, 0);
  columns.cut_by(1, 1);
  const transfer wide{map::move, rows, columns};
  CHECK(peak_staging(wide) == 0);  // rows of one element arrive as columns of one: both lie without gaps
  layout all = rows;
  all.set_placement(1, {});
  all.set_placement(0, {});
  CHECK(peak_staging(transfer{map::fold, cotangent(all), rows}) == 7 * 8);  // every term is staged before it is added
}

TEST_CASE("the published halo of 10 over 4 with kernel 2 and stride 2") {
  layout x = one_axis(placement::cut);
  x.dims[0].extent = 10;
  const sliding pool{2, 2, 0, 0, 1};
  layout y = x;
  y.dims[0].kind = cover::haloed;
  y.dims[0].outputs = pool.outputs(10);
  y.dims[0].needs = pool.needs();
  const interval need[]{{0, 4}, {4, 6}, {6, 8}, {8, 10}};
  for (int r = 0; r < 4; ++r) CHECK(box_of(y, r)[0] == need[r]);  // worker 1 trims, worker 0 needs one of its neighbour
}

}  // namespace tessera::testing
