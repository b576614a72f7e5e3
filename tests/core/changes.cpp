#include "tests/support/catch.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {
namespace {

struct a : axis<4> {};

constexpr layout one_axis(role kind) {
  layout x;
  x.mesh = mesh<a>::value;
  x.roles.resize(1);
  dimension d;
  d.extent = 12;
  x.dims.push(d);
  if (kind == role::cut)
    x.cut_by(0, 0);
  else
    x.roles[0] = {kind};
  return x;
}

/// Elements received by all four workers, of 12 held whole: the table of changes of meaning.
constexpr index_t expected(role from, role to) {
  const index_t f = 36;  // (p − 1)/p of 12, four times
  if (from == role::partial && (to == role::replicate || to == role::invariant)) return 2 * f;
  if (from == role::partial && (to == role::cut || to == role::on)) return f;
  if (from == role::cut && (to == role::replicate || to == role::invariant)) return f;
  if (from == role::on && (to == role::replicate || to == role::invariant)) return f;
  if ((from == role::on && to == role::cut) || (from == role::cut && to == role::on)) return 9;
  return 0;
}

constexpr role dual(role r) {
  return r == role::replicate ? role::partial : r == role::partial ? role::replicate : r;
}

constexpr role kinds[]{role::replicate, role::partial, role::invariant, role::on, role::cut};

}  // namespace

TEST_CASE("the table of 25 changes of meaning is closed and costs what it says") {
  for (role from : kinds)
    for (role to : kinds) {
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

TEST_CASE("partial axes come first: P(a), V(b) to R, R over 4 x 4") {
  struct b : axis<4> {};
  layout from;
  from.mesh = mesh<a, b>::value;
  from.roles.resize(2);
  dimension d;
  d.extent = 16;
  from.dims.push(d);
  layout to = from;
  from.roles[0] = {role::partial};
  from.cut_by(0, 1);
  const change c = change_between(from, to);
  REQUIRE(c.steps.size() == 2);
  CHECK(c.steps[0].what == map::fold);
  CHECK(cost_of(c).busiest == 18);  // 3 summed, 15 gathered; gathered first it would be 36
}

TEST_CASE("gathering over the last axis of blocks<a, b> lands on blocks<a>, uneven or not") {
  struct b : axis<3> {};
  for (index_t n = 0; n < 40; ++n)
    for (index_t grain = 1; grain < 4; ++grain) {
      layout both;
      both.mesh = mesh<a, b>::value;
      both.roles.resize(2);
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

TEST_CASE("collectives are recognised") {
  const auto kind = [](const layout& x, const layout& y) {
    const change c = change_between(x, y);
    return c.steps.empty() ? collective::nothing : collective_of(c.steps[0].plan());
  };
  CHECK(kind(one_axis(role::cut), one_axis(role::replicate)) == collective::all_gather);
  CHECK(kind(one_axis(role::partial), one_axis(role::cut)) == collective::reduce_scatter);
  CHECK(kind(one_axis(role::on), one_axis(role::invariant)) == collective::broadcast);
  CHECK(kind(one_axis(role::partial), one_axis(role::on)) == collective::reduce);
  CHECK(kind(one_axis(role::on), one_axis(role::cut)) == collective::scatter);
  CHECK(kind(one_axis(role::cut), one_axis(role::on)) == collective::gather);
  CHECK(kind(one_axis(role::replicate), one_axis(role::cut)) == collective::nothing);
  layout haloed = one_axis(role::cut);
  const sliding three{3, 1, 1, 1, 1};
  haloed.dims[0].kind = cover::haloed;
  haloed.dims[0].outputs = three.outputs(12);
  haloed.dims[0].needs = three.needs();
  CHECK(kind(one_axis(role::cut), haloed) == collective::neighbours);
  CHECK(kind(cotangent(haloed), one_axis(role::cut)) == collective::neighbours);
  const sliding wide{11, 1, 5, 5, 1};
  haloed.dims[0].outputs = wide.outputs(12);
  haloed.dims[0].needs = wide.needs();
  CHECK(kind(one_axis(role::cut), haloed) == collective::general);
}

TEST_CASE("what crosses an axis, and what must be staged") {
  struct b : axis<2> {};
  layout tiles;
  tiles.mesh = mesh<a, b>::value;
  tiles.roles.resize(2);
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
  columns.mean(0, {});
  columns.mean(1, {});
  columns.cut_by(1, 0);
  columns.cut_by(1, 1);
  const transfer wide{map::move, rows, columns};
  CHECK(peak_staging(wide) == 0);  // rows of one element arrive as columns of one: both lie without gaps
  layout all = rows;
  all.mean(1, {});
  all.mean(0, {});
  CHECK(peak_staging(transfer{map::fold, cotangent(all), rows}) == 7 * 8);  // every term is staged before it is added
}

TEST_CASE("the published halo of 10 over 4 with kernel 2 and stride 2") {
  layout x = one_axis(role::cut);
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
