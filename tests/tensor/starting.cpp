#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::testing;

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
  auto x = take<grid_of<rows>>(t, counted());
  x.requires_grad();
  const auto once = derived(x, [](const auto& a) { return to<Q>(a).local(); });
  const auto twice = derived(x, [](const auto& a) { return finish(start<Q>(a)).local(); });
  const auto dynamic = derived(x, [](const auto& a) {
    return finish(start(value_of<grid_of<Q>>.layout, a.dynamic())).local();
  });
  return all_equal(once, twice) && all_equal(once, dynamic);
}

}  // namespace

TEST_CASE("a change in two halves is the change, with its first and second derivative") {
  for (const bool checked : {false, true}) {
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<columns>(t, checked); }) == 4);
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<tiles>(t, checked); }) == 4);
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<everywhere_alike>(t, checked); }) == 4);
    CHECK(satisfied<four>([&](team<four>& t) { return halves_are_the_whole<rows>(t, checked); }) == 4);
  }
}

TEST_CASE("a change of several exchanges in two halves is that change") {
  CHECK(satisfied<four>([](team<four>& t) {
          const auto x = take<grid_of<parts_of_sums>>(t, counted());
          return at::equal(finish(start<everywhere_alike>(x)).local(), counted());
        }) == 4);
}

TEST_CASE("many are under way at once and end in any order, backward as well") {
  CHECK(satisfied<four>([](team<four>& t) {
          std::vector<grid_of<rows>> x;
          std::vector<awaited<grid_of<columns>>> later;
          for (int i = 0; i < 5; ++i) {
            x.push_back(take<grid_of<rows>>(t, counted(i)));
            x.back().requires_grad();
            later.push_back(start<columns>(x.back()));
          }
          at::Tensor s = at::zeros({}, at::kDouble);
          bool right = true;
          for (const int i : {3, 0, 4, 1, 2}) {
            const auto y = finish(std::move(later[static_cast<std::size_t>(i)]));
            right = right && at::equal(global(y), counted(i));
            s = s + (y.local() * (i + 1)).sum();
          }
          s.backward();
          for (int i = 0; i < 5; ++i)
            right = right && at::equal(x[static_cast<std::size_t>(i)].local().grad(), at::full_like(x[static_cast<std::size_t>(i)].local(), i + 1));
          return right;
        }) == 4);
}

TEST_CASE("what has arrived is known without waiting, and work goes on meanwhile") {
  CHECK(satisfied<four>([](team<four>& t) {
          auto later = start<columns>(take<grid_of<rows>>(t, counted()));
          index_t looks = 0;
          while (!later.arrived()) ++looks;
          const auto y = finish(std::move(later));
          return at::equal(global(y), counted());
        }) == 4);
}

TEST_CASE("one that is dropped is given up, which the next call says; one that is used up is none") {
  const auto all = in_team<four>([](team<four>& t) {
    std::string met;
    auto gone = start<columns>(take<grid_of<rows>>(t, counted()));
    finish(std::move(gone));
    try {
      finish(std::move(gone));
    } catch (const error& e) {
      met = e.code();
    }
    {
      auto dropped = start<columns>(take<grid_of<rows>>(t, counted()));
      if (t.rank() != 1) finish(std::move(dropped));
    }
    to<columns>(take<grid_of<rows>>(t, counted()));
    return met;
  });
  for (int r = 0; r < 4; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.given_up");
}
