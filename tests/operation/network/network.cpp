#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("shapes and partitions follow layers", "[plan]") {
  using y = after<nn::conv<5, kernel<3, 2>, stride<2, 1>, padding<1, 0>>, nn::relu>;
  STATIC_REQUIRE(std::is_same_v<y, tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>,
                                          shape<batch, dim<5>, dim<5>, dim<7>>, double>>);
  using channels = partition<grid, whole, blocks<row, col>, whole, whole>;
  using z = after<nn::conv<5, kernel<1, 1>>, nn::repartition<channels>, nn::flatten>;
  STATIC_REQUIRE(
      std::is_same_v<z, tensor<partition<grid, whole, grains<72, row, col>>, shape<batch, dim<360>>, double>>);
}

namespace {

// A layer, then it and a relu in turns.
template <class L, int... I>
sequential_type<image, L, std::conditional_t<I % 2 == 0, L, nn::relu>...> in_turns(std::integer_sequence<int, I...>);

}  // namespace

TEST_CASE("a budget may be set to a network of any length", "[plan]") {
  using conv = nn::conv<6, kernel<3, 3>, padding<1, 1>>;
  constexpr traffic_value one = traffic<sequential_type<image, conv>, bind<batch>(4)>();
  constexpr traffic_value two = traffic<sequential_type<image, conv, conv>, bind<batch>(4)>();
  STATIC_REQUIRE(two == traffic<sequential_type<image, conv, conv>>(bind<batch>(4)));
  using many = decltype(in_turns<conv>(std::make_integer_sequence<int, 600>()));
  STATIC_REQUIRE(many::program.count == 601);
  constexpr traffic_value all = traffic<many, bind<batch>(4)>();
  STATIC_REQUIRE(all.forward.bytes == one.forward.bytes + 300 * (two.forward.bytes - one.forward.bytes));
  STATIC_REQUIRE(all.backward.messages ==
                 one.backward.messages + 300 * (two.backward.messages - one.backward.messages));
}

TEST_CASE("what layers move is the same as constants of their own and as one value", "[plan]") {
  struct model : axis<3> {};
  using wide = mesh<row, model>;
  using tiles =
      tensor<partition<wide, blocks<row>, whole, blocks<model>, whole>, shape<batch, dim<3>, dim<19>, dim<8>>, float>;
  using features = partition<wide, blocks<row>, blocks<model>>;
  using many = sequential_type<
      tiles, nn::conv<5, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::conv<4, kernel<5, 3>, stride<2, 1>, no_bias>,
      nn::max_pool<kernel<2, 2>>, nn::avg_pool<kernel<2, 2>, stride<1, 1>>, nn::pad<padding_at<1, 2, 0, 1>>,
      nn::conv_transpose<6, kernel<3, 2>, stride<2>, padding<1, 0>>, nn::conv_transpose<1, kernel<4, 3>>,
      nn::repartition<partition<wide, blocks<row>, blocks<model>, whole, whole>>, nn::conv<7, kernel<1, 1>>,
      nn::flatten, nn::linear<30, output_as<features>>, nn::relu, nn::linear<7>,
      nn::repartition<partition<wide, whole, whole>>>;
  STATIC_REQUIRE(traffic<many, bind<batch>(5)>() == traffic<many>(bind<batch>(5)));
  STATIC_REQUIRE(traffic<many, bind<batch>(0)>() == traffic<many>(bind<batch>(0)));
  STATIC_REQUIRE(traffic<many, bind<batch>(5)>().forward.bytes > 10'000);
}

TEST_CASE("some extents of a budget are constants, and the others are given", "[plan]") {
  struct length : dyn {};
  using lines = tensor<partition<grid, blocks<row>, whole, whole>, shape<batch, length, dim<8>>>;
  using net =
      network_type<nn::chain<nn::linear<6>, nn::repartition<partition<grid, whole, blocks<col>, whole>>>, lines>;
  constexpr traffic_value all = traffic<net>(bind<batch>(6), bind<length>(5));
  STATIC_REQUIRE(all.forward.bytes > 0);
  STATIC_REQUIRE(traffic<net, bind<batch>(6)>(bind<length>(5)) == all);
  STATIC_REQUIRE(traffic<net, bind<length>(5), bind<batch>(6)>() == all);
  STATIC_REQUIRE(traffic<net, bind<length>(4)>(bind<batch>(6)) != all);
  STATIC_REQUIRE(peak_memory<net, bind<batch>(6)>(bind<length>(5)) ==
                 peak_memory<net>(bind<batch>(6), bind<length>(5)));
  STATIC_REQUIRE(multiply_adds<net, bind<batch>(6)>(bind<length>(5)) ==
                 multiply_adds<net>(bind<batch>(6), bind<length>(5)));
}

namespace {

struct height : dyn {};
struct width : dyn {};

/// Whether all figures of a network whose extents are given are those of one whose type knows them.
template <class Module, template <class, class, class> class In>
bool counts_as_if_known() {
  using open = network_type<Module, In<batch, height, width>>;
  using some = network_type<Module, In<batch, dim<16>, dim<6>>>;
  using known = network_type<Module, In<dim<4>, dim<16>, dim<6>>>;
  constexpr auto alike = [](const traffic_value& t, const memory_value& m, const arithmetic_value& a) {
    return t == traffic<known>() && m == peak_memory<known>() && a == multiply_adds<known>();
  };
  return alike(traffic<open>(bind<batch>(4), bind<height>(16), bind<width>(6)),
               peak_memory<open>(bind<batch>(4), bind<height>(16), bind<width>(6)),
               multiply_adds<open>(bind<batch>(4), bind<height>(16), bind<width>(6))) &&
         alike(traffic<open, bind<batch>(4), bind<height>(16), bind<width>(6)>(),
               peak_memory<open, bind<batch>(4), bind<height>(16), bind<width>(6)>(),
               multiply_adds<open, bind<batch>(4), bind<height>(16), bind<width>(6)>()) &&
         alike(traffic<some, bind<batch>(4)>(), peak_memory<some>(bind<batch>(4)), multiply_adds<some>(bind<batch>(4)));
}

template <class B, class H, class W>
using cut_pictures = tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>, shape<B, dim<4>, H, W>, double>;
template <class B, class H, class W>
using whole_pictures = tensor<partition<grid, blocks<row, col>, whole, whole, whole>, shape<B, dim<4>, H, W>, double>;
template <class B, class, class>
using sequences = tensor<partition<grid, blocks<row>, whole, whole>, shape<B, dim<10>, dim<8>>, double>;

using convolves = nn::chain<nn::conv<4, kernel<3, 3>, padding<1, 1>>, nn::relu,
                            nn::conv<6, kernel<3, 5>, stride<2>, padding<1, 2>>, nn::global_avg_pool>;
using shrinks = nn::chain<nn::conv<4, kernel<3, 3>>, nn::max_pool<kernel<2, 2>>>;
using pools = nn::chain<nn::max_pool<kernel<3, 3>, stride<2>, padding<1>>, nn::avg_pool<kernel<2, 2>, stride<1>>,
                        nn::global_avg_pool>;
using grows = nn::chain<nn::upsample<factor<2, 2>>, nn::conv_transpose<3, kernel<3, 3>, padding<1>>, nn::batch_norm<>,
                        nn::global_avg_pool, nn::linear<5>>;
using reflects =
    nn::chain<nn::pad<padding_at<3, 2>, padding_mode<boundary::reflect>>, nn::slice<3, 1, -2>, nn::global_avg_pool>;
struct flattens {
  constexpr auto operator()(auto x) const {
    return mean<0>(flatten<0, 1>(x) | nn::linear<12>{} | nn::relu{} | nn::linear<5>{});
  }
};

/// The code by which a figure is refused.
template <class F>
std::string_view code_of(const F& figure) {
  try {
    figure();
  } catch (const refused_value& e) {
    return e.why.because->code;
  }
  return "";
}
template <class Network, class... Bindings>
bool all_refuse(std::string_view code, const Bindings&... extents) {
  return code_of([&] { traffic<Network>(extents...); }) == code &&
         code_of([&] { peak_memory<Network>(extents...); }) == code &&
         code_of([&] { multiply_adds<Network>(extents...); }) == code;
}

}  // namespace

TEST_CASE("a network of open extents is counted as one that knows them, along windows and behind them", "[law]") {
  CHECK(counts_as_if_known<convolves, cut_pictures>());
  CHECK(counts_as_if_known<convolves, whole_pictures>());
  CHECK(counts_as_if_known<shrinks, cut_pictures>());  // its output's extents have no name
  CHECK(counts_as_if_known<pools, cut_pictures>());
  CHECK(counts_as_if_known<pools, whole_pictures>());
  CHECK(counts_as_if_known<grows, whole_pictures>());
  CHECK(counts_as_if_known<reflects, whole_pictures>());
  CHECK(counts_as_if_known<flattens, sequences>());
}

TEST_CASE("extents that a layer does not take, or that contradict an input, are refused where they are given",
          "[refusal]") {
  using pictures = cut_pictures<batch, height, width>;
  using wide = network_type<nn::chain<nn::conv<4, kernel<5, 3>>, nn::global_avg_pool>, pictures>;
  CHECK(all_refuse<wide>("", bind<batch>(2), bind<height>(5), bind<width>(3)));
  CHECK(all_refuse<wide>("tessera.window.kernel", bind<batch>(2), bind<height>(3), bind<width>(3)));
  using mirrored = network_type<reflects, pictures>;
  CHECK(all_refuse<mirrored>("", bind<batch>(2), bind<height>(9), bind<width>(4)));
  CHECK(all_refuse<mirrored>("tessera.window.reflect", bind<batch>(2), bind<height>(9), bind<width>(3)));
  using parts = tensor<partition<grid, lengths<row, dim<5>, dim<5>>, whole>, shape<batch, dim<6>>, double>;
  using net = network_type<nn::chain<nn::linear<4>, nn::repartition<partition<grid, whole, blocks<row>>>>, parts>;
  CHECK(all_refuse<net>("", bind<batch>(10)));
  for (const index_t n : {0, 4, 20}) CHECK(all_refuse<net>("tessera.lengths.sum", bind<batch>(n)));
}

TEST_CASE("a layer's result on another mesh is named on that mesh", "[plan]") {
  struct ring : axis<4> {};
  struct one : axis<1> {};
  using rows = tensor<partition<grid, blocks<row>, blocks<col>>, shape_of<8, 8>>;
  using around = partition<mesh<ring>, blocks<ring>, whole>;
  using turned = sequential_type<rows, nn::relu, nn::repartition<around>, nn::relu, nn::linear<6>, nn::relu>;
  STATIC_REQUIRE(std::is_same_v<turned::output, tensor<around, shape_of<8, 6>>>);
  using given = sequential_type<rows, nn::linear<6, output_as<around>>, nn::relu>;
  STATIC_REQUIRE(std::is_same_v<given::output, tensor<around, shape_of<8, 6>>>);
  using wider = partition<mesh<row, one, col>, blocks<row>, blocks<col>>;
  using beside = sequential_type<rows, nn::linear<6, output_as<wider>>, nn::relu>;
  STATIC_REQUIRE(std::is_same_v<beside::output, tensor<wider, shape_of<8, 6>>>);
  STATIC_REQUIRE(traffic<beside>() == traffic<sequential_type<rows, nn::linear<6>, nn::relu>>());
}

TEST_CASE("naming a network that is refused is no error, and what it would give goes everywhere", "[refusal]") {
  using wide = nn::max_pool<kernel<99, 2>>;
  using refused = sequential_type<image, nn::relu, nn::linear<4>, wide, nn::relu>;
  using too_wide = verdicts::kernel_too_wide<with::dimension<2>, with::extent<9>, with::padding<0>, with::kernel<99>>;
  STATIC_REQUIRE(std::is_same_v<refused, refused_network<at_layer<2, wide, too_wide>, image>>);
  STATIC_REQUIRE(std::is_same_v<
                 sequential_type<image, int>,
                 refused_network<at_layer<0, int, wrong_argument<kind::flow, 1, kind::layer, kind::element>>, image>>);
  using given = detail::refused_like<image>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<given, nn::relu>, refused_network<refused_before, given>>);
  STATIC_REQUIRE(std::is_same_v<typename sequential_type<given, nn::relu>::output, given>);
  STATIC_REQUIRE(primitive<given, image>::cost().total == 0);
  STATIC_REQUIRE(std::is_same_v<result_type<functions::add, image, given>, given>);
}

}  // namespace tessera::testing
