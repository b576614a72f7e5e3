#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device/machine.hpp"
#include "tests/support/elements.hpp"
#include "tests/support/exchanged.hpp"

#include <tessera/comm/nccl/exchange.hpp>

#include <atomic>
#include <thread>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What must hold on every transport, over the real calls of CUDA and NCCL with a machine of no devices behind them
// (tests/support/device).

namespace {

/// A worker with a device and a stream of its own on which it computes.
std::shared_ptr<nccl_transport> on_device(const std::shared_ptr<transport>& host, bool library_sums = false) {
  const auto stream = std::make_shared<device_stream>();
  // threads, whatever connects them
  nccl_options options{.device = host->rank(), .stream = [stream] { return stream->get(); }};
  options.library_sums = library_sums;
  return std::make_shared<nccl_transport>(host, std::make_shared<late_boxes>(), options);
}

template <class Meeting = by_memory, class F>
auto on_devices(int size, F&& f, bool library_sums = false) {
  return in_world<Meeting>(size, [&](const std::shared_ptr<transport>& host) {
    return f(std::static_pointer_cast<transport>(on_device(host, library_sums)));
  });
}

/// Two calls, each in an order that has a number or among all others; the second worker ends one before it begins the
/// other, which the first one began before.
std::string crosswise(transport& c, int salt, std::uint64_t order, std::uint64_t other) {
  flight a(c, gathered(2, 9), salt, order);
  flight b(c, gathered(2, 11), salt + 1, other);
  if (c.rank() == 0) {
    a.start();
    b.start();
    a.finish();
    b.finish();
  } else {
    b.start();
    b.finish();
    a.start();
    a.finish();
  }
  return a.right() + b.right();
}

}  // namespace

TEST_CASE("over NCCL a Move puts every element where its layout says, and a Fold is its transpose", "[law][runtime]") {
  device_machine machine;
  const carried over = [](const auto& host) { return on_device(host); };
  CHECK(moves_and_transposes(over, 120, 7) == "");
  CHECK(move_after_move(over, 40, 11) == "");
  CHECK(overlapping_halos(over) == "");
  CHECK(machine.kept() == 0);
}

TEST_CASE("over NCCL every element moves, and is combined in the order and the precision of the host",
          "[law][runtime]") {
  for (const int size : {2, 3, 4}) {
    device_machine machine(static_cast<std::uint64_t>(size));
    const auto all =
        on_devices(size, [](const std::shared_ptr<transport>& c) { return every_move(*c) + every_fold(*c); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
    CHECK(machine.kept() == 0);
  }
}

TEMPLATE_TEST_CASE(
    "over NCCL calls are under way together, begun and ended in any order, whatever their hosts agree over",
    "[runtime]", by_memory, by_sockets) {
  for (const int size : {2, 3, 4}) {
    device_machine machine(static_cast<std::uint64_t>(size));
    const auto all = on_devices<TestType>(
        size, [](const std::shared_ptr<transport>& c) { return under_way_together(*c) + beside_many(*c, trials(40)); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
    CHECK(machine.kept() == 0);
  }
}

TEST_CASE("exchanges over NCCL stand in the order of the stream on which tensors are made and read", "[runtime]") {
  for (const int size : {1, 2, 3}) {
    device_machine machine(static_cast<std::uint64_t>(size) + 7);
    const auto all = in_world(size, [size](const std::shared_ptr<transport>& host) {
      const auto stream = std::make_shared<device_stream>();
      const nccl_options options{.stream = [stream] { return stream->get(); }};
      const auto c = std::make_shared<nccl_transport>(host, std::make_shared<late_boxes>(), options);
      const int me = c->rank();
      const auto value = [](int call, int worker, std::size_t i) {
        return call * 1000.0 + worker * 100.0 + static_cast<double>(i);
      };
      const auto line = [](std::vector<double>& x) {
        region r{reinterpret_cast<std::byte*>(x.data()), element::float64, {}, {}};
        r.extents.push(static_cast<index_t>(x.size()));
        r.strides.push(1);
        return r;
      };
      const auto gather = bind_exchange(*c, gathered(size, 4 * size), element::float64);
      const auto sum = bind_exchange(*c, summed(size, 4 * size), element::float64);
      std::vector<double> x(4);
      std::vector<double> y(static_cast<std::size_t>(4 * size));
      int wrong = 0;
      for (int call = 0; call < 20; ++call) {  // the same memory for all, and the host never waits
        on_stream(stream->get(), [&, call] {
          for (std::size_t i = 0; i < 4; ++i) x[i] = value(call, me, i);
        });
        gather->start(line(x), line(y)).finish();
        on_stream(stream->get(), [&, call] {
          for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != value(call, static_cast<int>(i / 4), i % 4);
        });
        in_flight under_way = sum->start(line(y), line(x));
        under_way.finish();
        on_stream(stream->get(), [&, call] {
          for (std::size_t i = 0; i < 4; ++i) wrong += x[i] != size * value(call, me, i);
        });
      }
      c->synchronise();
      return wrong;
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == 0);
  }
}

TEST_CASE("an exchange over NCCL asks for the messages and bytes of its plan, or is one collective", "[law][runtime]") {
  device_machine machine;
  dice d{23};
  int collectives = 0;
  for (int round = 0; round < trials(60) || (collectives == 0 && round < 600); ++round) {  // few rolls are collectives
    const layout_pair p = roll_tilings(d, true, 4, 6);
    const step move{map::move, p.from, p.to, combine::sum};
    const step fold{map::fold, cotangent(p.to), cotangent(p.from), combine::sum};
    for (const step& s : {move, fold}) {
      const int world = world_of(p.from, p.to);
      const transfer plan = s.plan();
      std::vector<local_box> in;
      for (int r = 0; r < world; ++r) in.emplace_back(s.kind == map::fold ? plan.target() : plan.source(), r);
      index_t bytes = 0;
      run([](const auto& host) { return on_device(host); }, s, world, in, bytes);
      const cost wanted = cost_of(plan);
      index_t sends = 0;
      index_t sent = 0;
      index_t received = 0;
      bool collective = false;
      for (const nccl_record& r : machine.records()) {
        sends += r.call == "ncclSend";
        (r.call == "ncclSend" ? sent : received) += static_cast<index_t>(r.bytes);
        collective = collective || (r.call != "ncclSend" && r.call != "ncclRecv");
      }
      collectives += collective;
      INFO("round " << round);
      if (collective) continue;
      CHECK(sends == wanted.messages);
      CHECK(sent == 8 * wanted.total);
      CHECK(received == 8 * wanted.total);
    }
  }
  CHECK(collectives > 0);
}

TEST_CASE("a gather, a scatter of sums and a broadcast over NCCL are one collective, of every element that NCCL knows",
          "[runtime]") {
  for (const bool library_sums : {false, true}) {
    device_machine machine;
    const auto all =
        on_devices(3, [](const std::shared_ptr<transport>& c) { return every_collective(*c, 12); }, library_sums);
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 3; ++r) CHECK(all.of(r) == "");
    std::map<std::string, int> calls;
    for (const nccl_record& r : machine.records()) {
      ++calls[r.call];
      CHECK(r.bytes == (r.call == "ncclBroadcast" ? 96 : 32));
    }
    CHECK(calls["ncclAllGather"] == 6);
    CHECK(calls["ncclBroadcast"] == 6);
    CHECK(calls["ncclReduceScatter"] == (library_sums ? 6 : 0));
    CHECK(calls["ncclSend"] == (library_sums ? 0 : 12));
  }
}

TEST_CASE("a sum of two workers for both is a message each way over NCCL, or its own all_reduce where it may add",
          "[runtime]") {
  for (const bool library_sums : {false, true}) {
    device_machine machine;
    const auto all = on_devices(
        2,
        [](const std::shared_ptr<transport>& c) {
          const change sum =
              change_between(on_line(2, 12, {placement::partial}), on_line(2, 12, {placement::invariant}));
          const phases both = phases_of(sum);
          return both.count == 1 ? with_gaps(*c, both[0]) : "several phases";
        },
        library_sums);
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 2; ++r) CHECK(all.of(r) == "");
    std::map<std::string, int> calls;
    for (const nccl_record& r : machine.records()) {
      ++calls[r.call];
      CHECK(r.bytes == 96);
    }
    CHECK(calls["ncclAllReduce"] == (library_sums ? 2 : 0));
    CHECK(calls["ncclSend"] == (library_sums ? 0 : 2));
    CHECK(calls["ncclRecv"] == (library_sums ? 0 : 2));
  }
}

TEST_CASE("NCCL is asked for no sum that it does not know", "[refusal][runtime]") {
  device_machine machine;
  const auto all = on_devices(
      2,
      [](const std::shared_ptr<transport>& c) {
        const auto refusal_of = [&](element e, combine with) -> std::string {
          try {
            bind_exchange(*c, step{map::fold, on_line(2, 4, partial_by(with)), on_line(2, 4, {placement::cut}), with},
                          e);
          } catch (const error& why) {
            return why.code();
          }
          return "";
        };
        std::string wrong;
        for (const element e : {element::int16, element::uint16, element::boolean})
          if (refusal_of(e, combine::sum) != "tessera.device.sum") wrong += name_of(e);
        if (refusal_of(element::complex64, combine::prod) != "tessera.device.sum")
          wrong += "a product of complex numbers";
        if (refusal_of(element::complex64, combine::sum) != "") wrong += "a sum of complex numbers";
        return wrong;
      },
      true);
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 2; ++r) CHECK(all.of(r) == "");
}

TEST_CASE("workers on devices that can never go on are told so by their hosts", "[refusal]") {
  const auto codes_of = [](int size, auto&& f) {
    device_machine machine;
    const auto all = on_devices(size, f);
    CHECK(machine.kept() == 0);
    return all.codes;
  };
  const auto run = [](transport& c, const step& s) {
    flight f(c, s, 1);
    f.start();
    f.finish();
    return true;
  };
  using codes = std::vector<std::string>;
  CHECK(codes_of(3, [&](const std::shared_ptr<transport>& c) {
          run(*c, gathered(3, 9));
          if (c->rank() == 1) throw std::runtime_error("my own trouble");
          return run(*c, gathered(3, 9));
        }) == codes{"tessera.agree.lost", "other", "tessera.agree.lost"});
  CHECK(codes_of(3, [&](const std::shared_ptr<transport>& c) { return c->rank() == 2 || run(*c, gathered(3, 9)); }) ==
        codes{"tessera.agree.lost", "tessera.agree.lost", ""});
  CHECK(codes_of(2, [&](const std::shared_ptr<transport>& c) {
          return run(*c, gathered(2, c->rank() == 1 ? 13 : 12));
        }) == codes{"tessera.agree.fingerprint", "tessera.agree.fingerprint"});
  CHECK(codes_of(2, [&](const std::shared_ptr<transport>& c) {
          std::vector<flight> both;
          for (const int to : {0, 1}) both.emplace_back(*c, sent(2, 5, 1 - to, to), 1);
          flight& first = both[static_cast<std::size_t>(c->rank())];  // each receives before it sends
          first.start();
          first.finish();
          return true;
        }) == codes{"tessera.agree.fingerprint", "tessera.agree.fingerprint"});
}

TEST_CASE("a call over NCCL that others began behind calls which its worker has not begun is refused, and nobody hangs",
          "[refusal]") {
  device_machine machine;
  const auto all = on_devices(2, [](const std::shared_ptr<transport>& c) {
    crosswise(*c, 1, 0, 0);
    return true;
  });
  CHECK(all.codes == std::vector<std::string>(2, "tessera.agree.order"));
}

TEST_CASE("calls over NCCL that have orders of their own begin in any order among others", "[law][runtime]") {
  device_machine machine;
  const auto all = on_devices(2, [](const std::shared_ptr<transport>& c) {
    std::string wrong;
    for (int salt = 1; salt < 40; salt += 2) wrong += crosswise(*c, salt, 1, 2);
    return wrong;
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 2; ++r) CHECK(all.of(r) == "");
  CHECK(machine.kept() == 0);
}

TEST_CASE("over NCCL a send in an order of its own reaches its reader though its worker waits for no call",
          "[law][runtime]") {
  device_machine machine;
  std::atomic<bool> has_read = false;
  const auto all = on_devices(2, [&](const std::shared_ptr<transport>& c) {
    flight goes(*c, sent(2, 20000, 0, 1), 3, 1);
    goes.start();
    if (c->rank() == 1) {
      goes.finish();
      has_read = true;
      return goes.right();
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};  // its host computes meanwhile
    while (!has_read && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    const std::string late = has_read ? "" : "it was not sent; ";
    goes.finish();
    return late + goes.right();
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 2; ++r) CHECK(all.of(r) == "");
  CHECK(machine.kept() == 0);
}

TEST_CASE("whatever CUDA or NCCL refuses ends all workers in one error, and gives back what was taken", "[refusal]") {
  int number = 0;
  for (const char* function :
       {"cudaGetDeviceCount", "cudaStreamCreateWithFlags", "cudaEventCreateWithFlags", "cudaEventRecord",
        "cudaStreamWaitEvent", "cudaMallocAsync", "cudaEventQuery", "cudaLaunchHostFunc", "ncclGetUniqueId",
        "ncclCommInitRankConfig", "ncclCommGetAsyncError", "ncclSend", "ncclRecv", "ncclGroupEnd"})
    for (const int which : {1, 2, 3, 5})  // the third event of a worker alone is what it waits for
      for (const int size : {1, 2}) {
        if (which > 1 && !tried(number++)) continue;
        device_machine machine;
        machine.fail(function, which);
        const auto all = on_devices(size, [](const std::shared_ptr<transport>& c) {
          flight f(*c, summed(c->size(), 300'000), 1);
          f.start();
          f.finish();
          return f.right() + every_beginning(*c) + sums_crosswise(*c);
        });
        INFO(function << " " << which << " on " << size << ": " << all.errors());
        if (all.well()) {  // it was not asked so often
          CHECK((which > 1 || size == 1));
          continue;
        }
        // one that does not count its devices has none
        const bool counts = std::string(function) == "cudaGetDeviceCount";
        CHECK(std::count(all.codes.begin(), all.codes.end(), counts ? "tessera.device.none" : "tessera.device.failed") >
              0);
        CHECK(machine.kept() == 0);
      }
}

TEST_CASE("the communicators of a worker end one after the other, in one order for all, while it looks after the rest",
          "[runtime]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const int size = 6;
    std::vector<std::vector<int>> teams;
    for (dice roll{seed}; teams.size() < 16;) {
      std::vector<int> team;
      for (int r = 0; r < size; ++r)
        if (roll.roll(0, 2) == 0) team.push_back(r);
      if (team.size() > 1) teams.push_back(team);
    }
    device_machine machine(seed);
    const auto all = on_devices(size, [&](const std::shared_ptr<transport>& c) -> std::string {
      std::uint64_t key = 0;
      for (const std::vector<int>& team : teams) {
        ++key;
        if (std::find(team.begin(), team.end(), c->rank()) == team.end()) continue;
        exchange_plan plan = exchange_plan::gathering(team, c->rank(), 1, key);
        plan.id = plan.key = key;
        std::int64_t mine = c->rank();
        std::vector<std::int64_t> theirs(team.size(), -1);
        const auto numbers = [](std::int64_t* of, std::size_t n) {
          region r{reinterpret_cast<std::byte*>(of), element::int64, {}, {}};
          r.extents.push(static_cast<index_t>(n));
          r.strides.push(1);
          return r;
        };
        c->bind(std::move(plan))->start(numbers(&mine, 1), numbers(theirs.data(), theirs.size())).finish();
        static_cast<nccl_transport&>(*c).synchronise();
        if (!std::equal(theirs.begin(), theirs.end(), team.begin(), team.end())) return "others are there";
      }
      return {};
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
    CHECK(machine.kept() == 0);
  }
}

TEST_CASE("workers whose machine has no device are refused, all of them", "[refusal]") {
  const device_machine none(1, 0);
  const auto all = on_devices(3, [](const std::shared_ptr<transport>& c) { return c->rank() >= 0; });
  CHECK(all.codes == std::vector<std::string>(3, "tessera.device.none"));
}

TEST_CASE("a call over NCCL that is dropped is withdrawn, and its worker begins no other", "[refusal]") {
  device_machine machine;
  const auto all = on_devices(2, [](const std::shared_ptr<transport>& c) -> std::string {
    if (c->rank() == 0) {
      flight f(*c, gathered(2, 20000), 1);
      f.start();
    } else {
      flight f(*c, gathered(2, 20000), 1);
      f.start();
      f.finish();
    }
    flight g(*c, gathered(2, 7), 2);
    g.start();
    g.finish();
    return "it went on";
  });
  INFO(all.errors());
  CHECK(all.codes == std::vector<std::string>(2, "tessera.agree.given_up"));
}
