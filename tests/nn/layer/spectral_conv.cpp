#include "tests/support/transforms.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/operation/layer/layer_values.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// Li et al. 2021, by LibTorch's transforms of several dimensions: each corner of wave numbers has weights of its own.
at::Tensor serial_convolution(const at::Tensor& x, const at::Tensor& w, const std::vector<index_t>& modes) {
  std::vector<index_t> dims, sizes;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    dims.push_back(static_cast<index_t>(2 + i));
    sizes.push_back(x.size(dims.back()));
  }
  const at::Tensor z = at::fft_rfftn(x, {}, dims);
  std::vector<index_t> spectrum = z.sizes().vec();
  spectrum[1] = w.size(1);
  at::Tensor y = at::zeros(spectrum, z.options());
  const char* const products[]{"nix,iox->nox", "nixy,ioxy->noxy", "nixyz,ioxyz->noxyz"};
  for (unsigned corner = 0; corner < 1u << (modes.size() - 1); ++corner) {
    const auto part = [&](at::Tensor t, bool weights) {
      for (std::size_t i = 0; i < modes.size(); ++i) {
        const bool negative = (corner >> i & 1u) != 0;
        t = t.narrow(dims[i], !negative ? 0 : weights ? modes[i] : t.size(dims[i]) - modes[i], modes[i]);
      }
      return t;
    };
    const at::Tensor product = at::einsum(products[modes.size() - 1], {part(z, false), part(w, true)});
    at::Tensor padded = product;
    for (std::size_t i = 0; i < modes.size(); ++i) {
      const bool negative = (corner >> i & 1u) != 0;
      std::vector<index_t> widths(2 * (modes.size() - i), 0);
      widths[widths.size() - (negative ? 2 : 1)] = z.size(dims[i]) - modes[i];
      padded = at::constant_pad_nd(padded, widths);
    }
    y = y + padded;
  }
  return at::fft_irfftn(y, sizes, dims);
}

struct seen {
  at::Tensor y, of_x, of_w, bent_x, bent_w;
};
/// What is given, its gradients, and the gradients of what these are along directions.
template <class F>
seen two_gradients(const at::Tensor& x, const at::Tensor& w, const at::Tensor& seed, const at::Tensor& along_x,
                   const at::Tensor& along_w, const F& f) {
  using torch::autograd::grad;
  const at::Tensor leaf = x.detach().clone().set_requires_grad(true);
  const at::Tensor y = f(leaf);
  const auto first = grad({y}, {leaf, w}, {seed}, true, true);
  const auto second = grad({first[0], first[1]}, {leaf, w}, {along_x, along_w});
  return {y.detach(), first[0].detach(), first[1].detach(), second[0].detach(), second[1].detach()};
}

std::string convolution_differs(const layer_plan& p, const spectral& what, std::uint64_t salt) {
  const std::vector<index_t> modes(what.modes.begin(), what.modes.end());
  const layout &of_x = p.given(), &of_w = p.stored(0), &of_y = p.output();
  const at::Tensor x = numbers_of(extents_of(of_x), false, salt), w = numbers_of(extents_of(of_w), true, salt + 2);
  const at::Tensor seed = numbers_of(extents_of(of_y), false, salt + 4);
  const at::Tensor along_x = numbers_of(extents_of(of_x), false, salt + 6);
  const at::Tensor along_w = numbers_of(extents_of(of_w), true, salt + 8);
  const at::Tensor serial_w = w.clone().set_requires_grad(true);
  const seen wanted = two_gradients(x, serial_w, seed, along_x, along_w,
                                    [&](const at::Tensor& in) { return serial_convolution(in, serial_w, modes); });
  const auto xs = dealt(of_x, x, salt + 10), seeds = dealt(cotangent(of_y), seed, salt + 12),
             alongs = dealt(of_x, along_x, salt + 14), of_weights = dealt(of_w, along_w, salt + 16);
  const auto run = on_workers(of_x.mesh.size(), [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, of_x.mesh);
    std::vector<nn::parameter> parameters;
    parameters.emplace_back(team, "0.weight", p.parameter(0), element::complex128, tessera::seed{1});
    parameters[0].assign(w);
    const nn::engine::bound_layer bound(team, p, element::float64);
    return two_gradients(xs[r], parameters[0].stored().local(), seeds[r], alongs[r], of_weights[r],
                         [&](const at::Tensor& in) {
                           const std::vector<at::Tensor> operands{in};
                           const nn::engine::layer_state state{parameters, {}};
                           return nn::forward({bound, operands, state}, what);
                         });
  });
  if (!run.well()) return run.errors().substr(0, 600);
  std::string why;
  const auto judge = [&](const char* name, const layout& of, at::Tensor seen::* member) {
    std::vector<at::Tensor> all;
    for (const auto& r : run.results) all.push_back((*r).*member);
    const double d = complex_distance(of, all, wanted.*member);
    if (!(d < 1e-12)) why += fmt::format("{} off by {} ", name, d);
  };
  judge("result", of_y, &seen::y);
  judge("gradient of x", cotangent(of_x), &seen::of_x);
  judge("gradient of the weight", cotangent(of_w), &seen::of_w);
  judge("bent x", cotangent(of_x), &seen::bent_x);
  judge("bent weight", cotangent(of_w), &seen::bent_w);
  return why;
}

}  // namespace

TEST_CASE("a spectral convolution, cut in any way, is that of one process", "[law][runtime][gradient]") {
  dice d{137};
  int accepted = 0, exchanged = 0, again = 0, cut = 0, failed = 0;
  std::string said;
  for (const auto& grid : grids)
    for (int round = 0; round < trials(40); ++round) {
      const int space = d.roll(1, 3);
      spectral what;
      what.out = d.roll(1, 4);
      auto e = no_items<index_t, max_dimensions>;
      e.push(d.roll(1, 4));
      e.push(d.roll(1, 4));
      for (int i = 0; i < space; ++i) {
        e.push(d.roll(2, 7));
        what.modes.push(d.roll(1, static_cast<int>(i == space - 1 ? e[2 + i] / 2 + 1 : e[2 + i] / 2)));
      }
      const layout x = roll_layout(d, grid_of(grid[0], grid[1]), e, {true, true, true, true, true});
      const layer_plan p = plan_of(what, {x, element::float64});
      if (!p.why.ok()) continue;
      ++accepted;
      exchanged += p.exchanges() > 1;
      const spectral_steps steps = steps_of(what, x);
      again += !(steps.mixed == steps.product);
      for (int dim = 2; dim < space + 2; ++dim) cut += p.stored(0).levels(dim) > 0;
      const std::string why = convolution_differs(p, what, d.next());
      if (why.empty() || ++failed > 3) continue;
      said += fmt::format("grid {}x{} round {}: {}\n  {}\n  used {}\n  raw {}\n  gives {}\n  weight {}\n", grid[0],
                          grid[1], round, why, shown(p.given()), shown(p.used()), shown(p.raw()), shown(p.output()),
                          shown(p.stored(0)));
    }
  INFO(said << " accepted " << accepted << " exchanged " << exchanged << " again " << again << " cut " << cut);
  CHECK(failed == 0);
  CHECK(accepted > trials(120));
  CHECK(exchanged > trials(20));
  CHECK(again > trials(10));
  CHECK(cut > trials(40));
}

TEST_CASE("weights of wave numbers begin as Li et al. have them, whatever the cut", "[runtime]") {
  struct row : axis<2> {};
  struct col : axis<2> {};
  using grid = mesh<row, col>;
  using pixels = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  using alone = partition<grid, whole, whole, whole, whole, invariant<row, col>>;
  using extents = shape_of<2, 3, 9, 8>;
  const auto weight = [](auto& t, auto in) {
    using net = nn::sequential<tensor<decltype(in), extents, float>, nn::spectral_conv<4, 3, 4>>;
    const net made{t, seed{5}};
    return nn::state_of(made).at("0.weight");
  };
  const auto run = in_team<grid>([&](team<grid>& t) {
    const at::Tensor w = weight(t, pixels{}), same = weight(t, alone{});
    const at::Tensor parts = at::view_as_real(w);
    return same_bits(parts, at::view_as_real(same)) && w.scalar_type() == at::kComplexFloat &&
           w.sizes() == at::IntArrayRef({3, 4, 6, 4}) && parts.min().item<double>() >= 0 &&
           parts.max().item<double>() < 1.0 / 12 && parts.select(-1, 1).max().item<double>() > 1.0 / 24;
  });
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("transforms of types, of values and from a file give the same bits, and what one process gives",
          "[runtime]") {
  struct row : axis<2> {};
  struct col : axis<2> {};
  using grid = mesh<row, col>;
  using pixels = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  using field = tensor<pixels, shape_of<2, 3, 9, 8>, double>;
  using rows = partition<grid, whole, whole, blocks<row, col>, whole>;
  using typed = nn::sequential<field, nn::spectral_conv<3, 3, 4>, nn::rfft<2, 3, fft_norm::ortho>,
                               nn::ifft<2, output_as<pixels>{}>, nn::irfft<3, output_size<9>{}, output_as<rows>{}>>;
  static constexpr const char* text = R"({"inputs": [{"name": "x", "shape": [2, 3, 9, 8], "element": "double",
    "dims": [{"whole": true}, {"whole": true}, {"blocks": ["row"]}, {"blocks": ["col"]}]}],
   "nodes": [{"name": "a", "of": "x", "layer": "spectral_conv", "out_channels": 3, "modes": [3, 4]},
    {"name": "b", "of": "a", "layer": "rfft", "dim": [2, 3], "norm": "ortho"},
    {"name": "c", "of": "b", "layer": "ifft", "dim": 2},
    {"name": "d", "of": "c", "layer": "irfft", "dim": 3, "n": 9, "output_as":
      {"dims": [{"whole": true}, {"whole": true}, {"blocks": ["row", "col"]}, {"whole": true}]}}],
   "outputs": ["d"]})";
  const at::Tensor numbers_of_x = global_of({2, 3, 9, 8}, numbers{3});
  const auto run = in_team<grid>([&](team<grid>& t) -> std::string {
    const auto x = distribute<field>(t, numbers_of_x);
    const typed net{t, seed{5}};
    const at::Tensor y = full_tensor(net(x));
    const at::Tensor w = nn::state_of(net).at("0.weight");
    const at::Tensor z =
        at::fft_ifft(at::fft_rfft2(serial_convolution(numbers_of_x, w, {3, 4}), {}, {2, 3}, "ortho"), std::nullopt, 2);
    std::string why = at::allclose(y, at::fft_irfft(z, 9, 3), 1e-12, 1e-12) ? "" : "typed ";
    nn::program of_values;
    of_values.output(of_values.input<field>() | nn::spectral_conv_layer{.out = 3, .modes = {3, 4}} |
                     nn::fft_layer{.dims = {2, 3}, .real = true, .norm = fft_norm::ortho} |
                     nn::fft_layer{.dims = {2}, .inverse = true} |
                     nn::fft_layer{.dims = {3},
                                   .inverse = true,
                                   .real = true,
                                   .length = 9,
                                   .output_as = value_of<tensor<rows, shape_of<2, 3, 9, 9>, double>>.layout});
    nn::program of_file;
    nn::read_network(of_file, text, t.mesh(), "fft.json");
    for (nn::program* p : {&of_values, &of_file}) {
      const nn::dynamic_network other{t, seed{5}, *p};
      if (!same_bits(full_tensor(other(x)), y)) why += p == &of_file ? "file " : "values ";
    }
    return why;
  });
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}
