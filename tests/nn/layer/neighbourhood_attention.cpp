// Neighbourhood attention, wherever space, samples and heads are cut, beside dense attention with a mask in double.

#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace neighbourhoods {

/// What query i of n does not see of key j: all but the window around it, moved inside.
at::Tensor hidden(index_t n, index_t seen) {
  at::Tensor all = at::ones({n, n}, at::kBool);
  for (index_t i = 0; i < n; ++i) all[i].narrow(0, std::clamp<index_t>(i - seen / 2, 0, n - seen), seen).fill_(false);
  return all;
}

/// softmax(q kᵀ / √d) v of [n, s…, g, r, d], [n, s…, g, d], [n, s…, g, e] over all keys, with a mask.
at::Tensor serial(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::vector<index_t>& seen) {
  const auto space = static_cast<index_t>(seen.size());
  at::Tensor mask = at::zeros({1, 1}, at::kBool);
  for (index_t d = 0; d < space; ++d) {
    const at::Tensor one = hidden(q.size(1 + d), seen[static_cast<std::size_t>(d)]);
    mask = mask.unsqueeze(1).unsqueeze(3).logical_or(one.unsqueeze(0).unsqueeze(2)).flatten(0, 1).flatten(1, 2);
  }
  const at::Tensor a = q.flatten(1, space), b = k.flatten(1, space), c = v.flatten(1, space);
  const at::Tensor scores = at::einsum("btgrd,bsgd->btgrs", {a, b}) / std::sqrt(static_cast<double>(q.size(-1)));
  const at::Tensor p = at::softmax(scores.masked_fill(mask.view({1, mask.size(0), 1, 1, mask.size(1)}), -1e300), -1);
  std::vector<index_t> sizes = q.sizes().slice(0, static_cast<std::size_t>(1 + space)).vec();
  sizes.push_back(-1);
  return at::einsum("btgrs,bsge->btgre", {p, c}).reshape(sizes);
}

struct attention_case {
  std::vector<index_t> space, seen;
  std::vector<int> cut = {};  ///< the dimension that each axis cuts
  index_t heads = 2, each = 2;
  bool split = false;  ///< features are to be split into heads
};

layout lying(const mesh_value& m, const std::vector<index_t>& extents, const attention_case& c) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  x.dims.resize(static_cast<int>(extents.size()));
  for (int d = 0; d < x.dims.count; ++d) x.dims[d].extent = extents[static_cast<std::size_t>(d)];
  for (int a = 0; a < m.axes.count; ++a) {
    const int d = c.cut[static_cast<std::size_t>(a)];
    if (c.split && d == x.dims.count - 1 && x.levels(d) == 0) x.dims[d].set_grain(extents.back() / c.heads);
    x.cut_by(d, a, false);
  }
  return x;
}

std::string differs(const auto& t, const attention_case& c, at::ScalarType type) {
  const index_t features = 3, values = c.split ? features : 4;
  std::vector<index_t> sizes[3]{{2}, {2}, {2}};
  for (auto& s : sizes) s.insert(s.end(), c.space.begin(), c.space.end());
  const index_t each = c.split ? 1 : c.each;
  sizes[0].insert(sizes[0].end(), {c.heads, each, features});
  sizes[1].insert(sizes[1].end(), {c.heads, features});
  sizes[2].insert(sizes[2].end(), {c.heads, values});
  std::vector<at::Tensor> whole, ours;
  std::vector<layout> lie;
  for (std::size_t o = 0; o < 3; ++o) {
    whole.push_back((at::rand(sizes[o], at::detail::createCPUGenerator(o + 1), at::kDouble) - 0.5).to(type));
    const at::Tensor given = c.split ? whole[o].flatten(static_cast<index_t>(1 + c.space.size())) : whole[o];
    lie.push_back(lying(t.mesh(), given.sizes().vec(), c));
    ours.push_back(distribute(t, lie[o], given.clone()).local().set_requires_grad(true));
    whole[o] = whole[o].to(at::kDouble).set_requires_grad(true);
  }
  nn::neighbourhood_attention_layer layer{.kernel = {}, .heads = c.split ? c.heads : 0};
  neighbourhood_description described = layer.description();
  for (index_t n : c.seen) described.window.push(n);
  const element e = tessera::detail::element_of_scalar(type);
  const layer_plan p = plan_of(described, {lie[0], e}, {lie[1], e}, {lie[2], e});
  std::string where;
  for (std::size_t i = 0; i < c.space.size(); ++i) where += fmt::format("{} of {}, ", c.seen[i], c.space[i]);
  for (int d : c.cut) where += fmt::format("cut {}, ", d);
  if (!p.why.ok()) return where + p.why.because->code;
  const nn::engine::bound_layer bound(t.state(), p, e);
  const at::Tensor y = nn::forward({bound, ours, {}}, described);
  const at::Tensor wanted = serial(whole[0], whole[1], whole[2], c.seen);
  const double tolerance = type == at::kDouble ? 1e-11 : type == at::kFloat ? 1e-5 : 2e-2;
  std::string all;
  const auto judge = [&](const char* what, const at::Tensor& mine, const at::Tensor& theirs, const layout& x) {
    const at::Tensor own = distribute(t, x, theirs.detach().clone()).local();
    if (mine.sizes() != own.sizes() || !at::allclose(mine.detach().to(at::kDouble), own, tolerance, tolerance))
      all += where + what + "; ";
  };
  judge("values", y, wanted, p.output());
  const at::Tensor weight = at::rand(wanted.sizes(), at::detail::createCPUGenerator(9), at::kDouble);
  const at::Tensor own_weight = distribute(t, p.output(), weight.clone()).local();
  const auto first = torch::autograd::grad({(y.to(at::kDouble).square() * own_weight).sum()}, ours, {}, true, true);
  const auto theirs = torch::autograd::grad({(wanted.square() * weight).sum()}, whole, {}, true, true);
  const auto as_given = [&](const at::Tensor& g) {
    return c.split ? g.flatten(static_cast<index_t>(1 + c.space.size())) : g;
  };
  at::Tensor bent, bent_theirs;
  for (std::size_t o = 0; o < 3; ++o) {
    judge(o == 0   ? "queries' gradient"
          : o == 1 ? "keys' gradient"
                   : "values' gradient",
          first[o], as_given(theirs[o]), lie[o]);
    const at::Tensor a = first[o].to(at::kDouble).pow(3).sum(), b = theirs[o].pow(3).sum();
    bent = o == 0 ? a : bent + a;
    bent_theirs = o == 0 ? b : bent_theirs + b;
  }
  const auto second = torch::autograd::grad({bent}, ours), second_theirs = torch::autograd::grad({bent_theirs}, whole);
  for (std::size_t o = 0; o < 3 && type == at::kDouble; ++o)
    judge("second order", second[o], as_given(second_theirs[o]), lie[o]);
  return all;
}

template <int P>
struct row : axis<P> {};
template <int P>
struct col : axis<P> {};

template <class M>
std::string differences() {
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    std::string all;
    const bool two = M::value.axes.count > 1;
    int number = 0;
    const auto every_type = [&](attention_case c, std::vector<int> cut) {
      if (!two) cut.resize(1);
      c.cut = std::move(cut);
      for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16})
        if (tried(number++)) all += differs(t, c, type);
    };
    every_type({{11}, {5}}, {1, 0});
    every_type({{7}, {7}}, {1, 2});  // all keys, wider than any part
    every_type({{5}, {3}}, {1, 1});
    every_type({{3}, {1}}, {1, 1});  // workers without queries
    every_type({{4}, {3}}, {1, 1});
    every_type({{9}, {5}, {}, 2, 1, true}, {1, 2});
    every_type({{6, 5}, {3, 5}}, {1, 2});
    every_type({{6, 5}, {5, 3}}, {2, 1});
    every_type({{7, 4}, {3, 3}}, {2, 3});  // and heads
    every_type({{4, 3, 5}, {3, 3, 3}}, {3, 1});
    return all;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("a query of neighbourhood attention sees the window around it, wherever space is cut",
          "[law][runtime][gradient]") {
  CHECK(differences<mesh<row<1>>>() == "");
  CHECK(differences<mesh<row<2>>>() == "");
  CHECK(differences<mesh<row<3>>>() == "");
  CHECK(differences<mesh<row<5>>>() == "");
  CHECK(differences<mesh<row<2>, col<2>>>() == "");
  CHECK(differences<mesh<row<3>, col<2>>>() == "");
}

TEST_CASE("keys come to those whose windows read them, and no others", "[law][plan]") {
  dice d{41};
  int moving = 0;
  for (int round = 0; round < 400; ++round) {
    const int dims = d.roll(1, 3);
    attention_case c;
    for (int i = 0; i < dims; ++i) {
      c.space.push_back(d.roll(1, 9));
      c.seen.push_back(1 + 2 * d.roll(0, static_cast<int>(c.space.back() - 1) / 2));
    }
    mesh_value m;
    m.axes.push({text{"a"}, d.roll(1, 5), 1});
    m.axes.push({text{"b"}, d.roll(1, 3), 1});
    m = row_major(m);
    c.cut = {d.roll(1, dims), d.roll(1, dims)};
    std::vector<index_t> sizes{2};
    sizes.insert(sizes.end(), c.space.begin(), c.space.end());
    sizes.insert(sizes.end(), {2, 3});
    const layout keys = lying(m, sizes, c);
    sizes.insert(sizes.end() - 1, 1);
    const layout queries = lying(m, sizes, c);
    neighbourhood_description layer;
    for (index_t n : c.seen) layer.window.push(n);
    const layer_plan p =
        plan_of(layer, {queries, element::float32}, {keys, element::float32}, {keys, element::float32});
    REQUIRE(p.why.ok());
    index_t lacking = 0;
    for (int rank = 0; rank < m.size(); ++rank) {
      const holding mine = held_by(keys, rank);
      // along each dimension, which keys windows of the own queries have, and how many of them are here
      index_t read = 6 * size_of(mine[0]) / 3, here = read;
      for (int i = 0; i < dims; ++i) {
        const index_t n = c.space[static_cast<std::size_t>(i)], seen = c.seen[static_cast<std::size_t>(i)];
        const at::Tensor sees = hidden(n, seen).logical_not();
        const interval own = mine[1 + i][0];
        const at::Tensor any = sees.narrow(0, own.lo, own.size()).any(0);
        read *= own.empty() ? 0 : any.sum().item<index_t>();
        here *= own.size();
      }
      lacking += 3 * (read - here);
    }
    INFO(round);
    for (int o = 1; o < 3; ++o) CHECK(cost_between(p.given(o), p.used(o)).total == lacking);
    CHECK(same(p.given(0), p.used(0)));
    moving += lacking > 0;
  }
  CHECK(moving > 200);
}

template <int R, int C>
struct seeing {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using input =
      tensor<partition<grid, whole, blocks<up>, blocks<across>, whole>, shape<dim<2>, dim<6>, dim<5>, dim<4>>, double>;
  struct model {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = x | nn::heads<4, 2, 3>{};
      return nn::neighbourhood_attention<kernel<3, 5>>{}(q, k, v) | nn::linear<4>{};
    }
  };
  using net = nn::network<model, input>;

  static void write(nn::program& p) {
    const auto x = p.input<input>();
    const auto [q, k, v] = x | nn::heads_layer{.heads = 4, .key_heads = 2, .features = 3};
    p.output(nn::neighbourhood_attention_layer{.kernel = {3, 5}}(q, k, v) | nn::linear_layer{.out = 4});
  }
  static std::string file() {
    return R"({"inputs": [{"name": "x", "shape": [2, 6, 5, 4], "element": "double",
      "dims": [{"whole": true}, {"blocks": ["up"]}, {"blocks": ["across"]}, {"whole": true}]}],
      "nodes": [
        {"name": "qkv", "of": "x", "layer": "heads", "heads": 4, "key_heads": 2, "features": 3},
        {"name": "seen", "of": ["qkv.0", "qkv.1", "qkv.2"], "function": "neighbourhood_attention",
         "kernel_size": [3, 5]},
        {"name": "all", "of": "seen", "layer": "linear", "out_features": 4}],
      "outputs": "all"})";
  }
  static double apart_of(const team<grid>& workers) {
    net ours{workers, seed{4}};
    const by_key w = leaves_of(ours);
    const at::Tensor given = global_of({2, 6, 5, 4}, numbers{3}).set_requires_grad(true);
    auto x = distribute<input>(workers, given.detach());
    x.requires_grad();
    const auto y = ours(x);
    const std::vector<at::Tensor> qkv =
        at::linear(given, w.at("0.weight"), w.at("0.bias")).split_with_sizes({12, 6, 6}, -1);
    const at::Tensor wanted = at::linear(
        serial(qkv[0].unflatten(-1, {2, 2, 3}), qkv[1].unflatten(-1, {2, 3}), qkv[2].unflatten(-1, {2, 3}), {3, 5}),
        w.at("1.weight"), w.at("1.bias"));
    sum(y * y).backward();
    (wanted * wanted).sum().backward();
    return std::max(
        {apart(full_tensor(y), wanted), apart(full_tensor(x.grad()), given.grad()), gradients_apart(ours, w)});
  }
  static bool built_alike(const team<grid>& workers) {
    nn::program written, read;
    write(written);
    nn::read_network(read, file(), workers.mesh(), "windows.json");
    return alike_in_bits<net>(workers, global_of({2, 6, 5, 4}, numbers{1}), {&written, &read});
  }
  static void judge() {
    const auto run = in_team<grid>([](auto& t) { return apart_of(t); });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r < 1e-12);
    CHECK(satisfied<grid>([](auto& t) { return built_alike(t); }) == R * C);
  }
};

TEST_CASE("a network with neighbourhood attention trains as the serial one, from types, values and a file",
          "[gradient]") {
  seeing<2, 2>::judge();
  seeing<4, 1>::judge();
}

TEST_CASE("scores are as many as a window has keys, not as a sequence has", "[runtime]") {
  const auto run = in_team<mesh<row<2>>>([](const auto& t) -> std::int64_t {
    const attention_case c{{1000}, {5}, {1}};
    const layout q = lying(t.mesh(), {1, 1000, 1, 1, 4}, c), k = lying(t.mesh(), {1, 1000, 1, 4}, c);
    neighbourhood_description layer;
    layer.window.push(5);
    const layer_plan p = plan_of(layer, {q, element::float64}, {k, element::float64}, {k, element::float64});
    const nn::engine::bound_layer bound(t.state(), p, element::float64);
    std::vector<at::Tensor> x;
    for (const layout* one : {&q, &k, &k})
      x.push_back(distribute(t, *one, global_of(extents_of(*one), numbers{1})).local().set_requires_grad(true));
    memory_count count;
    nn::forward({bound, x, {}}, layer).sum().backward();
    return count.peak();
  });
  INFO(run.errors());
  REQUIRE(run.well());
  // 500 queries, 4 features, 5 keys: scores of all keys would be 4 MB
  for (const auto& r : run.results) CHECK(*r < 500 * 8 * 80);
}

TEST_CASE("windows that have no middle, do not fit, or meet features in parts are refused", "[refusal]") {
  struct given {
    std::vector<index_t> window = {3}, q = {2, 8, 2, 1, 4}, k = {2, 8, 2, 4}, v = {2, 8, 2, 4};
    int cuts[3]{1, 1, 1};
    index_t heads = 0;
    element e = element::float32;
  };
  const auto why = [](const given& g, const std::function<void(layout&)>& change = {}) {
    layout x[3];
    for (int o = 0; o < 3; ++o) {
      const attention_case c{{}, {}, {g.cuts[o]}};
      x[o] = lying(mesh<row<2>>::value, o == 0 ? g.q : o == 1 ? g.k : g.v, c);
    }
    if (change)
      for (layout& one : x) change(one);
    neighbourhood_description layer;
    layer.heads = g.heads;
    for (index_t n : g.window) layer.window.push(n);
    return plan_of(layer, {x[0], g.e}, {x[1], g.e}, {x[2], g.e}).why;
  };
  CHECK(why({}).ok());
  CHECK(why({.window = {4}}).is(code::window_even));
  CHECK(why({.window = {0}}).is(code::window_not_positive));
  CHECK(why({.window = {9}}).is(code::kernel_too_wide));
  CHECK(why({.window = {}}).is(code::wrong_kernel));
  CHECK(why({.window = {3, 3, 3}}).is(code::layer_takes_other_dimensions));
  CHECK(why({.k = {2, 8, 4}}).is(code::operand_of_other_dimensions));
  CHECK(why({.k = {2, 8, 1, 4}}).is(code::extents_differ));
  CHECK(why({.k = {2, 9, 2, 4}, .v = {2, 9, 2, 4}}).is(code::extents_differ));
  CHECK(why({.k = {2, 8, 2, 3}}).is(code::extents_differ));
  CHECK(why({.q = {2, 8, 6}, .k = {2, 8, 6}, .v = {2, 8, 6}, .heads = 4}).is(code::features_not_of_heads));
  CHECK(why({.q = {2, 8, 6}, .k = {2, 8, 6}, .v = {2, 8, 6}, .heads = 3}).ok());
  CHECK(why({.cuts = {4, 3, 1}}).is(code::dimension_needed_whole));
  CHECK(why({.cuts = {1, 1, 3}}).is(code::cut_unalike));
  CHECK(why({.cuts = {1, 2, 1}}).is(code::cut_unalike));
  CHECK(why({.e = element::int64}).is(code::no_function_of_element));
  CHECK(why({}, [](layout& x) { x.dims[1].extent = dynamic; }).is(code::windows_need_extent));
  CHECK(why({}, [](layout& x) { x.dims[1].zigzag = true; }).is(code::interval_wanted));
  CHECK(why({}, [](layout& x) { x.dims[1].hold({1, -1, 1, 1}, 8, true); }).is(code::window_without_halo));
  CHECK(why({}, [](layout& x) { x.set_placement(0, {placement::partial}); }).is(code::nonlinear_on_partial));
  CHECK(nn::neighbourhood_attention<>::description().why.is(code::wrong_kernel));
  CHECK(nn::neighbourhood_attention<kernel<3>, stride<2>>::description().why.is(code::option_not_taken));
  CHECK((nn::neighbourhood_attention_layer{.kernel = {3, 3, 3, 3}}.description().why.is(code::wrong_kernel)));
  CHECK(
      (nn::neighbourhood_attention_layer{.kernel = {3}, .heads = -1}.description().why.is(code::heads_do_not_divide)));
  // windows that move inside are no padding
  const tensor_value image{lying(mesh<row<2>>::value, {2, 3, 8}, {{}, {}, {2}}), element::float32};
  CHECK(nn::conv_layer{.out = 3, .kernel = {3}, .padding = {1}, .padding_mode = boundary::inward}.plan(image).why.is(
      code::windows_move_inside));
}

}  // namespace neighbourhoods
