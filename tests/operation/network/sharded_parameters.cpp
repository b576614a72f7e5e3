#include "tests/support/catch.hpp"

#include <tessera/network.hpp>
#include <tessera/nn/network/program_path.hpp>

#include <string>
#include <vector>

using namespace tessera;
using namespace tessera::engine;

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
using copied = network_type<eight<square>, wide>;
template <class... Over>
using in_tiles = network_type<nn::sharded_over<eight<square>, Over...>, wide>;

}  // namespace

TEST_CASE(
    "parameters stored as tiles move what an all_reduce does, and a third more where they are let go; and no other "
    "layout changes",
    "[plan]") {
  constexpr index_t weight = 128 * 128 * 4;
  constexpr traffic_value copies = traffic<copied>();
  STATIC_REQUIRE(copies.forward.bytes == 0);
  STATIC_REQUIRE(copies.backward.bytes == 8 * 2 * 7 * weight);
  constexpr traffic_value kept = traffic<in_tiles<shards, halves, gathered<gathering::once>>>();
  STATIC_REQUIRE(kept.forward.bytes == 8 * 7 * weight);
  STATIC_REQUIRE(kept.backward.bytes == 8 * 7 * weight);
  constexpr traffic_value released = traffic<in_tiles<shards, halves>>();
  STATIC_REQUIRE(released.forward == kept.forward);
  STATIC_REQUIRE(released.backward.bytes == 2 * 8 * 7 * weight);
  STATIC_REQUIRE(std::is_same_v<in_tiles<shards>::output, copied::output>);
  // A worker holds tiles, and of what is gathered one layer's: forward, and with its gradient backward.
  constexpr memory_value all = peak_memory<copied>();
  constexpr memory_value tiles = peak_memory<in_tiles<shards, halves>>();
  constexpr memory_value once = peak_memory<in_tiles<shards, halves, gathered<gathering::once>>>();
  STATIC_REQUIRE(all.parameters == 8 * weight);
  STATIC_REQUIRE(tiles.parameters == weight);
  STATIC_REQUIRE(tiles.forward <= all.forward + weight);
  STATIC_REQUIRE(once.training - tiles.training == 7 * weight);
  // What is held moves with no call, however many there are: once there, and once back.
  constexpr traffic_value held = traffic<in_tiles<shards, halves, gathered<gathering::held>>>();
  STATIC_REQUIRE(held == traffic_value{{}, {}, kept.forward, kept.backward});
  constexpr memory_value stays = peak_memory<in_tiles<shards, halves, gathered<gathering::held>>>();
  STATIC_REQUIRE(stays.parameters == weight);
  STATIC_REQUIRE(stays.gradients == weight);
  STATIC_REQUIRE(stays.held == 2 * 8 * weight);
  // of the calls: what is gathered is no more theirs than what is stored
  STATIC_REQUIRE(stays.training < tiles.training);
  using tied = nn::shared<struct one_weight, square>;
  using twice_taken =
      network_type<nn::sharded_over<nn::chain<tied, nn::relu, tied>, shards, halves, gathered<gathering::held>>, wide>;
  STATIC_REQUIRE(traffic<twice_taken>().gathered.bytes == 7 * weight);
  STATIC_REQUIRE(peak_memory<twice_taken>().held == 2 * weight);
}

TEST_CASE(
    "of a part that is held copies are held too: no call moves anything of a parameter, and of no axes copies stay "
    "copies",
    "[plan]") {
  // Copies over shards beside a weight that halves cut already: nothing is left to be stored over halves.
  using cut =
      network_type<nn::sharded_over<nn::chain<nn::linear<128, cut_out<halves>>>, halves, gathered<gathering::held>>,
                   wide>;
  constexpr traffic_value plain = traffic<network_type<nn::chain<nn::linear<128, cut_out<halves>>>, wide>>();
  constexpr traffic_value held = traffic<cut>();
  constexpr index_t half = 64 * (128 + 1) * 4;  // which four workers have
  STATIC_REQUIRE(cut::program.nodes[0].record->plan().held(0));
  STATIC_REQUIRE(held.forward == plain.forward);
  STATIC_REQUIRE(held.reduced.bytes == 2 * (2 * 3 * half));
  STATIC_REQUIRE(held.backward.bytes + held.reduced.bytes == plain.backward.bytes);
  using copies = in_tiles<gathered<gathering::held>>;
  constexpr traffic_value all = traffic<copied>();
  // All eight travel in one bundle: the bytes of eight sums, and the messages of one.
  constexpr traffic_value one = traffic<copies>();
  STATIC_REQUIRE(one.reduced.bytes == all.backward.bytes);
  STATIC_REQUIRE(one.reduced.lower_bound_bytes == all.backward.lower_bound_bytes);
  STATIC_REQUIRE(8 * one.reduced.messages == all.backward.messages);
  STATIC_REQUIRE(one.backward == direction{});
  // What cannot be counted one by one is not counted in bundles either.
  constexpr direction too_much = [] {
    direction d{INT64_MAX, 8, INT64_MAX, 8};
    const auto& members = tessera::detail::layer_bundled<copies::program.nodes[0].record>::members;
    const tessera::detail::bundle_member* const alone[]{&members[0]};
    tessera::detail::in_bundles(d, alone);
    return d;
  }();
  STATIC_REQUIRE(too_much == direction{INT64_MAX, 8, INT64_MAX, 8});
  constexpr memory_value waits = peak_memory<copies>();
  STATIC_REQUIRE(waits.parameters == peak_memory<copied>().parameters);
  STATIC_REQUIRE(waits.held == 8 * 128 * 128 * 4);  // gradients alone: what layers take is there already
}

TEST_CASE("what is used rounded is rounded before it moves, and terms of its gradient move in its own element",
          "[plan]") {
  using halved = tensor<partition<wide_grid, blocks<shards, halves>, whole>, shape<dim<16>, dim<128>>, bfloat16>;
  using master = nn::linear<128, no_bias, weights_as<float>>;
  constexpr traffic_value rounded =
      traffic<network_type<nn::sharded_over<nn::chain<master>, shards, halves, gathered<gathering::once>>, halved>>();
  constexpr traffic_value whole_floats =
      traffic<network_type<nn::sharded_over<nn::chain<square>, shards, halves, gathered<gathering::once>>, wide>>();
  STATIC_REQUIRE(2 * rounded.forward.bytes == whole_floats.forward.bytes);
  STATIC_REQUIRE(rounded.backward == whole_floats.backward);
  constexpr traffic_value released =
      traffic<network_type<nn::sharded_over<nn::chain<master>, shards, halves>, halved>>();
  STATIC_REQUIRE(released.backward.bytes == rounded.forward.bytes + rounded.backward.bytes);
  constexpr traffic_value held =
      traffic<network_type<nn::sharded_over<nn::chain<master>, shards, halves, gathered<gathering::held>>, halved>>();
  STATIC_REQUIRE(held == traffic_value{{}, {}, rounded.forward, rounded.backward});
  // Stored narrower than it is used it moves as it is stored; what an embedding gives is in its weight's own element.
  constexpr traffic_value narrow =
      traffic<network_type<nn::sharded_over<nn::chain<nn::linear<128, no_bias, weights_as<bfloat16>>>, shards, halves,
                                            gathered<gathering::once>>,
                           wide>>();
  STATIC_REQUIRE(2 * narrow.forward.bytes == whole_floats.forward.bytes);
}

namespace {

struct encoder;
struct outer;
struct two_layers {
  constexpr auto operator()(auto x) const { return x | nn::linear<128>{} | nn::relu{}; }
};
template <class Part>
using over_shards = nn::sharded_over<Part, shards>;
template <class Part>
using again = nn::recompute<Part>;

template <class Module>
std::vector<std::string> paths_of() {
  std::vector<std::string> all;
  const auto& program = network_type<Module, wide>::program;
  for (int i = 0; i < program.count; ++i) all.push_back(detail::path_of(program, program.nodes[i]));
  return all;
}
/// Whether what is around a part leaves its paths as they are: in a chain, alone, under a name, and around one.
template <class Part>
void judge_wrappers() {
  const auto chained = []<class P>(std::type_identity<P>) { return paths_of<nn::chain<nn::relu, P, nn::linear<2>>>(); };
  const auto alone = []<class P>(std::type_identity<P>) { return paths_of<P>(); };
  const auto under = []<class P>(std::type_identity<P>) { return paths_of<nn::named<outer, P>>(); };
  const auto around = [](const auto& placed) {
    const auto plain = placed(std::type_identity<Part>{});
    CHECK(placed(std::type_identity<over_shards<Part>>{}) == plain);
    CHECK(placed(std::type_identity<again<Part>>{}) == plain);
    CHECK(placed(std::type_identity<over_shards<again<Part>>>{}) == plain);
    CHECK(placed(std::type_identity<again<over_shards<again<Part>>>>{}) == plain);
  };
  around(chained);
  around(alone);
  around(under);
  CHECK(paths_of<over_shards<nn::named<outer, again<Part>>>>() == paths_of<nn::named<outer, Part>>());
  CHECK(paths_of<nn::shared<outer, over_shards<Part>>>() == paths_of<nn::named<outer, Part>>());
  CHECK(paths_of<nn::chain<again<nn::shared<outer, over_shards<Part>>>, nn::shared<outer, again<Part>>>>() ==
        paths_of<nn::chain<nn::shared<outer, Part>, nn::shared<outer, Part>>>());
}

}  // namespace

TEST_CASE("what is around a part has no place in its keys, wherever the part is named", "[plan]") {
  judge_wrappers<nn::linear<128>>();
  judge_wrappers<nn::chain<nn::linear<128>, nn::relu>>();
  judge_wrappers<two_layers>();
  judge_wrappers<nn::named<encoder, nn::linear<128>>>();
  judge_wrappers<nn::named<encoder, two_layers>>();
  judge_wrappers<nn::shared<encoder, two_layers>>();
  CHECK(paths_of<nn::chain<nn::relu, over_shards<nn::named<encoder, nn::linear<128>>>>>() ==
        std::vector<std::string>{"0", "encoder"});
}

TEST_CASE("a parameter is stored as tiles along the axes that hold copies of it alone", "[plan][refusal]") {
  constexpr layer_plan p =
      network_type<nn::sharded_over<nn::chain<nn::linear<6, cut_out<halves>>>, shards, halves>, wide>::program.nodes[0]
          .record->plan();
  CHECK(p.stored(0).levels(0) == 1);  // its outputs over halves, as the layer cuts them
  CHECK(p.stored(0).levels(1) == 1);  // its inputs over shards
  CHECK(p.stored(1).levels(0) == 2);  // the bias over both
  CHECK(p.weight(0).levels(1) == 0);
  CHECK(p.released(0));
  CHECK(!p.released(1));  // no backward reads a bias
  constexpr layer_plan small =
      network_type<nn::sharded_over<nn::chain<nn::linear<1>>, shards>, wide>::program.nodes[0].record->plan();
  CHECK(small.stored(1).placements[0].kind == placement::on);  // one number cannot be cut
  constexpr layer_plan alone = nn::linear<6>::plan(value_of<wide>);
  tiles_over over_another_axis;
  over_another_axis.axes.push(text("depth"));
  CHECK(detail::stored_as_tiles(alone, over_another_axis).why.is(code::axis_not_in_mesh));
}

TEST_CASE(
    "what runs again for its backward moves what forward does once more, a part within a part twice, and lives one "
    "part at a time",
    "[plan]") {
  constexpr auto of = []<class... Part>(nn::chain<Part...>) {
    return traffic<network_type<nn::chain<Part...>, wide>>();
  };
  using stage = nn::sharded_over<nn::chain<square, nn::relu, square>, shards, halves>;
  constexpr traffic_value plain = of(nn::chain<stage, stage, stage>{});
  constexpr traffic_value again =
      of(nn::chain<nn::recompute<stage>, stage, nn::recompute<nn::chain<nn::recompute<stage>>>>{});
  STATIC_REQUIRE(again.forward == plain.forward);
  // a third of it once, a third twice
  STATIC_REQUIRE(again.backward.bytes == plain.backward.bytes + plain.forward.bytes);
  // Nothing of what is gathered once is kept for a part that runs again: it comes once forward and once back.
  using once = nn::sharded_over<nn::chain<square, nn::relu, square>, shards, halves, gathered<gathering::once>>;
  STATIC_REQUIRE(of(nn::chain<nn::recompute<once>>{}) == of(nn::chain<stage>{}));
  using tall = tensor<partition<wide_grid, blocks<shards, halves>, whole>, shape<dim<2048>, dim<128>>, float>;
  constexpr auto peak = []<class... Part>(nn::chain<Part...>) {
    return peak_memory<network_type<nn::chain<Part...>, tall>>();
  };
  using layers = nn::chain<nn::relu, nn::relu, nn::relu, nn::relu, nn::relu, nn::relu>;
  constexpr memory_value all = peak(nn::chain<square, layers, layers, layers, layers>{});
  constexpr memory_value some = peak(
      nn::chain<square, nn::recompute<layers>, nn::recompute<layers>, nn::recompute<layers>, nn::recompute<layers>>{});
  STATIC_REQUIRE(some.forward == all.forward);
  STATIC_REQUIRE(some.parameters == all.parameters);
  constexpr index_t value = 256 * 128 * 4;
  // of 24 results 4 inputs, the output and 6 of the part that runs now stay
  STATIC_REQUIRE(all.training - some.training >= 12 * value);
}
