#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"

#include <tessera/plan/fingerprint.hpp>
#include <tessera/primitive/verb.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

/// The laws that need no data, for one generated pair, as a constant expression.
constexpr bool obeys(int seed) {
  dice d{static_cast<std::uint64_t>(seed) * 7919};
  const auto extents = roll_extents(d, 2, 7);
  const mesh_value mesh = roll_mesh(d, 2);
  const layout from = roll_layout(d, mesh, extents, {false, true, true, false, true});
  const layout to = roll_layout(d, mesh, extents, {false, true, true, true, true});
  const transfer move{map::move, from, to};
  const transfer fold{map::fold, cotangent(to), cotangent(from)};
  int world = 0;
  for (int i = 0; i < mesh.size(); ++i) world = world > mesh.rank(mesh.at(i)) ? world : mesh.rank(mesh.at(i)) + 1;
  const int r = d.roll(0, world - 1);
  return laws::costs_what_it_moves(move, world) && laws::costs_what_it_moves(fold, world) &&
         laws::delivers_once(move, r) && laws::mirrored(move, r) && laws::mirrored(fold, r) &&
         laws::cotangent_is_involution(from);
}

template <int Seed>
inline constexpr bool lawful = obeys(Seed);  // one variable each: a constant expression of its own, within every limit

template <int... Seed>
constexpr bool all_lawful(std::integer_sequence<int, Seed...>) {
  return (lawful<Seed> && ...);
}

}  // namespace

TEST_CASE("240 generated pairs obey the laws while compiling", "[law]") {
  STATIC_REQUIRE(all_lawful(std::make_integer_sequence<int, 240>{}));
}

namespace {

/// Everything that a plan answers for one generated pair, as one number.
constexpr std::uint64_t answers(int seed) {
  dice d{static_cast<std::uint64_t>(seed) * 104729};
  const auto extents = roll_extents(d, 2, 7);
  const mesh_value mesh = roll_mesh(d, 2);
  const layout from = roll_layout(d, mesh, extents, {true, true, true, false, true});
  const layout to = roll_layout(d, mesh, extents, {true, true, true, true, true});
  fingerprint f;
  f << canonical(from) << cotangent(to) << static_cast<int>(verb_between(from, to));
  for (const step& s : change_between(from, to).steps) {
    const transfer plan = s.plan();
    const cost c = cost_of(plan);
    f << s.from << s.to << c.total << c.busiest << c.messages << c.busiest_messages << c.lower_bound;
    f << static_cast<int>(collective_of(plan));
  }
  return f.value();
}

template <int... Seed>
constexpr static_vector<std::uint64_t, 200> all_answers(std::integer_sequence<int, Seed...>) {
  static_vector<std::uint64_t, 200> all;
  (all.push(std::integral_constant<std::uint64_t, answers(Seed)>::value), ...);
  return all;
}

}  // namespace

TEST_CASE("the compiler and run time give the same answers", "[law][regression]") {
  constexpr auto while_compiling = all_answers(std::make_integer_sequence<int, 200>{});
  for (int seed = 0; seed < 200; ++seed) {
    const volatile int now = seed;  // keeps the compiler from answering
    CHECK(answers(now) == while_compiling[seed]);
  }
}

TEST_CASE("cuts are proved in stretches, whatever the number of workers", "[law]") {
  STATIC_REQUIRE(laws::proved<10, 3>);
  STATIC_REQUIRE(laws::proved<3, 10>);
  STATIC_REQUIRE(laws::proved<1'000'003, 20'000>);
  STATIC_REQUIRE(laws::proved<0, 4>);
}

}  // namespace tessera::testing
