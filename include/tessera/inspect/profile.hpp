#pragma once

#include <tessera/inspect/listing.hpp>
#include <tessera/inspect/network.hpp>
#include <tessera/nn/network/executor.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <chrono>
#include <sstream>

namespace tessera {

namespace engine {

/// A visit of a worker to a layer, and what it took.
struct layer_span {
  std::string path;
  std::string name;
  bool backward = false;
  double begin = 0;  ///< in seconds since the profile began
  double end = 0;
  std::int64_t bytes = 0;  ///< received
  std::int64_t messages = 0;
  std::int64_t memory = 0;  ///< the most that lived meanwhile of what was made since the profile began, in bytes
};

}  // namespace engine

/// The cost of each layer of a running network, on all workers: time, bytes and memory, by path, forward and backward.
///
/// It lives on the worker's thread, around what it is to see. `table` and `chrome_trace` are called by all workers
/// together, and all get them.
class profile {
 public:
  /// Observes a network until it ends; all workers begin together.
  explicit profile(nn::engine::executor& of)
      : of_(of), team_(of.team()), seen_(std::make_shared<recorder>(*team_, count_)) {
    team_->collect(0, "beginning a profile");
    seen_->zero = std::chrono::steady_clock::now();
    of_.observe(seen_);
  }
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;
  ~profile() {
    seen_->ends();
    of_.observe(nullptr);
  }

  /// This worker's visits, in order.
  const std::vector<engine::layer_span>& spans() const { return seen_->spans; }

  /// By path, of a visit: milliseconds on the slowest worker, bytes that all receive, the most memory of a worker.
  ///
  /// `table({.depth = 1, .least_bytes = 1 << 20, .by_bytes = true, .most = 10})` puts layers of more names into their
  /// scope, leaves out those below a mebibyte, and lists those ten that take most memory; with `by_time` the slowest.
  std::string table(const engine::listing& how = {}) const {
    const std::vector<row> rows = rows_of_all(how.depth);
    std::size_t names = 12;
    for (const row& r : rows) names = std::max(names, r.path.size() + r.name.size() + 3);
    std::string s = fmt::format("{:<{}}{:>8}{:>12}{:>13}{:>12}{:>12}{:>12}\n", "layer", names, "visits", "forward ms",
                                "backward ms", "forward B", "backward B", "memory B");
    const auto each = [](auto total, std::int64_t visits) {
      return visits == 0 ? 0 : total / static_cast<decltype(total)>(visits);
    };
    for (const row& r : engine::listed(rows, how))
      s += fmt::format("{:<{}}{:>8}{:>12.3f}{:>13.3f}{:>12}{:>12}{:>12}\n",
                       r.path.empty() ? r.name : r.path + " " + r.name, names, r.visits[0],
                       1e3 * each(r.seconds[0], r.visits[0]), 1e3 * each(r.seconds[1], r.visits[1]),
                       engine::grouped(each(r.received[0], r.visits[0])),
                       engine::grouped(each(r.received[1], r.visits[1])), engine::grouped(r.bytes));
    double seconds[2]{};
    for (const row& r : rows)
      for (const int backward : {0, 1}) seconds[backward] += r.seconds[backward];
    return s + fmt::format("{:<{}}{:>12.3f}{:>13.3f}\n", "in all visits, ms", names + 8, 1e3 * seconds[0],
                           1e3 * seconds[1]);
  }

  /// All visits in the Chrome trace format, which chrome://tracing and ui.perfetto.dev show: a row for each worker, and
  /// its memory.
  std::string chrome_trace() const {
    const std::vector<std::vector<engine::layer_span>> all = gathered();
    std::string events;
    const auto add = [&](const std::string& event) { events += (events.empty() ? "\n{" : ",\n{") + event + "}"; };
    for (std::size_t i = 0; i < all.size(); ++i) {
      const mesh_value& mesh = team_->mesh();
      const int rank = mesh.rank(mesh.at(static_cast<int>(i)));
      add(fmt::format(R"("name": "thread_name", "ph": "M", "pid": 0, "tid": {}, "args": {{"name": {}}})", rank,
                      engine::json_string(fmt::format("worker {}: {}", rank, engine::label_of(mesh, rank)))));
      for (const engine::layer_span& v : all[i]) {
        add(fmt::format(R"("name": {}, "cat": "{}", "ph": "X", "ts": {:.3f}, "dur": {:.3f}, "pid": 0, "tid": {}, )"
                        R"("args": {{"path": {}, "bytes": {}, "messages": {}, "memory": {}}})",
                        engine::json_string(v.name + (v.backward ? " backward" : "")),
                        v.backward ? "backward" : "forward", 1e6 * v.begin, 1e6 * (v.end - v.begin), rank,
                        engine::json_string(v.path), v.bytes, v.messages, v.memory));
        add(fmt::format(R"("name": "memory of worker {}", "ph": "C", "ts": {:.3f}, "pid": 0, "args": {{"bytes": {}}})",
                        rank, 1e6 * v.begin, v.memory));
      }
    }
    return "{\"traceEvents\": [" + events + "\n]}\n";
  }

 private:
  class recorder final : public nn::layer_observer {
   public:
    recorder(team_state& team, engine::memory_count& count) : team_(&team), count_(&count) {}

    std::chrono::steady_clock::time_point zero;
    std::vector<engine::layer_span> spans;

    void entered(const nn::layer_visit&) override {
      if (count_ == nullptr) return;
      before_ = team_->total;
      count_->restart_peak();
      begin_ = now();
    }
    void left(const nn::layer_visit& v) override {
      if (count_ == nullptr) return;
      const engine::received& got = team_->total;
      spans.push_back({v.path, v.name, v.direction == purpose::backward, begin_, now(),
                       static_cast<std::int64_t>(got.bytes - before_.bytes),
                       static_cast<std::int64_t>(got.messages - before_.messages), count_->peak()});
    }
    // A graph may outlive the profile.
    void ends() { count_ = nullptr; }

   private:
    double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - zero).count(); }

    team_state* team_;
    engine::memory_count* count_;
    engine::received before_;
    double begin_ = 0;
  };

  /// The cost of a layer over all its visits, or of all layers of a scope; bytes are of memory.
  struct row {
    std::string path, name;
    double seconds[2]{};
    std::int64_t visits[2]{}, received[2]{}, bytes = 0;
    double time() const { return seconds[0] + seconds[1]; }
  };
  static row& row_in(std::vector<row>& rows, const std::string& path, const std::string& name) {
    const auto same = [&](const row& r) { return r.path == path && r.name == name; };
    auto at = std::find_if(rows.begin(), rows.end(), same);
    if (at == rows.end()) at = rows.insert(at, {path, name});
    return *at;
  }

  // The time of the slowest worker, and what all receive, in the order of the first visits.
  std::vector<row> rows_of_all(int depth) const {
    std::vector<row> rows;
    for (const std::vector<engine::layer_span>& worker : gathered()) {
      std::vector<row> mine;
      for (const engine::layer_span& v : worker) {
        const std::string scope = engine::scope_within(v.path, depth);
        row& r = row_in(mine, scope, scope == v.path ? v.name : scope.empty() ? "all" : "");
        r.seconds[v.backward] += v.end - v.begin;
        ++r.visits[v.backward];
        r.received[v.backward] += v.bytes;
        r.bytes = std::max(r.bytes, v.memory);
      }
      for (const row& m : mine) {
        row& r = row_in(rows, m.path, m.name);
        for (const int backward : {0, 1}) {
          r.seconds[backward] = std::max(r.seconds[backward], m.seconds[backward]);
          r.visits[backward] = std::max(r.visits[backward], m.visits[backward]);
          r.received[backward] += m.received[backward];
        }
        r.bytes = std::max(r.bytes, m.bytes);
      }
    }
    return rows;
  }

  // Everybody's visits, by worker.
  std::vector<std::vector<engine::layer_span>> gathered() const {
    std::string mine;
    for (const engine::layer_span& v : seen_->spans)
      mine += fmt::format("{}\t{}\t{} {:.9f} {:.9f} {} {} {}\n", v.path, v.name, static_cast<int>(v.backward), v.begin,
                          v.end, v.bytes, v.messages, v.memory);
    std::vector<std::vector<engine::layer_span>> all;
    for (const std::string& text : team_->collect_text(mine)) {
      std::istringstream lines(text);
      std::vector<engine::layer_span>& spans = all.emplace_back();
      for (engine::layer_span v; std::getline(lines, v.path, '\t') && std::getline(lines, v.name, '\t');) {
        lines >> v.backward >> v.begin >> v.end >> v.bytes >> v.messages >> v.memory;
        lines.ignore();
        spans.push_back(v);
      }
    }
    return all;
  }

  nn::engine::executor& of_;
  team_handle team_;
  engine::memory_count count_;
  std::shared_ptr<recorder> seen_;
};

}  // namespace tessera
