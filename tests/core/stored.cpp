#include "tests/support/catch.hpp"

#include <tessera/network.hpp>

using namespace tessera;

// What is known of parameters stored as tiles: what moves, what is held, and where they lie.

namespace {

// Eight layers of 64 KiB between two norms too small to cut, over 4 x 2 workers.
struct shards : axis<4> {};
struct halves : axis<2> {};
using wide_grid = mesh<shards, halves>;
using wide = tensor<partition<wide_grid, blocks<shards, halves>, whole>, shape<dim<16>, dim<128>>, float>;
template <class L>
using eight = nn::chain<L, L, L, L, L, L, L, L>;
using square = nn::linear<128, no_bias>;
using copied = network<eight<square>, wide>;
template <class... Over>
using in_tiles = network<nn::stored_over<eight<square>, Over...>, wide>;

}  // namespace

TEST_CASE("parameters stored as tiles move what an all_reduce does, and a third more where they are let go; and no other layout changes") {
  constexpr index_t weight = 128 * 128 * 4;
  constexpr traffic_value copies = traffic<copied>();
  STATIC_REQUIRE(copies.forward.bytes == 0);
  STATIC_REQUIRE(copies.backward.bytes == 8 * 2 * 7 * weight);
  constexpr traffic_value kept = traffic<in_tiles<gathered_once<shards, halves>>>();
  STATIC_REQUIRE(kept.forward.bytes == 8 * 7 * weight);
  STATIC_REQUIRE(kept.backward.bytes == 8 * 7 * weight);
  constexpr traffic_value released = traffic<in_tiles<shards, halves>>();
  STATIC_REQUIRE(released.forward == kept.forward);
  STATIC_REQUIRE(released.backward.bytes == 2 * 8 * 7 * weight);
  STATIC_REQUIRE(std::is_same_v<in_tiles<shards>::output, copied::output>);
  // A worker holds tiles, and of what is gathered one layer's: forward, and with its gradient backward.
  constexpr memory_value all = peak_memory<copied>();
  constexpr memory_value tiles = peak_memory<in_tiles<shards, halves>>();
  constexpr memory_value once = peak_memory<in_tiles<gathered_once<shards, halves>>>();
  STATIC_REQUIRE(all.parameters == 8 * weight);
  STATIC_REQUIRE(tiles.parameters == weight);
  STATIC_REQUIRE(tiles.forward <= all.forward + weight);
  STATIC_REQUIRE(once.training - tiles.training == 7 * weight);
  // What is held moves with no call, however many there are: once there, and once back.
  constexpr traffic_value held = traffic<in_tiles<held_over<shards, halves>>>();
  STATIC_REQUIRE(held == traffic_value{{}, {}, kept.forward, kept.backward});
  constexpr memory_value stays = peak_memory<in_tiles<held_over<shards, halves>>>();
  STATIC_REQUIRE(stays.parameters == weight);
  STATIC_REQUIRE(stays.gradients == weight);
  STATIC_REQUIRE(stays.held == 2 * 8 * weight);
  STATIC_REQUIRE(stays.training < tiles.training);  // of the calls: what is gathered is no more theirs than what is stored
  using tied = nn::shared<struct one_weight, square>;
  using twice_taken = network<nn::stored_over<nn::chain<tied, nn::relu, tied>, held_over<shards, halves>>, wide>;
  STATIC_REQUIRE(traffic<twice_taken>().gathered.bytes == 7 * weight);
  STATIC_REQUIRE(peak_memory<twice_taken>().held == 2 * weight);
}

TEST_CASE("a parameter is stored as tiles along the axes that hold copies of it alone") {
  constexpr layer_plan p = network<nn::stored_over<nn::chain<nn::linear<6, cut_out<halves>>>, shards, halves>, wide>::program.nodes[0].what->plan();
  CHECK(p.stored(0).levels(0) == 1);                   // its outputs over halves, as the layer cuts them
  CHECK(p.stored(0).levels(1) == 1);                   // its inputs over shards
  CHECK(p.stored(1).levels(0) == 2);                   // the bias over both
  CHECK(p.weight(0).levels(1) == 0);
  CHECK(p.released(0));
  CHECK(!p.released(1));                               // no backward reads a bias
  constexpr layer_plan small = network<nn::stored_over<nn::chain<nn::linear<1>>, shards>, wide>::program.nodes[0].what->plan();
  CHECK(small.stored(1).roles[0].kind == role::on);    // one number cannot be cut
  constexpr layer_plan alone = nn::linear<6>::plan(value_of<wide>);
  tiles_over over_another_axis;
  over_another_axis.axes.push(text("depth"));
  CHECK(detail::stored_as_tiles(alone, over_another_axis).why.is(code::axis_not_in_mesh));
}

TEST_CASE("what runs again for its backward moves what forward does once more, a part within a part twice, and lives one part at a time") {
  constexpr auto of = []<class... Part>(nn::chain<Part...>) { return traffic<network<nn::chain<Part...>, wide>>(); };
  using stage = nn::stored_over<nn::chain<square, nn::relu, square>, shards, halves>;
  constexpr traffic_value plain = of(nn::chain<stage, stage, stage>{});
  constexpr traffic_value again = of(nn::chain<nn::recompute<stage>, stage, nn::recompute<nn::chain<nn::recompute<stage>>>>{});
  STATIC_REQUIRE(again.forward == plain.forward);
  STATIC_REQUIRE(again.backward.bytes == plain.backward.bytes + plain.forward.bytes);  // a third of it once, a third twice
  // Nothing of what is gathered once is kept for a part that runs again: it comes once forward and once back.
  using once = nn::stored_over<nn::chain<square, nn::relu, square>, gathered_once<shards, halves>>;
  STATIC_REQUIRE(of(nn::chain<nn::recompute<once>>{}) == of(nn::chain<stage>{}));
  using tall = tensor<partition<wide_grid, blocks<shards, halves>, whole>, shape<dim<2048>, dim<128>>, float>;
  constexpr auto peak = []<class... Part>(nn::chain<Part...>) { return peak_memory<network<nn::chain<Part...>, tall>>(); };
  using layers = nn::chain<nn::relu, nn::relu, nn::relu, nn::relu, nn::relu, nn::relu>;
  constexpr memory_value all = peak(nn::chain<square, layers, layers, layers, layers>{});
  constexpr memory_value some = peak(nn::chain<square, nn::recompute<layers>, nn::recompute<layers>, nn::recompute<layers>, nn::recompute<layers>>{});
  STATIC_REQUIRE(some.forward == all.forward);
  STATIC_REQUIRE(some.parameters == all.parameters);
  constexpr index_t value = 256 * 128 * 4;
  STATIC_REQUIRE(all.training - some.training >= 12 * value);  // of 24 results 4 inputs, the output and 6 of the part that runs now stay
}
