// How many plans a second the engine answers at 4,096 and 1,000,000 workers: reported, no bar. One JSON line a figure.
#include <tessera/core.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdio>
#include <string>

namespace ts = tessera;
using ts::index_t;

namespace {

ts::layout tiles(int rows, int columns, index_t n) {
  ts::layout x;
  x.mesh.axes.push({ts::text{"row"}, rows, 0});
  x.mesh.axes.push({ts::text{"col"}, columns, 0});
  x.mesh = ts::row_major(x.mesh);
  x.placements.resize(2);
  ts::engine::dimension d;
  d.extent = n;
  x.dims.push(d);
  x.dims.push(d);
  return x;
}

ts::layout blocks(int rows, int columns, index_t n) {
  ts::layout x = tiles(rows, columns, n);
  x.cut_by(0, 0);
  x.cut_by(1, 1);
  return x;
}

// All workers cut one dimension.
ts::layout slabs(int side, index_t n, int dim) {
  ts::layout x = tiles(side, side, n);
  x.cut_by(dim, 0);
  x.cut_by(dim, 1);
  return x;
}

ts::layout haloed(int side, index_t n) {
  ts::layout x = blocks(side, side, n);
  const ts::sliding five{5, 1, 2, 2, 1};
  for (auto& d : x.dims) {
    d.kind = ts::cover::haloed;
    d.outputs = five.outputs(n);
    d.needs = five.needs();
  }
  return x;
}

struct question {
  const char* name;
  ts::layout from, to;
};

// The plan and one worker's messages, both ways; another worker each time.
void one_worker(benchmark::State& state, const question& q) {
  const int workers = q.to.mesh.size();
  int rank = 0;
  index_t messages = 0;
  for (auto _ : state) {
    const ts::engine::transfer plan{ts::engine::map::move, q.from, q.to};
    rank = (rank + 7'919) % workers;
    const auto count = [&](const ts::engine::message& m) { benchmark::DoNotOptimize(messages += m.from != m.to); };
    plan.receives(rank, count);
    plan.sends(rank, count);
  }
  state.counters["messages"] = static_cast<double>(messages) / static_cast<double>(state.iterations());
}

// The plan, one worker's messages and what all workers' messages cost.
void with_cost(benchmark::State& state, const question& q) {
  int rank = 0;
  for (auto _ : state) {
    const ts::engine::transfer plan{ts::engine::map::move, q.from, q.to};
    rank = (rank + 7'919) % q.to.mesh.size();
    plan.receives(rank, [](const ts::engine::message& m) { benchmark::DoNotOptimize(m.where.items[0].lo); });
    plan.sends(rank, [](const ts::engine::message& m) { benchmark::DoNotOptimize(m.where.items[0].lo); });
    benchmark::DoNotOptimize(ts::engine::cost_of(plan));
  }
}

class lines : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& r : runs) {
      const double seconds = r.GetAdjustedCPUTime() * 1e-9;
      const auto found = r.counters.find("messages");
      const std::string messages =
          found == r.counters.end() ? "" : ", \"messages\": " + std::to_string(std::llround(found->second.value));
      std::printf("{\"name\": \"%s\", \"plans_per_second\": %.3g, \"microseconds\": %.4g%s}\n",
                  r.benchmark_name().c_str(), 1 / seconds, seconds * 1e6, messages.c_str());
    }
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  for (const int side : {64, 1000}) {
    const index_t n = side * index_t{side} + 37;  // nothing divides evenly, and nobody is idle
    const question questions[]{
        {"blocks_to_blocks", blocks(side, side, n), blocks(side * 2, side / 2, n)},  // between two meshes
        {"halo", blocks(side, side, n), haloed(side, n)},
        {"all_to_all_in_rows", blocks(side, side, n), slabs(side, n, 0)},
        {"all_to_all", slabs(side, n, 0), slabs(side, n, 1)},
    };
    for (const question& q : questions) {
      const std::string name = "plans." + std::to_string(side * side) + "." + q.name;
      benchmark::RegisterBenchmark((name + ".one_worker").c_str(), [q](benchmark::State& s) { one_worker(s, q); });
      benchmark::RegisterBenchmark((name + ".with_cost").c_str(), [q](benchmark::State& s) { with_cost(s, q); });
    }
  }
  benchmark::Initialize(&argc, argv);
  lines reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
}
