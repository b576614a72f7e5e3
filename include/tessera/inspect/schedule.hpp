#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/plan/schedule/schedule_run.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace tessera {

namespace engine {

/// "3", "3b" of a backward, "3i" and "3w" of those of inputs and of weights; of one of several chunks with its letter,
/// "3A", "3Bb".
inline std::string cell_of(const pipeline::operation& x, const pipeline::extent& of) {
  constexpr const char* words[]{"", "b", "i", "w"};
  const std::string chunk = of.chunks > 1 ? std::string(1, static_cast<char>('A' + x.chunk % 26)) : "";
  return fmt::format("{}{}{}", x.micro_batch, chunk, words[static_cast<int>(x.does)]);
}

}  // namespace engine

/// A schedule as a picture: a line for each stage, a column for each step, a dot where the stage waits.
///
/// Below it stand the steps, the waiting and what stages keep.
template <class Schedule>
  requires requires(const Schedule& s) { s.of.stages; }
std::string picture(const Schedule& s) {
  const pipeline::run r = pipeline::run_of(s);
  if (!r.why.ok()) return std::string(error(r.why).what()) + "\n";
  std::size_t width = 1;
  for (int stage = 0; stage < s.of.stages; ++stage)
    for (int i = 0; i < pipeline::engine::count_of(s, stage); ++i)
      width = std::max(width, engine::cell_of(s.at(stage, i), s.of).size());
  std::string all;
  int most = 0;
  for (int stage = 0; stage < s.of.stages; ++stage) {
    all += fmt::format("stage {:<3}", stage);
    int now = 0;
    for (int i = 0; i < pipeline::engine::count_of(s, stage); ++i, ++now) {
      for (; now < r.begin_of(stage, i); ++now) all += fmt::format(" {:>{}}", ".", width);
      all += fmt::format(" {:>{}}", engine::cell_of(s.at(stage, i), s.of), width);
    }
    for (; now < r.span; ++now) all += fmt::format(" {:>{}}", ".", width);
    all += "\n";
    most = std::max(most, r.live[stage]);
  }
  return all + fmt::format("{} steps, {:.1f} % of them waiting; a stage keeps {} micro-batches at most\n", r.span,
                           100 * r.bubble(), most);
}

}  // namespace tessera
