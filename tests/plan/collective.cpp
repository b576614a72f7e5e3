#include "tests/support/catch.hpp"
#include "tests/support/one_axis.hpp"

#include <tessera/core.hpp>
#include <tessera/plan/staging.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("collectives are recognised", "[plan]") {
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

TEST_CASE("axes of extent 1 do not change what a transfer is", "[plan]") {
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

TEST_CASE("what crosses an axis, and what must be staged", "[plan]") {
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

}  // namespace tessera::testing
