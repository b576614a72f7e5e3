// A global grid beyond its poles and around, beside LibTorch's flip, roll and circular padding of the whole grid.

#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/functions.hpp>
#include <tessera/nn/file/network_file.hpp>

#include <set>

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
at::Tensor serial(const at::Tensor& x, index_t rows, index_t columns, double sign = 1) {
  const index_t half = x.size(3) / 2, n = x.size(2);
  const at::Tensor first = x.narrow(2, 0, rows), last = x.narrow(2, n - rows, rows);
  const at::Tensor whole = at::cat({first.flip(2).roll(half, 3) * sign, x, last.flip(2).roll(half, 3) * sign}, 2);
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

template <index_t Rows, index_t Columns, index_t Stride, bool Negated = false>
std::string differs(const auto& t, index_t lat, index_t lon, int way) {
  const layout x = grid_over(t.mesh(), lat, lon, way);
  const at::Tensor whole = at::rand({2, 3, lat, lon}, at::detail::createCPUGenerator(1), at::kDouble) - 0.5;
  tensor<dyn> own = distribute(t, x, whole.clone());
  own.requires_grad();
  const tensor<dyn> y = pad_globe<Rows, Columns, Stride, Negated>(own);
  const at::Tensor one = whole.clone().requires_grad_();
  const at::Tensor wanted = serial(one, Rows, Columns, Negated ? -1 : 1);
  const std::string where = fmt::format("{} x {} way {} pad {}, {} by {}: ", lat, lon, way, Rows, Columns, Stride);
  std::string all;
  if (!at::equal(y.local(), box_of(wanted.detach(), y.layout(), t.rank()))) all += where + "values; ";
  // what each worker makes of its copies, added up: sum of y^3 and the square of its gradient
  const at::Tensor copies = holders(y.layout(), wanted);
  const at::Tensor weights = at::rand(wanted.sizes(), at::detail::createCPUGenerator(2), at::kDouble);
  const auto near = [&](const at::Tensor& a, const at::Tensor& b) {
    return a.sizes() == b.sizes() && at::allclose(a, b, 1e-12, 1e-12);
  };
  const at::Tensor first = torch::autograd::grad({(y.local().pow(3) * box_of(weights, y.layout(), t.rank())).sum()},
                                                 {own.local()}, {}, true, true)[0];
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
    int number = 0;
    for (const int way : {0, 1, 2})
      for (const index_t lat : {7, 2, 3})
        for (const index_t lon : {10, 4, 2}) {
          if (!tried(number++)) continue;
          if (lat > 1) all += differs<1, 1, 1>(t, lat, lon, way);
          if (lat > 1) all += differs<2, 1, 1>(t, lat, lon, way);
          if (lon > 2) all += differs<1, 3, 1>(t, lat, lon, way);
          all += differs<1, 0, 1>(t, lat, lon, way) + differs<0, 2, 1>(t, lat, lon, way);
          all += differs<1, 1, 2>(t, lat, lon, way) + differs<1, 1, 1, true>(t, lat, lon, way);
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

/// The elements that a worker reads of the grid and has not, as sets of whole places: each exchange by itself, and all.
struct lacking {
  index_t by_exchange = 0;
  index_t together = 0;
};
lacking oracle(const layout& x, const layout& y, index_t rows, index_t columns, int rank) {
  const index_t n = x.dims[2].extent, around = x.dims[3].extent;
  const holding mine = held_by(x, rank), wants = held_by(y, rank);
  const auto inside = [](const intervals& all, index_t i) { return position(all, i) >= 0; };
  std::set<std::pair<index_t, index_t>> all, of[3];
  for (index_t p = 0; p < n + 2 * rows; ++p)
    for (index_t c = 0; c < around + 2 * columns; ++c) {
      if (!inside(wants[2], p) || !inside(wants[3], c)) continue;
      const index_t row = p - rows, column = c - columns + around;
      const bool across = row < 0 || row >= n;
      const std::pair<index_t, index_t> place{row < 0    ? -1 - row
                                              : row >= n ? 2 * n - 1 - row
                                                         : row,
                                              (column + (across ? around / 2 : 0)) % around};
      if (inside(mine[2], place.first) && inside(mine[3], place.second)) continue;
      all.insert(place);
      of[row < 0 ? 1 : row >= n ? 2 : 0].insert(place);
    }
  const auto planes = size_of(mine[0]) * size_of(mine[1]);
  return {planes * static_cast<index_t>(of[0].size() + of[1].size() + of[2].size()),
          planes * static_cast<index_t>(all.size())};
}

TEST_CASE("each exchange of a globe brings what is read and not held, and no more", "[law][plan]") {
  int tried = 0, least = 0;
  const auto hold = [&](const mesh_value& m) {
    for (const int way : {0, 1, 2})
      for (const index_t lat : {9, 4, 3})
        for (const index_t lon : {16, 10, 6})
          for (const index_t rows : {0, 1, 2})
            for (const index_t columns : {0, 1, 2}) {
              const layout x = grid_over(m, lat, lon, way);
              functions::globe_padding f;
              f.rows = rows;
              f.columns = columns;
              const tensor_value given{x, element::float32};
              const layout y = f.on(given).result.layout;
              index_t planned = 0, apart = 0, together = 0;
              for (const exchange_value& e : f.exchanges(given)) planned += cost_between(e.from, e.to).total;
              for (int rank = 0; rank < m.size(); ++rank) {
                const lacking o = oracle(x, y, rows, columns, rank);
                apart += o.by_exchange;
                together += o.together;
              }
              INFO(lat << " x " << lon << " way " << way << " pad " << rows << ", " << columns);
              CHECK(planned == apart);
              // what a worker reads in place and across a pole, too, comes twice: corners of wide parts, narrow parts
              CHECK(planned >= together);
              if (rows == 0 || (rows == 1 && columns == 0)) CHECK(planned == together);
              ++tried;
              least += planned == together;
            }
  };
  hold(mesh<north<2>>::value);
  hold(mesh<north<3>>::value);
  hold(mesh<north<4>>::value);
  hold(mesh<north<2>, east<3>>::value);
  hold(mesh<north<4>, east<2>>::value);
  hold(mesh<north<4>, east<4>>::value);
  CHECK(tried == 1458);
  CHECK(least == 976);
}

/// A network of two convolutions on the globe, the second of which steps.
template <int R, int C>
struct on_globe {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using input =
      tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape<dim<2>, dim<3>, dim<9>, dim<10>>, double>;
  struct model {
    constexpr auto operator()(auto x) const {
      const auto y = tanh(pad_globe<1>(x) | nn::conv<4, kernel<3, 3>>{});
      return pad_globe<2, 1, 2>(y) | nn::conv<2, kernel<5, 3>, stride<2>>{};
    }
  };
  using net = nn::network<model, input>;

  static void write(nn::program& p) {
    const auto x = p.input<input>();
    const auto y = tanh(pad_globe<1>(x) | nn::conv_layer{.out = 4, .kernel = {3, 3}});
    p.output(pad_globe<2, 1, 2>(y) | nn::conv_layer{.out = 2, .kernel = {5, 3}, .stride = {2}});
  }
  static std::string file() {
    return R"({"inputs": [{"name": "x", "shape": [2, 3, 9, 10], "element": "double",
      "dims": [{"whole": true}, {"whole": true}, {"blocks": ["up"]}, {"blocks": ["across"]}]}],
      "nodes": [
        {"name": "around", "of": "x", "function": "pad_globe", "rows": 1},
        {"name": "one", "of": "around", "layer": "conv", "out_channels": 4, "kernel_size": [3, 3]},
        {"name": "y", "of": "one", "function": "tanh"},
        {"name": "again", "of": "y", "function": "pad_globe", "rows": 2, "columns": 1, "stride": 2},
        {"name": "all", "of": "again", "layer": "conv", "out_channels": 2, "kernel_size": [5, 3], "stride": 2}],
      "outputs": "all"})";
  }
  static double apart_of(const team<grid>& workers) {
    net ours{workers, seed{4}};
    const by_key w = leaves_of(ours);
    const at::Tensor given = global_of({2, 3, 9, 10}, numbers{3}).set_requires_grad(true);
    auto x = distribute<input>(workers, given.detach());
    x.requires_grad();
    const auto y = ours(x);
    const at::Tensor one = at::tanh(at::conv2d(serial(given, 1, 1), w.at("0.weight"), w.at("0.bias")));
    const at::Tensor wanted = at::conv2d(serial(one, 2, 1), w.at("1.weight"), w.at("1.bias"), 2);
    sum(y * y).backward();
    (wanted * wanted).sum().backward();
    return std::max(
        {apart(full_tensor(y), wanted), apart(full_tensor(x.grad()), given.grad()), gradients_apart(ours, w)});
  }
  static bool built_alike(const team<grid>& workers) {
    nn::program written, read;
    write(written);
    nn::read_network(read, file(), workers.mesh(), "globe.json");
    return alike_in_bits<net>(workers, global_of({2, 3, 9, 10}, numbers{1}), {&written, &read});
  }
  static void judge() {
    const auto run = in_team<grid>([](auto& t) { return apart_of(t); });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r < 1e-11);
    CHECK(satisfied<grid>([](auto& t) { return built_alike(t); }) == R * C);
  }
};

TEST_CASE("convolutions on a globe train as serial ones, from types, values and a file", "[gradient]") {
  on_globe<2, 3>::judge();
  on_globe<4, 1>::judge();
}

TEST_CASE("a convolution behind the padding of its own kernel moves nothing more", "[plan]") {
  const layout x = grid_over(mesh<north<3>, east<2>>::value, 8, 10, 0);
  const auto moved = [&](const functions::globe_padding& f, contraction c) {
    c.feature = 1;
    c.out = 4;
    c.cut_is_set = true;
    const layer_plan p = plan_of(c, {f.on({x, element::float32}).result.layout, element::float32});
    REQUIRE(p.why.ok());
    return same(p.given(), p.used()) && same(p.raw(), p.output()) ? same_intervals(p.output().dims[2], x.dims[2], 3)
                                                                  : false;
  };
  functions::globe_padding f;
  f.rows = 2;
  f.columns = 1;
  contraction c;
  c.kernels.push({5, 1, 0, 0, 1});
  c.kernels.push({3, 1, 0, 0, 1});
  CHECK(moved(f, c));
}

TEST_CASE("a globe without a half turn, numbers or rows enough is refused", "[refusal]") {
  const auto why = [](index_t rows, index_t columns, index_t stride, std::vector<index_t> extents,
                      const std::function<void(layout&)>& change = {}, bool negated = false) {
    layout x;
    x.mesh = mesh<north<2>>::value;
    x.placements.resize(1);
    x.dims.resize(static_cast<int>(extents.size()));
    for (int d = 0; d < x.dims.count; ++d) x.dims[d].extent = extents[static_cast<std::size_t>(d)];
    if (change) change(x);
    functions::globe_padding f;
    f.rows = rows;
    f.columns = columns;
    f.stride = stride;
    f.negated = negated;
    return f.on({x, negated ? element::boolean : element::float32}).why;
  };
  CHECK(why(1, 1, 1, {4, 6}).ok());
  CHECK(why(0, 1, 1, {4, 5}).ok());
  CHECK(why(1, 1, 1, {4, 6}, {}, true).is(code::no_function_of_element));
  CHECK(why(1, 1, 1, {4, 5}).is(code::half_turn_uneven));
  CHECK(why(1, 1, 1, {6}).is(code::dimension_not_there));
  CHECK(why(5, 1, 1, {4, 6}).is(code::reflection_too_wide));
  CHECK(why(1, 7, 1, {4, 6}).is(code::reflection_too_wide));
  CHECK(why(-1, 1, 1, {4, 6}).is(code::window_not_positive));
  CHECK(why(1, 1, 0, {4, 6}).is(code::window_not_positive));
  CHECK(why(1, 1, 1, {dynamic, 6}).is(code::windows_need_extent));
  CHECK(why(1, 1, 1, {0, 6}).is(code::nothing_to_pad_from));
  CHECK(why(1, 1, 1, {8, 6}, [](layout& x) {
          x.cut_by(0, 0);
          x.dims[0].zigzag = true;
        }).is(code::interval_wanted));
  CHECK(why(1, 1, 1, {8, 6}, [](layout& x) {
          x.cut_by(0, 0);
          x.dims[0].hold({1, -1, 1, 1}, 8, true);
        }).is(code::window_without_halo));
  CHECK(why(1, 1, 2, {8, 6}, [](layout& x) {
          x.cut_by(0, 0);
          x.dims[0].bounds = learned;
        }).is(code::lengths_not_known));
}

}  // namespace globes
