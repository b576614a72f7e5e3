#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/nn/watch/progress_line.hpp>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace tessera::nn {

namespace engine {

/// The columns of the terminal behind a file; 0 when there is none, or none that a person looks at.
///
/// mpirun gives its workers a terminal even when its own output is a file, but one of no width.
inline int columns_of(std::FILE* to) {
  const char* kind = std::getenv("TERM");
  ::winsize size{};
  if (to == nullptr || kind == nullptr || std::string_view(kind) == "dumb" || ::isatty(::fileno(to)) == 0) return 0;
  return ::ioctl(::fileno(to), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/// Whether the environment asks for UTF-8.
inline bool asks_for_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      const std::string_view text = value;
      return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
    }
  return false;
}

inline std::string in_minutes(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace engine

TESSERA_INLINE progress_line::progress_line(std::string title, std::int64_t total, std::FILE* to)
    : title_(std::move(title)),
      total_(std::max<std::int64_t>(total, 1)),
      to_(to),
      columns_(engine::columns_of(to)),
      unicode_(engine::asks_for_utf8()) {}
TESSERA_INLINE progress_line::~progress_line() { finish(); }

TESSERA_INLINE void progress_line::finish() {
  if (to_ == nullptr) return;
  if (std::exchange(drawn_, false)) std::fputc('\n', to_);
  std::fflush(to_);
}

TESSERA_INLINE void progress_line::begin_at(std::int64_t done, std::int64_t samples) {
  begun_ = std::clamp<std::int64_t>(done, 0, total_);
  begun_samples_ = samples;
  start_ = clock::now();
}

TESSERA_INLINE void progress_line::update(std::int64_t done, const std::string& text, std::int64_t samples) {
  if (to_ == nullptr) return;
  done = std::clamp<std::int64_t>(done, 0, total_);
  const double seconds = spent();
  std::string shown = text;
  if (samples > begun_samples_ && seconds > 0)
    shown += fmt::format("{}{:.0f} samples/s", text.empty() ? "" : "  ",
                         static_cast<double>(samples - begun_samples_) / seconds);
  if (columns_ > 0) return redraw(done, shown);
  const bool tenth = done * 10 / total_ > shown_ * 10 / total_ || (done > 0 && shown_ == 0);
  if (tenth || clock::now() - last_ >= std::chrono::minutes(1)) line(done, shown);
}

TESSERA_INLINE void progress_line::redraw(std::int64_t done, const std::string& text) {
  const auto now = clock::now();
  if (drawn_ && done < total_ && now - last_ < std::chrono::milliseconds(50)) return;
  last_ = now;
  drawn_ = true;
  const std::string after = fmt::format(" {}  {}  {}", count(done), text, time(done));
  const int room = columns_ - 2 - static_cast<int>(title_.size() + after.size());
  const std::string whole = fmt::format("{} {}", title_, bar(done, std::clamp(room, 0, 40))) + after;
  const std::string drawn = room < 0 ? whole.substr(0, static_cast<std::size_t>(columns_ - 1)) : whole;
  std::fputs(("\r" + drawn + "\x1b[K").c_str(), to_);
  std::fflush(to_);
}

TESSERA_INLINE void progress_line::line(std::int64_t done, const std::string& text) {
  shown_ = done;
  last_ = clock::now();
  std::fputs(fmt::format("{} {}  {}  {}\n", title_, count(done), text, time(done)).c_str(), to_);
  std::fflush(to_);
}

TESSERA_INLINE std::string progress_line::count(std::int64_t done) const {
  return fmt::format("{:>{}}/{}", done, fmt::formatted_size("{}", total_), total_);
}

/// A bar of so many columns, filled in the share of the work that is done.
TESSERA_INLINE std::string progress_line::bar(std::int64_t done, int width) const {
  const auto filled = static_cast<int>(done * width / total_);
  std::string drawn;
  for (int column = 0; column < width; ++column)
    drawn += column < filled ? (unicode_ ? "█" : "#") : (unicode_ ? "░" : ".");
  return drawn;
}

/// The time that is left, by the pace so far; the time it took when all is done.
TESSERA_INLINE std::string progress_line::time(std::int64_t done) const {
  if (done <= begun_) return "";
  const double seconds = spent();
  if (done == total_)
    return seconds < 60 ? fmt::format("took {:.1f} s", seconds) : "took " + engine::in_minutes(seconds);
  return engine::in_minutes(seconds / static_cast<double>(done - begun_) * static_cast<double>(total_ - done)) +
         " left";
}

}  // namespace tessera::nn
