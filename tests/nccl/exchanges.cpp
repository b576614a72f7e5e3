#include "tests/support/catch.hpp"
#include "tests/support/device/machine.hpp"
#include "tests/support/elements.hpp"
#include "tests/support/exchanged.hpp"
#include "tests/support/in_workers.hpp"

#include <tessera/comm/nccl/nccl_exchange.hpp>

using namespace tessera;
using namespace tessera::testing;

// What must hold on every transport, over the real calls of CUDA and NCCL with a machine of no devices behind them (tests/support/device).

namespace {

/// A worker's device is the one of its rank; it computes on a stream of its own.
std::shared_ptr<nccl_transport> on_device(const std::shared_ptr<transport>& host, bool library_sums = false) {
  const current_device here(host->rank());
  const auto stream = std::make_shared<device_stream>();
  return std::make_shared<nccl_transport>(host, std::make_shared<late_boxes>(), nccl_options{host->rank(), [stream] { return stream->get(); }, library_sums});
}

template <class F>
auto on_devices(int size, F&& f, bool library_sums = false) {
  return in_world(size, [&](const std::shared_ptr<transport>& host) { return f(std::static_pointer_cast<transport>(on_device(host, library_sums))); });
}

}  // namespace

TEST_CASE("over NCCL a Move puts every element where its layout says, and a Fold is its transpose") {
  device_machine machine;
  const carried over = [](const auto& host) { return on_device(host); };
  CHECK(moves_and_transposes(over, 120, 7) == "");
  CHECK(move_after_move(over, 40, 11) == "");
  CHECK(overlapping_halos(over) == "");
  CHECK(machine.kept() == 0);
}

TEST_CASE("over NCCL every element moves, and is combined in the order and the precision of the host") {
  for (const int size : {2, 3, 4}) {
    device_machine machine(static_cast<std::uint64_t>(size));
    const auto all = on_devices(size, [](const std::shared_ptr<transport>& c) { return every_move(*c) + every_fold(*c); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
    CHECK(machine.kept() == 0);
  }
}

TEST_CASE("over NCCL calls are under way together, begun and ended in any order") {
  for (const int size : {2, 3, 4}) {
    device_machine machine(static_cast<std::uint64_t>(size));
    const auto all = on_devices(size, [](const std::shared_ptr<transport>& c) {
      return every_order(*c) + every_beginning(*c) + same_exchange_again(*c) + sums_crosswise(*c) + in_turns(*c) + many_of_one(*c) + beside_many(*c, 40) +
             forgotten_together(*c);
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
    CHECK(machine.kept() == 0);
  }
}

TEST_CASE("an exchange over NCCL asks for the messages and bytes of its plan, or is one collective") {
  device_machine machine;
  dice d{23};
  int collectives = 0;
  for (int round = 0; round < 60; ++round) {
    const layout_pair p = roll_tilings(d, true, 4, 6);
    const step move{map::move, p.from, p.to, combine::sum};
    const step fold{map::fold, cotangent(p.to), cotangent(p.from), combine::sum};
    for (const step& s : {move, fold}) {
      const int world = world_of(p.from, p.to);
      const transfer plan = s.plan();
      std::vector<local_box> in;
      for (int r = 0; r < world; ++r) in.emplace_back(s.what == map::fold ? plan.target() : plan.source(), r);
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
