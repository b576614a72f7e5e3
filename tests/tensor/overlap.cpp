#include "tests/support/by_sockets.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/tensors.hpp"

#include <atomic>
#include <latch>
#include <thread>

namespace tessera::testing::overlap {

using namespace engine;

// Changes of layout in two halves: whatever lies between, they are what `to` is, to the second derivative.

namespace {

struct up : axis<2> {};
struct over : axis<2> {};
using four = mesh<up, over>;
template <class P>
using grid_of = tensor<P, shape_of<7, 6>, double>;
using rows = partition<four, blocks<up, over>, whole>;
using columns = partition<four, whole, blocks<up, over>>;
using tiles = partition<four, blocks<up>, blocks<over>>;
using everywhere_alike = partition<four, whole, whole, invariant<up, over>>;
using parts_of_sums = partition<four, whole, whole, partial<up, over>>;

at::Tensor counted(double first = 0) { return (at::arange(42, at::kDouble) + first).reshape({7, 6}) / 10; }

/// y = F x, a function of it, and what its first and second derivative are by x.
template <class Go>
std::vector<at::Tensor> derived(const grid_of<rows>& x, Go&& go) {
  const at::Tensor y = go(x);
  const at::Tensor s = (y * y * y).sum();
  const at::Tensor g = torch::autograd::grad({s}, {x.local()}, {at::ones_like(s)}, true, true)[0];
  const at::Tensor along = (g * g).sum();
  const at::Tensor h = torch::autograd::grad({along}, {x.local()}, {at::ones_like(along)}, true)[0];
  return {y.detach(), g.detach(), h};
}

bool all_equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  bool all = a.size() == b.size();
  for (std::size_t i = 0; all && i < a.size(); ++i) all = at::equal(a[i], b[i]);
  return all;
}

template <class Q>
bool halves_are_the_whole(team<four>& t, bool checked) {
  t.state()->checks = checked ? checks::always : checks::sampled;
  auto x = distribute<grid_of<rows>>(t, counted());
  x.requires_grad();
  const auto once = derived(x, [](const auto& a) { return to<Q>(a).local(); });
  const auto twice = derived(x, [](const auto& a) { return finish(start<Q>(a)).local(); });
  const auto dynamic =
      derived(x, [](const auto& a) { return finish(start(value_of<grid_of<Q>>.layout, a.dynamic())).local(); });
  return all_equal(once, twice) && all_equal(once, dynamic);
}

}  // namespace

TEST_CASE("a change in two halves is the change, with its first and second derivative", "[runtime][gradient]") {
  for (const bool checked : {false, true}) {
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<columns>(t, checked); }) == 4);
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<tiles>(t, checked); }) == 4);
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<everywhere_alike>(t, checked); }) == 4);
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<rows>(t, checked); }) == 4);
  }
}

TEST_CASE("a change of several exchanges in two halves is that change", "[runtime][gradient]") {
  CHECK(satisfied<four>([](team<four>& t) {
          const auto x = distribute<grid_of<parts_of_sums>>(t, counted());
          return at::equal(finish(start<everywhere_alike>(x)).local(), counted());
        }) == 4);
}

namespace {

struct trio : axis<3> {};
using three = mesh<trio>;
using three_terms = tensor<partition<three, whole, whole, partial<trio>>, shape_of<7, 6>, double>;
using three_alike = partition<three, whole, whole, invariant<trio>>;
using three_rows = tensor<partition<three, blocks<trio>, whole>, shape_of<7, 6>, double>;
using three_columns = partition<three, whole, blocks<trio>>;

at::Tensor term(int worker, double salt) { return counted(salt) * (worker + 1); }
at::Tensor summed_terms(double salt) { return counted(salt) * 6; }

/// Whether a sum has begun all of its exchanges before its end, and says that it arrived when all of it has; what went
/// wrong.
std::string begins_all(const std::shared_ptr<transport>& carrier) {
  team<three> t(carrier);
  int begun = 0;
  const auto other = [&] { static_cast<void>(to<three_columns>(distribute<three_rows>(t, counted()))); };
  const auto sum = [&] { return start<three_alike>(from_local<three_terms>(t, term(t.rank(), 2))); };
  static_cast<void>(finish(sum()));  // bound
  other();
  t.state()->watch = {[](void* self, const phase&, element) { ++*static_cast<int*>(self); }, nullptr, &begun};
  std::string wrong;
  for (const bool asks : {true, false}) {
    begun = 0;
    auto later = sum();
    if (begun != 1) wrong += "not begun; ";
    if (asks && later.arrived() && begun != 2) wrong += "a half has arrived; ";
    t.state()->collect(0);  // who waits begins all first
    if (begun != 2) wrong += "its second exchange is not begun; ";
    t.state()->collect(0);
    if (asks) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
      while (!later.arrived() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      if (!later.arrived()) wrong += "not there before its end; ";
    } else {
      other();
      if (begun != 3) wrong += "another change is not begun; ";
    }
    begun = 0;
    if (!at::allclose(finish(std::move(later)).local(), summed_terms(2))) wrong += "a wrong sum; ";
    if (begun != 0) wrong += "the end begins something; ";
  }
  t.state()->watch = {};
  return wrong;
}

/// Sums of one change and other calls of it under way, each worker ending them in an order of its own, one coming late
/// at times.
std::string end_crosswise(const std::shared_ptr<transport>& carrier) {
  team<three> t(carrier);
  std::string wrong;
  dice d{static_cast<std::uint64_t>(t.rank() + 1)};
  for (int round = 0; round < 12; ++round) {
    std::vector<std::pair<int, awaited<tensor<three_alike, shape_of<7, 6>, double>>>> open;
    for (int i = 0; i < 4; ++i) {
      if (round % 4 == 0 && i == 2 && t.rank() == round / 4)
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
      open.emplace_back(i, start<three_alike>(from_local<three_terms>(t, term(t.rank(), i))));
      if (i == 1 &&
          !at::allclose(to<three_alike>(from_local<three_terms>(t, term(t.rank(), 9))).local(), summed_terms(9)))
        wrong += "a whole call is wrong; ";
    }
    while (!open.empty()) {
      const auto which = open.begin() + d.roll(0, static_cast<int>(open.size()) - 1);
      if (!at::allclose(finish(std::move(which->second)).local(), summed_terms(which->first)))
        wrong += fmt::format("sum {} of round {} is wrong; ", which->first, round);
      open.erase(which);
    }
  }
  return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE(
    "a change of several exchanges begins all of them before its worker waits, and says that it arrived when all of it "
    "has",
    "[runtime]", by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, begins_all, std::chrono::seconds{20});
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 3; ++r) CHECK(all.of(r) == "");
}

TEMPLATE_TEST_CASE("changes of several exchanges end crosswise, beside others of the same exchanges", "[runtime]",
                   by_memory, by_sockets) {
  const auto all = in_world<TestType>(3, end_crosswise, std::chrono::seconds{20});
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 3; ++r) CHECK(all.of(r) == "");
}

TEST_CASE(
    "a change that has begun all of its exchanges when another one fails is not asked any more when it is dropped",
    "[refusal]") {
  struct failing final : owing {
    bool owes() const override { return true; }
    bool owes(const bound_exchange&) const override { return false; }
    void go_on(const std::vector<owing*>&) override {}
    void begin_all() override { throw std::runtime_error("fails"); }
  };
  std::atomic<int> fails = 0;
  std::latch tried(3);
  const auto all = in_world(3, [&](const std::shared_ptr<transport>& carrier) -> bool {
    team<three> t(carrier);
    failing bad;
    owed_exchanges& owed = owed_exchanges::here();
    {
      const auto first = start<three_alike>(from_local<three_terms>(t, term(t.rank(), 1)));
      owed.add(bad);
      fails += told([&] { owed.begin_all(); }) == "other";
      owed.remove(bad);
      tried.arrive_and_wait();  // who drops it stops the others
    }
    owed.begin_all();  // of what is gone nothing
    t.state()->collect(0);
    return true;
  });
  CHECK(fails == 3);
  CHECK(all.codes == std::vector<std::string>(3, "tessera.agree.given_up"));
}

TEST_CASE("many are under way at once and end in any order, backward as well", "[runtime][gradient]") {
  CHECK(satisfied<four>([](team<four>& t) {
          std::vector<grid_of<rows>> x;
          std::vector<awaited<grid_of<columns>>> later;
          for (int i = 0; i < 5; ++i) {
            x.push_back(distribute<grid_of<rows>>(t, counted(i)));
            x.back().requires_grad();
            later.push_back(start<columns>(x.back()));
          }
          at::Tensor s = at::zeros({}, at::kDouble);
          bool right = true;
          for (const int i : {3, 0, 4, 1, 2}) {
            const auto y = finish(std::move(later[static_cast<std::size_t>(i)]));
            right = right && at::equal(full_tensor(y), counted(i));
            s = s + (y.local() * (i + 1)).sum();
          }
          s.backward();
          for (int i = 0; i < 5; ++i)
            right = right && at::equal(x[static_cast<std::size_t>(i)].local().grad(),
                                       at::full_like(x[static_cast<std::size_t>(i)].local(), i + 1));
          return right;
        }) == 4);
}

TEST_CASE("what has arrived is known without waiting, and work goes on meanwhile", "[runtime]") {
  CHECK(satisfied<four>([](team<four>& t) {
          auto later = start<columns>(distribute<grid_of<rows>>(t, counted()));
          index_t looks = 0;
          while (!later.arrived()) ++looks;
          const auto y = finish(std::move(later));
          return at::equal(full_tensor(y), counted());
        }) == 4);
}

TEST_CASE("one that is dropped is given up, which the next call says; one that is used up is none", "[refusal]") {
  const auto all = in_team<four>([](team<four>& t) {
    std::string met;
    auto gone = start<columns>(distribute<grid_of<rows>>(t, counted()));
    finish(std::move(gone));
    try {
      finish(std::move(gone));
    } catch (const error& e) {
      met = e.code();
    }
    {
      auto dropped = start<columns>(distribute<grid_of<rows>>(t, counted()));
      if (t.rank() != 1) finish(std::move(dropped));
    }
    to<columns>(distribute<grid_of<rows>>(t, counted()));
    return met;
  });
  for (int r = 0; r < 4; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.given_up");
}

}  // namespace tessera::testing::overlap
