#include <torch/nn/init.h>

#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Initial values against their formulas and LibTorch's fans, and their bits over partitions.

namespace {

struct upright : axis<3> {};
struct broad : axis<2> {};
using six = mesh<upright, broad>;
struct how_many : dyn {};

layout whole_of(const std::vector<index_t>& extents) {
  layout x;
  for (index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  return x;
}

at::Tensor drawn(const initial_value& v, const std::vector<index_t>& extents, element e = element::float64,
                 const char* name = "w") {
  return tessera::detail::initial_box(v, whole_of(extents), e, 0, seed{11}, name);
}

/// How far the numbers are from a distribution, by Kolmogorov and Smirnov, in units of 1/√n: above 1.95 once in a
/// thousand draws.
template <class Share>
double misfit(const at::Tensor& x, Share&& share) {
  const at::Tensor sorted = std::get<0>(x.reshape({-1}).sort());
  const auto n = static_cast<double>(sorted.numel());
  double worst = 0;
  for (index_t i = 0; i < sorted.numel(); ++i) {
    const double s = share(sorted.data_ptr<double>()[i]);
    worst = std::max({worst, std::abs(s - static_cast<double>(i) / n), std::abs(s - static_cast<double>(i + 1) / n)});
  }
  return worst * std::sqrt(n);
}
double misfit_of_uniform(const at::Tensor& x, double a, double b) {
  return misfit(x, [=](double v) { return std::clamp((v - a) / (b - a), 0.0, 1.0); });
}
double normal_share(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
double misfit_of_normal(const at::Tensor& x, double mean, double std, double a = -1e300, double b = 1e300) {
  const auto beyond = [=](double v) { return normal_share((mean - v) / std); };  // exact in the upper tail
  return misfit(x, [=](double v) { return (beyond(a) - beyond(v)) / (beyond(a) - beyond(b)); });
}

using torch::nn::init::calculate_gain;

const std::pair<const char*, initial_value> beginnings[]{
    {"constant", init::constant(2)},     {"uniform", init::uniform(-3, 7)},
    {"normal", init::normal(1, 2)},      {"truncated", init::truncated_normal()},
    {"xavier", init::xavier_uniform(2)}, {"kaiming", init::kaiming_normal()},
    {"usual", init::usual(9)},           {"eye", init::eye()},
    {"orthogonal", init::orthogonal(2)}, {"sparse", init::sparse(0.3, 1)}};

}  // namespace

TEST_CASE("drawn numbers have the distribution that they are named after, and lie within its ends", "[runtime]") {
  const std::vector<index_t> large{200, 300};
  for (const auto& [a, b] : {std::pair{0.0, 1.0}, {-0.5, 0.5}, {0.1, 0.3}, {-7.0, -1.0}}) {
    const at::Tensor x = drawn(init::uniform(a, b), large);
    CHECK((x.min().item<double>() >= a && x.max().item<double>() < b));
    CHECK(misfit_of_uniform(x, a, b) < 1.95);
  }
  for (const auto& [mean, std] : {std::pair{0.0, 1.0}, {-3.0, 0.25}}) {
    const at::Tensor x = drawn(init::normal(mean, std), large);
    CHECK(misfit_of_normal(x, mean, std) < 1.95);
    CHECK(std::abs(x.mean().item<double>() - mean) < 4 * std / std::sqrt(60000.0));
    CHECK(std::abs(x.var().item<double>() / (std * std) - 1) < 4 * std::sqrt(2 / 60000.0));
    CHECK(std::abs(((x - mean) / std).pow(4).mean().item<double>() - 3) < 4 * std::sqrt(96 / 60000.0));
  }
  const double cuts[][4]{{0, 1, -2, 2},     {1, 0.5, 0.9, 1.1}, {0, 1, 6, 7},      {0, 1, -25, -20},
                         {2, 3, -1e9, 2.5}, {0, 1, 1.5, 1e9},   {0, 1, 12, 12.001}};
  for (const auto& [mean, std, a, b] : cuts) {
    INFO(mean << " " << std << " " << a << " " << b);
    const at::Tensor x = drawn(init::truncated_normal(mean, std, a, b), large);
    CHECK((x.min().item<double>() >= a && x.max().item<double>() <= b));
    const bool below = b < mean;  // by its mirror image
    CHECK((below ? misfit_of_normal(-x, -mean, std, -b, -a) : misfit_of_normal(x, mean, std, a, b)) < 1.95);
  }
  CHECK(drawn(init::normal(4, 0), {3}).eq(4).all().item<bool>());
  CHECK(drawn(init::constant(2.5), {3, 2}).eq(2.5).all().item<bool>());
  CHECK(drawn(init::zeros(), {3}).eq(0).all().item<bool>());
  CHECK(drawn(init::ones(), {}).item<double>() == 1);
  CHECK(!at::equal(drawn(init::normal(), {3}), drawn(init::normal(), {3}, element::float64, "v")));
}

TEST_CASE("the quantile of normal numbers is the inverse of their share", "[law]") {
  for (const double x : {-29.0, -9.0, -4.0, -1.0, -0.1, 0.0, 0.3, 2.0, 5.0}) {
    INFO(x);
    CHECK(std::abs(tessera::detail::normal_quantile(normal_share(x)) - x) < 1e-9);  // a share near 1 has no more digits
    if (x < 2)
      CHECK(std::abs(tessera::detail::normal_quantile(normal_share(x)) - x) <= 4e-15 * std::max(1.0, std::abs(x)));
  }
  CHECK(std::isfinite(tessera::detail::normal_quantile(0x1.0p-54)));
  CHECK(std::isfinite(tessera::detail::normal_quantile(1 - 0x1.0p-53)));
}

TEST_CASE("fans and gains are LibTorch's", "[plan]") {
  for (const std::vector<index_t>& extents : {std::vector<index_t>{4, 6}, {8, 3, 5}, {6, 2, 3, 5}, {4, 3, 2, 3, 2}}) {
    const auto [in, out] = torch::nn::init::_calculate_fan_in_and_fan_out(at::empty(extents));
    const layout x = whole_of(extents);
    CHECK(tessera::detail::fan_of(init::kaiming_uniform(), x) == static_cast<double>(in));
    CHECK(tessera::detail::fan_of(init::kaiming_normal(0, init::fan::out), x) == static_cast<double>(out));
    CHECK(tessera::detail::fan_of(init::xavier_normal(), x) == static_cast<double>(in + out) / 2);
  }
  using init::nonlinearity;
  CHECK(std::abs(init::squared_gain(nonlinearity::linear) - std::pow(calculate_gain(torch::kLinear), 2)) < 1e-15);
  CHECK(std::abs(init::squared_gain(nonlinearity::sigmoid) - std::pow(calculate_gain(torch::kSigmoid), 2)) < 1e-15);
  CHECK(std::abs(init::squared_gain(nonlinearity::tanh) - std::pow(calculate_gain(torch::kTanh), 2)) < 1e-15);
  CHECK(std::abs(init::squared_gain(nonlinearity::relu) - std::pow(calculate_gain(torch::kReLU), 2)) < 1e-15);
  CHECK(std::abs(init::squared_gain(nonlinearity::leaky_relu, 0.3) -
                 std::pow(calculate_gain(torch::kLeakyReLU, 0.3), 2)) < 1e-15);
  CHECK(init::squared_gain(nonlinearity::selu) == 0.5625);

  const std::vector<index_t> kernel{60, 40, 5, 5};
  const double in = 40 * 25;
  const double out = 60 * 25;
  const double tanh = calculate_gain(torch::kTanh);
  CHECK(misfit_of_normal(drawn(init::kaiming_normal(), kernel), 0, std::sqrt(2 / in)) < 1.95);
  CHECK(misfit_of_normal(drawn(init::kaiming_normal(0, init::fan::out, nonlinearity::tanh), kernel), 0,
                         tanh / std::sqrt(out)) < 1.95);
  CHECK(misfit_of_normal(drawn(init::xavier_normal(0.5), kernel), 0, 0.5 * std::sqrt(2 / (in + out))) < 1.95);
  const auto ends = [&](const initial_value& v, double bound) {
    const at::Tensor x = drawn(v, kernel);
    return x.abs().max().item<double>() <= bound && misfit_of_uniform(x, -bound, bound) < 1.95;
  };
  CHECK(ends(init::kaiming_uniform(std::sqrt(5.0)), 1 / std::sqrt(in)));
  CHECK(ends(init::kaiming_uniform(0, init::fan::out, nonlinearity::relu), std::sqrt(6 / out)));
  CHECK(ends(init::xavier_uniform(nonlinearity::tanh), tanh * std::sqrt(6 / (in + out))));
  CHECK(at::equal(drawn(init::usual(9), {7}), drawn(init::uniform(-1.0 / 3, 1.0 / 3), {7})));
  CHECK(drawn(init::usual(0), {7}).eq(0).all().item<bool>());
}

TEST_CASE("a layer's plan says how its parameters begin, by the fans of the serial layer", "[plan]") {
  using image = tensor<partition<six, whole, blocks<broad>, blocks<upright>, whole>, shape_of<2, 8, 9, 7>, double>;
  constexpr layer_plan plan = nn::conv<6, kernel<3, 2>, groups<2>>::plan(value_of<image>);
  static_assert(plan.why.ok());
  const auto fans = torch::nn::init::_calculate_fan_in_and_fan_out(at::empty({6, 4, 3, 2}));
  for (int i = 0; i < plan.parameters(); ++i) CHECK(plan.parameter(i).initial == init::usual(std::get<0>(fans)));
}

TEST_CASE("identities, dirac kernels, orthogonal and sparse matrices are LibTorch's", "[runtime]") {
  namespace theirs = torch::nn::init;
  for (const std::vector<index_t>& extents : {std::vector<index_t>{4, 4}, {3, 5}, {5, 2}})
    CHECK(at::equal(drawn(init::eye(), extents), theirs::eye_(at::empty(extents, at::kDouble))));
  for (const std::vector<index_t>& extents : {std::vector<index_t>{4, 4, 3}, {3, 5, 3, 4}, {5, 2, 1, 2, 3}}) {
    CHECK(at::equal(drawn(init::dirac(), extents), theirs::dirac_(at::empty(extents, at::kDouble))));
    std::vector<index_t> two_groups = extents;
    two_groups[0] *= 2;
    const at::Tensor each = theirs::dirac_(at::empty(extents, at::kDouble));
    CHECK(at::equal(drawn(init::dirac(2), two_groups), at::cat({each, each})));
  }
  for (const std::vector<index_t>& extents :
       {std::vector<index_t>{12, 12}, {5, 9}, {20, 7}, {6, 2, 3, 4}, {30, 2, 3}, {1, 4}, {4, 1}}) {
    const at::Tensor q = drawn(init::orthogonal(1.5), extents).reshape({extents[0], -1});
    const at::Tensor normal = drawn(init::normal(), extents).reshape({extents[0], -1});
    const bool tall = q.size(0) > q.size(1);
    const auto [theirs_q, r] = at::linalg_qr(tall ? normal : normal.t());
    const at::Tensor wanted = 1.5 * theirs_q * r.diagonal().sign();
    CHECK(at::allclose(tall ? q : q.t(), wanted, 0, 1e-12));
  }
  const at::Tensor some = drawn(init::sparse(0.34, 0.2), {10, 50});
  CHECK(some.eq(0).sum(0).eq(4).all().item<bool>());  // ⌈0.34·10⌉ in each column
  CHECK(at::equal(some, drawn(init::normal(0, 0.2), {10, 50}) * some.ne(0)));
  CHECK(some.eq(0).sum(1).gt(0).all().item<bool>());
  CHECK(drawn(init::sparse(1), {3, 2}).eq(0).all().item<bool>());
}

TEST_CASE("initial values are the same bits on any partition, of any element, also of terms", "[law][runtime]") {
  using by_both = tensor<partition<six, blocks<upright>, blocks<broad>>, shape<how_many, dim<5>>, double>;
  using by_one =
      tensor<partition<six, lengths<upright, dim<0>, dim<5>, dim<2>>, whole, invariant<broad>>, shape_of<7, 5>, float>;
  using terms = tensor<partition<six, whole, blocks<broad>, partial<upright>>, shape_of<7, 5>, double>;
  const auto run = in_team<six>([](team<six>& t) {
    std::string wrong;
    for (const auto& law : beginnings) {
      const initial_value& v = law.second;
      const auto judge = [&](const char* what, const at::Tensor& x, const at::Tensor& wanted) {
        if (!same_bits(x, wanted)) wrong += fmt::format("{} {}; ", law.first, what);
      };
      for (const index_t n : {7, 2})
        judge("of blocks", full_tensor(initial<by_both>(t, v, seed{11}, "w", bind<how_many>(n))), drawn(v, {n, 5}));
      judge("of terms", full_tensor(initial<terms>(t, v, seed{11}, "w")), drawn(v, {7, 5}));
      judge("under a path", full_tensor(initial<terms>(t, v, seed{3}.at("a"), "w")),
            full_tensor(initial<terms>(t, v, seed{3}, "a.w")));
      for (const element e : {element::float32, element::float16, element::bfloat16, element::int64, element::uint8,
                              element::complex128}) {
        if (has_cotangent(e) || (v.is != initial_value::law::normal && v.lowest >= 0))
          judge(name_of(e),
                full_tensor(initial(t.state(), bound(value_of<by_both>.layout, binding<how_many>::tag, 7), e, v,
                                    seed{11}, "w")),
                drawn(v, {7, 5}, e));
      }
      judge("of lengths", full_tensor(initial<by_one>(t, v, seed{11}, "w")), drawn(v, {7, 5}, element::float32));
    }
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

TEST_CASE("an initial value that means nothing, or not for this tensor, is refused", "[refusal]") {
  const auto refused = [](const initial_value& v, const std::vector<index_t>& extents = {4, 6}) {
    return told([&] { drawn(v, extents); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const initial_value& v :
       {init::uniform(1, 1), init::uniform(2, 1), init::uniform(0, inf), init::uniform(nan, 1),
        init::truncated_normal(0, 1, 2, 2), init::truncated_normal(0, 1, 40, 41), init::truncated_normal(0, 1, nan, 1),
        init::truncated_normal(0, 0, 1, 2), init::sparse(-0.1), init::sparse(1.1), init::sparse(nan)})
    CHECK(refused(v) == "tessera.initial.ends");
  for (const initial_value& v :
       {init::normal(0, -1), init::normal(0, nan), init::normal(0, inf), init::normal(nan, 1), init::sparse(0.5, -1),
        init::orthogonal(inf), init::xavier_normal(nan), init::kaiming_uniform(nan)})
    CHECK(refused(v) == "tessera.initial.spread");
  CHECK(refused(init::kaiming_normal(0, init::fan::in, static_cast<init::nonlinearity>(99))) ==
        "tessera.initial.nonlinearity");
  CHECK(refused(init::xavier_uniform(static_cast<init::nonlinearity>(99))) == "tessera.initial.nonlinearity");
  for (const initial_value& v : {init::eye(), init::sparse(0.5), init::dirac(), init::orthogonal(),
                                 init::xavier_normal(), init::kaiming_uniform()})
    CHECK(refused(v, {4}) == "tessera.initial.dimensions");
  CHECK(refused(init::eye(), {2, 2, 2}) == "tessera.initial.dimensions");
  CHECK(refused(init::dirac(), {4, 6}) == "tessera.initial.dimensions");
  CHECK(refused(init::dirac(), {4, 6, 1, 1, 1, 1}) == "tessera.initial.dimensions");
  for (const index_t groups : {0, 3, -1}) CHECK(refused(init::dirac(groups), {4, 6, 3}) == "tessera.initial.groups");
  for (const initial_value& v : {init::orthogonal(), init::xavier_normal(), init::kaiming_uniform(), init::dirac(2)})
    CHECK(refused(v, {4, 6, 3}) == "none");
  CHECK(refused(init::usual(4), {4}) == "none");  // a bias has its weight's fan
  CHECK(refused(init::kaiming_uniform(), {4, 0}) == "none");
  for (const auto& [value, e] : {std::pair{2.5, element::int64},
                                 {300.0, element::int8},
                                 {-1.0, element::uint8},
                                 {2.0, element::boolean},
                                 {inf, element::int32}}) {
    INFO(value << " " << name_of(e));
    CHECK(told([value = value, e = e] { drawn(init::constant(value), {2}, e); }) == "tessera.tensor.number");
  }
  CHECK(drawn(init::constant(-3), {2}, element::int8).eq(-3).all().item<bool>());
  static_assert(check(init::eye(), layout{}).is(code::initial_of_other_dimensions));
}
