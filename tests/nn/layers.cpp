#include "tests/support/layers.hpp"

#include <tessera/operation/layer/layer_values.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

static_vector<index_t, max_dimensions> extents(std::initializer_list<index_t> list) {
  static_vector<index_t, max_dimensions> e;
  for (index_t n : list) e.push(n);
  return e;
}

std::vector<index_t> each_of(const static_vector<sliding, 8>& kernels, index_t sliding::* what) {
  std::vector<index_t> all;
  for (const sliding& s : kernels) all.push_back(s.*what);
  return all;
}

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

pooling roll_pool(dice& d, pooling::kind what, int dims) {
  pooling p;
  p.is = what;
  p.ceil_mode = d.once_in(2);
  p.counts_padding = d.once_in(2);
  if (what == pooling::kind::average && dims > 1 && d.once_in(4)) p.divisor = d.roll(1, 5);
  for (int i = 0; i < dims; ++i) {
    const int k = d.roll(1, 4);
    const int pad = d.roll(0, k / 2);
    p.kernels.push({k, d.roll(1, 3), pad, pad, what == pooling::kind::max ? d.roll(1, 2) : 1});
  }
  return p;
}

}  // namespace

namespace {

/// How far the indices of maxima are from those of one process.
double indices_apart(const layer_plan& p, const auto& what, const at::Tensor& x, const at::Tensor& serial) {
  const shards xs = deal(p.given(), p.given().mesh.size(), x, 5);
  const auto run = on_workers(p.given().mesh.size(), [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, p.given().mesh);
    return nn::engine::forward_pooling({team, p}, what, xs.local[static_cast<std::size_t>(carrier->rank())], true)
        .indices.to(at::kDouble);
  });
  if (!run.well()) throw std::runtime_error(run.errors());
  std::vector<at::Tensor> each;
  for (const auto& r : run.results) each.push_back(*r);
  return distance(p.raw(), each, serial.to(at::kDouble));
}

}  // namespace

TEST_CASE("a maximum's indices are those of the global tensor") {
  dice d{91};
  int tried = 0;
  for (const auto& grid : grids)
    for (int round = 0; round < 20; ++round) {
      const int dims = d.roll(1, 3);
      auto e = extents({d.roll(1, 3), d.roll(1, 3)});
      for (int i = 0; i < dims; ++i) e.push(d.roll(1, 7));
      pooling what = roll_pool(d, pooling::kind::max, dims);
      for (sliding& s : what.kernels) s.dilation = 1;
      const layer_plan p = plan_pooling(roll_layout(d, grid_of(grid[0], grid[1]), e, {false, true, true, false}), what);
      if (!p.why.ok()) continue;
      ++tried;
      const at::Tensor x = global_of(testing::extents_of(p.given()), numbers{d.next()});
      const auto k = each_of(what.kernels, &sliding::kernel);
      const auto s = each_of(what.kernels, &sliding::stride);
      const auto pad = each_of(what.kernels, &sliding::before);
      const auto dilated = each_of(what.kernels, &sliding::dilation);
      const at::Tensor serial =
          dims == 1   ? std::get<1>(at::max_pool1d_with_indices(x, k, s, pad, dilated, what.ceil_mode))
          : dims == 2 ? std::get<1>(at::max_pool2d_with_indices(x, k, s, pad, dilated, what.ceil_mode))
                      : std::get<1>(at::max_pool3d_with_indices(x, k, s, pad, dilated, what.ceil_mode));
      CHECK(indices_apart(p, what, x, serial) == 0);
    }
  CHECK(tried > 60);
}

TEST_CASE("an adaptive maximum's indices are those of the global tensor, the first of equals") {
  dice d{92};
  int tried = 0;
  for (const auto& grid : grids)
    for (int round = 0; round < 20; ++round) {
      const int dims = d.roll(1, 3);
      auto e = extents({d.roll(1, 3), d.roll(1, 3)});
      per_dimension m;
      std::vector<index_t> sizes;
      for (int i = 0; i < dims; ++i) {
        e.push(d.roll(1, 9));
        sizes.push_back(d.roll(1, 9));
        m.push(sizes.back());
      }
      const nn::adaptive_max_pool_layer layer{m};
      const layer_plan p =
          layer.plan({roll_layout(d, grid_of(grid[0], grid[1]), e, {false, true, true, false}), element::float64});
      if (!p.why.ok()) continue;
      ++tried;
      const at::Tensor x = global_of(testing::extents_of(p.given()), numbers{d.next()}).remainder(3);
      const at::Tensor serial = dims == 1   ? std::get<1>(at::adaptive_max_pool1d(x, sizes))
                                : dims == 2 ? std::get<1>(at::adaptive_max_pool2d(x, sizes))
                                            : std::get<1>(at::adaptive_max_pool3d(x, sizes));
      CHECK(indices_apart(p, layer.description(), x, serial) == 0);
    }
  CHECK(tried > 60);
}

TEST_CASE("layers that share one wide halo give what they give with one each") {
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
      plans[0] = plan_contraction(halo.output(), convs[0]);
      if (plans[0].why.ok()) plans[1] = plan_pooling(plans[0].output(), pool);
      if (plans[0].why.ok() && plans[1].why.ok()) plans[2] = plan_contraction(plans[1].output(), convs[1]);
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

TEST_CASE("a typed maximum says where it lies") {
  struct up : axis<2> {};
  struct across : axis<3> {};
  using grid = mesh<up, across>;
  using image = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<2, 3, 7, 8>, double>;
  const at::Tensor global = global_of({2, 3, 7, 8}, numbers{3});
  const auto [y, at_index] = at::max_pool2d_with_indices(global, {3, 2}, {2, 2}, {1, 0});
  const auto run = in_team<grid>([&, y = y, at_index = at_index](team<grid>& t) {
    const auto got =
        nn::with_indices<nn::max_pool<kernel<3, 2>, stride<2, 2>, padding<1, 0>>>(distribute<image>(t, global));
    return at::equal(tessera::full_tensor(got.values), y) && at::equal(tessera::full_tensor(got.indices), at_index);
  });
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r));
}

/// Whether the values and indices of a maximum over 2 x 3 workers are LibTorch's of the whole tensor.
template <class Element>
bool maxima_as_in_one_process(const at::Tensor& global) {
  struct up : axis<2> {};
  struct across : axis<3> {};
  using grid = mesh<up, across>;
  using image = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<1, 2, 5, 7>, Element>;
  const auto [y, at_index] = at::max_pool2d_with_indices(global, {3, 3}, {2, 2}, {1, 1});
  const auto run = in_team<grid>([&, y = y, at_index = at_index](team<grid>& t) {
    const image x = distribute<image>(t, global);
    const auto right = [&](const auto& got) {
      return at::equal(tessera::full_tensor(got.values), y) && at::equal(tessera::full_tensor(got.indices), at_index);
    };
    const bool typed = right(nn::with_indices<nn::max_pool<kernel<3, 3>, stride<2>, padding<1>>>(x));
    return right(nn::with_indices(nn::max_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}}, x.dynamic())) &&
           typed;
  });
  return run.well() && run.of(0);
}

TEST_CASE("maxima of integers, and of nothing above the lowest value, lie where they lie in one process") {
  const at::Tensor down = -at::arange(1, 71).view({1, 2, 5, 7});
  CHECK(maxima_as_in_one_process<std::int64_t>(down));
  CHECK(maxima_as_in_one_process<std::int32_t>(down.to(at::kInt)));
  CHECK(maxima_as_in_one_process<std::int16_t>(down.to(at::kShort)));
  CHECK(maxima_as_in_one_process<std::int8_t>(down.to(at::kChar)));
  CHECK(maxima_as_in_one_process<std::uint8_t>((-down).to(at::kByte)));
  CHECK(maxima_as_in_one_process<std::uint8_t>(at::zeros({1, 2, 5, 7}, at::kByte)));
  CHECK(
      maxima_as_in_one_process<double>(at::full({1, 2, 5, 7}, -std::numeric_limits<double>::infinity(), at::kDouble)));
}

TEST_CASE(
    "maxima of a layer that is a value say where they lie; gradients pass through them, and what is no maximum or does "
    "not fit is refused on all workers") {
  struct up : axis<2> {};
  struct across : axis<3> {};
  using grid = mesh<up, across>;
  using image = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<2, 3, 7, 8>, double>;
  const at::Tensor global = global_of({2, 3, 7, 8}, numbers{6});
  const at::Tensor x = global.clone().requires_grad_();
  const auto [y, at_index] = at::adaptive_max_pool2d(x, {3, 5});
  (y * y).sum().backward();
  const auto run = in_team<grid>([&, y = y, at_index = at_index](team<grid>& t) -> std::string {
    image mine = distribute<image>(t, global);
    mine.requires_grad();
    const auto got = nn::with_indices(nn::adaptive_max_pool_layer{{3, 5}}, mine.dynamic());
    std::string wrong =
        at::equal(tessera::full_tensor(got.indices), at_index) && at::equal(tessera::full_tensor(got.values), y)
            ? ""
            : "other maxima; ";
    sum(got.values * got.values).backward();
    if (!at::allclose(tessera::full_tensor(mine.grad()), x.grad())) wrong += "other gradients; ";
    const auto refused = [&](const auto& layer, const std::string& code) {
      try {
        nn::with_indices(layer, mine.dynamic());
        wrong += code + " is taken; ";
      } catch (const error& e) {
        if (std::string(e.what()).find("[" + code + "]") != 0) wrong += e.what();
      }
    };
    refused(nn::avg_pool_layer{.kernel = {2, 2}}, "tessera.layer.indices");
    refused(nn::max_pool_layer{.kernel = {9, 2}}, "tessera.window.kernel");
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (int r = 0; r < 6; ++r) CHECK(run.of(r) == "");
}

TEST_CASE("a pooling whose windows lie end to end begins no exchange, forward or backward") {
  struct up : axis<2> {};
  using image = tensor<partition<mesh<up>, whole, whole, blocks<up>, whole>, shape_of<2, 3, 8, 6>, double>;
  const auto run = in_team<mesh<up>>([&](team<mesh<up>>& t) {
    const auto begun = [&](auto pool) {
      int count = 0;
      const nn::sequential<image, decltype(pool)> net{t, seed{1}};
      image x = distribute<image>(t, at::ones({2, 3, 8, 6}, at::kDouble));
      x.requires_grad();
      t.state()->watch = {[](void* self, const phase&, element) { ++*static_cast<int*>(self); }, nullptr, &count};
      torch::autograd::backward({net(x).local().sum()});
      t.state()->watch = {};
      return count;
    };
    return std::pair(begun(nn::avg_pool<kernel<2, 2>>{}), begun(nn::avg_pool<kernel<3, 3>, stride<1>, padding<1>>{}));
  });
  REQUIRE(run.well());
  CHECK(run.of(0) == std::pair(0, 2));
  CHECK(run.of(1) == std::pair(0, 2));
}

TEST_CASE("averages of half types are summed in float and rounded once") {
  struct up : axis<2> {};
  struct across : axis<3> {};
  using grid = mesh<up, across>;
  const at::Tensor large = at::full({1, 2, 5, 7}, 30000, at::kHalf);
  const at::Tensor uneven = global_of({1, 2, 5, 7}, numbers{5});
  const auto as_in_one_process = [](const at::Tensor& global, auto element) {
    using image =
        tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape_of<1, 2, 5, 7>, decltype(element)>;
    using net = nn::sequential<image, nn::avg_pool<kernel<3, 3>, stride<1>, padding<1>>>;
    const at::Tensor serial = at::avg_pool2d(global.to(at::kFloat), {3, 3}, {1, 1}, {1, 1}).to(global.scalar_type());
    const auto run = in_team<grid>([&](team<grid>& t) {
      net pool{t, seed{1}};
      return at::allclose(tessera::full_tensor(pool(distribute<image>(t, global))), serial, 1e-3, 1e-3);
    });
    return run.well() && run.of(0);
  };
  CHECK(as_in_one_process(large, half{}));
  CHECK(as_in_one_process(uneven.to(at::kHalf), half{}));
  CHECK(as_in_one_process(large.to(at::kBFloat16), bfloat16{}));
}

TEST_CASE("transposed convolutions of float and half types are as near to double as their element") {
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

TEST_CASE("batch, height and width cut together, and parts smaller than the kernel") {
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
    layer.plan = plan_contraction(x, c);
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

TEST_CASE("interpolation of a window is that part of LibTorch's, of every element type") {
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

TEST_CASE("interpolation refuses a tensor that is not the window") {
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
