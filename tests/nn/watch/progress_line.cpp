#include "tests/support/catch.hpp"
#include "tests/support/in_workers.hpp"

#include <tessera/nn/watch/progress_line.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

// What a progress line writes into a file, and onto a terminal.

namespace tessera::testing::progress_showing {
namespace {

using nn::progress_line;

/// What f(file) wrote into a file that is no terminal.
template <class F>
std::string written(F&& f) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  f(file);
  std::rewind(file);
  std::string all;
  for (int c; (c = std::fgetc(file)) != EOF;) all += static_cast<char>(c);
  std::fclose(file);
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  return all;
}

/// A terminal of so many columns, and what came to it.
class terminal {
 public:
  explicit terminal(int columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (!is_there()) return;
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    ::winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    file = std::fopen(::ptsname(master_), "w");
    REQUIRE(file != nullptr);
    REQUIRE(::ioctl(::fileno(file), TIOCSWINSZ, &size) == 0);
    ::setenv("TERM", "xterm", 1);
  }
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;
  ~terminal() {
    if (!is_there()) return;
    std::fclose(file);
    ::close(master_);
  }
  /// A system of bare folders has none.
  bool is_there() const { return master_ >= 0; }
  /// All that came: the system hands on what was written when it has time, so nothing more has come after a second.
  std::string came() const {
    std::string all;
    ::pollfd more{master_, POLLIN, 0};
    while (!all.ends_with("\n") && ::poll(&more, 1, 1000) > 0) {
      char bytes[8192];
      const ::ssize_t n = ::read(master_, bytes, sizeof bytes);
      if (n <= 0) break;
      all.append(bytes, static_cast<std::size_t>(n));
    }
    return all;
  }

  std::FILE* file = nullptr;

 private:
  int master_;
};

TEST_CASE("a file gets a line for each tenth, with count, text, samples a second and the time that is left",
          "[runtime]") {
  const auto lines = lines_of(written([](std::FILE* to) {
    progress_line line("step", 1000, to);
    for (int step = 0; step <= 1000; ++step) line.update(step, step % 2 == 0 ? "loss 0.25" : "", step * 64);
  }));
  REQUIRE(lines.size() == 11);  // the first step too
  CHECK(lines[0].starts_with("step    1/1000  "));
  CHECK(lines[1].starts_with("step  100/1000  loss 0.25  "));
  CHECK(lines[1].find(" samples/s  0:00 left") != std::string::npos);
  CHECK(lines[10].starts_with("step 1000/1000  loss 0.25  "));
  CHECK(lines[10].ends_with(" s"));
  CHECK(lines[10].find("took ") != std::string::npos);
}

TEST_CASE("a run that is resumed counts pace and samples from its own beginning", "[runtime]") {
  constexpr std::int64_t before = 1'000'000'000'000;
  const auto lines = lines_of(written([](std::FILE* to) {
    progress_line line("step", 100, to);
    line.begin_at(90, before);
    line.update(90, "begins", before);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    line.update(91, "", before + 1);
    line.update(100, "", before + 10);
  }));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "step  90/100  begins  ");
  CHECK(lines[1].find("e+") == std::string::npos);
  const std::size_t at = lines[1].find("samples/s");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(lines[1].substr(lines[1].rfind("  ", at) + 2)) <= 50);  // ten in the time that one slept
  CHECK(lines[1].find("took ") != std::string::npos);

  const auto left = lines_of(written([](std::FILE* to) {
    progress_line line("step", 100, to);
    line.begin_at(90);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    line.update(91);
  }));
  REQUIRE(left.size() == 1);
  CHECK(left[0].find("0:00 left") == std::string::npos);  // nine times what was slept
  CHECK(left[0].find(" left") != std::string::npos);
}

TEST_CASE("a terminal has one line, drawn again in place and no wider than it is", "[runtime]") {
  for (const int columns : {60, 15}) {
    const terminal there(columns);
    if (!there.is_there()) {
      WARN("this system has no pseudo terminal, so nothing is drawn on one");
      return;
    }
    {
      progress_line line("step", 10, there.file);
      line.update(1, "loss 2");
      line.update(10, "loss 1");
    }
    const std::string all = there.came();
    CHECK(std::count(all.begin(), all.end(), '\n') == 1);
    CHECK(all.ends_with("\n"));
    CHECK(std::count(all.begin(), all.end(), '\r') >= 2);
    for (std::size_t from = 0, to; (to = all.find("\x1b[K", from)) != all.npos; from = to + 3) {
      std::size_t width = 0;
      for (std::size_t i = from; i < to; ++i) width += all[i] != '\r' && all[i] != '\n' && (all[i] & 0xC0) != 0x80;
      CHECK(width < static_cast<std::size_t>(columns));
    }
    CHECK((all.find("loss 1") != all.npos) == (columns == 60));
  }
}

TEST_CASE("one worker of a team shows it", "[runtime]") {
  struct three : axis<3> {};
  const std::string all = written([](std::FILE* to) {
    const auto run = in_world(3, [&](const std::shared_ptr<engine::transport>& carrier) {
      const team<mesh<three>> t(carrier);
      progress_line line(t, "epoch", 1, to);
      line.update(1);
      return 0;
    });
    REQUIRE(run.well());
  });
  CHECK(lines_of(all).size() == 1);
}

}  // namespace
}  // namespace tessera::testing::progress_showing
