#include "family.hpp"

#include <algorithm>

namespace tessera::testing::fuzz {

using namespace engine;

namespace {

using ints = std::vector<index_t>;

/// One to three dimensions that are transformed, in any order, of an operand that lies anyhow.
void roll_transform(roller& r, bool real, bool inverse) {
  ints extents = r.numbers(r.roll(1, 4), 1, 6);
  const int dims = static_cast<int>(extents.size());
  ints order;
  for (int d = 0; d < dims; ++d) order.insert(order.begin() + r.roll(0, d), d);
  order.resize(static_cast<std::size_t>(r.roll(1, std::min(dims, 3))));
  if (const int rest = r.roll(0, dims - 1); r.once_in(15) && std::find(order.begin(), order.end(), rest) == order.end())
    extents[static_cast<std::size_t>(rest)] = 0;
  r.say("dim", order);
  r.say_unless("norm", r.one_of<std::string>({"backward", "ortho", "forward"}), "backward");
  if (const index_t m = extents[static_cast<std::size_t>(order.back())]; real && inverse && r.once_in(2))
    r.say("n", 2 * (m - 1) + r.roll(m == 1 ? 1 : 0, 1));
  if (r.once_in(4)) r.say("output_as", r.partition(dims));
  const bool complex = !(real && !inverse) && r.once_in(2);
  const element of = r.once_in(3) ? complex ? element::complex64 : element::float32
                     : complex    ? element::complex128
                                  : element::float64;
  r.take(extents, of, true);
}

/// f of x; LibTorch transforms no samples at all, so these are none of one.
template <class F>
at::Tensor of_some(const at::Tensor& x, const F& f) {
  if (x.numel() > 0) return f(x);
  ints sizes = x.sizes().vec();
  for (index_t& n : sizes) n = std::max<index_t>(n, 1);
  at::Tensor y = f(at::zeros(sizes, x.options().requires_grad(false)) + x.sum());
  for (index_t d = 0; d < x.dim(); ++d)
    if (x.size(d) == 0) y = y.narrow(d, 0, 0);
  return y;
}

at::Tensor transformed(const serial_call& s, const at::Tensor& x, bool real, bool inverse) {
  const auto dims = s.option("dim", ints{});
  const auto norm = s.option("norm", std::string("backward"));
  if (!real) return inverse ? at::fft_ifftn(x, {}, dims, norm) : at::fft_fftn(x, {}, dims, norm);
  if (!inverse) return at::fft_rfftn(x, {}, dims, norm);
  ints sizes;
  for (const index_t d : dims) sizes.push_back(x.size(d));
  sizes.back() = s.option("n", 2 * (sizes.back() - 1));
  return at::fft_irfftn(x, sizes, dims, norm);
}

family transform(const char* name, bool real, bool inverse) {
  return {name,
          [real, inverse](roller& r) { roll_transform(r, real, inverse); },
          [real, inverse](const serial_call& s) {
            return tensors{of_some(s.x[0], [&](const at::Tensor& x) { return transformed(s, x, real, inverse); })};
          },
          {"tessera.fft.length"}};
}

void roll_spectral(roller& r) {
  const int space = r.roll(1, 3);
  ints extents{r.batch(), r.roll(1, 4)}, modes;
  for (int i = 0; i < space; ++i) {
    const int n = r.roll(2, 7);
    extents.push_back(n);
    modes.push_back(r.roll(1, i == space - 1 ? n / 2 + 1 : n / 2));
  }
  r.say("out_channels", r.roll(1, 4));
  r.say("modes", modes);
  r.say_stored();
  r.take(extents, r.once_in(3) ? element::float32 : element::float64, true);
}

/// A product of each wave number that is kept, one after another: of dimension d with its first `modes` and, but for
/// the last dimension, its last ones.
at::Tensor convolved(const serial_call& s, const at::Tensor& x) {
  const ints modes = s.numbers("modes", 1, 1);
  ints dims, sizes;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    dims.push_back(static_cast<index_t>(2 + i));
    sizes.push_back(x.size(dims.back()));
  }
  at::Tensor z = at::fft_rfftn(x, {}, dims);
  std::vector<at::Tensor> places;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const index_t n = z.size(dims[i]), m = modes[i];
    const bool last = i + 1 == modes.size();
    places.push_back(last ? at::arange(m) : at::cat({at::arange(m), at::arange(n - m, n)}));
  }
  const ints spectrum = z.sizes().vec();
  for (std::size_t i = 0; i < modes.size(); ++i) z = z.index_select(dims[i], places[i]);
  const char* const products[]{"nix,iox->nox", "nixy,ioxy->noxy", "nixyz,ioxyz->noxyz"};
  at::Tensor y = at::einsum(products[modes.size() - 1], {z, s["weight"]});
  for (std::size_t i = 0; i < modes.size(); ++i) {
    ints all = y.sizes().vec();
    all[2 + i] = spectrum[2 + i];
    y = at::zeros(all, y.options()).index_add(dims[i], places[i], y);
  }
  return at::fft_irfftn(y, sizes, dims);
}

}  // namespace

std::vector<family> fourier_families() {
  return {transform("fft", false, false),
          transform("ifft", false, true),
          transform("rfft", true, false),
          transform("irfft", true, true),
          {"spectral_conv", roll_spectral, [](const serial_call& s) {
             return tensors{of_some(s.x[0], [&](const at::Tensor& x) { return convolved(s, x); })};
           }}};
}

}  // namespace tessera::testing::fuzz
