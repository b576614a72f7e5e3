#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"

#include <tessera/comm/wait/deadlock_detector.hpp>
#include <tessera/primitive/refusals.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Whatever workers do wrong, each of those that wait ends in one error with its code, at once: the test has a time
// limit, and only the last case waits for a clock.

namespace {

constexpr const char* lost = "tessera.agree.lost";
constexpr const char* disagree = "tessera.agree.fingerprint";
constexpr const char* ring = "tessera.agree.deadlock";
constexpr const char* late = "tessera.agree.time";

mesh_value line(int size) {
  mesh_value m;
  m.axes.push({text{"a"}, size, 1});
  return row_major(m);
}

/// n numbers, cut over the line or whole on every worker.
layout numbers_over(const mesh_value& mesh, index_t n, bool cut) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(1);
  x.dims.resize(1);
  x.dims[0].extent = n;
  if (cut) x.cut_by(0, 0);
  return x;
}

step gathering(int size, index_t n) {
  return {map::move, numbers_over(line(size), n, true), numbers_over(line(size), n, false), combine::sum};
}

region memory_of(std::vector<double>& data, const static_vector<index_t, max_dimensions>& extents) {
  region r{reinterpret_cast<std::byte*>(data.data()), element::float64, extents, extents};
  return r.packed_at(r.data);
}

/// Runs one transfer of zeros; true when it came to an end.
bool run(const std::shared_ptr<bound_exchange>& e) {
  index_t in = 1;
  index_t out = 1;
  for (index_t n : e->input_extents()) in *= n;
  for (index_t n : e->output_extents()) out *= n;
  std::vector<double> x(static_cast<std::size_t>(in + 1));
  std::vector<double> y(static_cast<std::size_t>(out + 1));
  e->start(memory_of(x, e->input_extents()), memory_of(y, e->output_extents())).finish();
  return true;
}

bool run(transport& carrier, const step& s) { return run(bind_exchange(carrier, s, element::float64)); }

/// One number from one worker to another, of a world of any size.
step sending(int from, int to, index_t n = 1) {
  mesh_value a = line(1);
  a.first = from;
  mesh_value b = line(1);
  b.first = to;
  return {map::move, numbers_over(a, n, false), numbers_over(b, n, false), combine::sum};
}

int count_of(const std::vector<std::string>& codes, const std::string& code) {
  int n = 0;
  for (const auto& c : codes) n += c == code;
  return n;
}

}  // namespace

TEMPLATE_TEST_CASE("a worker that throws stops all that wait for it", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE("a worker that returns early is missed by those that wait for it", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE("a worker that nobody waits for may end", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() == 3) return true;
    return run(*carrier, gathering(3, 7));
  });
  INFO(all.errors());
  CHECK(all.well());
}

TEMPLATE_TEST_CASE("workers that do other operations than the rest disagree", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    return run(*carrier, gathering(4, carrier->rank() == 2 ? 13 : 12));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEMPLATE_TEST_CASE("workers that skip an operation disagree with those that do not", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() != 1) run(*carrier, gathering(3, 5));
    return run(*carrier, gathering(3, 6));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 3);
}

TEMPLATE_TEST_CASE("workers that wait for each other in a ring are told so", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE("workers that bind in a ring are told so", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    const int me = carrier->rank();
    return run(*carrier, sending((me + 1) % 3, me));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, ring) == 3);
}

TEMPLATE_TEST_CASE("workers whose boxes nobody takes are told so", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(2, [](const std::shared_ptr<transport>& carrier) {
    const std::array from{bind_exchange(*carrier, sending(0, 1), element::float64),
                          bind_exchange(*carrier, sending(1, 0), element::float64)};
    return run(from[static_cast<std::size_t>(carrier->rank())]);
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, ring) == 2);
}

TEMPLATE_TEST_CASE("a worker that ends without having taken a box, small or large, is missed by its sender", "",
                   by_memory, by_sockets) {
  for (const index_t n : {1, 100000}) {
    const auto all = in_world<TestType>(2, [&](const std::shared_ptr<transport>& carrier) {
      const auto e = bind_exchange(*carrier, sending(0, 1, n), element::float64);
      return carrier->rank() == 1 || run(e);
    });
    INFO(all.errors());
    CHECK(all.codes == std::vector<std::string>{lost, TestType::ends_alone ? "" : lost});
  }
}

TEMPLATE_TEST_CASE("workers that make their teams of different meshes disagree", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE("a team is told which number a worker has that the others have not", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(4));
    team.agree(7);
    team.agree(carrier->rank() == 1 ? 65 : 64);
    return true;
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEMPLATE_TEST_CASE("a mesh that the world cannot hold is refused on every worker", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(4));
    return true;
  });
  CHECK(count_of(all.codes, "tessera.launch.world") == 3);
}

namespace {
struct pair_axis : axis<2> {};
}  // namespace

TEST_CASE("a program one of whose workers fails ends with a status that says so") {
  const auto program = [](team<mesh<pair_axis>>& t) {
    if (t.rank() == 1) throw error(refusal{code::call_finished});
    t.state()->agree(1);
  };
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), program) != 0);
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), [](team<mesh<pair_axis>>&) {}) == 0);
}

TEST_CASE("an error is the same behind a text that another process reads, and elsewhere") {
  const auto alike = [](const error& one, const error& other) {
    return std::string(one.what()) == other.what() && std::string(one.code()) == other.code() &&
           one.numbers() == other.numbers() && one.where() == other.where();
  };
  for (const char* where : {"", "worker 3", "two\n\nlines [and brackets]"}) {
    const error longest(refusal{code::kernel_too_wide, 2, -8, 1, INT64_MAX}, where);
    CHECK(alike(error::unpacked(longest.packed()), longest));
    CHECK(alike(longest.at("here").at(where), longest));
    CHECK(longest.is(code::kernel_too_wide));
    CHECK(longest.numbers() == std::vector<index_t>{2, -8, 1, INT64_MAX});
    const error shortest(refusal{code::call_finished}, where);
    CHECK(alike(error::unpacked(shortest.packed()), shortest));
    CHECK(!shortest.is(code::worker_lost));
    CHECK(shortest.numbers().empty());
  }
  const std::string cut = error(refusal{code::worker_lost, 1, 2}, std::string(2000, 'x')).packed().substr(0, 1023);
  CHECK(error::unpacked(cut).is(code::worker_lost));
  CHECK(error::unpacked(cut).numbers() == std::vector<index_t>{1, 2});
}

TEST_CASE("an error names axes, verbs and elements, and says what each number is") {
  const auto ends = [](const refusal& why, std::string_view told) {
    return std::string_view(error(why).what()).ends_with(told);
  };
  CHECK(ends(refusal{code::mixed_combines, text("col"), -1}, "first (axis col, dimension none)"));
  CHECK(ends(refusal{code::not_a_tiling, text(), 1}, "first (axis none, dimension 1)"));
  CHECK(ends(refusal{code::not_this_verb, verb::all_gather, verb::scatter},
             "find it (wanted verb all_gather, found verb scatter)"));
  CHECK(ends(refusal{code::wrong_element, element::float16, -1},
             "convert it (expected element half, given element another)"));
  CHECK(ends(refusal{code::extents_differ, 0, -1, 7}, "the same (dimension 0, first -1, second 7)"));
  CHECK(ends(refusal{code::call_finished}, "each call once"));
}

TEMPLATE_TEST_CASE("what the core refuses by a value is told by a worker with its code", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(2, [](const std::shared_ptr<transport>& carrier) {
    const auto program = [](const std::shared_ptr<transport>&) { static_cast<void>(bind<dyn>(-8)); };
    tessera::detail::run_worker(carrier, threads_only(), program);
    return true;
  });
  for (const std::string& code : all.codes) CHECK(code == "tessera.shape.negative");
}

TEMPLATE_TEST_CASE("a worker that is too late is an error when the time limit has passed", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE(
    "an error says what each of two workers does, in the words of the field and with the place of its call", "",
    by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(3));
    const bool odd = carrier->rank() == 2;
    const call_context what{.name = odd ? "linear" : nullptr, .at = {"deep/in/train.cpp", odd ? 12 : 7}};
    bind_exchange(*carrier, gathering(3, odd ? 50 : 33), element::float64, what);
    return true;
  });
  CHECK(count_of(all.codes, disagree) == 3);
  for (const std::string& text : all.texts) {
    CHECK(text == all.texts[0]);
    CHECK(text.find("all_gather of 33 double at train.cpp:7") != std::string::npos);
    CHECK(text.find("worker 2: linear: all_gather of 50 double at train.cpp:12") != std::string::npos);
  }
}

TEMPLATE_TEST_CASE("calls of one plan for different purposes never meet", "", by_memory, by_sockets) {
  const auto all = in_world<TestType>(4, [](const std::shared_ptr<transport>& carrier) {
    const auto forward = bind_exchange(*carrier, gathering(4, 12), element::float64, {.why = purpose::forward});
    const auto backward = bind_exchange(*carrier, gathering(4, 12), element::float64, {.why = purpose::backward});
    std::vector<double> x(4);
    std::vector<double> y(13);
    const bool odd = carrier->rank() == 3;
    const auto& e = odd ? forward : backward;
    e->start(memory_of(x, e->input_extents()), memory_of(y, e->output_extents()),
             {.why = odd ? purpose::forward : purpose::backward})
        .finish();
    return true;
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEMPLATE_TEST_CASE("a worker that is stuck is named, not one that waits for it as well", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE("a limit that no clock can hold is a long one", "", by_memory, by_sockets) {
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

TEMPLATE_TEST_CASE("a team belongs to its worker's thread while the launch lasts, and to nobody afterwards", "",
                   by_memory, by_sockets) {
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

TEST_CASE("a program that catches what its workers disagree about does not end well") {
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

TEST_CASE("a team over another mesh is checked and observed as the team that it is made of") {
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

TEST_CASE("questions of workers that wait find rings, and nothing else") {
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

TEST_CASE("a ring is found though the question of one in it went another way before") {
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

TEST_CASE("a box that is on its way is no ring, and one that nobody takes is a disagreement") {
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

TEST_CASE("a worker that ended before it began a call is lost to those that wait in it") {
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

TEST_CASE("a worker that cannot take a call which it began sends the question on to those whose terms it lacks") {
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

TEST_CASE("calls of an exchange that a worker let go count until its workers agree on another one") {
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

TEST_CASE("of workers that met an error the lowest says it, however late its word comes") {
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

TEST_CASE("a worker whose process died is lost to all that run, but not one that stops with another's error") {
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
