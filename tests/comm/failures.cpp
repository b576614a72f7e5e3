#include "tests/support/catch.hpp"
#include "tests/support/in_workers.hpp"

using namespace tessera;
using namespace tessera::testing;

// Whatever workers do wrong, each of those that wait ends in one error with its code, at once: the test has a time limit,
// and only the last case waits for a clock.

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
  x.roles.resize(1);
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
bool run(transport& carrier, const step& s) {
  exchange e(s, carrier.rank(), element::float64);
  index_t in = 1;
  index_t out = 1;
  for (index_t n : e.input_extents()) in *= n;
  for (index_t n : e.output_extents()) out *= n;
  std::vector<double> x(static_cast<std::size_t>(in + 1));
  std::vector<double> y(static_cast<std::size_t>(out + 1));
  e.finish(carrier, e.start(carrier, memory_of(x, e.input_extents()), memory_of(y, e.output_extents())));
  return true;
}

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

TEST_CASE("a worker that throws stops all that wait for it") {
  for (int thrower = 0; thrower < 4; ++thrower) {
    const auto all = in_world(4, [&](const std::shared_ptr<transport>& carrier) {
      run(*carrier, gathering(4, 9));
      if (carrier->rank() == thrower) throw std::runtime_error("my own trouble");
      return run(*carrier, gathering(4, 9));
    });
    INFO(all.errors());
    CHECK(all.codes[static_cast<std::size_t>(thrower)] == "other");
    CHECK(count_of(all.codes, lost) == 3);
  }
}

TEST_CASE("a worker that returns early is missed by those that wait for it") {
  for (const int leaver : {0, 2}) {
    const auto all = in_world(3, [&](const std::shared_ptr<transport>& carrier) {
      if (carrier->rank() == leaver) return true;
      return run(*carrier, gathering(3, 7));
    });
    INFO(all.errors());
    CHECK(all.codes[static_cast<std::size_t>(leaver)].empty());
    CHECK(count_of(all.codes, lost) == 2);
  }
}

TEST_CASE("a worker that nobody waits for may end") {
  const auto all = in_world(4, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() == 3) return true;
    return run(*carrier, gathering(3, 7));
  });
  INFO(all.errors());
  CHECK(all.well());
}

TEST_CASE("workers that do other operations than the rest disagree") {
  const auto all = in_world(4, [](const std::shared_ptr<transport>& carrier) {
    return run(*carrier, gathering(4, carrier->rank() == 2 ? 13 : 12));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEST_CASE("workers that skip an operation disagree with those that do not") {
  const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() != 1) run(*carrier, gathering(3, 5));
    return run(*carrier, gathering(3, 6));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 3);
}

TEST_CASE("workers that wait for each other in a ring are told so") {
  for (const int size : {2, 3, 5}) {
    const auto all = in_world(size, [&](const std::shared_ptr<transport>& carrier) {
      const int me = carrier->rank();
      run(*carrier, sending((me + 1) % size, me));  // everybody receives first
      return run(*carrier, sending(me, (me + size - 1) % size));
    });
    INFO(all.errors());
    CHECK(count_of(all.codes, ring) == size);
  }
}

TEST_CASE("workers whose boxes nobody takes are told so") {
  const auto all = in_world(2, [](const std::shared_ptr<transport>& carrier) {
    return run(*carrier, sending(carrier->rank(), 1 - carrier->rank()));
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, ring) == 2);
}

TEST_CASE("workers that make their teams of different meshes disagree") {
  const auto all = in_world(4, [](const std::shared_ptr<transport>& carrier) {
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

TEST_CASE("a team is told which number a worker has that the others have not") {
  const auto all = in_world(4, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(4));
    team.agree(7);
    team.agree(carrier->rank() == 1 ? 65 : 64);
    return true;
  });
  INFO(all.errors());
  CHECK(count_of(all.codes, disagree) == 4);
}

TEST_CASE("a mesh that the world cannot hold is refused on every worker") {
  const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, line(4));
    return true;
  });
  CHECK(count_of(all.codes, "tessera.launch.world") == 3);
}

namespace {
struct pair_axis : axis<2> {};
}  // namespace

TEST_CASE("a program one of whose workers fails ends with a status that says so") {
  const auto nothing = [](const transport&) {};
  const auto program = [](team<mesh<pair_axis>>& t) {
    if (t.rank() == 1) throw error(refusal{code::undefined_tensor});
    t.state()->agree(1);
  };
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), nothing, program) != 0);
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, threads_only(), nothing, [](team<mesh<pair_axis>>&) {}) == 0);
  launch_options unknown;
  unknown.transport = "pigeon";
  CHECK(run_workers<mesh<pair_axis>>(0, nullptr, unknown, nothing, program) != 0);
}

TEST_CASE("a worker that is too late is an error when the time limit has passed") {
  const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) {
    if (carrier->rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    return run(*carrier, gathering(3, 5));
  }, std::chrono::seconds{1});
  INFO(all.errors());
  CHECK(count_of(all.codes, late) == 3);
}
