#include "tests/support/windows.hpp"
#include "tests/support/layers.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

at::Tensor padded_for(const at::Tensor& x, const static_vector<sliding, 8>& kernels, double outside) {
  std::vector<index_t> widths;
  for (int i = kernels.count - 1; i >= 0; --i) {
    widths.push_back(kernels[i].before);
    widths.push_back(kernels[i].after);
  }
  constexpr const char* modes[]{"constant", "reflect", "replicate", "circular"};
  const boundary edge = kernels.empty() ? boundary::zero : kernels[0].edge;
  if (edge == boundary::zero) return at::constant_pad_nd(x, widths, outside);
  return at::pad(x, widths, modes[static_cast<int>(edge)]);
}

at::Tensor serial_convolution(const at::Tensor& in, const at::Tensor& weight, const at::Tensor& bias,
                              const contraction& what) {
  const std::vector<index_t> none(static_cast<std::size_t>(what.kernels.count), 0);
  return at::convolution(padded_for(in, what.kernels, 0), weight, bias, each_of(what.kernels, &sliding::stride), none,
                         each_of(what.kernels, &sliding::dilation), false, none, what.groups);
}

/// LibTorch's own pooling where both paddings are alike, else of the padded tensor.
at::Tensor serial_pooling(const at::Tensor& in, const pooling& p) {
  const auto k = each_of(p.kernels, &sliding::kernel);
  const auto s = each_of(p.kernels, &sliding::stride);
  const auto pad = each_of(p.kernels, &sliding::before);
  if (p.is == pooling::kind::max) {
    // LibTorch writes outside its memory in the backward of a dilated window that holds padding alone: pad by hand.
    static_vector<sliding, 8> by_hand = p.kernels;
    bool plain = true;
    for (int i = 0; i < p.kernels.count; ++i) {
      by_hand[i] = p.over(i, in.size(2 + i));
      plain = plain && p.kernels[i].dilation == 1;
    }
    const auto dilated = each_of(p.kernels, &sliding::dilation);
    const auto none = std::vector<index_t>(k.size(), 0);
    const at::Tensor ready = plain ? in : padded_for(in, by_hand, -std::numeric_limits<double>::infinity());
    const bool ceil = plain && p.ceil_mode;
    switch (p.kernels.count) {
      case 1: return at::max_pool1d(ready, k, s, plain ? pad : none, dilated, ceil);
      case 2: return at::max_pool2d(ready, k, s, plain ? pad : none, dilated, ceil);
      default: return at::max_pool3d(ready, k, s, plain ? pad : none, dilated, ceil);
    }
  }
  const std::optional<index_t> divisor = p.divisor > 0 ? std::optional(p.divisor) : std::nullopt;
  switch (p.kernels.count) {
    case 1: return at::avg_pool1d(in, k, s, pad, p.ceil_mode, p.counts_padding);
    case 2: return at::avg_pool2d(in, k, s, pad, p.ceil_mode, p.counts_padding, divisor);
    default: return at::avg_pool3d(in, k, s, pad, p.ceil_mode, p.counts_padding, divisor);
  }
}

}  // namespace

TEST_CASE("layers that share one wide halo give what they give with one each", "[law][runtime][gradient]") {
  // conv, relu, pooling and conv after one exchange, against the serial chain; kernels, strides and paddings rolled.
  dice d{93};
  int tried = 0;
  int wide = 0;
  for (const auto& grid : grids)
    for (int round = 0; round < 40; ++round) {
      const int dims = d.roll(1, 2);
      const bool ring = d.once_in(4);
      auto e = extents({d.roll(1, 2), d.roll(1, 3)});
      for (int i = 0; i < dims; ++i) e.push(d.roll(3, 12));
      layout x = roll_layout(d, grid_of(grid[0], grid[1]), e, {false, false, false, false});
      std::vector<contraction> convs(2);
      for (contraction& c : convs) {
        c.feature = 1;
        c.out = d.roll(1, 3);
        c.bias = !d.once_in(3);
        c.cut_is_set = true;
        for (int i = 0; i < dims; ++i) {
          const int k = d.roll(1, 3);
          if (ring) c.kernels.push({2 * (k / 2) + 1, 1, k / 2, k / 2, 1, boundary::periodic});
          else c.kernels.push({k, d.roll(1, 2), d.roll(0, k - 1), d.roll(0, k - 1), d.roll(1, 2)});
        }
      }
      pooling pool = roll_pool(d, pooling::kind::max, dims);
      if (ring)
        for (sliding& s : pool.kernels) s = {1, 1, 0, 0, 1, boundary::periodic};
      const halo_step relu_step{0, {}, true};
      const auto over = [](const contraction& c) {
        halo_step s{2, {}, true};
        s.windows.kernels = c.kernels;
        return s;
      };
      static_vector<halo_step, 16> steps;
      steps.push(over(convs[0]));
      steps.push(relu_step);
      steps.push({2, pool, true});
      steps.push(over(convs[1]));
      const layer_plan halo = plan_fused_halo(x, steps);
      if (!halo.why.ok()) continue;
      layer_plan plans[3];
      plans[0] = plan_of(convs[0], {halo.output(), element::float32});
      if (plans[0].why.ok()) plans[1] = plan_pooling(plans[0].output(), pool);
      if (plans[0].why.ok() && plans[1].why.ok()) plans[2] = plan_of(convs[1], {plans[1].output(), element::float32});
      bool fits = true;
      for (const layer_plan& p : plans) fits = fits && p.why.ok();
      if (!fits) continue;
      for (const layer_plan& p : plans)
        // no second halo
        for (const dimension& k : p.given().dims) REQUIRE((k.kind == cover::tiled || same(p.given(), p.used())));
      for (int k = 0; k < x.dims.count; ++k) {
        REQUIRE(plans[2].output().dims[k].kind == cover::tiled);
        wide += halo.output().dims[k].kind == cover::haloed;
      }
      ++tried;
      layer_case c;
      c.plan.add_input(x, plans[2].used());
      c.plan.add_output(plans[2].raw(), plans[2].output());
      for (const layer_plan* p : {&plans[0], &plans[2]})
        for (int i = 0; i < p->parameters(); ++i) c.plan.add_parameter(p->parameter(i));
      const int first = plans[0].parameters();
      c.forward = [=](const team_handle& team, const layer_plan&, const at::Tensor& in,
                      const std::vector<nn::parameter>& w) {
        const std::vector<nn::parameter> one(w.begin(), w.begin() + first);
        const std::vector<nn::parameter> two(w.begin() + first, w.end());
        at::Tensor y = change_layout(team, x, halo.output(), in);
        y = at::relu(nn::engine::forward_contraction({team, plans[0]}, convs[0], y, one));
        y = nn::engine::forward_pooling({team, plans[1]}, pool, y).values;
        return nn::engine::forward_contraction({team, plans[2]}, convs[1], y, two);
      };
      c.serial = [=](const at::Tensor& in, const std::vector<at::Tensor>& w) {
        const auto conv = [&](const at::Tensor& v, const contraction& what, std::size_t at) {
          return serial_convolution(v, w[at], what.bias ? w[at + 1] : at::Tensor{}, what);
        };
        at::Tensor y = at::relu(conv(in, convs[0], 0));
        y = ring ? y : serial_pooling(y, pool);
        return conv(y, convs[1], static_cast<std::size_t>(first));
      };
      const std::string why = differs(c, d.next());
      INFO("grid " << grid[0] << "x" << grid[1] << " round " << round << "\n"
                   << shown(x) << "\n"
                   << shown(halo.output()));
      CHECK(why == "");
    }
  CHECK(tried > 60);
  CHECK(wide > 40);
}

TEST_CASE("transposed convolutions of float and half types are as near to double as their element", "[runtime]") {
  struct up : axis<2> {};
  struct across : axis<3> {};
  using grid = mesh<up, across>;
  const auto far = []<index_t Out, class E>(std::integral_constant<index_t, Out>, E, at::ScalarType type,
                                            double epsilon) {
    using images = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<2, 3, 5, 7>, E>;
    using net =
        nn::sequential<images, nn::conv_transpose<Out, kernel<4, 3>, stride<2>, padding<1>, output_padding<0, 1>>>;
    const auto run = in_team<grid>([&](team<grid>& t) {
      net grow{t, seed{1}};
      const at::Tensor x = global_of({2, 3, 5, 7}, numbers{5}).to(type);
      const auto w = nn::state_of(grow);
      const auto serial = [&](auto&& taken) {
        const auto wide = [&](const at::Tensor& z) { return taken(z.to(at::kDouble)); };
        return at::conv_transpose2d(wide(x), wide(w.at("0.weight")), wide(w.at("0.bias")), {2, 2}, {1, 1}, {0, 1});
      };
      const at::Tensor y = tessera::full_tensor(grow(distribute<images>(t, x))).to(at::kDouble);
      const at::Tensor bound = serial([](const at::Tensor& z) { return z.abs(); });  // of what is added
      return ((y - serial([](const at::Tensor& z) { return z; })).abs() / bound).max().template item<double>() /
             epsilon;
    });
    return run.well() ? *run.results[0] : 1e300;
  };
  const std::integral_constant<index_t, 1> few;   // terms are added
  const std::integral_constant<index_t, 9> many;  // the input's halo comes
  CHECK(far(few, float{}, at::kFloat, 0x1p-23) < 4);
  CHECK(far(many, float{}, at::kFloat, 0x1p-23) < 4);
  CHECK(far(few, half{}, at::kHalf, 0x1p-10) < 2);
  CHECK(far(many, half{}, at::kHalf, 0x1p-10) < 0.75);
  CHECK(far(few, bfloat16{}, at::kBFloat16, 0x1p-7) < 2);
  CHECK(far(many, bfloat16{}, at::kBFloat16, 0x1p-7) < 0.75);
}

TEST_CASE("batch, height and width cut together, and parts smaller than the kernel", "[runtime][gradient]") {
  mesh_value cube;
  for (const char* name : {"a", "b", "c"}) cube.axes.push({text{name, 1}, 2, 1});
  cube = row_major(cube);
  for (const index_t n : {index_t{1}, index_t{2}, index_t{5}, index_t{7}}) {
    layout x;
    x.mesh = cube;
    x.placements.resize(3);
    for (const index_t e : {index_t{3}, index_t{2}, n, n}) {
      dimension one;
      one.extent = e;
      x.dims.push(one);
    }
    x.cut_by(0, 0);
    x.cut_by(2, 1);
    x.cut_by(3, 2);
    contraction c;
    c.feature = 1;
    c.out = 3;
    for (int i = 0; i < 2; ++i) c.kernels.push({5, 1, 2, 2, 1});
    layer_case layer;
    layer.plan = plan_of(c, {x, element::float32});
    layer.forward = [c](const team_handle& team, const layer_plan& p, const at::Tensor& in,
                        const std::vector<nn::parameter>& w) {
      return nn::engine::forward_contraction({team, p}, c, in, w);
    };
    layer.serial = [c](const at::Tensor& in, const std::vector<at::Tensor>& w) {
      return serial_convolution(in, w[0], w[1], c);
    };
    REQUIRE(layer.plan.why.ok());
    CHECK(differs(layer, 60) == "");
  }
}
