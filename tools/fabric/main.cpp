// What connects the workers that were started: whether every verb keeps its law on it, and how fast one is.

#include "bandwidth.hpp"
#include "boxes.hpp"

#include <tessera/comm/workers.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>

namespace {

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::fabric;

constexpr const char* about =
    "Tries what connects workers: the threads of this process, or the processes that mpirun or srun started.\n"
    "  self_test   every verb along every set of axes of a mesh, with its adjoint\n"
    "  bandwidth   one verb of so many bytes: its time, and the bandwidth that nccl-tests makes of it";

/// The number of workers: the launcher's, else the one that is asked for.
int workers_of(int asked) {
  const launch_environment e = read_environment();
  return e.by == launcher::none || e.world == 1 ? asked : e.world;
}

/// A mesh of so many workers in axes of prime extents, largest first, at most three.
std::vector<int> axes_of(int workers) {
  std::vector<int> primes;
  for (int p = 2; workers > 1; ++p)
    for (; workers % p == 0; workers /= p) primes.push_back(p);
  while (primes.size() > 3) {
    std::sort(primes.begin(), primes.end());
    primes[1] *= primes[0];
    primes.erase(primes.begin());
  }
  std::sort(primes.rbegin(), primes.rend());
  return primes.empty() ? std::vector<int>{1} : primes;
}

mesh_value mesh_of(const std::vector<int>& axes) {
  static constexpr const char* names[]{"a", "b", "c", "d", "e", "f"};
  mesh_value m;
  for (std::size_t i = 0; i < axes.size(); ++i) m.axes.push({text(names[i]), axes[i]});
  return row_major(m);
}

/// Whole numbers that differ from element to element and, where a worker has terms, from worker to worker.
memory filled(const layout& x, int rank, index_t salt) {
  memory m(extents_at(x, rank));
  coordinates at;
  x.mesh.locate(rank, at);
  index_t terms = 0;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::partial) terms = terms * x.mesh.axes[a].extent + at[a] + 1;
  for (const dimension& d : x.dims)
    if (d.kind == cover::pending) terms += rank;
  each_element(x, rank, [&](std::size_t n, index_t i, index_t j, index_t k) {
    m.data[n] = static_cast<double>((7 * i + 3 * j + 5 * k + 11 * terms + salt) % 17 - 8);
  });
  return m;
}

/// The part of this worker in ⟨x, y⟩: what is invariant counts once.
double pairing(const layout& x, int rank, const memory& p, const memory& q) {
  coordinates at;
  if (!x.mesh.locate(rank, at)) return 0;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::invariant && at[a] != 0) return 0;
  double sum = 0;
  each_element(x, rank, [&](std::size_t n, index_t, index_t, index_t) { sum += p.data[n] * q.data[n]; });
  return sum;
}

double summed(team_state& team, double mine) {
  double sum = 0;
  for (const std::uint64_t one : team.collect(std::bit_cast<std::uint64_t>(mine), "summing"))
    sum += std::bit_cast<double>(one);
  return sum;
}

/// ⟨F x, z⟩ = ⟨x, F* z⟩, exactly, in whole numbers; and elements that are moved are those of their places.
bool keeps_its_law(team_state& team, const way& w) {
  const int rank = team.rank();
  memory x = filled(w.from, rank, 1);
  memory z = filled(cotangent(w.to), rank, 5);
  bound_way there(team, w.from, w.to);
  bound_way back(team, cotangent(w.to), cotangent(w.from));
  const memory& y = there(x);
  const double left = pairing(w.to, rank, y, z);
  const double right = pairing(w.from, rank, x, back(z));
  const auto sums = [](const layout& l) {
    return std::any_of(l.placements.begin(), l.placements.end(),
                       [](const axis_placement& r) { return r.kind == placement::partial; }) ||
           l.dims[0].kind == cover::pending;
  };
  double misplaced = 0;
  if (!sums(w.from) && !sums(w.to)) {
    const memory right_ones = filled(w.to, rank, 1);
    each_element(w.to, rank,
                 [&](std::size_t n, index_t, index_t, index_t) { misplaced += y.data[n] != right_ones.data[n]; });
  }
  return summed(team, left - right) == 0 && summed(team, misplaced) == 0;
}

int test_all(team_state& team) {
  const mesh_value& mesh = team.mesh();
  const bool first = team.rank() == 0;
  int tried = 0;
  int broken = 0;
  for (unsigned along = 1; along < 1u << mesh.axes.count; ++along) {
    if (first) std::printf("along %s\n", names_of(mesh, along).c_str());
    for (const way& w : ways_along(mesh, along, {13, 9, 10})) {
      const bool right = keeps_its_law(team, w);
      const cost c = cost_between(w.from, w.to);
      ++tried;
      broken += !right;
      if (!first) continue;
      std::printf("  %s %-15s %-28s %5lld elements in %3lld messages\n", right ? "ok   " : "WRONG", name_of(w.is),
                  w.how.c_str(), static_cast<long long>(c.total), static_cast<long long>(c.messages));
      std::fflush(stdout);
    }
  }
  if (first)
    std::printf("%d changes of layout and their adjoints on %d workers, %d wrong\n", tried, mesh.size(), broken);
  return broken;
}

/// Times one verb along all workers; a line, or one of JSON.
bool measure(team_state& team, const std::string& named, index_t bytes, bool as_json) {
  using clock = std::chrono::steady_clock;
  const index_t p = team.mesh().size();
  const index_t rows = 4 * p;
  const index_t extents[3]{rows, 1, std::max(p, bytes / (8 * rows))};
  const unsigned all = (1u << team.mesh().axes.count) - 1;
  const std::vector<way> ways = ways_along(team.mesh(), all, extents);
  const auto found = std::find_if(ways.begin(), ways.end(), [&](const way& w) { return named == name_of(w.is); });
  if (found == ways.end()) {
    std::string names;
    for (std::size_t i = 0; i < ways.size(); ++i)
      if (std::string name = name_of(ways[i].is); (", " + names + ",").find(", " + name + ",") == std::string::npos)
        names += (names.empty() ? "" : ", ") + name;
    if (team.rank() == 0)
      std::fprintf(stderr, "bandwidth: there is no verb '%s' that moves something; there are: %s\n", named.c_str(),
                   names.c_str());
    return false;
  }
  memory x = filled(found->from, team.rank(), 1);
  bound_way there(team, found->from, found->to);
  std::vector<std::uint64_t> nanoseconds;
  const auto end = clock::now() + std::chrono::seconds(1);
  for (bool more = true; more;) {
    team.collect(std::uint64_t{0}, "meeting");
    const auto began = clock::now();
    there(x);
    nanoseconds.push_back(
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - began).count()));
    const std::vector<std::uint64_t> goes_on = team.collect(
        std::uint64_t{nanoseconds.size() < 15 || (nanoseconds.size() < 1000 && clock::now() < end)}, "going on");
    more = goes_on.front() != 0;
  }
  nanoseconds.erase(nanoseconds.begin(), nanoseconds.begin() + 5);
  const std::size_t rounds = nanoseconds.size();
  const std::vector<std::uint64_t> everybody = team.collect(nanoseconds, "collecting times");
  std::vector<double> slowest(rounds, 0);
  for (std::size_t i = 0; i < everybody.size(); ++i)
    slowest[i % rounds] = std::max(slowest[i % rounds], static_cast<double>(everybody[i]) * 1e-9);
  std::sort(slowest.begin(), slowest.end());
  const double median = slowest[rounds / 2];
  const auto size = static_cast<double>(8 * extents[0] * extents[2]);
  const auto on_bus = static_cast<double>(8 * bus_elements(*found));
  if (team.rank() != 0) return true;
  const char* by = team.carrier().traits().shares_memory ? "threads" : "processes";
  if (as_json)
    std::printf(R"({"verb": "%s", "bytes": %.0f, "workers": %d, "by": "%s", "rounds": %zu, "median_us": %.3f, )"
                R"("algorithm_GBps": %.3f, "bus_GBps": %.3f})"
                "\n",
                named.c_str(), size, static_cast<int>(p), by, rounds, median * 1e6, size / median * 1e-9,
                on_bus / median * 1e-9);
  else
    std::printf("%s of %.0f bytes on %d %s: %.1f us (median of %zu), %.2f GB/s of the tensor, %.2f GB/s on the bus\n",
                named.c_str(), size, static_cast<int>(p), by, median * 1e6, rounds, size / median * 1e-9,
                on_bus / median * 1e-9);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{about};
  app.require_subcommand(1);
  launch_options options;
  int asked = 8;
  std::vector<int> axes;
  std::string named;
  index_t bytes = 1 << 20;
  bool as_json = false;
  CLI::App* test = app.add_subcommand(
      "self_test", "every verb along every set of axes, with its adjoint law; status 1 where one does not hold");
  CLI::App* speed = app.add_subcommand(
      "bandwidth",
      "how long a verb takes, and nccl-tests' bus bandwidth: what the busiest worker receives in that time");
  for (CLI::App* each : {test, speed})
    each->add_option("--workers", asked, "how many threads, where no launcher started processes")
        ->check(CLI::Range(1, 512))
        ->capture_default_str();
  test->add_option("--mesh", axes, "extents of the axes, such as 4,2")->delimiter(',');
  speed
      ->add_option("verb", named,
                   "all_reduce, all_gather, reduce_scatter, broadcast, sum_reduce, all_to_all, halo_exchange, …")
      ->required();
  speed->add_option("bytes", bytes, "of the tensor")
      ->check(CLI::Range(index_t{64}, index_t{1} << 36))
      ->capture_default_str();
  speed->add_flag("--json", as_json, "one line of JSON");
  CLI11_PARSE(app, argc, argv);
  int status = 0;
  const int workers = workers_of(asked);
  const mesh_value mesh = mesh_of(speed->parsed() ? std::vector<int>{workers} : axes.empty() ? axes_of(workers) : axes);
  const int ended = run_workers(argc, argv, options, mesh, [&](const std::shared_ptr<transport>& carrier) {
    team_state team(carrier, mesh);
    const bool well = test->parsed() ? test_all(team) == 0 : measure(team, named, bytes, as_json);
    if (!well && team.rank() == 0) status = test->parsed() ? 1 : 2;
  });
  return ended != 0 ? ended : status;
}
