#include "tests/support/device/ship.hpp"

#include <tessera/functions.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What adds to elements by index on devices, where many indices are equal: the sums of the host, in one order.

namespace {

template <class P>
using crates = tensor<P, shape_of<9, 6>, double>;
template <class P>
using places = tensor<P, shape_of<9>, std::int64_t>;
template <class P>
using marks = tensor<P, shape_of<9, 6>, std::int64_t>;
using in_columns = partition<ship, whole, blocks<deck, lane>>;
using for_columns = partition<ship, whole>;

at::Tensor waves(std::vector<index_t> extents) {
  return at::sin(at::arange(c10::multiply_integers(extents), at::kDouble)).view(extents);
}

}  // namespace

TEST_CASE("what has equal indices is added on devices as on the host, with gradients", "[runtime][gradient]") {
  const at::Tensor rows = at::tensor({4, 0, 4, 4, 1, 0, 4, 2, 4}, at::kLong);
  const at::Tensor each = at::arange(54, at::kLong).view({9, 6}).mul(7).remainder(5);
  const at::Tensor x = waves({9, 6}), table = waves({5, 6});
  on_ship([&](team<ship>& t, c10::Device device) -> std::string {
    const auto of_rows = distribute<places<for_columns>>(t, rows.to(device));
    const auto of_each = distribute<marks<in_columns>>(t, each.to(device));
    auto own = distribute<crates<in_columns>>(t, x.to(device));
    auto own_table = distribute<tensor<in_columns, shape_of<5, 6>, double>>(t, table.to(device));
    own.requires_grad();
    own_table.requires_grad();
    std::string wrong;
    const auto judge = [&](const char* what, const at::Tensor& found, const at::Tensor& wanted) {
      if (found.device() != device) wrong += fmt::format("{} elsewhere; ", what);
      const at::Tensor mine = distribute(t, own_table.layout(), wanted.to(device)).local();
      if (!at::allclose(found.detach().cpu(), mine.cpu(), 1e-14, 1e-14)) wrong += fmt::format("other {}; ", what);
    };
    judge("sums of rows", scatter_add<0, 5>(own, of_rows).local(),
          at::zeros({5, 6}, x.options()).index_add(0, rows, x));
    judge("sums of elements", scatter_add<0, 5>(own, of_each).local(),
          at::zeros({5, 6}, x.options()).scatter_add(0, each, x));
    const at::Tensor taken = index_select<0>(own_table, of_rows).local();
    const at::Tensor g = torch::autograd::grad({taken.square().sum()}, {own_table.local()})[0];
    judge("gradient of rows", g, at::zeros({5, 6}, x.options()).index_add(0, rows, 2 * table.index_select(0, rows)));
    return wrong;
  });
}
