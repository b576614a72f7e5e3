#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/flights.hpp"

#include <atomic>
#include <set>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Several calls under way on each worker. What must hold on every transport is in tests/support/flights.hpp;
// tests/comm/mpi runs it over processes.

TEMPLATE_TEST_CASE("calls under way together end in any order, other ones on other workers", "[runtime]", by_memory,
                   by_sockets) {
  for (const int size : {2, 3, 4}) {
    const auto all =
        in_world<TestType>(size, [](const std::shared_ptr<transport>& carrier) { return every_order(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEMPLATE_TEST_CASE("calls under way together and begun in another order on each worker", "[runtime]", by_memory,
                   by_sockets) {
  const auto all =
      in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) { return every_beginning(*carrier); });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 3; ++r) CHECK(all.of(r) == "");
}

TEMPLATE_TEST_CASE("one exchange under way three times keeps its calls apart", "[runtime]", by_memory, by_sockets) {
  for (const int size : {2, 3, 4}) {
    const auto all = in_world<TestType>(
        size, [](const std::shared_ptr<transport>& carrier) { return same_exchange_again(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEMPLATE_TEST_CASE("an output that holds already what is its worker's alone keeps that", "[runtime]", by_memory,
                   by_sockets) {
  for (const int size : {1, 2, 3, 4}) {
    const auto all =
        in_world<TestType>(size, [](const std::shared_ptr<transport>& carrier) { return leaves_own(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEMPLATE_TEST_CASE("many calls of one exchange under way keep apart, however their workers wait", "[runtime]",
                   by_memory, by_sockets) {
  for (const bool crowded : {false, true})
    for (const int size : {2, 3}) {
      const auto all = in_world<TestType>(
          size, [](const std::shared_ptr<transport>& carrier) { return many_of_one(*carrier); },
          std::chrono::seconds{60}, crowded);
      INFO(all.errors());
      REQUIRE(all.well());
      for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
    }
}

TEMPLATE_TEST_CASE("small boxes travel ahead of their readers, and come as they were sent", "[runtime]", by_memory,
                   by_sockets) {
  std::atomic<bool> sent_all{false};
  const auto all = in_world<TestType>(
      2,
      [&](const std::shared_ptr<transport>& carrier) -> std::string {
        std::optional<flight> first(std::in_place, *carrier, sent(2, 9, 0, 1), 0);
        std::string wrong;
        if (carrier->rank() == 0) {  // its tensors and its exchange are gone when the other one begins
          for (int salt = 0; salt < 3; ++salt) {
            flight next(*first, salt);
            next.start();
            next.finish();
          }
          first.reset();
          sent_all = true;
          return wrong;
        }
        while (!sent_all) std::this_thread::yield();
        for (int salt = 0; salt < 3; ++salt) {
          flight next(*first, salt);
          next.start();
          next.finish();
          wrong += next.right();
        }
        return wrong;
      },
      std::chrono::seconds{20});
  INFO(all.errors());
  REQUIRE(all.well());
  CHECK(all.of(1) == "");
}

TEST_CASE("nobody takes a later call for one that it looks for while the calls of a worker get more room",
          "[runtime]") {
  detail::shown_calls* shown = nullptr;
  std::atomic<int> round{0};
  std::atomic<int> seen{0};
  std::atomic<bool> taken{false};
  int early = 0;
  constexpr int rounds = trials(20000);
  std::thread reader([&] {
    for (int r = 1; r <= rounds; ++r) {
      while (round < r) std::this_thread::yield();
      while (!shown->taken(1, 0)) {
      }
      early += !taken;
      seen = r;
    }
  });
  for (int r = 1; r <= rounds; ++r) {
    detail::shown_calls calls(1);
    const auto begin = [&](std::uint64_t call) -> detail::shown_call& {
      detail::shown_call& c = calls.fresh(call, [](const detail::shown_call& old) { return !old.busy; });
      c.busy = true;
      c.begun.store(call + 1, std::memory_order_release);
      return c;
    };
    taken = false;
    shown = &calls;
    detail::shown_call& first = begin(0);
    first.taken(0).store(1, std::memory_order_release);
    round = r;
    detail::shown_call& second = begin(1);
    first.busy = false;
    begin(2).taken(0).store(3, std::memory_order_release);
    for (int i = 0; i < 50; ++i) static_cast<void>(seen.load());  // a while
    taken = true;
    second.taken(0).store(2, std::memory_order_release);
    while (seen < r) std::this_thread::yield();
  }
  reader.join();
  CHECK(early == 0);
}

TEST_CASE("a call that stays open beside any number of others costs one place", "[runtime]") {
  detail::shown_calls calls(1);
  std::set<detail::shown_call*> places;
  const auto begin = [&](std::uint64_t call) -> detail::shown_call& {
    detail::shown_call& c = calls.fresh(call, [](const detail::shown_call& old) { return !old.busy; });
    places.insert(&c);
    c.busy = true;
    c.begun.store(call + 1, std::memory_order_release);
    return c;
  };
  detail::shown_call& open = begin(0);
  for (std::uint64_t call = 1; call < 1000; ++call) {
    detail::shown_call& c = begin(call);
    CHECK(&calls.of(call) == &c);
    CHECK_FALSE(calls.begun(call + 1));
    CHECK_FALSE(calls.taken(call, 0));
    c.taken(0).store(call + 1, std::memory_order_release);
    CHECK(calls.taken(call, 0));
    c.busy = false;
    CHECK(&calls.of(0) == &open);
    CHECK_FALSE(calls.taken(0, 0));
  }
  CHECK(places.size() == 2);
}

TEST_CASE("an exchange keeps its transport, and nothing keeps either of them longer", "[runtime]") {
  const auto meeting = std::make_shared<thread_rendezvous>(2);
  std::array<std::string, 2> wrong;
  std::array<std::weak_ptr<transport>, 2> seen;
  std::vector<std::thread> workers;
  for (int r = 0; r < 2; ++r)
    workers.emplace_back([&, r] {
      std::shared_ptr<transport> carrier = std::make_shared<in_process>(meeting, r);
      seen[static_cast<std::size_t>(r)] = carrier;
      wrong[static_cast<std::size_t>(r)] = without_transport(std::move(carrier));
    });
  for (auto& w : workers) w.join();
  for (int r = 0; r < 2; ++r) {
    CHECK(wrong[static_cast<std::size_t>(r)] == "");
    CHECK(seen[static_cast<std::size_t>(r)].expired());
  }
}

TEMPLATE_TEST_CASE("a call ends once: whoever asks again, or asks what it was moved from, is told", "[refusal]",
                   by_memory, by_sockets) {
  const auto all = in_world<TestType>(2, [](const std::shared_ptr<transport>& carrier) {
    const auto code_of = [](auto&& ask) -> std::string {
      try {
        ask();
      } catch (const error& e) {
        return e.code();
      }
      return "";
    };
    const auto e = bind_exchange(*carrier, gathered(2, 2), element::float64);
    double in = carrier->rank();
    std::array<double, 2> out{};
    const auto memory = [](double* at, index_t n) {
      region r{reinterpret_cast<std::byte*>(at), element::float64, {}, {}};
      r.extents.push(n);
      r.strides.push(1);
      return r;
    };
    in_flight one = e->start(memory(&in, 1), memory(out.data(), 2));
    in_flight call = std::move(one);
    std::string codes = code_of([&] { one.finish(); }) + " " + code_of([&] { one.arrived(); });
    codes += " " + code_of([&] { call.finish(); });
    return codes + " " + code_of([&] { call.finish(); }) + " " + code_of([&] { call.arrived(); });
  });
  INFO(all.errors());
  REQUIRE(all.well());
  const std::string ended = "tessera.call.finished";
  for (int r = 0; r < 2; ++r) CHECK(all.of(r) == ended + " " + ended + "  " + ended + " " + ended);
}

TEMPLATE_TEST_CASE("exchanges come and go beside one that stays", "[runtime]", by_memory, by_sockets) {
  const auto all =
      in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) { return beside_many(*carrier, 20); });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 3; ++r) CHECK(all.of(r) == "");
}

TEMPLATE_TEST_CASE("workers forget the same exchanges, whatever each used last", "[runtime]", by_memory, by_sockets) {
  for (const int size : {1, 2, 3}) {
    const auto all = in_world<TestType>(
        size, [](const std::shared_ptr<transport>& carrier) { return forgotten_together(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEMPLATE_TEST_CASE("what was begun and not ended is given up, and the memory may go", "[refusal]", by_memory,
                   by_sockets) {
  for (int thrower = 0; thrower < 3; ++thrower) {
    const auto all = in_world<TestType>(3, [&](const std::shared_ptr<transport>& carrier) {
      flight one(*carrier, gathered(3, 4001), 1);
      flight two(*carrier, summed(3, 4001), 2);
      one.start();
      two.start();
      if (carrier->rank() == thrower) throw std::runtime_error("my own trouble");
      two.finish();
      one.finish();
      return true;
    });
    INFO(all.errors());
    for (int r = 0; r < 3; ++r)
      CHECK(all.codes[static_cast<std::size_t>(r)] == (r == thrower ? "other" : "tessera.agree.lost"));
  }
}

TEMPLATE_TEST_CASE("a worker that gave up a call cannot go on as if nothing had been", "[refusal]", by_memory,
                   by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    try {
      flight f(*carrier, gathered(3, 7), 1);
      f.start();
      if (carrier->rank() == 1) throw std::runtime_error("forgiven");
      f.finish();
    } catch (const std::runtime_error& e) {
      if (std::string_view(e.what()) != "forgiven") throw;
    }
    flight f(*carrier, gathered(3, 7), 2);
    f.start();
    f.finish();
    return true;
  });
  INFO(all.errors());
  for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.given_up");
}

TEMPLATE_TEST_CASE("a worker that gave up a call cannot end another one", "[refusal]", by_memory, by_sockets) {
  for (const index_t n : {index_t{7}, index_t{4001}}) {
    const auto all = in_world<TestType>(3, [&](const std::shared_ptr<transport>& carrier) {
      std::optional<flight> first(std::in_place, *carrier, summed(3, n), 1);
      flight second(*first, 2);
      first->start();
      second.start();
      if (carrier->rank() == 1) first.reset();
      second.finish();
      if (first) first->finish();
      return true;
    });
    INFO(all.errors());
    for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.given_up");
  }
}

TEST_CASE("a worker that gave up a call and says nothing more ends the launch all the same", "[refusal]") {
  const auto program = [](const std::shared_ptr<transport>& carrier) {
    flight f(*carrier, gathered(2, 7), 1);
    f.start();
    if (carrier->rank() == 0) f.finish();
  };
  mesh_value both = on_line(2, 1, {}).mesh;
  CHECK(run_workers(0, nullptr, threads_only(), both, program) != 0);
}

TEMPLATE_TEST_CASE("workers that wait for each other's other call disagree, with any number under way", "[refusal]",
                   by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    flight common(*carrier, gathered(3, 5), 1);
    flight other(*carrier, gathered(3, carrier->rank() == 2 ? 8 : 9), 2);
    common.start();
    other.start();
    other.finish();
    common.finish();
    return true;
  });
  INFO(all.errors());
  for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.fingerprint");
}

TEMPLATE_TEST_CASE("two workers that are stuck are told so while a third one is at work", "[refusal]", by_memory,
                   by_sockets) {
  std::atomic<int> told{0};
  const auto all = in_world<TestType>(3, [&](const std::shared_ptr<transport>& carrier) {
    const int me = carrier->rank();
    if (me == 2) {  // works until the others have been told, and meets their error afterwards
      while (told < 2) std::this_thread::yield();
      flight f(*carrier, gathered(3, 5), 1);
      f.start();
      return true;
    }
    try {
      flight f(*carrier, gathered(2, me == 0 ? 5 : 6), 1);
      f.start();
      f.finish();
    } catch (const error&) {
      ++told;
      throw;
    }
    return true;
  });
  INFO(all.errors());
  for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.fingerprint");
}

TEMPLATE_TEST_CASE("a worker that reads no box before it has added another's is no deadlock", "[runtime]", by_memory,
                   by_sockets) {
  // Worker 1 adds worker 0's term first, which comes late; worker 2 waits for its reader meanwhile.
  for (int round = 0; round < 20; ++round) {
    const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
      flight sum(*carrier, summed(3, 3), 1);
      flight copy(*carrier, gathered(3, 3), 2);
      if (carrier->rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      sum.start();
      copy.start();
      carrier->rank() == 1 ? copy.finish() : sum.finish();
      carrier->rank() == 1 ? sum.finish() : copy.finish();
      return sum.right() + copy.right();
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 3; ++r) REQUIRE(all.of(r) == "");
  }
}
