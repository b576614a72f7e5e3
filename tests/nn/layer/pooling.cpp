#include "tests/support/layers.hpp"
#include "tests/support/windows.hpp"

#include <tessera/operation/layer/layer_values.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

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

TEST_CASE("a maximum's indices are those of the global tensor", "[law][runtime]") {
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

TEST_CASE("an adaptive maximum's indices are those of the global tensor, the first of equals", "[law][runtime]") {
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

TEST_CASE("a typed maximum says where it lies", "[runtime]") {
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

TEST_CASE("maxima of integers, and of nothing above the lowest value, lie where they lie in one process", "[runtime]") {
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
    "not fit is refused on all workers",
    "[refusal][runtime][gradient]") {
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

TEST_CASE("a pooling whose windows lie end to end begins no exchange, forward or backward", "[runtime]") {
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

TEST_CASE("averages of half types are summed in float and rounded once", "[runtime]") {
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
