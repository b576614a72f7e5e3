// A global grid beyond its poles and around, beside LibTorch's flip, roll and circular padding of the whole grid.

#include "tests/support/counting_transport.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/functions.hpp>

using namespace tessera;
using namespace tessera::testing;

namespace globes {

template <int P>
struct north : axis<P> {};
template <int P>
struct east : axis<P> {};
template <int P>
struct other : axis<P> {};

/// Rows beyond the poles, flipped and rolled by half a turn, then LibTorch's circular padding.
at::Tensor serial(const at::Tensor& x, index_t rows, index_t columns) {
  const index_t half = x.size(3) / 2, n = x.size(2);
  const at::Tensor whole = at::cat({x.narrow(2, 0, rows).flip(2).roll(half, 3), x,
                                    x.narrow(2, n - rows, rows).flip(2).roll(half, 3)},
                                   2);
  return columns == 0 ? whole : at::pad(whole, {columns, columns, 0, 0}, "circular");
}

layout grid_over(const mesh_value& m, index_t lat, index_t lon, int way) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  x.dims.resize(4);
  const index_t extents[]{2, 3, lat, lon};
  for (int d = 0; d < 4; ++d) x.dims[d].extent = extents[d];
  x.cut_by(way == 0 ? 2 : 3, 0);
  if (m.axes.count > 1) x.cut_by(way == 0 ? 3 : way == 1 ? 2 : 0, 1);
  return x;
}

/// A worker's box of a whole tensor, whose parts may overlap.
at::Tensor box_of(at::Tensor whole, const layout& x, int rank) {
  const holding mine = held_by(x, rank);
  for (int d = 0; d < mine.count; ++d) {
    std::vector<at::Tensor> parts;
    for (const interval& i : mine[d]) parts.push_back(whole.narrow(d, i.lo, i.size()));
    whole = at::cat(parts, d);
  }
  return whole.contiguous();
}

/// How many workers hold each element.
at::Tensor holders(const layout& x, const at::Tensor& like) {
  at::Tensor n = at::zeros_like(like);
  for (int rank = 0; rank < x.mesh.size(); ++rank) {
    at::Tensor at_it = n;
    const holding mine = held_by(x, rank);
    for (int d = 0; d < mine.count; ++d) at_it = at_it.narrow(d, mine[d][0].lo, size_of(mine[d]));
    at_it.add_(1);
  }
  return n;
}

template <index_t Rows, index_t Columns, index_t Stride>
std::string differs(const auto& t, index_t lat, index_t lon, int way) {
  const layout x = grid_over(t.mesh(), lat, lon, way);
  const at::Tensor whole = at::rand({2, 3, lat, lon}, at::detail::createCPUGenerator(1), at::kDouble) - 0.5;
  tensor<dyn> own = distribute(t, x, whole.clone());
  own.requires_grad();
  const tensor<dyn> y = pad_globe<2, 3, Rows, Columns, Stride>(own);
  const at::Tensor one = whole.clone().requires_grad_();
  const at::Tensor wanted = serial(one, Rows, Columns);
  const std::string where = fmt::format("{} x {} way {} pad {}, {} by {}: ", lat, lon, way, Rows, Columns, Stride);
  std::string all;
  if (!at::equal(y.local(), box_of(wanted.detach(), y.layout(), t.rank()))) all += where + "values; ";
  // what each worker makes of its copies, added up: sum of y^3 and the square of its gradient
  const at::Tensor copies = holders(y.layout(), wanted);
  const at::Tensor weights = at::rand(wanted.sizes(), at::detail::createCPUGenerator(2), at::kDouble);
  const auto near = [&](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && at::allclose(a, b, 1e-12, 1e-12);
  };
  const at::Tensor first = torch::autograd::grad(
      {(y.local().pow(3) * box_of(weights, y.layout(), t.rank())).sum()}, {own.local()}, {}, true, true)[0];
  const at::Tensor serially =
      torch::autograd::grad({(wanted.pow(3) * weights * copies).sum()}, {one}, {}, true, true)[0];
  if (!near(first.detach(), box_of(serially.detach(), x, t.rank()))) all += where + "gradient; ";
  const at::Tensor second = torch::autograd::grad({first.square().sum()}, {own.local()})[0];
  const at::Tensor second_serially = torch::autograd::grad({serially.square().sum()}, {one})[0];
  if (!near(second, box_of(second_serially, x, t.rank()))) all += where + "second order; ";
  return all;
}

template <class M>
std::string differences() {
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    std::string all;
    for (const int way : {0, 1, 2})
      for (const index_t lat : {7, 2, 3})
        for (const index_t lon : {10, 4, 2}) {
          if (lat > 1) all += differs<1, 1, 1>(t, lat, lon, way);
          if (lat > 1) all += differs<2, 1, 1>(t, lat, lon, way);
          if (lon > 2) all += differs<1, 3, 1>(t, lat, lon, way);
          all += differs<1, 0, 1>(t, lat, lon, way) + differs<0, 2, 1>(t, lat, lon, way);
          all += differs<1, 1, 2>(t, lat, lon, way);
        }
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("beyond a pole lies the other half of the globe, wherever rows and columns are cut",
          "[law][runtime][gradient]") {
  CHECK(differences<mesh<north<1>>>() == "");
  CHECK(differences<mesh<north<2>>>() == "");
  CHECK(differences<mesh<north<3>>>() == "");
  CHECK(differences<mesh<north<5>>>() == "");
  CHECK(differences<mesh<north<2>, east<2>>>() == "");
  CHECK(differences<mesh<north<3>, east<2>>>() == "");
  CHECK(differences<mesh<north<2>, east<4>>>() == "");
}

}  // namespace globes
