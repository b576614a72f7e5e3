// Workers that misbehave as the first argument says; check.py sees how it ends, in threads and under mpirun. Three more
// say in the course of what: FAULT VERB forward|backward begun|before.
#include "verbs.hpp"

#include <tessera/comm/launch/environment.hpp>
#include <tessera/comm/memory/shared_heap.hpp>
#include <tessera/comm/workers.hpp>

#include <pthread.h>

#include <csignal>
#include <optional>

namespace ts = tessera;

struct line : ts::axis<3> {};
using grid = ts::mesh<line>;

namespace {

ts::layout numbers(ts::engine::axis_placement how, ts::index_t n = 3) {
  ts::layout x;
  x.mesh = grid::value;
  x.placements.push(how);
  ts::engine::dimension d;
  d.extent = n;
  x.dims.push(d);
  return x;
}
ts::layout held_by(int worker, ts::index_t n = 3) { return numbers(ts::engine::held_on(worker), n); }
ts::layout copied() { return numbers({}); }
ts::layout shared_out() { return numbers({ts::placement::cut}); }

/// Carries three numbers from one layout to another.
void move_one(ts::team_state& state, const ts::layout& from, const ts::layout& to, ts::purpose why = {}) {
  const auto e = state.bound(ts::engine::step{ts::engine::map::move, from, to, ts::combine::sum}, ts::element::float64,
                             {.why = why});
  double in[3]{};
  double out[3]{};
  const auto memory = [](double* at, const auto& extents) {
    ts::engine::region r{reinterpret_cast<std::byte*>(at), ts::element::float64, extents, {}};
    r.strides.push(1);
    return r;
  };
  e->start(memory(in, e->input_extents()), memory(out, e->output_extents()), {.why = why}).finish();
}

/// An exchange of many numbers; all workers bind it.
std::shared_ptr<ts::engine::bound_exchange> many(ts::team_state& state) {
  return state.bound(ts::engine::step{ts::engine::map::move, numbers({ts::placement::cut}, 300'000),
                                      numbers({}, 300'000), ts::combine::sum},
                     ts::element::float64);
}

ts::engine::region memory(std::vector<double>& at) {
  ts::engine::region r{reinterpret_cast<std::byte*>(at.data()), ts::element::float64, {}, {}};
  r.extents.push(static_cast<ts::index_t>(at.size()));
  r.strides.push(1);
  return r;
}

/// Starts it and throws before its end.
void give_up(ts::team_state& state) {
  const auto e = many(state);
  std::vector<double> in(100'000);
  std::vector<double> out(300'000);
  const ts::engine::in_flight call = e->start(memory(in), memory(out));
  throw std::runtime_error("out of paper");
}

/// Does nothing that ends, and hears nobody.
[[noreturn]] void get_stuck() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

/// Ends a sum on the first worker, which comes late and then waits for a term of the second one, which never comes.
void add_late(ts::team_state& state) {
  const auto e = state.bound(ts::engine::step{ts::engine::map::fold, numbers({ts::placement::partial}, 3000),
                                              held_by(0, 3000), ts::combine::sum},
                             ts::element::float64);
  std::vector<double> in(3000);
  std::vector<double> out(state.rank() == 0 ? 3000 : 0);
  if (state.rank() == 1) get_stuck();
  if (state.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(700));
  e->start(memory(in), memory(out)).finish();
}

/// Ends the second of two sums, whose terms over MPI travel in pieces; some worker gives up the first one.
void add_twice(ts::team_state& state, bool gives_up) {
  const ts::engine::step sum{ts::engine::map::fold, numbers({ts::placement::partial}, 1'500'000),
                             numbers({ts::placement::cut}, 1'500'000), ts::combine::sum};
  const auto e = state.bound(sum, ts::element::float64);
  std::vector<double> in(1'500'000);
  std::vector<double> out(500'000);
  std::vector<double> other(500'000);
  std::optional<ts::engine::in_flight> first = e->start(memory(in), memory(out));
  ts::engine::in_flight second = e->start(memory(in), memory(other));
  if (gives_up) first.reset();
  second.finish();
  if (first) first->finish();
}

/// The second worker ends a sum on the first and then sends to the third, which receives before it gives its term; the
/// first one, which begins the sum at once, waits for that term, or for another call of the third.
void add_in_a_ring(ts::team_state& state, ts::index_t n, bool waits_elsewhere) {
  const auto bound = [&](ts::engine::map what, const ts::layout& from, const ts::layout& to) {
    return state.bound(ts::engine::step{what, from, to, ts::combine::sum}, ts::element::float64);
  };
  const auto sum = bound(ts::engine::map::fold, numbers({ts::placement::partial}, n), held_by(0, n));
  const auto to_third = bound(ts::engine::map::move, held_by(1, n), held_by(2, n));
  const auto from_third = bound(ts::engine::map::move, held_by(2, n), held_by(0, n));
  const auto many_numbers = static_cast<std::size_t>(n);
  std::vector<double> in(many_numbers), out(many_numbers), other(many_numbers);
  const auto start = [&](const auto& e, std::vector<double>& to) {
    ts::engine::region gives = memory(in), takes = memory(to);
    gives.extents = e->input_extents();
    takes.extents = e->output_extents();
    return e->start(gives, takes);
  };
  const int me = state.rank();
  if (me == 0) {
    ts::engine::in_flight adds = start(sum, out);
    if (waits_elsewhere) start(from_third, other).finish();
    adds.finish();
    return;
  }
  if (me == 1) start(sum, out).finish();
  start(to_third, other).finish();
  if (me == 2) start(sum, out).finish();
  if (me == 2 && waits_elsewhere) start(from_third, other).finish();
}

/// Sends a number to a worker, or takes a byte from one.
void carry(ts::engine::transport& carrier, int peer, bool sends) {
  static double number = 1;
  ts::engine::region r{
      reinterpret_cast<std::byte*>(&number), sends ? ts::element::float64 : ts::element::uint8, {}, {}};
  r.extents.push(1);
  r.strides.push(1);
  ts::engine::exchange_plan plan;
  plan.id = 7;
  plan.element = r.element;
  plan.workers = {carrier.rank(), peer};
  ts::engine::box_transfer l{peer, {}, {}, r.extents};
  l.here.push(0);
  l.there.push(0);
  (sends ? plan.sends : plan.receives).push_back(l);
  carrier.bind(std::move(plan))->start(r, r, {.name = "sending"}).finish();
}

/// What ends or holds up a worker, or waits for somebody who does.
void commit(const std::string& fault) {
  if (fault == "killed") std::raise(SIGKILL);
  if (fault == "crashes") std::signal(SIGSEGV, SIG_DFL), std::raise(SIGSEGV);
  if (fault == "stops") std::raise(SIGSTOP);
  if (fault == "quits") std::exit(0);
  if (fault == "starves") throw std::bad_alloc();
  if (fault == "throws") throw std::runtime_error("out of paper");
  if (fault == "waits") std::puts("ready"), std::fflush(stdout);
  for (volatile bool spins = fault == "spins" || fault == "waits"; spins;) continue;
}

/// The second worker commits a fault before it begins a verb, or between its beginning and its end.
void misbehave_in(ts::team_state& state, const std::string& fault, const std::string& verb, bool backward, bool begun) {
  const auto [from, to] = verb_named(verb, state.mesh());
  const auto plan = from.placements[0].kind == ts::placement::partial || from.dims[0].kind == ts::cover::pending
                        ? ts::engine::map::fold
                        : ts::engine::map::move;
  const ts::purpose why = backward ? ts::purpose::backward : ts::purpose::forward;
  const auto e = state.bound(ts::engine::step{plan, from, to, ts::combine::sum}, ts::element::float64, {.why = why});
  const auto boxed = [](std::vector<double>& at, const auto& extents) {
    ts::index_t n = 1;
    for (const ts::index_t k : extents) n *= k;
    at.resize(static_cast<std::size_t>(n));
    ts::engine::region r{reinterpret_cast<std::byte*>(at.data()), ts::element::float64, extents, {}};
    for (int d = 0; d < extents.count; ++d) r.strides.push(1);
    for (int d = extents.count - 1; d-- > 0;) r.strides[d] = r.strides[d + 1] * extents[d + 1];
    return r;
  };
  std::vector<double> in, out;
  const ts::engine::region gives = boxed(in, e->input_extents()), takes = boxed(out, e->output_extents());
  const bool commits = state.rank() == 1;
  if (commits && !begun) commit(fault);
  ts::engine::in_flight call = e->start(gives, takes, {.why = why});
  if (commits && begun) commit(fault);
  call.finish();
  state.agree(1);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "well";
  ts::launch_options options;
  options.time_limit = std::chrono::seconds(20);
  if (how.find("stuck") != std::string::npos || how == "stops" || how == "spins")
    options.time_limit = std::chrono::seconds(2);
  if (how == "for ever") options.time_limit = std::chrono::seconds::max();
  if (how == "no time") options.time_limit = std::chrono::seconds(0);
  if (ts::engine::shares_memory(options))
    ts::engine::shared_heap::of_process().open();  // then large boxes are read where they lie
  std::shared_ptr<ts::team_state> kept;            // longer than the launch
  const auto program = [&](ts::team<grid>& team) {
    ts::team_state& state = *team.state();
    const int me = team.rank();
    state.agree(1);
    if (argc > 4)
      return misbehave_in(state, how, argv[2], argv[3] == std::string_view("backward"),
                          argv[4] == std::string_view("begun"));
    if (how == "well" || how == "for ever" || how == "no time" || how.starts_with("relaunches")) return;
    if (how == "outlives") {
      if (me == 0) kept = team.state();
      return;
    }
    if (how == "purposes")  // the same plan, in backward on one worker
      return move_one(state, shared_out(), copied(), me == 1 ? ts::purpose::backward : ts::purpose::forward);
    if (how == "ring") {  // everybody receives first
      move_one(state, held_by((me + 1) % 3), held_by(me));
      return move_one(state, held_by(me), held_by((me + 2) % 3));
    }
    if (how == "ring of a sum" || how == "ring beside a sum")
      return add_in_a_ring(state, 3000, how == "ring beside a sum");
    if (how == "ring of a large sum") return add_in_a_ring(state, 1'500'000, false);  // over MPI it travels in pieces
    if (how == "gives up the first") return add_twice(state, me == 1);
    if (how == "stuck at the end") {
      if (me == 1) get_stuck();
      return;
    }
    if (how == "killed") {
      const auto e = many(state);
      std::vector<double> in(100'000);
      std::vector<double> out(300'000);
      ts::engine::in_flight call = e->start(memory(in), memory(out));
      if (me == 1) std::raise(SIGKILL);
      call.finish();
    }
    if (how == "leaves what is bound") {
      const auto e = many(state);
      std::vector<double> in(100'000);
      std::vector<double> out(300'000);
      e->start(memory(in), memory(out)).finish();
      if (me != 1) e->start(memory(in), memory(out)).finish();
      return;
    }
    if (how == "gives up" || how == "goes on" || how == "ends silently") many(state);
    if (me == 1) {
      if (how == "throws") throw std::runtime_error("out of paper");
      if (how == "gives up") give_up(state);
      if (how == "goes on" || how == "ends silently") try {
          give_up(state);
        } catch (const std::exception&) {
        }
      if (how == "ends silently") return;
      if (how == "leaves") return;
      if (how == "exits") std::exit(0);
      if (how == "exits beside") std::thread([] { std::exit(0); }).join();
      if (how == "sends to nobody") return carry(state.carrier(), 7, true);
      if (how == "disagrees") return state.agree(2);
      if (how == "other") return move_one(state, held_by(2), copied());
      if (how == "saves") return static_cast<void>(state.collect(1, "gathering a state dict"));
      if (how == "launches")
        return static_cast<void>(ts::run_workers<grid>(argc, argv, options, [](ts::team<grid>&) {}));
      if (how == "stuck") get_stuck();
      if (how == "shares its team") {
        std::string met;
        std::thread([&] {
          try {
            state.agree(1);
          } catch (const ts::error& e) {
            met = e.what();
          }
        }).join();
        throw std::runtime_error(met);
      }
    }
    if (how == "sends too much" && me < 2) return carry(state.carrier(), 1 - me, me == 0);
    if (me == 2 && how == "last leaves") return;
    if (how == "slow") {  // the first worker waits for the last one, long after the middle one sent its part and ended
      if (me == 2) std::this_thread::sleep_for(std::chrono::seconds(2));
      return move_one(state, shared_out(), held_by(0));
    }
    if (how == "slow between") {  // two calls of one exchange
      move_one(state, shared_out(), copied());
      if (me == 2) std::this_thread::sleep_for(std::chrono::seconds(3));
      return move_one(state, shared_out(), copied());
    }
    if (how == "slow in turns") {  // 0 waits for 1, which begins another call first and waits for 2, which computes
      if (me == 2) std::this_thread::sleep_for(std::chrono::seconds(7));
      if (me != 0) move_one(state, held_by(2), held_by(1));
      return move_one(state, held_by(1), copied());
    }
    if (how == "stuck behind a late one") return add_late(state);
    if (how == "stuck behind another") {  // 0 waits for 1, which waits for 2
      if (me == 2) get_stuck();
      return move_one(state, held_by(me + 1), held_by(me));
    }
    if (how.starts_with("swallows")) {
      const auto swallows = [](auto&& call) {
        try {
          call();
        } catch (const ts::error&) {
        }
      };
      const bool computes = how == "swallows and computes";
      if (computes && me == 2) return;
      swallows([&] { state.collect(0, me == 1 && !computes ? "one thing" : "another"); });
      if (computes && me == 0) std::this_thread::sleep_for(std::chrono::seconds(15));
      for (int i = 0; i < 1000 && how != "swallows"; ++i) swallows([&] { state.agree(1); });
      while (me == 0 && how == "swallows for ever") swallows([&] { state.agree(1); });
      return swallows([&] { state.agree(1); });
    }
    if (how == "catches") {
      if (me == 1) return;
      try {
        state.agree(1);
      } catch (const ts::error&) {
      }
      return;
    }
    state.agree(1);
  };
  if (how == "no threads") {  // a stack that no memory holds
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 46);
    pthread_setattr_default_np(&huge);
  }
  const auto run = [&] { return ts::run_workers<grid>(argc, argv, options, program); };
  const int status = run();
  const int place = ts::read_environment().rank;
  if (how == "relaunches late") {
    if (place == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    return run();
  }
  if (how == "relaunches" && place == 1) return run();
  if (how == "relaunches beside the stuck") {
    if (place == 1) return run();
    get_stuck();
  }
  if (!kept) return status;
  try {
    kept->agree(1);
  } catch (const std::exception& e) {
    fmt::print(stderr, "tessera: main: {}\n", e.what());
  }
  return 1;
}
