#include "tests/support/catch.hpp"
#include "tests/support/failing.hpp"

#include <tessera/comm/wait/deadlock_detector.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// What workers that share no memory tell each other, one message at a time, and who waits for whom.
class mailboxes {
 public:
  explicit mailboxes(int size) : dependencies(static_cast<std::size_t>(size)), lacks(dependencies) {
    for (int w = 0; w < size; ++w)
      workers.push_back(std::make_unique<detail::deadlock_detector>(
          w, size, [this](int to, const detail::wait_message& m) { mail.emplace_back(to, m); },
          [this, w] { return dependencies[static_cast<std::size_t>(w)]; },
          [this, w](auto, auto) { return lacks[static_cast<std::size_t>(w)]; }));
    for (int w = 0; w < size; ++w) calls.push_back(std::make_unique<exchange_call>());
  }
  detail::deadlock_detector& at(int w) { return *workers[static_cast<std::size_t>(w)]; }
  void begin(int w, std::uint64_t exchange) {
    calls[static_cast<std::size_t>(w)]->sequence = begun[{w, exchange}]++;
    ++at(w).begun(exchange);
  }
  void wait(int w, std::uint64_t exchange, std::vector<detail::dependency> peers) {
    begin(w, exchange);
    dependencies[static_cast<std::size_t>(w)] = std::move(peers);
    at(w).enter(exchange, *calls[static_cast<std::size_t>(w)]);
  }
  /// Delivers all mail; the code of the first error.
  std::string deliver() {
    for (; !mail.empty(); mail.pop_front()) {
      try {
        at(mail.front().first).hear(detail::wait_message(mail.front().second));
      } catch (const error& e) {
        return e.code();
      }
    }
    return "";
  }

  std::deque<std::pair<int, detail::wait_message>> mail;
  std::vector<std::vector<detail::dependency>> dependencies;
  std::vector<std::vector<detail::dependency>> lacks;  // of calls that they began
  std::vector<std::unique_ptr<exchange_call>> calls;
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> begun;
  std::vector<std::unique_ptr<detail::deadlock_detector>> workers;
};

}  // namespace

TEST_CASE("questions of workers that wait find rings, and nothing else", "[refusal]") {
  mailboxes all(3);
  all.wait(0, 7, {{1}});
  all.at(0).ask();
  CHECK(all.deliver() == "");  // worker 1 computes, and reads the question later
  all.wait(1, 8, {{2}});
  all.at(1).ask();
  CHECK(all.deliver() == "");
  CHECK(all.at(0).behind() == 2);  // as worker 1 answered
  all.wait(2, 9, {{0}});
  CHECK(all.deliver() == ring);  // the question went on
  mailboxes late(2);
  late.wait(0, 7, {{1}});
  late.wait(1, 8, {{0}});
  late.at(1).ask();
  CHECK(late.deliver() == ring);
}

TEST_CASE("a ring is found though the question of one in it went another way before", "[refusal]") {
  mailboxes all(3);
  all.wait(0, 7, {{1}});
  all.wait(1, 8, {{2}});
  all.at(0).ask();
  CHECK(all.deliver() == "");
  all.begin(2, 8);
  all.at(1).leave();
  all.wait(1, 9, {{0}});
  all.at(1).ask();
  CHECK(all.deliver() == ring);
}

TEST_CASE("a box that is on its way is no ring, and one that nobody takes is a disagreement", "[refusal]") {
  mailboxes all(2);
  all.begin(1, 7);
  all.wait(1, 8, {{0}});
  all.wait(0, 7, {{1}});
  all.at(0).ask();
  CHECK(all.deliver() == "");
  mailboxes others(2);
  others.wait(1, 8, {{0, true}});
  others.wait(0, 7, {{1, true}});
  others.at(0).ask();
  CHECK(others.deliver() == disagree);
}

TEST_CASE("a worker that ended before it began a call is lost to those that wait in it", "[refusal]") {
  mailboxes all(2);
  all.begin(1, 7);
  all.at(1).end();
  all.wait(0, 7, {{1}});
  all.at(0).ask();
  CHECK(all.deliver() == "");  // it had begun
  all.at(0).leave();
  all.wait(0, 7, {{1}});
  all.at(0).ask();
  CHECK(all.deliver() == lost);
}

TEST_CASE("a worker that cannot take a call which it began sends the question on to those whose terms it lacks",
          "[refusal]") {
  mailboxes all(3);
  all.begin(0, 7);  // and computes
  all.lacks[0] = {{2}};
  all.wait(2, 8, {{1}});
  all.wait(1, 7, {{.peer = 0, .reads = true}});
  all.at(1).ask();
  CHECK(all.deliver() == ring);
  mailboxes others(3);
  others.begin(0, 7);
  others.lacks[0] = {{2}};
  others.wait(1, 7, {{.peer = 0, .reads = true}});
  others.at(1).ask();
  CHECK(others.deliver() == "");
  CHECK(others.at(1).behind() == 2);  // which computes,
  others.at(2).end();
  CHECK(others.deliver() == lost);  // and ends
  mailboxes busy(4);
  busy.wait(0, 9, {{3}});  // which computes
  busy.wait(2, 8, {{1}});
  busy.wait(1, 7, {{.peer = 0, .reads = true}});
  busy.at(1).ask();
  CHECK(busy.deliver() == "");
  busy.at(0).leave();
  busy.lacks[0] = {{2}};
  busy.wait(0, 7, {{2}});  // only now the ring is one, and the last in it asks nobody else
  CHECK(busy.deliver() == ring);
  mailboxes needless(3);
  needless.begin(0, 7);
  needless.lacks[0] = {{2}};
  needless.wait(2, 8, {{1}});
  needless.wait(1, 7, {{0}});  // for a box, which is on its way
  needless.at(1).ask();
  CHECK(needless.deliver() == "");
}

TEST_CASE("calls of an exchange that a worker let go count until its workers agree on another one", "[refusal]") {
  const auto of = [](std::uint64_t id, std::vector<int> workers) {
    exchange_plan p;
    p.id = id;
    p.workers = std::move(workers);
    return p;
  };
  const auto asked = [&](const std::function<void(detail::deadlock_detector&)>& meanwhile) {
    mailboxes all(2);
    all.at(1).bind(of(7, {0, 1}));
    all.begin(0, 7);
    all.begin(1, 7);
    all.at(1).let_go(of(7, {0, 1}));
    meanwhile(all.at(1));
    all.at(1).end();
    all.mail.clear();
    all.wait(0, 7, {{1}});
    all.at(0).ask();
    return all.deliver();
  };
  CHECK(asked([](auto&) {}) == lost);
  CHECK(asked([&](auto& w) { w.bind(of(8, {1, 2})); }) == lost);
  CHECK(asked([&](auto& w) { w.bind(of(8, {0, 1, 2})); }) == "");
}

TEST_CASE("of workers that met an error the lowest says it, however late its word comes", "[refusal]") {
  const auto stop = [](detail::deadlock_detector& w) { w.stop(error(refusal{code::worker_lost, 0, 1})); };
  mailboxes all(4);
  stop(all.at(3));
  stop(all.at(1));
  CHECK(!all.at(3).settled());
  CHECK(!all.at(1).settled());
  all.mail.pop_front();  // to worker 0, which computes
  CHECK(all.deliver() == "");
  CHECK((all.at(3).settled() && all.at(3).failed_elsewhere()));
  CHECK((all.at(1).settled() && !all.at(1).failed_elsewhere()));
  mailboxes computes(2);
  stop(computes.at(1));
  computes.mail.clear();
  CHECK((!computes.at(1).settled() && !computes.at(1).failed_elsewhere()));  // it says it after a while
  mailboxes lowest(2);
  stop(lowest.at(0));
  CHECK((lowest.at(0).settled() && !lowest.at(0).failed_elsewhere()));
}

TEST_CASE("a worker whose process died is lost to all that run, but not one that stops with another's error",
          "[refusal]") {
  mailboxes all(3);
  all.wait(0, 7, {{2}});
  all.at(0).lose(1);
  CHECK(all.at(0).failure()->is(code::worker_lost));
  CHECK(all.at(0).failure()->numbers() == std::vector<index_t>{0, 1});
  CHECK(all.deliver() == "");
  CHECK(all.at(2).failure()->numbers() == std::vector<index_t>{0, 1});
  mailboxes others(3);
  others.at(0).stop(error(refusal{code::call_finished}));
  others.at(1).hear(others.mail.front().second);
  others.mail.clear();  // what worker 2 would hear of worker 0
  others.at(1).excuse();
  CHECK(others.deliver() == "");
  others.at(2).lose(1);
  CHECK(!others.at(2).failure());
  others.at(2).lose(0);
  CHECK(others.at(2).failure()->numbers() == std::vector<index_t>{2, 0});
  mailboxes ended(2);
  ended.at(1).end();
  CHECK(ended.deliver() == "");
  mailboxes early(2);
  early.at(1).end();
  CHECK(early.deliver() == "");
  early.at(0).lose(1);  // which waited for worker 0
  CHECK(early.at(0).failure().has_value());
  ended.at(0).end();
  ended.at(0).lose(1);
  CHECK(!ended.at(0).failure());
}
