#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/failing.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

TEMPLATE_TEST_CASE("workers that make their teams of different meshes disagree", "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    mesh_value m;
    const bool odd = carrier->rank() == 3;
    m.axes.push({text{"a"}, odd ? 4 : 2, 1});
    m.axes.push({text{"b"}, odd ? 1 : 2, 1});
    team_state team(carrier, row_major(m));
    return true;
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEMPLATE_TEST_CASE("a team is told which number a worker has that the others have not", "[refusal]", by_memory,
                   by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(4));
    team.agree(7);
    team.agree(carrier->rank() == 1 ? 65 : 64);
    return true;
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEMPLATE_TEST_CASE("a mesh that the world cannot hold is refused on every worker", "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(4));
    return true;
  });
  CHECK(count_of(all.codes, "tessera.launch.world") == 3);
}

TEMPLATE_TEST_CASE("a team belongs to its worker's thread while the launch lasts, and to nobody afterwards",
                   "[refusal]", by_memory, by_sockets) {
  std::shared_ptr<team_state> kept;
  const auto all = in_world<TestType>(2, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, line(2));
    std::string met = "nothing";
    std::thread([&] {
      try {
        team->agree(1);
      } catch (const error& e) {
        met = e.code();
      }
    }).join();
    team->agree(2);
    if (carrier->rank() == 0) kept = team;
    return met;
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 2; ++r) CHECK(all.of(r) == "tessera.launch.thread");
  std::string met = "nothing";
  try {
    kept->agree(3);
  } catch (const error& e) {
    met = e.code();
  }
  CHECK(met == lost);
}

TEST_CASE("a team over another mesh is checked and observed as the team that it is made of", "[runtime]") {
  launch_options o = threads_only();
  o.checked = true;
  const int status = run_workers<mesh<pair_axis>>(0, nullptr, o, [](team<mesh<pair_axis>>& t) {
    int seen = 0;
    t.state()->watch.self = &seen;
    const auto again = t.over<mesh<pair_axis>>();
    if (again.state()->checks != checks::always || again.state()->watch.self != &seen)
      throw std::runtime_error("other settings");
    int other = 0;
    again.state()->watch.self = &other;  // one observer,
    again.state()->total.bytes += 7;     // and one count
    if (t.state()->watch.self != &other || t.state()->total.bytes != 7)
      throw std::runtime_error("an observer of its own");
    if (t.over<mesh<pair_axis>>().state()->size() != 2) throw std::runtime_error("another size");
    team_state by_hand(t.state()->shared_carrier(), line(2));
    if (by_hand.checks != checks::always) throw std::runtime_error("not checked");
  });
  CHECK(status == 0);
}
