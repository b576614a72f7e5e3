#include "tests/support/tensors.hpp"

#include <tessera/tensor/generator.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/verbs.hpp>

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>

namespace tessera::testing {

using namespace engine;

namespace {

struct alone : axis<1> {};
struct twins : axis<2> {};
struct threes : axis<3> {};
using two_workers = mesh<twins>;
using held_alike = tensor<partition<two_workers, whole, invariant<twins>>, shape_of<6>, double>;
using one_half_each = partition<two_workers, blocks<twins>>;

/// The code that each of two workers ends with when worker 1 holds another value than worker 0.
std::vector<std::string> codes_of_two(checks how, double other) {
  std::vector<std::string> all(2, "none");
  launch_options o = threads_only();
  o.checks = how;
  char* none[]{nullptr};
  launch<two_workers>(0, none, o, [&](team<two_workers>& workers) {
    const auto mine = static_cast<std::size_t>(workers.rank());
    try {
      const auto x = from_local<held_alike>(workers, at::full({6}, workers.rank() == 1 ? other : 1.0, at::kDouble));
      static_cast<void>(to<one_half_each>(x));
    } catch (const error& e) {
      all[mine] = e.code();
    }
  });
  return all;
}

/// How many threads LibTorch uses in each worker of a mesh.
template <Mesh M>
std::vector<int> threads_of_each() {
  std::vector<int> all(static_cast<std::size_t>(M::value.size()));
  char* none[]{nullptr};
  launch<M>(0, none, threads_only(),
            [&](team<M>& t) { all[static_cast<std::size_t>(t.rank())] = at::get_num_threads(); });
  return all;
}

}  // namespace

TEST_CASE("a worker computes with its share of the cores, and with no more threads than OMP_NUM_THREADS asks for",
          "[runtime]") {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const char* asked = std::getenv("OMP_NUM_THREADS");
  const int most = asked == nullptr ? cores : std::min(cores, std::atoi(asked));
  CHECK(threads_of_each<mesh<alone>>() == std::vector<int>{most});
  CHECK(threads_of_each<mesh<twins>>() == std::vector<int>(2, std::max(1, std::min(most, cores / 2))));
}

TEST_CASE("what LibTorch throws is told in its own words, without the addresses that it was thrown from", "[refusal]") {
  std::FILE* const told = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(told), STDERR_FILENO);
  char* none[]{nullptr};
  const int status = launch<two_workers>(0, none, threads_only(), [](team<two_workers>&) { at::ones({2}).view({3}); });
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(told);
  std::string text(20'000, ' ');
  text.resize(std::fread(text.data(), 1, text.size(), told));
  std::fclose(told);
  CHECK(status != 0);
  CHECK(text.find("shape '[3]' is invalid for input of size 2") != std::string::npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("copies that differ are seen on every worker, unless nothing is compared", "[refusal]") {
  for (const checks how : {checks::always, checks::sampled}) {
    CHECK(codes_of_two(how, 2.0) == std::vector<std::string>(2, "tessera.agree.copies"));
    CHECK(codes_of_two(how, 1.0) == std::vector<std::string>(2, "none"));
  }
  CHECK(codes_of_two(checks::never, 2.0) == std::vector<std::string>(2, "none"));
}

namespace {

using terms_of_twins = tensor<partition<two_workers, partial<twins>>, shape_of<>, double>;
using summed = partition<two_workers>;

/// What each of two workers is told when f goes wrong on them; "" where nothing does.
template <class F>
std::vector<std::string> told_to_two(checks how, F&& f) {
  launch_options o = threads_only();
  o.checks = how;
  return in_team<two_workers>(
             [&](team<two_workers>& t) {
               f(t);
               return true;
             },
             o)
      .texts;
}

bool all_say(const std::vector<std::string>& texts, const std::vector<std::string>& parts) {
  for (const std::string& text : texts)
    for (const std::string& part : parts)
      if (text.find(part) == std::string::npos) return false;
  return true;
}

terms_of_twins term_of(const team<two_workers>& t) {
  terms_of_twins x = from_local<terms_of_twins>(t, at::ones({}, at::kDouble));
  return x.requires_grad();
}

}  // namespace

TEST_CASE("a launch leaves LibTorch's settings as they were, so the next one does not depend on it", "[runtime]") {
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  const std::vector<int> first = threads_of_each<mesh<twins>>();
  CHECK(at::get_num_threads() == 3);
  CHECK(threads_of_each<mesh<twins>>() == first);
  CHECK(c10::AutogradState::get_tls_state().get_multithreading_enabled());
  at::set_num_threads(before);
}

TEST_CASE("texts of all workers are printed in the order of the mesh, each whole, and nobody goes on before",
          "[runtime]") {
  std::FILE* const to = std::tmpfile();
  std::atomic<int> early = 0;
  char* none[]{nullptr};
  const int status = launch<mesh<twins, threes>>(0, none, threads_only(), [&](team<mesh<twins, threes>>& t) {
    const std::string mine = t.rank() == 4 ? ""
                                           : fmt::format("{} of {} says {}", t.rank(), t.size(),
                                                         std::string(static_cast<std::size_t>(900 * t.rank()), 'x'));
    print_in_order(t, mine, to);
    early += std::ftell(to) < 900 * (1 + 2 + 3 + 5);
    print_in_order(t, "again", to);
  });
  std::rewind(to);
  std::string text(20'000, ' ');
  text.resize(std::fread(text.data(), 1, text.size(), to));
  std::fclose(to);
  std::string wanted;
  for (const int r : {0, 1, 2, 3, 5})
    wanted += fmt::format("{} of 6 says {}\n", r, std::string(static_cast<std::size_t>(900 * r), 'x'));
  for (int r = 0; r < 6; ++r) wanted += "again\n";
  CHECK(status == 0);
  CHECK(early == 0);
  CHECK(text == wanted);
}

TEST_CASE(
    "a generator of each worker draws the same in every run, others than its neighbour's, and a common one alike on "
    "all",
    "[runtime]") {
  namespace ts = tessera;
  using drawn = std::array<at::Tensor, 4>;
  const auto draws = [](std::uint64_t number) {
    return in_team<two_workers>([number](const auto& team) {
      // [generators]
      const at::Generator alike = ts::common_generator(team, ts::seed{7}.at("order"));
      const at::Generator mine = ts::worker_generator(team, ts::seed{7}.at("noise"));
      const at::Tensor order = at::randperm(100, alike);  // one order for all
      const at::Tensor noise = at::randn({100}, mine);    // each worker its own
      // [end]
      drawn all{order, noise};
      const at::Generator other = ts::worker_generator(team.state(), ts::seed{number}.at("noise"));
      for (int i = 0; i < 200; ++i) all[2] = at::randint(1'000'000, {100}, other);
      all[3] = at::randint(1'000'000, {100}, ts::worker_generator(team, ts::seed{number}));
      return all;
    });
  };
  const auto first = draws(7);
  const auto again = draws(7);
  REQUIRE(first.well());
  REQUIRE(again.well());
  for (int r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < 4; ++i) CHECK(at::equal(first.of(r)[i], again.of(r)[i]));
  CHECK(at::equal(first.of(0)[0], first.of(1)[0]));
  for (const std::size_t i : {1, 2, 3}) CHECK_FALSE(at::equal(first.of(0)[i], first.of(1)[i]));
  CHECK_FALSE(at::equal(first.of(0)[2], first.of(0)[3]));
  const auto other = draws(8);
  REQUIRE(other.well());
  for (int r = 0; r < 2; ++r) CHECK_FALSE(at::equal(first.of(r)[2], other.of(r)[2]));
}

TEST_CASE("the mesh of a launch may be a value", "[runtime]") {
  namespace ts = tessera;
  const int argc = 0;
  char* argv[]{nullptr};
  const ts::launch_options options = threads_only();
  const at::Tensor table = at::arange(35, at::kDouble).view({5, 7});
  std::atomic<int> right = 0;
  const int rows = 2;
  const int columns = 3;
  // [mesh-value]
  ts::mesh_value mesh;  // rows and columns are of a command line, a file, …
  mesh.axes.push({ts::text("row"), rows});
  mesh.axes.push({ts::text("col"), columns});
  const int status = ts::launch(argc, argv, options, ts::row_major(mesh), [&](const ts::team_handle& team) {
    ts::layout tiles;  // a table of 5 x 7, cut by both axes
    tiles.mesh = team->mesh();
    tiles.placements.resize(2);
    tiles.dims.resize(2);
    for (int d = 0; d < 2; ++d) {
      tiles.dims[d].extent = table.size(d);
      tiles.cut_by(d, d);
    }
    const ts::tensor<ts::dyn> x = ts::distribute(team, tiles, table);
    right += at::equal(ts::full_tensor(x * x), table * table);
  });
  // [end]
  CHECK(status == 0);
  CHECK(right == 6);
}

TEST_CASE("a launch over an axis's name has as many threads as the command line says, else the program", "[runtime]") {
  const auto workers = [](std::vector<std::string> words, int threads) {
    words.insert(words.begin(), "program");
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    launch_options options = threads_only();
    options.threads = threads;
    std::atomic<int> ran = 0, right = 0;
    const int status =
        launch(static_cast<int>(words.size()), argv.data(), options, "data", [&](const team_handle& team) {
          ++ran;
          const std::vector<std::uint64_t> ones = team->collect(1);
          const auto all = std::accumulate(ones.begin(), ones.end(), std::uint64_t{0});
          right += team->mesh().find(text("data")) == 0 && static_cast<int>(all) == team->size();
        });
    return status == 0 ? (right == ran ? ran.load() : -1) : -status;
  };
  CHECK(workers({}, 1) == 1);
  CHECK(workers({}, 3) == 3);
  CHECK(workers({"--threads", "2"}, 3) == 2);
  CHECK(workers({"file", "--threads=5"}, 3) == 5);
  CHECK(workers({"--threads-of-others", "5"}, 3) == 3);
  CHECK(workers({"--", "--threads", "2"}, 3) == 3);
  CHECK(launch_options{}.threads == 1);
}

TEST_CASE("a launch of no thread is refused, with what was given", "[refusal]") {
  for (const auto& [word, threads] :
       {std::pair("--threads=0", 2), std::pair("--threads=two", 2), std::pair("--threads=2x", 2),
        std::pair("--threads=99999999999", 2), std::pair("--threads", 2), std::pair("", 0)}) {
    std::FILE* const told = std::tmpfile();
    const int before = dup(STDERR_FILENO);
    dup2(fileno(told), STDERR_FILENO);
    std::string program = "program", option = word;
    char* argv[]{program.data(), option.data(), nullptr};
    launch_options options = threads_only();
    options.threads = threads;
    bool ran = false;
    const int status = launch(option.empty() ? 1 : 2, argv, options, "data", [&](const team_handle&) { ran = true; });
    dup2(before, STDERR_FILENO);
    close(before);
    std::rewind(told);
    std::string text(2'000, ' ');
    text.resize(std::fread(text.data(), 1, text.size(), told));
    std::fclose(told);
    INFO(word);
    CHECK(status != 0);
    CHECK_FALSE(ran);
    CHECK(text.find("[tessera.launch.workers]") != std::string::npos);
  }
}

TEST_CASE("a worker in backward never exchanges with one in a forward of the same type", "[refusal]") {
  for (const checks how : {checks::never, checks::sampled, checks::always}) {
    const auto told = told_to_two(how, [](team<two_workers>& t) {
      const terms_of_twins x = term_of(t);
      const auto y = all_reduce<summed>(x);
      if (t.rank() == 0) y.backward();
      else static_cast<void>(all_reduce<summed>(x));
    });
    INFO(told[0] << told[1]);
    const char* const first = how == checks::never ? "worker 0: backward of all_reduce of double at launch.cpp:"
                                                   : "worker 0: backward at launch.cpp:";
    CHECK(all_say(told, {"tessera.agree.fingerprint", first, "worker 1: all_reduce of double at launch.cpp:"}));
  }
}

TEST_CASE("checked mode sees two tensors of one type that a worker reduces in another order, forward and backward",
          "[refusal]") {
  const auto forward = told_to_two(checks::always, [](team<two_workers>& t) {
    const terms_of_twins x = term_of(t);
    if (t.rank() == 1) static_cast<void>(all_reduce<summed>(x));
    static_cast<void>(all_reduce<summed>(x));
    if (t.rank() == 0) static_cast<void>(all_reduce<summed>(x));
  });
  CHECK(all_say(forward, {"tessera.agree.fingerprint", "worker 0: all_reduce", "worker 1: all_reduce"}));
  const auto backward = [](int other_way) {
    return told_to_two(checks::always, [&](team<two_workers>& t) {
      std::vector<decltype(all_reduce<summed>(term_of(t)))> y;
      for (int i = 0; i < 2; ++i) y.push_back(all_reduce<summed>(term_of(t)));
      for (const int i : {0, 1}) y[static_cast<std::size_t>(t.rank() == other_way ? 1 - i : i)].backward();
    });
  };
  CHECK(all_say(backward(1), {"tessera.agree.fingerprint", "backward at launch.cpp"}));
  CHECK(backward(-1) == std::vector<std::string>(2));
}

TEST_CASE("checked mode sees a replicate weight that was stepped by a gradient of terms, also where nothing moves",
          "[refusal]") {
  using held = tensor<partition<two_workers, whole>, shape_of<4>, double>;
  using samples = tensor<partition<two_workers, blocks<twins>>, shape_of<4>, double>;
  const auto drifts = [](checks how) {
    launch_options o = threads_only();
    o.checks = how;
    const auto all = in_team<two_workers>(
        [](team<two_workers>& t) {
          auto w = distribute<held>(t, at::ones({4}, at::kDouble));
          w.requires_grad();
          const auto x = distribute<samples>(t, at::arange(4, at::kDouble));
          sum(shard<partition<two_workers, blocks<twins>>>(w) * x).backward();
          {
            const at::NoGradGuard step;
            w.local().sub_(w.local().grad());  // two workers step by their own terms_of_twins
          }
          try {
            w* w;
          } catch (const error& e) {
            return std::string(e.code());
          }
          return std::string("none");
        },
        o);
    return std::vector{all.of(0), all.of(1)};
  };
  CHECK(drifts(checks::always) == std::vector<std::string>(2, "tessera.agree.copies"));
  CHECK(drifts(checks::sampled) == std::vector<std::string>(2, "none"));  // the next backward tells it
}

}  // namespace tessera::testing
