#include "tests/support/tensors.hpp"

#include <tessera/tensor/change/cached_view.hpp>

namespace tessera::testing::views {

using namespace engine;

namespace {

struct copy : axis<3> {};
using copies = mesh<copy>;
using alike = tensor<partition<copies, whole, invariant<copy>>, shape_of<4>, double>;
using used_apart = tensor<partition<copies, whole, replicate<copy>>, shape_of<4>, double>;

/// A leaf that all workers have, and its views as a layer takes them.
struct parameter_of {
  explicit parameter_of(team<copies>& t, bool checked = false) : handle(t.state()) {
    handle->checks = checked ? checks::always : checks::sampled;
    leaf = at::arange(4, at::kDouble).set_requires_grad(true);
  }
  at::Tensor view() {
    return lasting.of(handle, handle->intern(value_of<alike>.layout), handle->intern(value_of<used_apart>.layout),
                      leaf);
  }

  /// Its gradient of Σ over workers of (rank + 1)·times·y, where each worker sees it so often.
  at::Tensor gradient(int times = 1) {
    leaf.mutable_grad().reset();
    at::Tensor loss = view().sum() * (handle->rank() + 1);
    for (int i = 1; i < times; ++i) loss = loss + view().sum() * (handle->rank() + 1);
    loss.backward();
    return leaf.grad();
  }
  void step() {
    const at::NoGradGuard no_graph;
    leaf.add_(1);
  }

  team_handle handle;
  at::Tensor leaf;
  detail::cached_view lasting;
};

at::Tensor all(double x) { return at::full({4}, x, at::kDouble); }

}  // namespace

TEST_CASE("a view that lasts is one tensor, sees every step, and its gradient is the sum over the workers",
          "[gradient]") {
  CHECK(satisfied<copies>([](team<copies>& t) {
          parameter_of p(t);
          const at::Tensor first = p.view();
          bool right = at::equal(p.gradient(), all(6)) && p.view().is_same(first);
          for (int k = 0; k < 3; ++k) {
            p.step();
            right = right && at::equal(p.view(), at::arange(4, at::kDouble) + (k + 1)) &&
                    at::equal(p.gradient(), all(6)) && p.view().is_same(first);
          }
          return right;
        }) == 3);
}

TEST_CASE("what several calls of a view give in one backward is exchanged once", "[runtime][gradient]") {
  CHECK(satisfied<copies>([](team<copies>& t) {
          parameter_of p(t);
          p.gradient();
          const index_t before = t.state()->total.bytes;
          const bool once = at::equal(p.gradient(), all(6));
          const index_t of_one = t.state()->total.bytes - before;
          return once && of_one > 0 && at::equal(p.gradient(3), all(18)) &&
                 t.state()->total.bytes == before + 2 * of_one;
        }) == 3);
}

TEST_CASE("a view that lasts is left alone by what is written, at every call", "[runtime]") {
  CHECK(satisfied<copies>([](team<copies>& t) {
          parameter_of p(t);
          const auto refuses = [&] {
            try {
              p.view().mul_(2);
              return false;
            } catch (const c10::Error&) {
              return true;
            }
          };
          const bool first = refuses();
          p.step();
          return first && refuses() && at::equal(p.leaf, at::arange(4, at::kDouble) + 1);
        }) == 3);
}

TEST_CASE("a view that lasts is another where its leaf is: frozen, thawed, or in other memory", "[runtime]") {
  CHECK(satisfied<copies>([](team<copies>& t) {
          parameter_of p(t);
          p.view();
          p.leaf.set_requires_grad(false);
          const bool frozen = !p.view().requires_grad();
          p.leaf.set_requires_grad(true);
          bool right = frozen && at::equal(p.gradient(), all(6));
          p.leaf.set_data(at::full({4}, 7, at::kDouble));
          right = right && at::equal(p.view(), all(7)) && at::equal(p.gradient(), all(6));
          const at::Tensor unused = [&] {
            const at::NoGradGuard no_graph;
            return p.view() * 2;
          }();
          p.leaf = at::ones({4}, at::kDouble).set_requires_grad(true);
          return right && !unused.requires_grad() && at::equal(p.view(), all(1)) && at::equal(p.gradient(), all(6));
        }) == 3);
}

TEST_CASE("a view that lasts has gradients of higher order, and a graph that is kept", "[gradient]") {
  CHECK(satisfied<copies>([](team<copies>& t) {
          parameter_of p(t);
          p.view();
          const at::Tensor cubes = p.view().pow(3).sum();  // Σ over three workers: 3 x³
          const at::Tensor first = torch::autograd::grad({cubes}, {p.leaf}, {}, true, true)[0];
          const at::Tensor again = torch::autograd::grad({cubes}, {p.leaf}, {}, true)[0];
          const at::Tensor second = torch::autograd::grad({first.sum()}, {p.leaf})[0];
          const at::Tensor x = at::arange(4, at::kDouble);
          return at::allclose(first, 9 * x * x) && at::equal(first, again) && at::allclose(second, 18 * x);
        }) == 3);
}

TEST_CASE("where copies are compared a view is made at every call", "[runtime]") {
  CHECK(satisfied<copies>([](team<copies>& t) {
          parameter_of p(t, true);
          return !p.view().is_same(p.view()) && at::equal(p.gradient(), all(6)) && at::equal(p.gradient(2), all(12));
        }) == 3);
}

}  // namespace tessera::testing::views
