#include "tests/support/tensors.hpp"

#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/verbs.hpp>

namespace tessera::testing {
namespace {

struct twins : axis<2> {};
using two_workers = mesh<twins>;
using held_alike = tensor<partition<two_workers, whole, invariant<twins>>, shape_of<6>, double>;
using one_half_each = partition<two_workers, blocks<twins>>;

/// The code that each of two workers ends with when worker 1 holds another value than worker 0.
std::vector<std::string> codes_of_two(bool checked, double other) {
  std::vector<std::string> all(2, "none");
  launch_options o = threads_only();
  o.checked = checked;
  char* none[]{nullptr};
  launch<two_workers>(0, none, o, [&](team<two_workers>& workers) {
    const auto mine = static_cast<std::size_t>(workers.rank());
    try {
      const auto x = assume<held_alike>(workers, at::full({6}, workers.rank() == 1 ? other : 1.0, at::kDouble));
      static_cast<void>(to<one_half_each>(x));
    } catch (const error& e) {
      all[mine] = e.code();
    }
  });
  return all;
}

}  // namespace

TEST_CASE("checked mode sees copies that differ, on every worker") {
  CHECK(codes_of_two(true, 2.0) == std::vector<std::string>(2, "tessera.agree.copies"));
  CHECK(codes_of_two(true, 1.0) == std::vector<std::string>(2, "none"));
  CHECK(codes_of_two(false, 2.0) == std::vector<std::string>(2, "none"));
}

}  // namespace tessera::testing
