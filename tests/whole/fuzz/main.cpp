// Rolls changes of layout and holds their plans, and their exchanges of LibTorch tensors, against a serial oracle;
// rolls layers and holds them against LibTorch's.

#include "plans.hpp"
#include "roll.hpp"
#include "shrink.hpp"
#ifdef FUZZ_EXCHANGES
#include "exchanges.hpp"
#include "layers.hpp"
#endif

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>

namespace {

using namespace tessera::testing;
using namespace tessera::testing::fuzz;

constexpr const char* about =
    "Rolls layout pairs on meshes, with windows, boundaries, deals and placements of all kinds, and checks\n"
    "  plans      who receives what from whom, costs and lower bounds, mirrored lists, and what values come to\n"
    "  exchanges  tensors of every element type, run on threads: elements, gradients, the pairing, bytes\n"
    "  devices    the same over NCCL, between devices that are threads of this process\n"
    "  layers     layers under rolled options on tensors that lie anyhow, against LibTorch's: outputs, gradients, a "
    "step, buffers;\n"
    "             with --on-devices on such devices\n"
    "  orders     layers of every element, which run where their plan says so, with derivatives of every order\n"
    "  memory     layers under rolled options, which ask LibTorch for no more than peak_memory counts\n"
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
template <class Case, class Judge>
std::string judged(const Case& c, const Judge& judge) {
  std::snprintf(line_now, sizeof line_now, "%s", text_of(c).c_str());
  try {
    return judge(c);
  } catch (const std::exception& why) {
    return std::string("throws: ") + why.what();
  }
}

/// Judges of changes look at their combines first.
template <class Judge>
auto with_combines(const Judge& judge) {
  return [judge](const fuzz_case& c) {
    const std::string why = judge_combines(c);
    return why.empty() ? judge(c) : why;
  };
}

/// Judges one case in one way, and says what it came to. Whether it is right.
template <class Case, class Judge>
bool shown(const char* what, const Case& c, const Judge& judge) {
  const std::string why = judged(c, judge);
  std::printf("%s: %s\n", what, why.empty() ? "right" : why.c_str());
  return why.empty();
}

/// Judges the case of a line in all ways. The exit status.
int try_one(const std::string& line) {
  if (const auto c = parse(line); c && legal(*c)) {
    bool right = shown("plan", *c, with_combines(judge_plan));
#ifdef FUZZ_EXCHANGES
    right = shown("exchange", *c, with_combines([](const fuzz_case& e) { return judge_exchange(e); })) && right;
#endif
    return right ? 0 : 1;
  }
#ifdef FUZZ_EXCHANGES
  if (constexpr const char* memory = "memory "; line.rfind(memory, 0) == 0)
    if (const auto c = parse_layer(line.substr(std::strlen(memory))); c && legal(*c)) {
      long refused = 0;
      return shown("memory", *c, [&](const layer_case& l) { return judge_memory(l, refused); }) ? 0 : 1;
    }
  if (constexpr const char* orders = "orders "; line.rfind(orders, 0) == 0)
    if (const auto c = parse_layer(line.substr(std::strlen(orders))); c && legal(*c))
      return shown("orders", *c, judge_orders) ? 0 : 1;
  long refused = 0;
  if (const auto c = parse_layer(line); c && legal(*c))
    return std::max(
        shown("layer", *c, [&](const layer_case& l) { return judge_layer(l, refused); }) ? 0 : 1,
        shown("layer on devices", *c, [&](const layer_case& l) { return judge_layer_on_devices(l, refused); }) ? 0 : 1);
#endif
  std::fprintf(stderr, "fuzz: this is no case, or one whose change is refused\n");
  return 2;
}

/// Judges the cases of a file, a line each beside those that begin with #. The exit status.
int try_lines(const std::string& path) {
  std::ifstream file(path);
  int status = file ? 0 : 2;
  if (!file) std::fprintf(stderr, "fuzz: cannot read %s\n", path.c_str());
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::printf("%s\n", line.c_str());
    status = std::max(status, try_one(line));
  }
  return status;
}

/// What a message says before its numbers: a smaller case must fail in the same way.
std::string kind_of_failure(const std::string& why) { return why.substr(0, why.find(':')); }

/// Judges `count` rolled cases beside those that are rightly refused; prints the first ones that fail, smaller. How
/// many failed.
template <class Roll, class Parse, class Judge>
int try_all(const std::string& what, long count, std::uint64_t seed, const Roll& roll, const Parse& parse,
            const Judge& judge, long& refused, long least) {
  int failed = 0;
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
  double shown_at = 0;
  long i = 0;
  for (; i - refused < count && i < 3 * count && failed < 3; ++i) {
    if (::isatty(STDERR_FILENO) != 0 && seconds() > shown_at + 0.5) {
      shown_at = seconds();
      const int done = static_cast<int>(40 * i / count);
      std::fprintf(stderr, "\r%-16s [%.*s%*s] %ld of %ld", what.c_str(), done,
                   "########################################", 40 - done, "", i, count);
    }
    dice d{seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(i) * 0xd1342543de82ef95u};
    const auto c = roll(d);
    const auto again = parse(text_of(c));
    std::string why = again && text_of(*again) == text_of(c) ? judged(*again, judge) : "its line means another case";
    if (why.empty()) continue;
    ++failed;
    std::printf("%s %ld: %s\n  --case '%s'\n", what.c_str(), i, why.c_str(), text_of(c).c_str());
    std::fflush(stdout);
    const auto refused_before = refused;
    const auto small =
        shrunk(c, [&](const auto& s) { return legal(s) && kind_of_failure(judged(s, judge)) == kind_of_failure(why); });
    refused = refused_before;  // what shrinking tries is no case of the list
    std::printf("  smaller: %s\n  --case '%s'\n", judged(small, judge).c_str(), text_of(small).c_str());
    std::fflush(stdout);
  }
  if (shown_at > 0) std::fprintf(stderr, "\r\33[K");
  if (failed == 0 && i - refused < least) failed = 1;  // nearly all are refused: little is tried
  std::printf("%ld %s and %ld refused, seed %llu, %d failed, %.1f s\n", i - refused, what.c_str(), refused,
              static_cast<unsigned long long>(seed), failed, seconds());
  std::fflush(stdout);
  return failed;
}

#ifdef FUZZ_EXCHANGES
/// Judges `count` rolled cases of one layer, or of each, under every element. How many failed.
int try_orders(const std::string& only, long count, std::uint64_t seed) {
  int failed = 0;
  long tried = 0;
  const auto began = std::chrono::steady_clock::now();
  for (const std::string& layer : layer_names()) {
    if (!only.empty() && only != layer) continue;
    int of_layer = 0;
    for (long i = 0; i < count && of_layer < 3; ++i)
      for (int e = 0; e < tessera::engine::number_of_elements && of_layer < 3; ++e) {
        dice d{seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(i) * 0xd1342543de82ef95u};
        const auto c = of_element(roll_layer(layer, d), static_cast<tessera::element>(e));
        if (!c || !legal(*c)) continue;
        ++tried;
        const std::string why = judged(*c, judge_orders);
        if (why.empty()) continue;
        ++of_layer;
        std::printf("%s %ld of %s: %s\n  --case 'orders %s'\n", layer.c_str(), i,
                    tessera::engine::name_of(static_cast<tessera::element>(e)), why.c_str(), text_of(*c).c_str());
        const auto small = shrunk(*c, [&](const auto& s) {
          return legal(s) && kind_of_failure(judged(s, judge_orders)) == kind_of_failure(why);
        });
        std::printf("  smaller: %s\n  --case 'orders %s'\n", judged(small, judge_orders).c_str(),
                    text_of(small).c_str());
        std::fflush(stdout);
      }
    failed += of_layer;
  }
  std::printf("%ld layers of every element, derivatives of every order, seed %llu, %d failed, %.1f s\n", tried,
              static_cast<unsigned long long>(seed), failed,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return failed;
}
#endif

/// The same of changes of layout.
template <class Judge>
int try_changes(const char* what, long count, std::uint64_t seed, const limits& most,
                const std::vector<std::string>& elements, const Judge& judge) {
  long refused = 0;
  return try_all(
      what, count, seed, [&](dice& d) { return roll_case(d, most, elements); }, parse, with_combines(judge), refused,
      count);
}

#ifdef FUZZ_EXCHANGES
/// The memory of one layer, or of each, under rolled options and layouts. How many failed.
int try_memory(const std::string& only, long count, std::uint64_t seed) {
  int failed = 0;
  for (const std::string& layer : layer_names()) {
    if ((!only.empty() && only != layer) || !is_weighed(layer)) continue;
    long refused = 0;
    failed += try_all(
        layer + " in memory", count, seed, [&](dice& d) { return roll_layer(layer, d); }, parse_layer,
        [&](const layer_case& c) { return judge_memory(c, refused); }, refused, count / 4);
  }
  return failed;
}
/// The same of one layer, or of each.
int try_layers(const std::string& only, long count, std::uint64_t seed, bool on_devices) {
  int failed = 0;
  const std::string where = on_devices ? " on devices" : "";
  for (const std::string& layer : layer_names()) {
    if (!only.empty() && only != layer) continue;
    long refused = 0;
    failed += try_all(
        layer + where, count, seed, [&](dice& d) { return roll_layer(layer, d); }, parse_layer,
        [&](const layer_case& c) { return on_devices ? judge_layer_on_devices(c, refused) : judge_layer(c, refused); },
        refused, count);
  }
  return failed;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  long plans = 150000;
  long exchanges = 5000;
  long devices = 300;
  long layers = 300;
  long orders = 0;
  long memory = 0;
  std::string layer;
  bool on_devices = false;
  std::uint64_t seed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) % 1500000;
  std::string line;
  std::string file;
  CLI::App app{about};
  app.footer(statuses);
  const CLI::Range count{0L, 1'000'000'000L};
  app.add_option("--plans", plans, "how many plans")->capture_default_str()->check(count)->type_name("N");
  app.add_option("--exchanges", exchanges, "how many exchanges; none where there is no LibTorch")
      ->capture_default_str()
      ->check(count)
      ->type_name("N");
  app.add_option("--devices", devices, "how many exchanges over NCCL; none where there is no LibTorch")
      ->capture_default_str()
      ->check(count)
      ->type_name("N");
  app.add_option("--layers", layers, "how many cases of each layer; none where there is no LibTorch")
      ->capture_default_str()
      ->check(count)
      ->type_name("N");
  [[maybe_unused]] CLI::Option* const only =
      app.add_option("--layer", layer, "of this layer alone, and no plans and exchanges")->type_name("NAME");
#ifdef FUZZ_EXCHANGES
  only->check(CLI::IsMember(layer_names()));
#endif
  app.add_option("--orders", orders, "how many cases of each layer under every element, and nothing else")
      ->check(count)
      ->type_name("N");
  app.add_option("--memory", memory, "how many cases of each layer weighed, and nothing else")
      ->check(count)
      ->type_name("N");
  app.add_flag("--on-devices", on_devices,
               "layers on devices that are threads of this process, and no plans and exchanges");
  app.add_option("--seed", seed, "of the clock unless said")->type_name("S");
  app.add_option("--case", line, "only this one: a change as a plan and as an exchange, or a layer");
  app.add_option("--cases", file, "only these, a line each")->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS, SIGILL}) std::signal(signal, show_and_end);
  if (!line.empty()) return try_one(line);
  if (!file.empty()) return try_lines(file);

  int failed = 0;
  const bool changes = layer.empty() && !on_devices && orders + memory == 0;
  if (changes) failed += try_changes("plans", plans, seed, {}, {"double"}, judge_plan);
#ifdef FUZZ_EXCHANGES
  if (changes)
    failed += try_changes("exchanges", exchanges, seed, {10, 200}, element_names(),
                          [](const fuzz_case& c) { return judge_exchange(c); });
  if (changes) failed += try_changes("over NCCL", devices, seed, {6, 100}, element_names(), judge_on_devices);
  failed += orders > 0   ? try_orders(layer, orders, seed)
            : memory > 0 ? try_memory(layer, memory, seed)
                         : try_layers(layer, layers, seed, on_devices);
#endif
  return failed == 0 ? 0 : 1;
}
