#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/failing.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Whatever workers do wrong, each of those that wait ends in one error with its code, at once or when its time limit
// has passed.

TEMPLATE_TEST_CASE("a worker that throws stops all that wait for it", "[refusal]", by_memory, by_sockets) {
  for (int thrower = 0; thrower < 4; ++thrower) {
    const auto all = in_world<TestType>(4, [&](const std::shared_ptr<transport>& carrier) {
      run(*carrier, gathering(4, 9));
      if (carrier->rank() == thrower) throw std::runtime_error("my own trouble");
      return run(*carrier, gathering(4, 9));
    });
    INFO(all.errors());
    CHECK(all.codes[static_cast<std::size_t>(thrower)] == "other");
    CHECK(count_of(all.codes, lost) == 3);
  }
}

TEMPLATE_TEST_CASE("a worker that returns early is missed by those that wait for it", "[refusal]", by_memory,
                   by_sockets) {
  for (const int leaver : {0, 2}) {
    const auto all = in_world<TestType>(3, [&](const std::shared_ptr<transport>& carrier) {
      if (carrier->rank() == leaver) return true;
      return run(*carrier, gathering(3, 7));
    });
    INFO(all.errors());
    CHECK(all.codes[static_cast<std::size_t>(leaver)] == (TestType::ends_alone ? "" : lost));
    CHECK(count_of(all.codes, lost) == (TestType::ends_alone ? 2 : 3));
  }
}

TEMPLATE_TEST_CASE("a worker that nobody waits for may end", "[runtime]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() == 3) return true;
    return run(*carrier, gathering(3, 7));
  });
  INFO(all.errors());
  CHECK(all.well());
}

TEMPLATE_TEST_CASE("workers that wait for each other in a ring are told so", "[refusal]", by_memory, by_sockets) {
  for (const int size : {2, 3, 5}) {
    const auto all = in_world<TestType>(size, [&](const std::shared_ptr<transport>& carrier) {
      const int me = carrier->rank();
      std::vector<std::shared_ptr<bound_exchange>> to;
      for (int w = 0; w < size; ++w)
        to.push_back(bind_exchange(*carrier, sending((w + 1) % size, w), element::float64));
      run(to[static_cast<std::size_t>(me)]);  // everybody receives first
      return run(to[static_cast<std::size_t>((me + size - 1) % size)]);
    });
    INFO(all.errors());
    CHECK(count_of(all.codes, ring) == size);
  }
}

TEMPLATE_TEST_CASE("workers that bind in a ring are told so", "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    const int me = carrier->rank();
    return run(*carrier, sending((me + 1) % 3, me));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, ring) == 3);
}

TEMPLATE_TEST_CASE("workers whose boxes nobody takes are told so", "[refusal]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(2, [](const std::shared_ptr<transport>& carrier) {
    const std::array from{bind_exchange(*carrier, sending(0, 1), element::float64),
                          bind_exchange(*carrier, sending(1, 0), element::float64)};
    return run(from[static_cast<std::size_t>(carrier->rank())]);
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, ring) == 2);
}

TEMPLATE_TEST_CASE("a worker that ends without having taken a box, small or large, is missed by its sender",
                   "[refusal]", by_memory, by_sockets) {
  for (const index_t n : {1, 100000}) {
    const auto all = in_world<TestType>(2, [&](const std::shared_ptr<transport>& carrier) {
      const auto e = bind_exchange(*carrier, sending(0, 1, n), element::float64);
      return carrier->rank() == 1 || run(e);
    });
    INFO(all.errors());
    CHECK(all.codes == std::vector<std::string>{lost, TestType::ends_alone ? "" : lost});
  }
}

TEST_CASE("a program one of whose workers fails ends with a status that says so", "[refusal]") {
  const auto program = [](team<mesh<pair_axis>>& t) {
    if (t.rank() == 1) throw error(refusal{code::call_finished});
    t.state()->agree(1);
  };
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), program) != 0);
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), [](team<mesh<pair_axis>>&) {}) == 0);
}

TEMPLATE_TEST_CASE("a worker that is too late is an error when the time limit has passed", "[refusal]", by_memory,
                   by_sockets) {
  const auto all = in_world<TestType>(
      3,
      [](const std::shared_ptr<transport>& carrier) {
        if (carrier->rank() == 1) std::this_thread::sleep_for(TestType::too_late);
        return run(*carrier, gathering(3, 5));
      },
      std::chrono::seconds{1});
  INFO(all.errors());
  CHECK(count_of(all.codes, late) == 3);
}

TEMPLATE_TEST_CASE("a worker that is stuck is named, not one that waits for it as well", "[refusal]", by_memory,
                   by_sockets) {
  const auto all = in_world<TestType>(
      3,
      [](const std::shared_ptr<transport>& carrier) {
        if (carrier->rank() == 2) std::this_thread::sleep_for(TestType::too_late);
        return run(*carrier, sending(carrier->rank() == 0 ? 1 : 2, carrier->rank() == 0 ? 0 : 1));
      },
      std::chrono::seconds{1});
  CHECK(count_of(all.codes, late) == 3);
  CHECK(all.texts[0].find("waits for 2") != std::string::npos);
}

TEMPLATE_TEST_CASE("a limit that no clock can hold is a long one", "[runtime]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(
      2,
      [](const std::shared_ptr<transport>& carrier) {
        if (carrier->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return run(*carrier, gathering(2, 5));
      },
      std::chrono::seconds::max());
  INFO(all.errors());
  CHECK(all.well());
}

TEST_CASE("a program that catches what its workers disagree about does not end well", "[refusal]") {
  const auto forgives = [](team<mesh<pair_axis>>& t) {
    try {
      t.state()->agree(static_cast<std::uint64_t>(t.rank()));
    } catch (const error&) {
    }
  };
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), forgives) != 0);
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(std::chrono::seconds{0}),
                                     [](team<mesh<pair_axis>>&) {}) != 0);
}
