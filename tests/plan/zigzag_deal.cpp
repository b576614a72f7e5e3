#include "tests/support/catch.hpp"
#include "tests/support/oracle.hpp"

#include <tessera/core.hpp>
#include <tessera/inspect/text.hpp>
#include <tessera/plan/laws.hpp>
#include <tessera/plan/narrowing.hpp>

#include <map>
#include <type_traits>
#include <vector>

using namespace tessera;
using namespace tessera::engine;
namespace oracle = tessera::testing::oracle;

namespace {

struct ring : axis<3> {};
struct up : axis<2> {};
using line = mesh<ring>;
using grid = mesh<up, ring>;

template <class P, class S>
constexpr const layout& of = value_of<tensor<P, S>>.layout;

template <class M, class Cover, index_t N>
constexpr const layout& row = of<partition<M, Cover>, shape_of<N>>;

// One dimension of n elements over p workers.
layout over(index_t n, int p) {
  layout x;
  x.mesh.axes.push({text("a"), p, 0});
  x.mesh = row_major(x.mesh);
  x.placements.resize(1);
  dimension d;
  d.extent = n;
  x.dims.push(d);
  x.cut_by(0, 0);
  return x;
}
layout in_zigzag(index_t n, int p, index_t grain = 1) {
  layout x = over(n, p);
  x.dims[0].set_grain(grain);
  x.dims[0].zigzag = true;
  return x;
}

// Σ of g + 1 over the elements that each coordinate holds: what causal attention computes of its rows.
double mean_over_largest(const layout& x) {
  const parts p(x, 0);
  index_t all = 0;
  index_t largest = 0;
  for (int k = 0; k < p.count(); ++k) {
    index_t work = 0;
    for (const interval& i : p.held(k)) work += (i.hi * (i.hi + 1) - i.lo * (i.lo + 1)) / 2;
    all += work;
    largest = std::max(largest, work);
  }
  return static_cast<double>(all) / static_cast<double>(p.count()) / static_cast<double>(largest);
}

}  // namespace

TEST_CASE("coordinate i of p holds chunks i and 2p - 1 - i of 2p", "[plan]") {
  CHECK(parts_text(row<line, zigzag<ring>, 12>, 0) == "[0,2)+[10,12) [2,4)+[8,10) [4,8)");
  CHECK(parts_text(row<line, zigzag<ring>, 10>, 0) == "[0,2)+[9,10) [2,4)+[8,9) [4,8)");
  CHECK(parts_text(row<line, zigzag<ring>, 4>, 0) == "[0,1) [1,2) [2,4)");
  CHECK(parts_text(row<line, zigzag<ring>, 2>, 0) == "[0,1) [1,2) [2,2)");
  CHECK(parts_text(row<line, zigzag<grains<4, ring>>, 22>, 0) == "[0,4)+[20,22) [4,8)+[16,20) [8,16)");
  CHECK(parts_text(row<line, rotated<zigzag<ring>, 1>, 12>, 0) == "[2,4)+[8,10) [4,8) [0,2)+[10,12)");
  CHECK(parts_text(row<grid, zigzag<up, ring>, 12>, 0) ==
        "[0,1)+[11,12) [1,2)+[10,11) [2,3)+[9,10) [3,4)+[8,9) [4,5)+[7,8) [5,7)");
  CHECK(text_of(row<line, zigzag<ring>, 12>) == "12 over ring 3 = zigzag(ring) [0,2)+[10,12) [2,4)+[8,10) [4,8)");
  CHECK(cover_text(row<line, zigzag<grains<4, ring>>, 22>, 0) == "zigzag of 4(ring)");
}

TEST_CASE("a zigzag is what an oracle of lists deals, and its inverse finds each holder", "[plan][law]") {
  for (int p = 1; p <= 8; ++p)
    for (index_t grain : {1, 3})
      for (index_t n = 0; n <= 40; ++n) {
        const layout x = in_zigzag(n, p, grain);
        const parts of(x, 0);
        std::vector<int> holder(static_cast<std::size_t>(n), -1);
        for (int k = 0; k < p; ++k) {
          coordinates c;
          c.push(k);
          const std::vector<index_t> dealt = oracle::dealt(x, 0, c);
          const intervals held = of.held(k);
          REQUIRE(size_of(held) == static_cast<index_t>(dealt.size()));
          for (std::size_t i = 0; i < dealt.size(); ++i) {
            REQUIRE(element_at(held, static_cast<index_t>(i)) == dealt[i]);
            REQUIRE(position(held, dealt[i]) == static_cast<index_t>(i));
            REQUIRE(holder[static_cast<std::size_t>(dealt[i])] == -1);
            holder[static_cast<std::size_t>(dealt[i])] = k;
          }
        }
        index_t longest = 0;
        for (int k = 0; k < p; ++k) longest = std::max(longest, size_of(of.held(k)));
        REQUIRE(of.largest() == longest);
        for (index_t lo = 0; lo < n; ++lo)
          for (index_t hi = lo + 1; hi <= n; ++hi) {
            const interval wanted{lo, hi};
            std::vector<int> found(static_cast<std::size_t>(p), 0);
            for (const part_range& near : of.touching(wanted))
              for (int k = near.first; k < near.last; ++k) ++found[static_cast<std::size_t>(k)];
            index_t pieces = 0;
            for (int k = 0; k < p; ++k) {
              bool holds = false;
              for (const interval& i : of.held(k)) {
                holds = holds || !overlap(i, wanted).empty();
                pieces += !overlap(i, wanted).empty();
              }
              REQUIRE(found[static_cast<std::size_t>(k)] == (holds ? 1 : 0));
            }
            index_t holders = 0;
            for (int each : found) holders += each;
            REQUIRE(of.holders(wanted) == holders);
            REQUIRE(of.pieces(wanted) == pieces);
          }
      }
}

TEST_CASE("causal work is even under a zigzag and not under blocks", "[plan][law]") {
  // A part has up to one element more than another, of so many as its two chunks have: mean / largest > 1 - 1/q, where
  // q = floor(n / 2p) is the length of a chunk. So it is 0.998 from n = 1000 p on, and 1 wherever 2p divides n.
  double most_of_blocks = 0;
  for (int p = 2; p <= 64; ++p)
    for (index_t more : {0, 1, p / 2, p - 1, p, p + 1, 2 * p - 1, 17 * p + 5}) {
      const index_t n = index_t{64} * p + more;
      const double zigzag = mean_over_largest(in_zigzag(n, p));
      INFO(n << " over " << p);
      REQUIRE((n % (2 * p) != 0 || zigzag == 1));
      REQUIRE(zigzag > 1 - 1 / static_cast<double>(n / (2 * p)));
      REQUIRE(mean_over_largest(in_zigzag(n + index_t{936} * p, p)) >= 0.998);
      const double blocks = mean_over_largest(over(n, p));
      const double law = p / (2.0 * p - 1);
      most_of_blocks = std::max(most_of_blocks, std::abs(blocks - law) / law);
    }
  CHECK(most_of_blocks < 0.02);
}

TEST_CASE("a zigzag's spelling is canonical", "[plan]") {
  using deal = tensor<partition<line, zigzag<ring>>, shape_of<10>>;
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<deal>, deal>);
  using grained = tensor<partition<line, zigzag<grains<4, ring>>>, shape_of<22>>;
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<grained>, grained>);
  using turned = tensor<partition<line, rotated<zigzag<ring>, 4>>, shape_of<10>>;
  STATIC_REQUIRE(
      std::is_same_v<canonical_tensor<turned>, tensor<partition<line, rotated<zigzag<ring>, 1>>, shape_of<10>>>);
  struct both : product<up, ring> {};
  using joined = tensor<partition<grid, zigzag<both>>, shape_of<13>>;
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<joined>, tensor<partition<grid, zigzag<up, ring>>, shape_of<13>>>);
  // A grain that comes out even is none; over one worker there is no deal.
  using even = tensor<partition<line, zigzag<grains<2, ring>>>, shape_of<24>>;
  STATIC_REQUIRE(same(value_of<even>.layout, row<line, zigzag<ring>, 24>));
  using uneven =
      tensor<partition<line, zigzag<grains<2, ring>>>, shape_of<18>>;  // of blocks three grains each are even
  STATIC_REQUIRE(!same(value_of<uneven>.layout, row<line, zigzag<ring>, 18>));
  struct one : axis<1> {};
  STATIC_REQUIRE(same(row<mesh<one>, zigzag<one>, 7>, row<mesh<one>, whole, 7>));
  STATIC_REQUIRE(!same(row<line, zigzag<ring>, 10>, row<line, blocks<ring>, 10>));
  STATIC_REQUIRE(laws::cotangent_is_involution(row<line, zigzag<ring>, 10>));
}

namespace {

// The elements that move by a change, by brute force: each worker needs what it gets and has not.
index_t moved(const layout& from, const layout& to) {
  index_t n = 0;
  for (int r = 0; r < oracle::world_of(from, to); ++r) {
    const auto had = oracle::held(from, r);
    for (const auto& e : oracle::held(to, r)) n += had.count(e) == 0;
  }
  return n;
}

}  // namespace

TEST_CASE("changes from and to a zigzag are one plan, as short as can be", "[plan][law]") {
  for (int p : {1, 2, 3, 4, 5})
    for (index_t n : {0, 1, 3, 7, 8, 20, 23}) {
      std::vector<layout> covers{over(n, p), in_zigzag(n, p), in_zigzag(n, p, 3), in_zigzag(n, p)};
      covers[3].dims[0].turned = p > 1 ? 1 : 0;
      layout copies = over(n, p);
      copies.set_placement(0, {});
      covers.push_back(copies);
      for (const layout& from : covers)
        for (const layout& to : covers) {
          if (same(from, to)) continue;
          for (const change& c : {change_between(from, to), change_between(cotangent(to), cotangent(from))}) {
            REQUIRE(c.steps.count == 1);
            const transfer plan = c.steps[0].plan();
            for (int r = 0; r < p; ++r) {
              REQUIRE(laws::delivers_once(plan, r));
              REQUIRE(laws::mirrored(plan, r));
            }
            REQUIRE(laws::costs_what_it_moves(plan, p));
            if (c.steps[0].kind == map::move) REQUIRE(cost_of(plan).total == moved(c.steps[0].from, c.steps[0].to));
          }
        }
    }
}

TEST_CASE("both ends of two deals send and receive their boxes in one order", "[plan][law]") {
  for (int p : {2, 3, 4, 6})
    for (index_t n : {5, 12, 31})
      for (int turn = 0; turn < p; ++turn)
        for (index_t grain : {1, 2}) {
          layout from = in_zigzag(n, p, grain);
          from.dims[0].turned = turn;
          const transfer plan{map::move, from, in_zigzag(n, p)};
          std::map<std::pair<int, int>, std::vector<index_t>> sent, got;
          for (int r = 0; r < p; ++r) {
            plan.sends(r, [&](const message& m) { sent[{m.from, m.to}].push_back(m.where[0].lo); });
            plan.receives(r, [&](const message& m) { got[{m.from, m.to}].push_back(m.where[0].lo); });
          }
          REQUIRE(sent == got);
        }
}

TEST_CASE("copies of a zigzag are no view of a whole", "[plan]") {
  constexpr step cut{map::move, row<line, whole, 12>, row<line, zigzag<ring>, 12>};
  STATIC_REQUIRE(!narrows(cut));
  STATIC_REQUIRE(narrows(step{map::move, row<line, whole, 12>, row<line, blocks<ring>, 12>}));
  STATIC_REQUIRE(verb_between(cut.from, cut.to) == verb::shard);
  STATIC_REQUIRE(verb_between(cut.to, cut.from) == verb::all_gather);
  STATIC_REQUIRE(verb_between(row<line, blocks<ring>, 12>, cut.to) == verb::repartition);
}

TEST_CASE("who takes one interval refuses a zigzag", "[plan][refusal]") {
  const layout x = in_zigzag(12, 3);
  layout window = x;
  window.dims[0].kind = cover::haloed;
  window.dims[0].outputs = 12;
  window.dims[0].needs = {1, -1, 1, 1};
  CHECK(check(window).is(code::interval_wanted));
  layout listed = x;
  const index_t bounds[]{0, 1, 2, 12};
  listed.dims[0].bounds = bounds;
  CHECK(check(listed).is(code::interval_wanted));
  CHECK(check(x).ok());
  layout around = over(12, 3).halo(0, sliding{3, 1, 1, 1, 1, boundary::periodic});
  CHECK(check_change(x, around).is(code::interval_wanted));
  CHECK(check_change(cotangent(around), x).is(code::interval_wanted));
  CHECK(check_change(x, over(12, 3).halo(0, sliding{3, 1, 1, 1, 1})).ok());
  bool refused = false;
  try {
    box_of(x, 0);
  } catch (const refused_value& why) {
    refused = why.why.is(code::interval_wanted);
  }
  CHECK(refused);
  CHECK(box_of(x, 2)[0] == interval{4, 8});
}
