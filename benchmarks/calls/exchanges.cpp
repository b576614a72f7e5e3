// What one call of an exchange takes. Under mpirun: every way to write it by hand, outputs reused or fresh, a program
// that shares memory and sends nothing, and the library's over MPI, in turns. Alone: the library's between --workers N
// threads, and sums against adding the same arrays by the same threads. One JSON line a method; scripts/bench calls
// runs both in turns and compares.
//
// A batch is a number of calls back to back: it takes from when its first worker begins until its last one ends, and
// the figure is the median over batches, a call. Workers meet before each without sleeping, as MPI's do: who wakes
// another one up gives it a late start. Each method's result is compared with the right one before it is timed. Of the
// large ones, one that takes four times as long as another at its first call is not called again.
#include "bound_verb.hpp"
#include "crew.hpp"
#include "raw_mpi.hpp"
#include "shared_window.hpp"

#include <tessera/comm/workers.hpp>

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace {

using calls::index_t;
using calls::matrices;
using calls::method;
using calls::problem;
using clock_type = std::chrono::steady_clock;

constexpr const char* ours_by_name = "tessera";
constexpr const char* floor_by_name = "shared window";
constexpr const char* fresh_floor_by_name = "shared window, fresh outputs";
constexpr const char* fresh_by_name = "tessera, fresh outputs";

struct effort {
  int batches, calls;
};
effort effort_for(const problem& p, bool once) {
  if (once) return {1, 1};
  if (p.bytes() <= 4 << 10) return {25, 200};
  if (p.bytes() <= 1 << 20) return {15, 20};
  return {5, 1};
}

/// Workers that see one another's matrices too.
class crew : public calls::crew {
 public:
  crew(int workers, bool processes) : calls::crew(workers, processes), matrices_(static_cast<std::size_t>(workers)) {}

  /// A sum without an exchange: every thread reads the others' terms.
  method adding(matrices& m) {
    matrices_[static_cast<std::size_t>(m.rank)] = &m;
    meet();
    const calls::rectangle band = m.of.gets(m.rank);
    std::vector<const double*> terms;
    for (matrices* each : matrices_) terms.push_back(each->in.data() + band.top * m.of.columns);
    return {"adding by the same threads",
            [terms, &m] { calls::add_terms(terms, m.out.data(), static_cast<index_t>(m.out.size())); }};
  }

 private:
  std::vector<matrices*> matrices_;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void measure(crew& all, tessera::team_state& team, const problem& p, bool once) {
  matrices m(p, team.rank());
  calls::bound_verb ours(team, m);
  calls::bound_verb fresh(team, m, true);
  const bool processes = !team.carrier().traits().shares_memory;
  std::vector<method> methods;
  if (processes) {
    methods = calls::by_hand(m);
    const auto window = std::make_shared<calls::shared_window>(m);
    const auto fresh_window = std::make_shared<calls::shared_window>(m, true);
    methods.push_back({floor_by_name, [window] { (*window)(); }});
    methods.push_back({fresh_floor_by_name, [fresh_window] { (*fresh_window)(); },
                       [fresh_window] { return fresh_window->brought(); }});
  } else if (p.what == calls::verb::reduce_scatter) {
    methods.push_back(all.adding(m));
  }
  methods.push_back({ours_by_name, [&] { ours(); }});
  methods.push_back({fresh_by_name, [&] { fresh(); }, [&] { return fresh.brought(); }});

  std::vector<std::vector<calls::span>> batches(methods.size());
  const auto now = [] { return std::chrono::duration<double>(clock_type::now().time_since_epoch()).count(); };
  const auto batch = [&](std::size_t i, int calls) {
    all.meet();
    const double began = now();
    for (int c = 0; c < calls; ++c) methods[i].call();
    batches[i].push_back({began, now()});
  };
  std::vector<double> first;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    all.meet();
    m.insist(methods[i].name, [&] {
      methods[i].call();
      if (methods[i].brought && !m.out.empty()) std::copy_n(methods[i].brought(), m.out.size(), m.out.data());
    });
    batch(i, 1);
    first.push_back(all.lengths(m.rank, batches[i])[0]);
  }
  const double quickest = *std::min_element(first.begin(), first.end());
  const effort much = effort_for(p, once);
  for (int b = 0; b < much.batches; ++b)
    for (std::size_t i = 0; i < methods.size(); ++i)
      if (much.calls > 1 || first[i] < 4 * quickest || methods[i].name.starts_with(ours_by_name) ||
          methods[i].name.starts_with(floor_by_name))
        batch(i, much.calls);
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const bool once_only = batches[i].size() == 1;
    if (!once_only) batches[i].erase(batches[i].begin());
    const double typical = median(all.lengths(m.rank, batches[i])) / (once_only ? 1 : much.calls);
    if (team.rank() == 0)
      fmt::print(
          "{{\"verb\": \"{}\", \"bytes\": {}, \"workers\": {}, \"transport\": \"{}\", \"method\": \"{}\", "
          "\"microseconds\": {:.3f}}}\n",
          p.name(), p.bytes(), p.workers, team.carrier().traits().name, methods[i].name, 1e6 * typical);
  }
}

/// Exchanges of as many layers, each of extents of its own.
void bind_layers(tessera::team_state& team, int layers) {
  const auto began = clock_type::now();
  for (int i = 0; i < layers; ++i) {
    matrices m({calls::verb::halo, 16 + i, 4, team.mesh().size()}, team.rank());
    calls::bound_verb(team, m);
  }
  const double seconds = std::chrono::duration<double>(clock_type::now() - began).count();
  if (team.rank() == 0)
    fmt::print(
        "{{\"name\": \"calls.bind.{}.{}\", \"ratio\": {:.2f}, \"bar\": null, \"ok\": true, "
        "\"unit\": \"microseconds a layer, of {}\"}}\n",
        team.carrier().traits().name, team.mesh().size(), 1e6 * seconds / layers, layers);
}

}  // namespace

int main(int argc, char** argv) {
  bool once = false;
  int workers = tessera::read_environment().world;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--once") once = true;
    if (option == "--workers" && i + 1 < argc) workers = std::atoi(argv[++i]);
  }
  tessera::mesh_value row;
  row.axes.push({tessera::text{"worker"}, workers, 1});
  tessera::launch_options options;
  options.time_limit = std::chrono::seconds(60);
  if (tessera::engine::shares_memory(options)) tessera::engine::shared_heap::of_process().open();
  crew all(workers, tessera::read_environment().by == tessera::engine::launcher::mpi);
  return tessera::run_workers(argc, argv, options, row,
                              [&](const std::shared_ptr<tessera::engine::transport>& carrier) {
                                tessera::team_state team(carrier, row);
                                using calls::verb;
                                struct extents {
                                  index_t rows, columns;
                                };
                                for (const extents n : {extents{16, 32}, extents{256, 512}, extents{2048, 4096}})
                                  for (const verb v : calls::verbs)
                                    if (!once || n.rows == 16)
                                      measure(all, team, {v, n.rows, n.columns, workers}, once);
                                bind_layers(team, once ? 10 : 1000);
                                std::fflush(stdout);
                              });
}
