#pragma once

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace digits {

/// Shows how far long work has come: one line redrawn in place on a terminal, some ten plain lines elsewhere.
class progress {
 public:
  /// Work named `title` of `total` steps, shown on `out`.
  explicit progress(std::string title, int total, std::FILE* out = stdout)
      : title_(std::move(title)), total_(std::max(total, 1)), out_(out), columns_(width_of(out)), unicode_(is_utf8()) {}

  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Ends the line, so that what is printed next, an error perhaps, begins on its own.
  ~progress() { finish(); }

  /// Says that `done` steps are behind us; `text` is shown beside the count (a loss, a speed).
  void update(int done, const std::string& text) {
    done = std::clamp(done, 0, total_);
    const bool due = done * 10 / total_ > shown_ * 10 / total_ || (done > 0 && shown_ == 0);
    if (columns_ > 0) return redraw(done, text);
    if (due) line(done, text);
  }

  /// Ends the line; nothing happens the second time.
  void finish() {
    if (std::exchange(drawn_, false)) fmt::print(out_, "\n");
    std::fflush(out_);
  }

 private:
  using clock = std::chrono::steady_clock;

  void redraw(int done, const std::string& text) {
    const auto now = clock::now();
    if (drawn_ && done < total_ && now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    drawn_ = true;
    const std::string after = fmt::format(" {}  {}  {}", count(done), text, time(done));
    const int room = columns_ - 2 - static_cast<int>(title_.size() + after.size());
    const std::string whole = fmt::format("{} {}", title_, bar(done, std::clamp(room, 0, 40))) + after;
    fmt::print(out_, "\r{}\x1b[K", room < 0 ? whole.substr(0, static_cast<std::size_t>(columns_ - 1)) : whole);
    std::fflush(out_);
  }

  void line(int done, const std::string& text) {
    shown_ = done;
    fmt::print(out_, "{} {}  {}  {}\n", title_, count(done), text, time(done));
    std::fflush(out_);
  }

  std::string count(int done) const {
    return fmt::format("{:>{}}/{}", done, fmt::formatted_size("{}", total_), total_);
  }

  /// A bar of `width` columns, filled in the share of the work that is done.
  std::string bar(int done, int width) const {
    const int filled = static_cast<int>(static_cast<long>(done) * width / total_);
    std::string drawn;
    for (int column = 0; column < width; ++column)
      drawn += column < filled ? (unicode_ ? "█" : "#") : (unicode_ ? "░" : ".");
    return drawn;
  }

  /// The time that is left, by the pace so far; the time it took when all is done.
  std::string time(int done) const {
    const double spent = std::chrono::duration<double>(clock::now() - start_).count();
    if (done == 0) return "";
    if (done == total_) return spent < 60 ? fmt::format("took {:.1f} s", spent) : "took " + minutes(spent);
    return minutes(spent / done * (total_ - done)) + " left";
  }

  static std::string minutes(double seconds) {
    const auto whole = static_cast<long>(seconds + 0.5);
    return fmt::format("{}:{:02}", whole / 60, whole % 60);
  }

  /// The columns of the terminal behind `out`; 0 when there is none, or none that a person looks at.
  ///
  /// mpirun gives its workers a terminal even when its own output is a file, but one of no width.
  static int width_of(std::FILE* out) {
    const char* kind = std::getenv("TERM");
    winsize size{};
    if (kind == nullptr || std::string_view(kind) == "dumb" || isatty(fileno(out)) == 0) return 0;
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  }

  /// Whether the environment asks for UTF-8.
  static bool is_utf8() {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
      if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
        const std::string_view text = value;
        return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos;
      }
    return false;
  }

  std::string title_;
  int total_;
  std::FILE* out_;
  int columns_;
  bool unicode_;
  bool drawn_ = false;
  int shown_ = 0;
  clock::time_point start_ = clock::now(), last_ = start_;
};

}  // namespace digits
