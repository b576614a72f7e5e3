#include "tests/support/layers.hpp"
#include "tests/support/windows.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// LibTorch's own interpolation. Its nearest neighbours of small pictures are those of its gradient, those of lines and
/// volumes not always: so these and cubic ones, which it has in two dimensions alone, are made of pictures.
at::Tensor serial_upsampling(const at::Tensor& x, const upsampling& what) {
  std::vector<index_t> m;
  std::vector<std::optional<double>> f(3);
  for (int i = 0; i < what.count(); ++i) {
    m.push_back(what.outputs(i, x.size(2 + i)));
    if (what.sizes.empty()) f[static_cast<std::size_t>(i)] = what.factors[i];
  }
  const bool corners = what.align_corners;
  if (what.mode == interpolation::linear && m.size() == 1) return at::upsample_linear1d(x, m, corners, f[0]);
  if (what.mode == interpolation::linear && m.size() == 3)
    return at::upsample_trilinear3d(x, m, corners, f[0], f[1], f[2]);
  const auto picture = [&](const at::Tensor& in, index_t rows, index_t columns, std::optional<double> by_rows,
                           std::optional<double> by_columns) {
    switch (what.mode) {
      case interpolation::nearest: return at::upsample_nearest2d(in, {rows, columns}, by_rows, by_columns);
      case interpolation::nearest_exact: return at::_upsample_nearest_exact2d(in, {rows, columns}, by_rows, by_columns);
      case interpolation::linear: return at::upsample_bilinear2d(in, {rows, columns}, corners, by_rows, by_columns);
      case interpolation::cubic:
      case interpolation::area: break;
    }
    return at::upsample_bicubic2d(in, {rows, columns}, corners, by_rows, by_columns);
  };
  if (m.size() == 1) return picture(x.unsqueeze(2), 1, m[0], std::nullopt, f[0]).squeeze(2);
  if (m.size() == 2) return picture(x, m[0], m[1], f[0], f[1]);
  const at::Tensor planes = picture(x.flatten(1, 2), m[1], m[2], f[1], f[2]).unflatten(1, {x.size(1), x.size(2)});
  const at::Tensor lines = planes.movedim(2, 4).flatten(1, 3).unsqueeze(2);
  return picture(lines, 1, m[0], std::nullopt, f[0]).squeeze(2).unflatten(1, {x.size(1), m[1], m[2]}).movedim(4, 2);
}

}  // namespace

constexpr interpolation all_interpolations[]{interpolation::nearest, interpolation::nearest_exact,
                                             interpolation::linear, interpolation::cubic};

/// An interpolation of one to three dimensions, to sizes or by factors, larger and smaller; adds to `e` the extents
/// that it begins with.
upsampling roll_upsampling(dice& d, interpolation mode, int dims, static_vector<index_t, max_dimensions>& e) {
  upsampling what;
  what.mode = mode;
  what.align_corners = (mode == interpolation::linear || mode == interpolation::cubic) && d.once_in(3);
  const bool to_size = d.once_in(2);
  for (int i = 0; i < dims; ++i) {
    const int n = d.roll(1, dims == 3 ? 4 : 9);
    e.push(n);
    if (to_size) what.sizes.push(d.roll(1, dims == 3 ? 6 : 20));
    else if (d.once_in(3)) what.factors.push(d.roll(1, 4));
    else what.factors.push(0.1 * d.roll((10 + n - 1) / n, 30));
    // LibTorch's gradient of a bicubic that keeps all extents is that of a copy, whatever the factors made of them.
    if (mode == interpolation::cubic && !to_size && what.outputs(i, n) == n) what.factors[i] = 1;
  }
  return what;
}

TEST_CASE("interpolation of a window is that part of LibTorch's, of every element type", "[law][runtime][gradient]") {
  for (const auto& [type, tolerance] : {std::pair(at::kDouble, 1e-12), std::pair(at::kFloat, 1e-5),
                                        std::pair(at::kHalf, 2e-3), std::pair(at::kBFloat16, 2e-2)})
    for (const interpolation mode : all_interpolations)
      for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        dice d{seed};
        auto e = extents({2, 2});
        const upsampling what = roll_upsampling(d, mode, d.roll(1, 3), e);
        const at::Tensor whole = global_of({e.begin(), e.end()}, numbers{seed}).to(type).set_requires_grad(true);
        const at::Tensor serial = serial_upsampling(whole, what);
        local_boxes where;
        where.operands.push({});
        at::Tensor x = whole, wanted = serial;
        const auto keep = [](at::Tensor& part, local_box& b, int dim, index_t n, const interval& held) {
          b.extents.push(n);
          b.held.push({});
          b.held[dim].push(held);
          part = part.narrow(dim, held.lo, held.size());
        };
        for (int dim = 0; dim < e.count; ++dim) {
          const index_t n = e[dim], m = serial.size(dim);
          const index_t begin = d.roll(0, static_cast<int>(m) - 1),
                        end = d.roll(static_cast<int>(begin) + 1, static_cast<int>(m));
          const window reads = dim < 2 ? window{1, 0, 0, 1} : what.over(dim - 2, n).reads();
          keep(x, where.operands[0], dim, n,
               {std::max<index_t>(0, reads.first(begin)), std::min(n, reads.last(end - 1) + 1)});
          keep(wanted, where.result, dim, m, {begin, end});
        }
        const at::Tensor y = nn::interpolate(x, what, where);
        const at::Tensor dy = global_of(y.sizes().vec(), numbers{seed + 1}).to(type);
        const at::Tensor dx = torch::autograd::grad({y}, {whole}, {dy})[0],
                         serial_dx = torch::autograd::grad({wanted}, {whole}, {dy})[0];
        INFO(at::toString(type) << " mode " << static_cast<int>(mode) << " seed " << seed);
        REQUIRE(at::allclose(y.to(at::kDouble), wanted.to(at::kDouble), tolerance, tolerance));
        REQUIRE(at::allclose(dx.to(at::kDouble), serial_dx.to(at::kDouble), 5 * tolerance, 5 * tolerance));
      }
}

TEST_CASE("interpolation refuses a tensor that is not the window", "[refusal]") {
  upsampling what;
  what.sizes.push(8);
  local_boxes where;
  layout whole;
  for (const index_t n : {2, 2, 4}) {
    whole.dims.push({});
    whole.dims[whole.dims.count - 1].extent = n;
  }
  where.operands.push({whole, 0});
  where.result = where.operands[0];
  where.result.extents[2] = 8;
  where.result.held[2][0] = {0, 8};
  const auto code = [&](const at::Tensor& x) -> std::string {
    try {
      nn::interpolate(x, what, where);
      return "";
    } catch (const error& e) {
      return e.code();
    }
  };
  CHECK(code(at::ones({2, 2, 4})) == "");
  CHECK(code(at::ones({2, 2, 3})) == "tessera.tensor.shape");
  CHECK(code(at::ones({2, 4})) == "tessera.layer.dimensions");
  CHECK(code(at::ones({2, 2, 4}, at::kLong)) == code::no_function_of_element.code);
  CHECK(code({}) == "tessera.tensor.undefined");
  where.operands[0].held[2][0] = {4, 4};
  CHECK(code(at::ones({2, 2, 0})) == "tessera.layer.size");
}
