#pragma once

#include <tessera/comm/team.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace tessera::nn {

/// Shows how far work has come: one line redrawn in place on a terminal, elsewhere a plain line for each tenth and
/// each minute.
///
///   ts::nn::progress_line line(team, "step", steps);
///   line.update(step, fmt::format("loss {:.4f}", loss), step * batch);
///
/// It shows the count, the text, samples a second, and the time that is left by the pace so far.
class progress_line {
 public:
  /// Work named `title` of `total` steps, shown where `to` leads.
  explicit progress_line(std::string title, std::int64_t total, std::FILE* to = stderr);
  /// The same by the first worker of a team alone.
  template <Mesh M>
  progress_line(const team<M>& team, std::string title, std::int64_t total, std::FILE* to = stderr)
      : progress_line(std::move(title), total, team.first() ? to : nullptr) {}
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  /// Ends the line, so that what is printed next, an error perhaps, begins on its own.
  ~progress_line();

  /// Goes on behind what an earlier run did: the pace, and the samples of a second, are those from here on.
  void begin_at(std::int64_t done, std::int64_t samples = 0);

  /// Says that `done` steps are behind us, and so many samples in all, if any; `text` is shown beside the count.
  void update(std::int64_t done, const std::string& text = {}, std::int64_t samples = 0);

  /// Ends the line; nothing happens the second time.
  void finish();

 private:
  using clock = std::chrono::steady_clock;

  void redraw(std::int64_t done, const std::string& text);
  void line(std::int64_t done, const std::string& text);
  std::string count(std::int64_t done) const;
  std::string bar(std::int64_t done, int width) const;
  std::string time(std::int64_t done) const;
  double spent() const { return std::chrono::duration<double>(clock::now() - start_).count(); }

  std::string title_;
  std::int64_t total_;
  std::FILE* to_;
  int columns_;
  bool unicode_;
  bool drawn_ = false;
  std::int64_t shown_ = 0;
  std::int64_t begun_ = 0, begun_samples_ = 0;  ///< by an earlier run
  clock::time_point start_ = clock::now(), last_ = start_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/watch/progress_line_impl.hpp>
#endif
