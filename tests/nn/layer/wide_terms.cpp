// Layers of half types beside a computation in double: terms that workers sum travel in float and are rounded once,
// unless it is said otherwise.
#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::testing;

namespace {

struct third : axis<3> {};
using trio = mesh<third>;
template <class E, class Shape, class... Entries>
using on_trio = tensor<partition<trio, Entries...>, Shape, E>;

/// In units of the last place of a half type, how far numbers are from others.
double in_last_places(const at::Tensor& x, const at::Tensor& wanted, double last_place) {
  return ((x.to(at::kDouble) - wanted).abs() / ((wanted.abs() + 0.05) * last_place)).max().item<double>();
}

/// The result of a network of one layer, and its serial weight and bias in double.
struct result {
  at::Tensor y, w, b;
};
template <class Net>
result run(const team<trio>& t, const at::Tensor& x) {
  Net net{t, seed{5}};
  const nn::state_dict s = nn::state_of(net);
  const auto of = [&](const char* key) { return s.count(key) > 0 ? s.at(key).to(at::kDouble) : at::Tensor(); };
  return {tessera::full_tensor(net(distribute<typename Net::input>(t, x))), of("0.weight"), of("0.bias")};
}

template <class E, class... Options>
using row_form =
    nn::sequential<on_trio<E, shape_of<4, 90>, whole, blocks<third>>, nn::linear<7, cut_in<third>, Options...>>;
template <class E, class... Options>
using column_form =
    nn::sequential<on_trio<E, shape_of<4, 90>, whole, blocks<third>>, nn::linear<7, cut_out<third>, Options...>>;
template <class E>
using convolution = nn::sequential<on_trio<E, shape_of<2, 30, 6>, whole, blocks<third>, whole>,
                                   nn::conv<3, kernel<3>, padding<1>, cut_in<third>>>;
template <class E>
using transposed = nn::sequential<on_trio<E, shape_of<2, 30, 6>, whole, blocks<third>, whole>,
                                  nn::conv_transpose<3, kernel<3>, stride<2>, cut_in<third>>>;
template <class E>
using average = nn::sequential<on_trio<E, shape_of<2, 3, 600>, whole, whole, blocks<third>>, nn::global_avg_pool>;

/// Whether layers whose results are sums of terms of three workers are rounded once.
template <class E>
std::string rounded_once(const team<trio>& t, at::ScalarType e, double last_place) {
  const at::Tensor x = global_of({4, 90}, numbers{1}).to(e), images = global_of({2, 30, 6}, numbers{2}).to(e),
                   rows = global_of({2, 3, 600}, numbers{3}).to(e);
  constexpr double once = 0.55;  // half a unit, and what adding in float leaves
  const auto off = [&](const at::Tensor& y, const at::Tensor& wanted) {
    return y.scalar_type() == e ? in_last_places(y, wanted, last_place) : 1e9;
  };
  const result linear = run<row_form<E>>(t, x);
  if (off(linear.y, at::linear(x.to(at::kDouble), linear.w, linear.b)) > once) return "linear";
  const result conv = run<convolution<E>>(t, images);
  if (off(conv.y, at::conv1d(images.to(at::kDouble), conv.w, conv.b, 1, 1)) > once) return "conv";
  const result spread = run<transposed<E>>(t, images);
  if (off(spread.y, at::conv_transpose1d(images.to(at::kDouble), spread.w, spread.b, 2)) > once)
    return "conv_transpose";
  const result mean = run<average<E>>(t, rows);
  if (off(mean.y, rows.to(at::kDouble).mean(2, true)) > once) return "global_avg_pool";
  const result rounded = run<row_form<E, round_terms>>(t, x);
  return off(rounded.y, at::linear(x.to(at::kDouble), rounded.w, rounded.b)) > once
             ? ""
             : "terms are not rounded where that is asked for";
}

}  // namespace

TEST_CASE("terms of half types travel in float, and what workers have of a result is rounded once", "[law][runtime]") {
  const auto all = in_team<trio>([](const team<trio>& t) {
    return rounded_once<half>(t, at::kHalf, 0x1p-10) + rounded_once<bfloat16>(t, at::kBFloat16, 0x1p-7);
  });
  INFO(all.errors());
  for (const auto& r : all.results) CHECK((r && *r == ""));
}

TEST_CASE("what cancels and what a half type cannot hold survive the sum of the workers' terms", "[runtime]") {
  const auto all = in_team<trio>([](const team<trio>& t) {
    row_form<half> net{t, seed{1}};
    at::Tensor w = at::zeros({7, 90}, at::kHalf);
    w.index_put_({at::tensor(0), at::tensor({0, 40, 89})}, at::tensor({300.0, -300.0, 3.0}).to(at::kHalf));
    nn::assign(net, {{"0.weight", w}, {"0.bias", at::zeros({7}, at::kHalf)}});
    const at::Tensor x = at::full({4, 90}, 300.0, at::kHalf);  // 90000 − 90000 + 900
    return tessera::full_tensor(net(distribute<row_form<half>::input>(t, x)))[0][0].item<double>();
  });
  INFO(all.errors());
  for (const auto& r : all.results) CHECK((r && *r == 900));
}

TEST_CASE("traffic counts terms of half types as floats unless they are rounded first", "[plan]") {
  STATIC_REQUIRE(traffic<row_form<half>>().forward.bytes == traffic<row_form<float>>().forward.bytes);
  STATIC_REQUIRE(2 * traffic<row_form<half, round_terms>>().forward.bytes == traffic<row_form<float>>().forward.bytes);
  STATIC_REQUIRE(2 * traffic<column_form<half>>().forward.bytes == traffic<column_form<float>>().forward.bytes);
  STATIC_REQUIRE(traffic<row_form<half, round_terms>>().forward.bytes > 0);
}

TEST_CASE("checked mode takes half types on workers that have no part of a result", "[runtime]") {
  launch_options checked = threads_only();
  checked.checked = true;
  const auto trains = [](const auto& net, const auto& x) {
    const auto y = net(x);
    sum(y).backward();
    return y.local().scalar_type() == at::kBFloat16;
  };
  const auto all = in_team<trio>(
      [&](const team<trio>& t) {
        const nn::sequential<on_trio<bfloat16, shape_of<1, 4>, blocks<third>, whole>, nn::linear<3>> one_row{t,
                                                                                                             seed{1}};
        const nn::sequential<on_trio<bfloat16, shape_of<1, 2, 5>, blocks<third>, whole, whole>, nn::conv<3, kernel<3>>>
            one_image{t, seed{1}};
        const nn::sequential<on_trio<bfloat16, shape_of<2, 2>, whole, blocks<third>>, nn::linear<3, cut_in<third>>>
            two_columns{t, seed{1}};
        return trains(one_row, distribute<on_trio<bfloat16, shape_of<1, 4>, blocks<third>, whole>>(
                                   t, at::ones({1, 4}, at::kBFloat16))) &&
               trains(one_image, distribute<on_trio<bfloat16, shape_of<1, 2, 5>, blocks<third>, whole, whole>>(
                                     t, at::ones({1, 2, 5}, at::kBFloat16))) &&
               trains(two_columns, distribute<on_trio<bfloat16, shape_of<2, 2>, whole, blocks<third>>>(
                                       t, at::ones({2, 2}, at::kBFloat16)));
      },
      checked);
  INFO(all.errors());
  for (const auto& r : all.results) CHECK((r && *r));
}
