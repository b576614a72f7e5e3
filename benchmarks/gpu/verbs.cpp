// What verbs take between devices, a thread with one each or, under a launcher, a process, which may share them: the
// library's exchanges, with sums of its own (by LibTorch's kernels) and with NCCL's, and NCCL's own calls on the same
// buffers, in turns. One JSON line a method; a ratio is the median over the rounds, above 1 where the library is
// quicker. Bytes and bandwidths are what nccl-tests counts (tools/fabric/bandwidth.hpp).
//
// A batch is a number of calls back to back, and takes as long as it does on the slowest worker. Results are compared
// with the right ones first.
#include "raw_nccl.hpp"

#include "tests/whole/gpu/here.hpp"

#include <tessera/comm/workers.hpp>
#include <tessera/tensor/store_rendezvous.hpp>

#include <cstdio>
#include <functional>

namespace {

using namespace gpu;
using fabric::lying;
using testing::devices_here;
using testing::devices_seen;
using clock_type = std::chrono::steady_clock;

constexpr int rounds = 7;

struct verb_of {
  lying from, to;
  bool each = false;  ///< so many bytes are one worker's
};
constexpr verb_of verbs[]{{lying::partial, lying::replicate}, {lying::rows, lying::replicate},
                          {lying::partial, lying::rows},      {lying::on_first, lying::replicate},
                          {lying::partial, lying::on_first},  {lying::rows, lying::columns, true},
                          {lying::rows, lying::haloed, true}};

fabric::way way_of(const verb_of& v, const mesh_value& line, index_t bytes) {
  const index_t n = line.size();
  const index_t row = bytes / 4 / (v.each ? 1 : n);
  const index_t extents[3]{n, 1, (row + n - 1) / n * n};
  const layout from = lying_along(line, 1, v.from, extents);
  const layout to = lying_along(line, 1, v.to, extents);
  return {verb_between(from, to), "", from, to};
}

struct method {
  const char* name;
  std::function<void()> call;
  std::function<void()> wait;
};

int calls_for(index_t bytes) { return bytes <= 1 << 20 ? 100 : 10; }

/// Seconds a call of a batch.
double batch(team_state& team, const method& m, int calls) {
  team.collect(std::uint64_t{0}, "meeting");
  const auto began = clock_type::now();
  for (int c = 0; c < calls; ++c) m.call();
  m.wait();
  const double mine = std::chrono::duration<double>(clock_type::now() - began).count();
  double slowest = 0;
  for (const std::uint64_t one : team.collect(std::bit_cast<std::uint64_t>(mine), "collecting times"))
    slowest = std::max(slowest, std::bit_cast<double>(one));
  return slowest / calls;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Tries the methods of a verb, and times them unless that is all.
void measure(team_state& team, team_state& by_library, const raw_nccl& raw, const fabric::way& w, bool once) {
  problem p(w, team.rank());
  bound_verb own(team, p);
  bound_verb library(by_library, p);
  std::vector<method> methods{{"NCCL", [&] { raw(p); }, [&] { raw.wait(); }},
                              {"tessera", [&] { own(); }, [&] { team.carrier().synchronise(); }}};
  if (w.from.placements[0].kind == placement::partial)
    methods.push_back({"tessera, sums by NCCL", [&] { library(); }, [&] { by_library.carrier().synchronise(); }});
  for (const method& m : methods) {
    p.forget();
    m.call();
    m.wait();
    if (!p.right())
      throw std::runtime_error(fmt::format("{}: {} brings something else", engine::name_of(w.is), m.name));
  }
  if (once) return;
  const double bytes = 4.0 * static_cast<double>(fabric::algorithm_elements(w));
  const double on_bus = 4.0 * static_cast<double>(fabric::bus_elements(w));
  std::vector<std::vector<double>> took(methods.size());
  for (int round = -1; round < rounds; ++round)  // the first one does not count
    for (std::size_t i = 0; i < methods.size(); ++i)
      if (const double t = batch(team, methods[i], calls_for(static_cast<index_t>(bytes))); round >= 0)
        took[i].push_back(t);
  if (team.rank() != 0) return;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    std::vector<double> ratios;
    for (std::size_t round = 0; round < rounds; ++round) ratios.push_back(took[0][round] / took[i][round]);
    const double t = median(took[i]);
    fmt::print(
        R"({{"name": "gpu.{}.{:.0f}.{}", "method": "{}", "bytes": {:.0f}, "workers": {}, "microseconds": {:.3f}, )"
        R"("algorithm_GBps": {:.3f}, "bus_GBps": {:.3f}, "ratio": {:.3f}}})"
        "\n",
        engine::name_of(w.is), bytes, w.from.mesh.size(), methods[i].name, bytes, w.from.mesh.size(), 1e6 * t,
        bytes / t * 1e-9, on_bus / t * 1e-9, median(ratios));
    std::fflush(stdout);
  }
}

/// Says why there is no figure. It is no failure.
int not_measured(const std::string& why) {
  if (tessera::read_environment().rank == 0) fmt::print(stderr, "gpu: not measured: {}\n", why);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const devices_here devices;
  const bool once = devices.are_none || (argc > 1 && std::string_view(argv[1]) == "--once");
  const engine::launch_environment launched = read_environment();
  const int workers = launched.by != launcher::none ? launched.world : devices_seen();
  if (devices_seen() == 0) return not_measured("no device");
  if (workers == 1) return not_measured("one device alone exchanges nothing");
  const auto kind = devices.torch_kind();
  if (!kind) return not_measured("LibTorch computes on no GPU: " + devices.why_without_torch());
  testing::share_devices(launched);
  mesh_value line;
  line.axes.push({text{"worker"}, workers, 1});
  launch_options options;
  options.meet = store_rendezvous;
  return run_workers(argc, argv, options, line, [&](const std::shared_ptr<transport>& host) {
    const auto boxes = std::make_shared<torch_boxes>(*kind);
    const auto own = std::make_shared<nccl_transport>(host, boxes, nccl_options{});
    const auto library = std::make_shared<nccl_transport>(host, boxes, nccl_options{.library_sums = true});
    const current_device here(own->device());
    team_state team(own, line);
    team_state by_library(library, line);
    const raw_nccl raw(*host, host->rank(), host->size());
    for (index_t bytes = 4 << 10; bytes <= 64 << 20; bytes *= 4)
      for (const verb_of& v : verbs)
        if (!once || bytes == 4 << 10) measure(team, by_library, raw, way_of(v, line, bytes), once);
    own->synchronise();
    library->synchronise();
  });
}
