// Rolls changes of layout and holds their plans, and their exchanges of LibTorch tensors, against a serial oracle.

#include "plans.hpp"
#include "roll.hpp"
#include "shrink.hpp"
#ifdef FUZZ_EXCHANGES
#include "exchanges.hpp"
#endif

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>

namespace {

using namespace tessera::testing;
using namespace tessera::testing::fuzz;

constexpr const char* about =
    "Rolls layout pairs on meshes, with windows, boundaries, deals and meanings of all kinds, and checks\n"
    "  plans      who receives what from whom, costs and lower bounds, mirrored lists, and what values come to\n"
    "  exchanges  tensors of every element type, run on threads: elements, gradients, the pairing, bytes\n"
    "A case that fails is made smaller and printed as a line that --case runs again.";
constexpr const char* statuses =
    "Exit status: 0 when all is right, 1 when a case fails, 2 when an option or a case has no meaning.";

// The line of the case that runs now, for what ends the program.
char line_now[4096];

void show_and_end(int signal) {
  const char* const words[]{"\nfuzz: ended by a signal in\n  --case \"", line_now, "\"\n"};
  for (const char* w : words) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, w, std::strlen(w));
  }
  ::_exit(128 + signal);
}

/// What is wrong with a case, what it throws included.
std::string judged(const fuzz_case& c, const std::function<std::string(const fuzz_case&)>& judge) {
  std::snprintf(line_now, sizeof line_now, "%s", text_of(c).c_str());
  try {
    const std::string why = judge_combines(c);
    return why.empty() ? judge(c) : why;
  } catch (const std::exception& why) {
    return std::string("throws: ") + why.what();
  }
}

/// Judges one case in both ways. The exit status.
int try_one(const std::string& line) {
  const auto c = parse(line);
  if (!c || !legal(*c)) {
    std::fprintf(stderr, "fuzz: this is no case, or one whose change is refused\n");
    return 2;
  }
  std::string why = judged(*c, judge_plan);
  std::printf("plan: %s\n", why.empty() ? "right" : why.c_str());
  bool wrong = !why.empty();
#ifdef FUZZ_EXCHANGES
  why = judged(*c, judge_exchange);
  std::printf("exchange: %s\n", why.empty() ? "right" : why.c_str());
  wrong = wrong || !why.empty();
#endif
  return wrong ? 1 : 0;
}

/// Judges `count` rolled cases; prints the first ones that fail, smaller. How many failed.
int try_all(const char* what, long count, std::uint64_t seed, const limits& most, const std::vector<std::string>& elements,
            const std::function<std::string(const fuzz_case&)>& judge) {
  int failed = 0;
  const auto began = std::chrono::steady_clock::now();
  long i = 0;
  for (; i < count && failed < 3; ++i) {
    dice d{seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(i) * 0xd1342543de82ef95u};
    const fuzz_case c = roll_case(d, most, elements);
    const auto again = parse(text_of(c));
    std::string why = again && text_of(*again) == text_of(c) ? judged(*again, judge) : "its line means another case";
    if (why.empty()) continue;
    ++failed;
    std::printf("%s %ld: %s\n  --case \"%s\"\n", what, i, why.c_str(), text_of(c).c_str());
    std::fflush(stdout);
    const fuzz_case small = shrunk(c, [&](const fuzz_case& s) { return legal(s) && !judged(s, judge).empty(); });
    std::printf("  smaller: %s\n  --case \"%s\"\n", judged(small, judge).c_str(), text_of(small).c_str());
    std::fflush(stdout);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("%ld %s, seed %llu, %d failed, %.1f s\n", i, what, static_cast<unsigned long long>(seed), failed, seconds);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  long plans = 150000;
  long exchanges = 5000;
  std::uint64_t seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1500000;
  std::string line;
  CLI::App app{about};
  app.footer(statuses);
  const CLI::Range count{0L, 1'000'000'000L};
  app.add_option("--plans", plans, "how many plans")->capture_default_str()->check(count)->type_name("N");
  app.add_option("--exchanges", exchanges, "how many exchanges; none where there is no LibTorch")
      ->capture_default_str()
      ->check(count)
      ->type_name("N");
  app.add_option("--seed", seed, "of the clock unless said")->type_name("S");
  app.add_option("--case", line, "only this one, as a plan and as an exchange");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, show_and_end);
  if (!line.empty()) return try_one(line);

  int failed = try_all("plans", plans, seed, {}, {"double"}, judge_plan);
#ifdef FUZZ_EXCHANGES
  failed += try_all("exchanges", exchanges, seed, {10, 200}, element_names(), judge_exchange);
#endif
  return failed == 0 ? 0 : 1;
}
