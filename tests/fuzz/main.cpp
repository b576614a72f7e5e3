// Rolls changes of layout and holds their plans, and their exchanges of LibTorch tensors, against a serial oracle.

#include "plans.hpp"
#include "roll.hpp"
#include "shrink.hpp"
#ifdef FUZZ_EXCHANGES
#include "exchanges.hpp"
#endif

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>

namespace {

using namespace tessera::testing;
using namespace tessera::testing::fuzz;

constexpr const char* usage =
    "usage: fuzz [--plans N] [--exchanges N] [--seed S] [--case TEXT]\n"
    "\n"
    "Rolls N layout pairs on meshes, with windows, boundaries, deals and meanings of all kinds, and checks\n"
    "  plans      who receives what from whom, costs and lower bounds, mirrored lists, and what values come to\n"
    "  exchanges  tensors of every element type, run on threads: elements, gradients, the pairing, bytes\n"
    "A case that fails is made smaller and printed as a line that --case runs again.\n"
    "\n"
    "--plans N      150000 unless said\n"
    "--exchanges N  5000 unless said; none where there is no LibTorch\n"
    "--seed S       of the clock unless said\n"
    "--case TEXT    only this one, as a plan and as an exchange\n"
    "\n"
    "Exit status: 0 when all is right, 1 when a case fails, 2 when an option or a case has no meaning.\n";

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
    return judge(c);
  } catch (const tessera::refusal& why) {
    return std::string("refuses: ") + tessera::words_of(why.code).sentence;
  } catch (const std::exception& why) {
    return std::string("throws: ") + why.what();
  }
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
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    try {
      const std::string value = i + 1 < argc ? argv[++i] : throw std::invalid_argument(option);
      if (option == "--plans") plans = std::stol(value);
      else if (option == "--exchanges") exchanges = std::stol(value);
      else if (option == "--seed") seed = std::stoull(value);
      else if (option == "--case") line = value;
      else throw std::invalid_argument(option);
    } catch (const std::exception&) {
      std::fprintf(stderr, "fuzz: %s is no option, or lacks its number\n%s", option.c_str(), usage);
      return 2;
    }
  }
  for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, show_and_end);

  const std::vector<std::string> any_element{"double"};
  if (!line.empty()) {
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
  int failed = try_all("plans", plans, seed, {}, any_element, judge_plan);
#ifdef FUZZ_EXCHANGES
  failed += try_all("exchanges", exchanges, seed, {10, 200}, element_names(), judge_exchange);
#else
  static_cast<void>(exchanges);
#endif
  return failed == 0 ? 0 : 1;
}
