#include "tests/support/quarter.hpp"
#include "tests/support/tensors.hpp"

namespace tessera::testing {

using namespace engine;

namespace {

using lower = fixed<quarter, north, 1>;
using on_lower = partition<lower, whole>;

}  // namespace

TEST_CASE("backward through a sub-mesh is seeded where the sub-mesh is", "[regression][gradient]") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          auto x = distribute<on_all>(t, at::arange(6, at::kDouble));
          x.requires_grad();
          sum(to<on_lower>(x)).backward();
          return at::equal(x.local().grad(), at::ones_like(x.local()));
        }) == 4);
}

TEST_CASE("two leaves do not share one gradient", "[regression][gradient]") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          auto a = distribute<terms_of_four>(t, at::ones({6}, at::kDouble));
          auto b = distribute<terms_of_four>(t, at::ones({6}, at::kDouble));
          a.requires_grad();
          b.requires_grad();
          sum(all_reduce<alike_on_four>(a) + all_reduce<alike_on_four>(b)).backward();
          return a.local().grad().data_ptr() != b.local().grad().data_ptr();
        }) == 4);
}

TEST_CASE("a value that backward needs is not overwritten where nothing moved", "[regression][gradient]") {
  CHECK(satisfied<quarter>([](team<quarter>& t) {
          using alike = tensor<alike_on_four, shape_of<6>, double>;
          auto v = distribute<alike>(t, at::ones({6}, at::kDouble));
          v.requires_grad();
          const auto copies = copy_in<partition<quarter, whole>>(v);
          const auto loss = sum(copies * copies);
          {
            const at::NoGradGuard step;
            v.local().mul_(100);
          }
          loss.backward();
          return at::equal(v.local().grad(), at::full({6}, 2.0, at::kDouble));  // of the ones that it was computed of
        }) == 4);
}

// Where every replica's loss is seeded, gradients are larger by their number.
TEST_CASE("a loss that every worker has is back-propagated once", "[regression][gradient]") {
  using copies = partition<quarter, replicate<north, east>>;
  using shared = partition<quarter, replicate<north>, invariant<east>>;
  const auto seeded = [](auto of) {
    return satisfied<quarter>([&](team<quarter>& t) {
      auto x = distribute<on_all>(t, at::arange(6, at::kDouble));
      x.requires_grad();
      to<decltype(of)>(sum(x * x)).backward();
      return at::equal(x.local().grad(), 2 * x.local().detach());
    });
  };
  CHECK(seeded(copies{}) == 4);
  CHECK(seeded(shared{}) == 4);
}

}  // namespace tessera::testing
