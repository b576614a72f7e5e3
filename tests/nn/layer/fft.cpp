#include "tests/support/transforms.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

constexpr const char* norms[]{"backward", "ortho", "forward"};

/// LibTorch's own function of several dimensions.
at::Tensor serial_transform(const fourier& f, const at::Tensor& x, index_t length) {
  std::vector<index_t> dims(f.dims.begin(), f.dims.end());
  const char* norm = norms[static_cast<int>(f.norm)];
  if (!f.real) return f.inverse ? at::fft_ifftn(x, {}, dims, norm) : at::fft_fftn(x, {}, dims, norm);
  if (!f.inverse) return at::fft_rfftn(x, {}, dims, norm);
  std::vector<index_t> sizes;
  for (index_t d : dims) sizes.push_back(x.size(d));
  sizes.back() = length;
  return at::fft_irfftn(x, sizes, dims, norm);
}

/// A transform of some of so many dimensions, in any order.
fourier roll_transform(dice& d, int dims) {
  fourier f;
  const int count = d.roll(1, std::min(dims, 3));
  const int* order = d.roll_ranks(count, dims);
  for (int i = 0; i < count; ++i) f.dims.push(order[i]);
  f.inverse = d.once_in(2);
  f.real = d.once_in(2);
  f.norm = static_cast<fft_norm>(d.roll(0, 2));
  return f;
}

}  // namespace

TEST_CASE("a transform of any dimensions, cut in any way, is LibTorch's in one process", "[law][runtime][gradient]") {
  dice d{131};
  int accepted = 0, moved = 0, gathered = 0, several = 0, failed = 0;
  std::string said;
  for (const auto& grid : grids)
    for (int round = 0; round < trials(60); ++round) {
      const int dims = d.roll(1, 4);
      auto e = no_items<index_t, max_dimensions>;
      for (int i = 0; i < dims; ++i) e.push(d.roll(1, 7));
      fourier f = roll_transform(d, dims);
      const bool complex = f.real ? f.inverse : d.once_in(2);
      if (f.real && f.inverse) {
        const index_t n = e[f.dims[f.dims.count - 1]];
        f.length = n == 1 ? 1 : 2 * (n - 1) + d.roll(0, 1);
      }
      const layout x = roll_layout(d, grid_of(grid[0], grid[1]), e, {true, true, true, true, true});
      const layer_plan p = plan_of(f, {x, complex ? element::complex128 : element::float64});
      if (!p.why.ok()) continue;
      ++accepted;
      moved += !same(p.given(), p.used());
      several += p.exchanges() > 0;
      for (int a = 0; a < x.placements.count; ++a)
        gathered += x.placements[a].kind == placement::cut && p.raw().placements[a].kind == placement::replicate;
      CHECK(same(lies_as(p.raw(), x, f.dims), p.output()));
      const std::string why = transform_differs(
          p, f, complex, d.next(), [&](const at::Tensor& in) { return serial_transform(f, in, f.length); });
      if (why.empty() || ++failed > 3) continue;
      said += fmt::format("grid {}x{} round {}: {}\n  {}\n  used {}\n  raw {}\n  gives {}\n", grid[0], grid[1], round,
                          why, shown(p.given()), shown(p.used()), shown(p.raw()), shown(p.output()));
    }
  INFO(said);
  CHECK(failed == 0);
  CHECK(accepted > trials(250));
  CHECK(moved > trials(60));
  CHECK(several > trials(20));
  CHECK(gathered > trials(10));
}
