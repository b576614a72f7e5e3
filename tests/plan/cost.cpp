#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"

#include <tessera/core.hpp>
#include <tessera/plan/laws.hpp>
#include <tessera/plan/reduced_change.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

template <int P>
struct square {
  struct row : axis<P> {};
  struct col : axis<P> {};

  template <int N, class... Covers>
  static constexpr layout of = value_of<tensor<partition<mesh<row, col>, Covers...>, shape_of<N, N>>>.layout;
  template <int N>
  static constexpr layout rows = of<N, blocks<row, col>, whole>;
  template <int N>
  static constexpr layout columns = of<N, whole, blocks<row, col>>;
  template <int N>
  static constexpr layout tiles = of<N, blocks<row>, blocks<col>>;
};

/// Tiles and halos over meshes whose axes are long enough for their coordinates to be told apart by few lengths.
constexpr layout_pair roll_long_axes(dice& d) {
  constexpr int longest[]{0, 40, 11, 5};
  mesh_value mesh;
  const int axes = d.roll(1, 3);
  for (int a = 0; a < axes; ++a) mesh.axes.push({axis_names[a], d.roll(1, longest[axes]), 0});
  mesh = row_major(mesh);
  const auto extents = roll_extents(d, 3, d.once_in(3) ? 9 : 70);
  return {roll_layout(d, mesh, extents, {false, true, true, false, true}),
          roll_layout(d, mesh, extents, {false, true, true, d.once_in(3), true})};
}

}  // namespace

TEST_CASE("what 1,024 and 1,000,000 workers move is a constant", "[plan]") {
  using s = square<32>;
  // Of its 1,024 elements a worker holds one; all others have one of each for it.
  constexpr cost turned = cost_of(change_between(s::rows<1024>, s::columns<1024>));
  STATIC_REQUIRE(turned == cost{1024 * 1023, 1023, 1024 * 1023, 1024 * 1023, 1023});
  constexpr cost back = cost_of(change_between(cotangent(s::columns<1024>), cotangent(s::rows<1024>)));
  STATIC_REQUIRE(back == turned);
  // Worker (r, c) gets column 32 r + c from the 32 tiles of column r; one of them is its own where c = r.
  constexpr cost cut = cost_of(change_between(s::tiles<1024>, s::columns<1024>));
  STATIC_REQUIRE(cut == cost{1024 * 1024 - 32 * 32, 1024, 1024 * 1024 - 32 * 32, 1024 * 32 - 32, 32});
  constexpr cost uncut = cost_of(change_between(cotangent(s::columns<1024>), cotangent(s::tiles<1024>)));
  STATIC_REQUIRE(uncut == cut);
  // Nothing divides evenly: 5 of 32 rows have 34, cut into two of 2 and 30 of 1; the others 33, cut into one of 2 and
  // 31 of 1.
  constexpr cost uneven = cost_of(change_between(s::rows<1061>, s::columns<1061>));
  STATIC_REQUIRE(uneven.total == 1061 * 1061 - (37 * 2 * 2 + 987));
  STATIC_REQUIRE(uneven.busiest == 2 * 1061 - 2 * 2);

  using large = square<1000>;
  constexpr cost million = cost_of(change_between(large::rows<1'000'000>, large::columns<1'000'000>));
  STATIC_REQUIRE(million == cost{999'999'000'000, 999'999, 999'999'000'000, 999'999'000'000, 999'999});
  constexpr layout copies = large::of<1000, whole, whole>;
  constexpr layout root = large::of<1000, whole, whole, on<large::row, 7>, on<large::col>>;
  constexpr cost spread = cost_of(change_between(root, copies));
  STATIC_REQUIRE(spread == cost{999'999'000'000, 1'000'000, 999'999'000'000, 999'999, 1});
  constexpr cost summed = cost_of(change_between(cotangent(copies), root));
  STATIC_REQUIRE(summed == cost{999'999'000'000, 999'999'000'000, 999'999'000'000, 999'999, 999'999});
}

TEST_CASE("costs are what is moved, over long axes", "[law]") {
  constexpr std::uint64_t seed = 20261121;
  dice d{seed};
  int free = 0;
  for (int pair = 0; pair < 20'000; ++pair) {
    const layout_pair p = roll_long_axes(d);
    const transfer move{map::move, p.from, p.to};
    const transfer fold{map::fold, cotangent(p.to), cotangent(p.from)};
    const bool right =
        laws::costs_what_it_moves(move, p.from.mesh.size()) && laws::costs_what_it_moves(fold, p.from.mesh.size());
    if (!right) FAIL("seed " << seed << " pair " << pair);
    free += cost_of(move).total == 0;
  }
  WARN("20000 pairs, " << free << " of them free, seed " << seed);
  CHECK(free < 10'000);
}

TEST_CASE("the busiest is found among any number of workers of which none is as good as another", "[law][plan]") {
  // Worker k needs 2 k elements and holds the first k − 1 of them.
  constexpr int p = 100;
  index_t needed[p + 1]{};
  index_t held[p + 1]{};
  for (int k = 0; k < p; ++k) {
    needed[k + 1] = needed[k] + 2 * k;
    held[k + 1] = detail::larger(0, needed[k + 1] - (k + 1));
  }
  held[p] = needed[p];
  layout to;
  to.mesh.axes.push({axis_names[0], p, 0});
  to.mesh = row_major(to.mesh);
  to.placements.resize(1);
  to.dims.resize(1);
  to.dims[0].extent = needed[p];
  to.cut_by(0, 0);
  layout from = to;
  to.dims[0].bounds = needed;
  from.dims[0].bounds = held;
  const transfer plan{map::move, from, to};
  CHECK(laws::costs_what_it_moves(plan, p));
  CHECK(cost_of(plan).busiest == p - 1);  // of the last but one; the last holds its end, too
}

TEST_CASE("parts are alike up to where their lengths change, and as many hold a stretch as have elements of it",
          "[law]") {
  dice d{20261122};
  int runs = 0;
  for (int round = 0; round < 3000; ++round) {
    const layout x = roll_long_axes(d).to;
    for (int dim = 0; dim < x.dims.count; ++dim) {
      const parts p{x, dim};
      if (p.of.kind != cover::tiled) continue;
      const index_t lo = d.roll(0, static_cast<int>(p.of.extent));
      const interval wanted{lo, d.roll(static_cast<int>(lo), static_cast<int>(p.of.extent))};
      index_t holders = 0;
      index_t pieces = 0;
      for (int k = 0; k < p.count(); ++k) {
        const index_t before = pieces;
        for (const interval& held : p.held(k)) pieces += !overlap(held, wanted).empty();
        holders += pieces > before;
      }
      if (p.holders(wanted) != holders || p.pieces(wanted) != pieces) FAIL("round " << round << ", dimension " << dim);
      if (!p.refines(p)) continue;
      for (int l = 0; l < p.axes.count; ++l)
        for (int k = 0; k < p.count(); ++k) {
          coordinates c;
          c.resize(x.mesh.axes.count);
          p.locate(k, c);
          const int until = static_cast<int>(p.alike_until(l, c[p.axes[l]]));
          if (until <= c[p.axes[l]] || until > p.extents[l]) FAIL("round " << round << ", dimension " << dim);
          runs += until < p.extents[l];
          while (++c[p.axes[l]] < until)
            if (p.held(p.at(c))[0].size() != p.held(k)[0].size()) FAIL("round " << round << ", dimension " << dim);
        }
    }
  }
  CHECK(runs > 1000);
}

TEST_CASE("a halo along one axis is counted in runs of coordinates that lie alike", "[law]") {
  struct line : axis<1> {};
  layout tiles = value_of<tensor<partition<mesh<line>, blocks<line>>, shape_of<1>>>.layout;
  dice d{20261125};
  for (int round = 0; round < 3000; ++round) {
    const int workers = d.roll(1, 30);
    const int kernel = d.roll(1, 7);
    const int dilation = d.roll(1, 2);
    const sliding window{kernel, d.roll(1, 3), d.roll(0, 3), d.roll(0, 3), dilation};
    tiles.mesh.axes[0].extent = workers;
    tiles.dims[0].extent = d.roll(dilation * (kernel - 1) + 1, 9 * workers + 20);
    layout halo = tiles;
    halo.dims[0].kind = cover::haloed;
    halo.dims[0].outputs = window.outputs(tiles.dims[0].extent);
    halo.dims[0].needs = window.needs();
    const change there = change_between(tiles, halo);
    const change back = change_between(cotangent(halo), cotangent(tiles));
    for (const change* c : {&there, &back})
      for (const step& s : c->steps)
        if (!laws::costs_what_it_moves(s.plan(), workers)) FAIL("round " << round);
  }
  struct long_line : axis<4096> {};
  using strips = tensor<partition<mesh<long_line>, blocks<long_line>>, shape_of<4096 * 8 + 6>>;
  using halos =
      tensor<partition<mesh<long_line>, haloed<blocks<long_line>, 4096 * 8 + 6, 1, -1, 1>>, shape_of<4096 * 8 + 6>>;
  STATIC_REQUIRE(primitive<strips, halos>::cost() == cost{2 * 4095, 2, 2 * 4095, 2 * 4095, 2});
}

TEST_CASE("an all_reduce is counted in closed form as its plan is", "[law]") {
  dice d{20261126};
  int reduced_ones = 0;
  for (int round = 0; round < 20'000; ++round) {
    layout from = roll_long_axes(d).from;
    for (axis_placement& r : from.placements)
      if (r.kind != placement::cut && r.kind != placement::on)
        r = {d.once_in(4) ? placement::invariant : d.once_in(3) ? placement::replicate : placement::partial};
    layout to = from;
    for (axis_placement& r : to.placements)
      if (r.kind != placement::cut && r.kind != placement::on && !d.once_in(4))
        r = {d.once_in(2) ? placement::invariant : placement::replicate};
    if (!detail::only_reduces(from, to)) continue;
    const cost counted = cost_of(change_between(from, to));
    if (!(detail::reduction_cost(from, to) == counted)) FAIL("round " << round);
    reduced_ones += counted.total > 0;
  }
  CHECK(reduced_ones > 3'000);
}

TEST_CASE("what a change moves is what its reduced one moves, so many times", "[law]") {
  dice d{20261127};
  int smaller = 0;
  for (int round = 0; round < 20'000; ++round) {
    const layout_pair p = roll_long_axes(d);
    const reduced_change r = reduced(p.from, p.to);
    if (r.times == 0) continue;
    smaller += r.from.dims.count < p.from.dims.count;
    const cost there = cost_of(change_between(p.from, p.to));
    const cost back = cost_of(change_between(cotangent(p.to), cotangent(p.from)));
    const bool right = cost_of(change_between(r.from, r.to)) * r.times == there &&
                       cost_of(change_between(cotangent(r.to), cotangent(r.from))) * r.times == back;
    if (!right) FAIL("round " << round);
  }
  CHECK(smaller > 2'000);
}

TEST_CASE("counts that no index holds are refused, not wrapped", "[refusal]") {
  struct a : axis<256> {};
  struct b : axis<256> {};
  struct c : axis<256> {};
  using workers = mesh<a, b, c>;
  const auto cut = [](index_t n) {
    layout x = value_of<tensor<partition<workers, blocks<a, b, c>>, shape_of<1>>>.layout;
    x.dims[0].extent = n;
    layout y = value_of<tensor<partition<workers, whole>, shape_of<1>>>.layout;
    y.dims[0].extent = n;
    return cost_of(change_between(x, y));
  };
  CHECK(check(cut(index_t{1} << 38)).ok());
  CHECK(cut(index_t{1} << 38).total == (index_t{1} << 38) * ((1 << 24) - 1));
  CHECK(check(cut(index_t{1} << 40)).is(code::cost_overflows));
}

}  // namespace tessera::testing
