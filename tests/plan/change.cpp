#include "tests/support/catch.hpp"
#include "tests/support/one_axis.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

/// Elements received by all four workers, of 12 held whole: the table of changes of placement.
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

constexpr placement placements[]{placement::replicate, placement::partial, placement::invariant, placement::on,
                                 placement::cut};

}  // namespace

TEST_CASE("the table of 25 changes of placement is closed and costs what it says", "[law][plan]") {
  for (placement from : placements)
    for (placement to : placements) {
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

TEST_CASE("partial axes come first: P(a), V(b) to R, R over 4 x 4", "[plan]") {
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

TEST_CASE("gathering over the last axis of blocks<a, b> lands on blocks<a>, uneven or not", "[law]") {
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

TEST_CASE("terms that end in one combine and begin in another are combined one way after the other", "[plan]") {
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

TEST_CASE("an axis of extent 1 changes no deal between meshes that do not meet", "[plan]") {
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

TEST_CASE("the published halo of 10 over 4 with kernel 2 and stride 2", "[plan]") {
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
