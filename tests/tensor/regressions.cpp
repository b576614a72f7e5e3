#include "tests/support/tensors.hpp"

#include <atomic>

namespace tessera::testing {
namespace {

struct north : axis<2> {};
struct east : axis<2> {};
using quarter = mesh<north, east>;
using lower = fixed<quarter, north, 1>;
using on_all = tensor<partition<quarter, blocks<north, east>>, shape_of<6>, double>;
using on_lower = partition<lower, whole>;
using terms_of_four = tensor<partition<quarter, whole, partial<north, east>>, shape_of<6>, double>;
using alike_on_four = partition<quarter, whole, invariant<north, east>>;

/// Runs f on the four workers of the grid; how many of them it satisfied.
template <class F>
int satisfied(F&& f) {
  std::atomic<int> count{0};
  char* none[]{nullptr};
  launch<quarter>(0, none, threads_only(), [&](team<quarter>& t) { count += f(t) ? 1 : 0; });
  return count;
}

template <class F>
std::string code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  } catch (const std::exception&) {
    return "other";
  }
  return "none";
}

}  // namespace

TEST_CASE("backward through a sub-mesh is seeded where the sub-mesh is") {
  CHECK(satisfied([](team<quarter>& t) {
          auto x = take<on_all>(t, at::arange(6, at::kDouble));
          x.requires_grad();
          sum(to<on_lower>(x)).backward();
          return at::equal(x.local().grad(), at::ones_like(x.local()));
        }) == 4);
}

TEST_CASE("only workers that hold a scalar can be steered by it") {
  CHECK(satisfied([](team<quarter>& t) {
          auto x = take<on_all>(t, at::ones({6}, at::kDouble));
          const auto s = sum(to<on_lower>(x));
          const std::string code = code_of([&] { return value(s); });
          return code == (t.coordinate<north>() == 1 ? "none" : "tessera.value.copies");
        }) == 4);
}

TEST_CASE("two leaves do not share one gradient") {
  CHECK(satisfied([](team<quarter>& t) {
          auto a = take<terms_of_four>(t, at::ones({6}, at::kDouble));
          auto b = take<terms_of_four>(t, at::ones({6}, at::kDouble));
          a.requires_grad();
          b.requires_grad();
          sum(all_reduce<alike_on_four>(a) + all_reduce<alike_on_four>(b)).backward();
          return a.local().grad().data_ptr() != b.local().grad().data_ptr();
        }) == 4);
}

TEST_CASE("a value that backward needs cannot be overwritten unseen where nothing moved") {
  CHECK(satisfied([](team<quarter>& t) {
          using alike = tensor<alike_on_four, shape_of<6>, double>;
          auto v = take<alike>(t, at::ones({6}, at::kDouble));
          v.requires_grad();
          const auto copies = copy_in<partition<quarter, whole>>(v);
          const auto loss = sum(copies * copies);
          {
            const at::NoGradGuard step;
            v.local().mul_(100);
          }
          return code_of([&] { loss.backward(); }) == "other";  // LibTorch's own error
        }) == 4);
}

TEST_CASE("a local tensor that is not the box is refused where it comes in") {
  CHECK(satisfied([](team<quarter>& t) {
          const layout& from = value_of<on_all>.layout;
          const layout& whole_everywhere = value_of<tensor<partition<quarter, whole>, shape_of<6>, double>>.layout;
          const auto go = [&](const at::Tensor& x) { return code_of([&] { change_layout(t.state(), from, whole_everywhere, x); }); };
          return go(at::ones({5}, at::kDouble)) == "tessera.tensor.shape" && go(at::Tensor()) == "tessera.tensor.undefined" &&
                 go(at::empty({2}, at::TensorOptions().dtype(at::kDouble).device(at::kMeta))) == "tessera.tensor.device";
        }) == 4);
}

}  // namespace tessera::testing
