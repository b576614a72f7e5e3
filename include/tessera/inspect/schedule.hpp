#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/plan/schedule/schedule_run.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tessera {

namespace engine {

/// "3", "3b" of a backward, "3i" and "3w" of those of inputs and of weights; of one of several chunks with its letter,
/// "3A", "3Bb". A step is "s".
inline std::string cell_of(const pipeline::operation& x, const pipeline::extent& of) {
  constexpr const char* words[]{"", "b", "i", "w"};
  if (x.does == pipeline::work::step) return "s";
  const std::string chunk = of.chunks > 1 ? std::string(1, static_cast<char>('A' + x.chunk % 26)) : "";
  return fmt::format("{}{}{}", x.micro_batch, chunk, words[static_cast<int>(x.does)]);
}

}  // namespace engine

/// A schedule as a picture: a line for each stage, a column for each step of time, a dot where the stage waits.
///
/// A step that takes no time stands beside the operation before it, and a dash is an operation that goes on. Below it
/// stand the steps, the waiting and what stages keep.
template <class Schedule>
  requires requires(const Schedule& s) { s.of.stages; }
std::string picture(const Schedule& s, const pipeline::times& each = {}) {
  const pipeline::run r = pipeline::run_of(s, each);
  if (!r.why.ok()) return std::string(error(r.why).what()) + "\n";
  std::vector<std::vector<std::string>> cells;
  std::size_t width = 1;
  for (int stage = 0; stage < s.of.stages; ++stage) {
    auto& row = cells.emplace_back(static_cast<std::size_t>(r.span), ".");
    for (int i = 0; i < pipeline::engine::count_of(s, stage); ++i) {
      const pipeline::operation x = s.at(stage, i);
      const auto begins = static_cast<std::size_t>(r.begin_of(stage, i));
      const auto takes = static_cast<std::size_t>(each.of(x.does));
      if (takes > 0) std::fill_n(row.begin() + r.begin_of(stage, i), takes, "-");
      if (takes > 0) row[begins] = engine::cell_of(x, s.of);
      else row[begins - 1] += engine::cell_of(x, s.of);
    }
    for (const std::string& one : row) width = std::max(width, one.size());
  }
  std::string all;
  int most = 0;
  for (int stage = 0; stage < s.of.stages; ++stage) {
    all += fmt::format("stage {:<3}", stage);
    for (const std::string& one : cells[static_cast<std::size_t>(stage)]) all += fmt::format(" {:>{}}", one, width);
    all += "\n";
    most = std::max(most, r.live[stage]);
  }
  return all + fmt::format("{} steps, {:.1f} % of them waiting; a stage keeps {} micro-batches at most\n", r.span,
                           100 * r.bubble(), most);
}

}  // namespace tessera
