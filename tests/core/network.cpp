#include "tests/support/catch.hpp"

#include "tests/support/generate.hpp"
#include "tests/support/oracle.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>

namespace tessera::testing {

using namespace engine;

namespace {

struct row : axis<2> {};
struct col : axis<2> {};
struct batch : dyn {};
using grid = mesh<row, col>;
using image =
    tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>, shape<batch, dim<3>, dim<9>, dim<8>>, double>;

struct skip_of_three {
  constexpr auto operator()(auto x) const {
    using point = nn::conv<4, kernel<1, 1>>;
    const auto y = tanh(x);
    return y + (y | point{} | point{} | point{});
  }
};

template <class... Layers>
using after = typename sequential_type<image, Layers...>::output;

// Whether a sentence has a word, whole.
bool says(std::string_view sentence, std::string_view word) {
  const auto in_a_word = [&](std::size_t i) {
    return i < sentence.size() && (std::isalnum(sentence[i]) != 0 || sentence[i] == '_');
  };
  for (auto at = sentence.find(word); at != sentence.npos; at = sentence.find(word, at + 1))
    if (!in_a_word(at - 1) && !in_a_word(at + word.size())) return true;
  return false;
}

// A layer with one option more takes it just where its list has it.
template <class Layer>
void takes_just(std::string_view list, std::string_view option) {
  INFO(Layer::name << ", " << option);
  CHECK(!Layer::plan(value_of<image>).why.is(code::option_not_taken) == says(list, option));
}
template <class Option>
void layers_take(std::string_view option) {
  takes_just<nn::linear<4, Option>>("cut_out cut_in output_as no_bias weights_as", option);
  takes_just<nn::experts<3, 4, Option>>("cut_out cut_in output_as no_bias weights_as", option);
  takes_just<nn::gated_experts<3, 4, Option>>("cut_out no_bias weights_as", option);
  takes_just<nn::conv_transpose<4, Option>>(
      "kernel stride padding padding_at output_padding output_size dilation groups cut_out cut_in output_as no_bias "
      "weights_as",
      option);
  takes_just<nn::conv<4, Option>>(
      "kernel stride padding padding_at padding_same padding_valid padding_mode dilation groups cut_out cut_in "
      "output_as no_bias weights_as",
      option);
  takes_just<nn::max_pool<Option>>("kernel stride padding padding_at dilation ceil_mode", option);
  takes_just<nn::avg_pool<Option>>("kernel stride padding padding_at dilation ceil_mode exclude_padding divisor",
                                   option);
  takes_just<nn::upsample<Option>>("factor size divisor mode align_corners antialias", option);
  takes_just<nn::batch_norm<Option>>("eps momentum cumulative affine no_affine tracking no_tracking", option);
  takes_just<nn::layer_norm<Option>>("over_last eps affine no_affine no_bias", option);
  takes_just<nn::rms_norm<Option>>("over_last eps affine no_affine", option);
  takes_just<nn::group_norm<3, Option>>("eps affine no_affine", option);
  takes_just<nn::instance_norm<Option>>("eps momentum cumulative affine no_affine tracking no_tracking", option);
  takes_just<nn::dropout<Option>>("probability channelwise alpha", option);
  takes_just<nn::prelu<Option>>("channelwise", option);
  takes_just<nn::rrelu<Option>>("lower upper", option);
  takes_just<nn::pad<padding_at<1, 1>, Option>>("padding_mode", option);
  takes_just<nn::embedding<4, 4, Option>>(
      "cut_out cut_in output_as weights_as padding_idx max_norm norm_type scale_grad_by_freq frozen sparse", option);
}

}  // namespace

TEST_CASE("a layer takes the options that the docs list, and no others") {
  layers_take<kernel<3, 3>>("kernel");
  layers_take<stride<1>>("stride");
  layers_take<padding<1>>("padding");
  layers_take<padding_at<1, 1, 1, 1>>("padding_at");
  layers_take<padding_same>("padding_same");
  layers_take<padding_valid>("padding_valid");
  layers_take<output_padding<1>>("output_padding");
  layers_take<output_size<9>>("output_size");
  layers_take<padding_mode<boundary::reflect>>("padding_mode");
  layers_take<dilation<1>>("dilation");
  layers_take<groups<1>>("groups");
  layers_take<ceil_mode>("ceil_mode");
  layers_take<exclude_padding>("exclude_padding");
  layers_take<divisor<2>>("divisor");
  layers_take<no_bias>("no_bias");
  layers_take<cut_out<row>>("cut_out");
  layers_take<cut_in<row>>("cut_in");
  layers_take<output_as<partition<grid, whole, whole, whole, whole>>>("output_as");
  layers_take<factor<2, 2>>("factor");
  layers_take<size<2, 2>>("size");
  layers_take<mode<interpolation::cubic>>("mode");
  layers_take<align_corners>("align_corners");
  layers_take<antialias>("antialias");
  layers_take<eps<1, 10>>("eps");
  layers_take<momentum<1, 2>>("momentum");
  layers_take<cumulative>("cumulative");
  layers_take<affine>("affine");
  layers_take<no_affine>("no_affine");
  layers_take<tracking>("tracking");
  layers_take<no_tracking>("no_tracking");
  layers_take<over_last<2>>("over_last");
  layers_take<probability<1, 3>>("probability");
  layers_take<channelwise>("channelwise");
  layers_take<weights_as<float>>("weights_as");
  layers_take<padding_idx<0>>("padding_idx");
  layers_take<max_norm<2>>("max_norm");
  layers_take<norm_type<1>>("norm_type");
  layers_take<scale_grad_by_freq>("scale_grad_by_freq");
  layers_take<frozen>("frozen");
  layers_take<sparse>("sparse");
  layers_take<alpha>("alpha");
  layers_take<blocks<row>>("blocks");
  const refusal twice = nn::conv<4, no_bias, kernel<3>, stride<1>, kernel<3>>::plan(value_of<image>).why;
  REQUIRE(twice.is(code::option_given_twice));
  REQUIRE(twice.numbers[0] == 1);
  REQUIRE(twice.numbers[1] == 3);
  CHECK(nn::conv<4, kernel<3, 3>, padding<1>, padding_same>::plan(value_of<image>).why.is(code::option_given_twice));
  CHECK(nn::conv_transpose<4, kernel<3, 3>, output_size<9>, output_padding<0>>::plan(value_of<image>)
            .why.is(code::option_given_twice));
}

TEST_CASE(
    "an embedding that counts exchanges a number a row for the counts and one for the norms of rows that are cut, and "
    "a frozen one gets nothing back") {
  using rows = tensor<partition<grid, blocks<row>, invariant<col>>, shape<batch>, std::int64_t>;
  constexpr tensor_value x = value_of<rows>;
  constexpr layer_plan typed =
      nn::embedding<9, 4, cut_out<col>, max_norm<3, 2>, norm_type<1, 0>, scale_grad_by_freq, frozen>::plan(x);
  const nn::embedding_layer value{.rows = 9,
                                  .features = 4,
                                  .cut_out = {"col"},
                                  .max_norm = 1.5,
                                  .norm_type = std::numeric_limits<double>::infinity(),
                                  .scale_grad_by_freq = true,
                                  .frozen = true};
  const layer_plan p = value.plan(x);
  REQUIRE(p.why.ok());
  REQUIRE(p.exchanges() == 2);
  REQUIRE(typed.exchanges() == 2);
  for (int i = 0; i < 2; ++i)
    CHECK(
        (p.from(i) == typed.from(i) && p.to(i) == typed.to(i) && p.exchanged_element(i) == typed.exchanged_element(i)));
  CHECK(p.from(1).placements[1] == partial_by(combine::max));
  // an all_reduce between the two workers of each column: 9 numbers for each
  CHECK(traffic_of_exchange(p, 0).forward.bytes == 4 * 9 * 8);
  CHECK(traffic_of_exchange(p, 1).forward.bytes == 4 * 9 * 8);
  CHECK(traffic_of(p, {{typed.exchanged_element(0)}, 1}).backward.bytes == 0);
  const memory_value taken = peak_memory<sequential_type<rows, nn::embedding<9, 4, frozen>>>(bind<batch>(6));
  CHECK(taken.parameters == 9 * 4 * 4);
  CHECK(taken.gradients == 0);
  const auto refused = [&](const nn::embedding_layer& of, const reason& why) { return of.plan(x).why.is(why); };
  CHECK(refused({.rows = 9, .features = 4, .sparse = true}, code::sparse_not_there));
  CHECK(refused({.rows = 9, .features = 4, .max_norm = -1.0}, code::max_norm_below_zero));
  CHECK(refused({.rows = 9, .features = 4, .max_norm = std::nan("")}, code::max_norm_below_zero));
  CHECK(refused({.rows = 9, .features = 4, .max_norm = 1.0, .norm_type = 0}, code::norm_not_positive));
  CHECK(nn::embedding<9, 4, sparse>::plan(x).why.is(code::sparse_not_there));
  CHECK(nn::embedding<9, 4, max_norm<1, 0>>::plan(x).why.is(code::fraction_without_divisor));
}

TEST_CASE("shapes and partitions follow layers") {
  using y = after<nn::conv<5, kernel<3, 2>, stride<2, 1>, padding<1, 0>>, nn::relu>;
  STATIC_REQUIRE(std::is_same_v<y, tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>,
                                          shape<batch, dim<5>, dim<5>, dim<7>>, double>>);
  using channels = partition<grid, whole, blocks<row, col>, whole, whole>;
  using z = after<nn::conv<5, kernel<1, 1>>, nn::repartition<channels>, nn::flatten>;
  STATIC_REQUIRE(
      std::is_same_v<z, tensor<partition<grid, whole, grains<72, row, col>>, shape<batch, dim<360>>, double>>);
}

TEST_CASE("layers in fused_halo exchange once and give what they give by themselves") {
  using three = kernel<3, 3>;
  using apart = sequential_type<image, nn::conv<4, three, padding<1, 1>>, nn::relu, nn::conv<2, three, padding<1, 1>>,
                                nn::max_pool<kernel<2, 2>>>;
  using shared = sequential_type<image, nn::fused_halo<nn::conv<4, three, padding<1, 1>>, nn::relu,
                                                       nn::conv<2, three, padding<1, 1>>, nn::max_pool<kernel<2, 2>>>>;
  STATIC_REQUIRE(std::is_same_v<shared::output, apart::output>);
  STATIC_REQUIRE(shared::program.count == apart::program.count + 1);
  constexpr traffic_value one = traffic<shared>(bind<batch>(1));
  constexpr traffic_value each = traffic<apart>(bind<batch>(1));
  STATIC_REQUIRE(one.forward.messages == 12);  // every worker of 2 x 2 from its three neighbours, once
  STATIC_REQUIRE(each.forward.messages > 2 * one.forward.messages - 1);
  // Worker (0, 0) pools 2 x 2 of 4 x 4: it needs rows [0, 4 + 2), columns [0, 4 + 2) and has [0, 5) x [0, 4).
  STATIC_REQUIRE(box_of(shared::program.nodes[0].record->plan().output(), 0)[2].hi == 6);
  STATIC_REQUIRE(std::is_same_v<sequential_type<image, nn::fused_halo<nn::linear<4>>>,
                                refused_network<within<0, at_layer<0, detail::shared_halo<nn::linear<4>>,
                                                                   verdicts::layer_has_no_window<with::layer<0>>>>,
                                                image>>);
  using ring = nn::conv<4, three, padding<1, 1>, padding_mode<boundary::periodic>>;
  using zeros = nn::conv<4, three, padding<1, 1>>;
  using in_turn = verdicts::windows_do_not_compose<with::dimension<2>, with::layer<0>>;
  STATIC_REQUIRE(
      std::is_same_v<sequential_type<image, nn::fused_halo<ring, zeros>>,
                     refused_network<within<0, at_layer<0, detail::shared_halo<ring, zeros>, in_turn>>, image>>);
}

namespace {

// A layer, then it and a relu in turns.
template <class L, int... I>
sequential_type<image, L, std::conditional_t<I % 2 == 0, L, nn::relu>...> in_turns(std::integer_sequence<int, I...>);

}  // namespace

TEST_CASE("a budget may be set to a network of any length") {
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

TEST_CASE("what layers move is the same as constants of their own and as one value") {
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

TEST_CASE("a layer's result on another mesh is named on that mesh") {
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

TEST_CASE("naming a network that is refused is no error, and what it would give goes everywhere") {
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

TEST_CASE("a tensor that another is wanted for is told where they differ") {
  using cut = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  const tensor_value wanted = value_of<image>;
  const auto given = [&](auto partition_given, auto shape_given, auto element) {
    return check_same(value_of<tensor<decltype(partition_given), decltype(shape_given), decltype(element)>>, wanted);
  };
  using extents = shape<batch, dim<3>, dim<9>, dim<8>>;
  CHECK(given(partition<grid, whole, whole, blocks<row>, blocks<col>, replicate<>>{}, extents{}, double{}).ok());
  CHECK(given(cut{}, extents{}, float{}).is(code::wrong_element));
  CHECK(given(partition<grid, whole, whole, whole>{}, shape<batch, dim<3>, dim<9>>{}, double{}).is(code::ranks_differ));
  const refusal extent = given(cut{}, shape<batch, dim<3>, dim<9>, dim<7>>{}, double{});
  CHECK(
      (extent.is(code::extents_differ) && extent.numbers[0] == 3 && extent.numbers[1] == 8 && extent.numbers[2] == 7));
  const refusal turned = given(partition<grid, whole, whole, blocks<col>, blocks<row>>{}, extents{}, double{});
  CHECK((turned.is(code::wrong_partition) && turned.numbers[0] == 2));
  const refusal grain = given(partition<grid, whole, whole, blocks<row>, grains<3, col>>{}, extents{}, double{});
  CHECK((grain.is(code::wrong_partition) && grain.numbers[0] == 3));
  const refusal elsewhere =
      given(partition<placed<grid, 4>, whole, whole, blocks<row>, blocks<col>>{}, extents{}, double{});
  CHECK((elsewhere.is(code::wrong_partition) && elsewhere.axis.size == 0 && elsewhere.numbers[0] == -1));
  const refusal meaning = check_same(value_of<tensor<partition<grid, whole, invariant<col>>, shape<batch>>>,
                                     value_of<tensor<partition<grid, whole>, shape<batch>>>);
  CHECK((meaning.is(code::wrong_partition) && meaning.axis == text("col") && meaning.numbers[0] == -1));
}

TEST_CASE("the weight's cut is the cheapest for one sample, whatever the batch") {
  using features = tensor<partition<grid, whole, blocks<row, col>>, shape<batch, dim<96>>, double>;
  const layer_plan narrow = nn::linear<10>::plan(value_of<features>);
  REQUIRE(narrow.why.ok());
  CHECK(narrow.stored(0).levels(1) == 2);  // few outputs: reduce them
  const layer_plan wide = nn::linear<1000>::plan(value_of<features>);
  CHECK(wide.stored(0).levels(0) == 2);  // few inputs: gather them
  CHECK(same(wide.output(), [] {
    layout x = value_of<features>.layout;
    x.dims[1].extent = 1000;
    return x;
  }()));
}

TEST_CASE("the weight's cut is the cheapest for one sample, whatever the lengths of the batch's parts") {
  const index_t begins[]{0, 1, 6};
  layout x = value_of<tensor<partition<grid, blocks<row>, blocks<col>>, shape_of<6, 96>, double>>.layout;
  x.dims[0].bounds = begins;
  const layer_plan p = nn::linear<10>::plan({x, element::float64});
  REQUIRE(p.why.ok());
  CHECK(p.stored(0).levels(1) == 1);
}

TEST_CASE("a window that steps by one and gives as many leaves parts as they are, and halos alone move") {
  struct up : axis<4> {};
  using line = mesh<up>;
  using taps = nn::conv<2, kernel<3>, padding<1>>;
  using mean = nn::avg_pool<kernel<3>, stride<1>, padding<1>>;
  using uneven =
      tensor<partition<line, whole, whole, lengths<up, dim<7>, dim<1>, dim<0>, dim<5>>>, shape_of<1, 2, 13>, double>;
  // The parts 7 | 1 | | 5 lack 1, 2, 0 and 1 of their neighbours' elements, of two channels.
  constexpr index_t halo = 8 * 2 * (1 + 2 + 0 + 1);
  using net = sequential_type<uneven, taps, nn::relu, mean, nn::conv<2, kernel<3>, padding_same>>;
  STATIC_REQUIRE(std::is_same_v<net::output, uneven>);
  constexpr traffic_value all = traffic<net>();
  STATIC_REQUIRE(all.forward.bytes == 3 * halo);
  STATIC_REQUIRE(all.forward.lower_bound_bytes == 3 * halo);
  constexpr index_t weights = 8 * 2 * (4 - 1) * (2 * 2 * 3 + 2);  // an all_reduce of each convolution's
  STATIC_REQUIRE(all.backward.bytes == 3 * halo + 2 * weights);
  // A chain that shares a halo: it reaches two beyond each part.
  using chain = sequential_type<uneven, nn::fused_halo<taps, nn::relu, taps>>;
  STATIC_REQUIRE(std::is_same_v<chain::output, uneven>);
  STATIC_REQUIRE(traffic<chain>().forward.bytes == 8 * 2 * (2 + 4 + 0 + 2));
  // Whatever reads a tiling so leaves it: other boundaries, transposes, factors of one; turned deals, grains, ranges,
  // parts to be learned.
  using ring = nn::conv<2, kernel<3>, padding<1>, padding_mode<boundary::periodic>>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<uneven, ring>::output, uneven>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<uneven, nn::conv_transpose<2, kernel<3>, padding<1>>>::output, uneven>);
  STATIC_REQUIRE(
      std::is_same_v<sequential_type<uneven, nn::max_pool<kernel<3>, stride<1>, padding<1>>>::output, uneven>);
  STATIC_REQUIRE(
      std::is_same_v<sequential_type<uneven, nn::upsample<factor<1>, mode<interpolation::linear>>>::output, uneven>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<uneven, nn::pad<padding_at<1, -1>>>::output, uneven>);
  using turned = tensor<partition<line, whole, whole, rotated<grains<2, up>, 1>>, shape_of<1, 2, 13>, double>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<turned, taps, mean>::output, turned>);
  using range = tensor<partition<line, whole, whole, haloed<blocks<up>, 13, 1, -2, -2>>, shape_of<1, 2, 10>, double>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<range, taps>::output, range>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<range, nn::conv<2, kernel<1>>>::output, range>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<range, nn::fused_halo<taps, nn::relu, taps>>::output, range>);
  using unknown = tensor<partition<line, whole, whole, lengths<up>>, shape<dim<1>, dim<2>, batch>, double>;
  STATIC_REQUIRE(value_of<sequential_type<unknown, taps, nn::relu, mean>::output>.layout.dims[2].bounds == learned);
  // Others are balanced: fewer outputs, more, or a step of two.
  using balanced = tensor<partition<line, whole, whole, blocks<up>>, shape_of<1, 2, 13>, double>;
  const auto as_even = [](auto layer) {
    using one = sequential_type<uneven, decltype(layer)>;
    return std::is_same_v<typename one::output, typename sequential_type<balanced, decltype(layer)>::output>;
  };
  CHECK(as_even(nn::conv<2, kernel<3>>{}));
  CHECK(as_even(nn::conv<2, kernel<3>, padding<2>>{}));
  CHECK(as_even(nn::conv<2, kernel<3>, padding<1>, stride<2>>{}));
  CHECK(as_even(nn::max_pool<kernel<2>>{}));
}

TEST_CASE("each dimension of a kernel has a boundary of its own, or all have one") {
  struct x_axis : axis<2> {};
  struct y_axis : axis<2> {};
  using plane = tensor<partition<mesh<x_axis, y_axis>, whole, whole, blocks<x_axis>, blocks<y_axis>>,
                       shape_of<1, 1, 6, 4>, double>;
  using ring_and_ends = nn::conv<1, kernel<3, 3>, padding<1>, padding_mode<boundary::periodic, boundary::zero>>;
  constexpr layer_plan p = ring_and_ends::plan(value_of<plane>);
  STATIC_REQUIRE((p.used().dims[2].needs.edge == boundary::periodic && p.used().dims[3].needs.edge == boundary::zero));
  // In a ring of two each lacks a row at either end, and one column, of what is five rows high then.
  STATIC_REQUIRE(traffic<sequential_type<plane, ring_and_ends>>().forward.bytes == 8 * 4 * ((3 + 2) * (2 + 1) - 3 * 2));
  STATIC_REQUIRE(
      ring_and_ends::plan(value_of<plane>).used() ==
      nn::conv_layer{.out = 1, .kernel = {3, 3}, .padding = {1}, .padding_mode = {boundary::periodic, boundary::zero}}
          .plan(value_of<plane>)
          .used());
  STATIC_REQUIRE(
      nn::conv_layer{.out = 1, .kernel = {3, 3}, .padding_mode = boundary::reflect}.description().kernels[1].edge ==
      boundary::reflect);
  STATIC_REQUIRE(nn::pad<padding_at<1, 1, 2, 2>, padding_mode<boundary::zero, boundary::replicate>>::description()
                     .widths[1]
                     .edge == boundary::replicate);
  CHECK(nn::pad_layer{.widths = {1, 1, 2, 2}, .padding_mode = {boundary::zero, boundary::replicate}}
            .description()
            .widths[1]
            .edge == boundary::replicate);
  CHECK(nn::conv<1, kernel<3, 3, 3>, padding_mode<boundary::periodic, boundary::zero>>::description().why.is(
      code::option_of_other_dimensions));
  CHECK(nn::conv_layer{.out = 1, .kernel = {3}, .padding_mode = {boundary::periodic, boundary::zero}}
            .description()
            .why.is(code::option_of_other_dimensions));
  CHECK(nn::pad_layer{.widths = {1, 1}, .padding_mode = {boundary::zero, boundary::zero}}
            .plan(value_of<plane>)
            .why.is(code::option_of_other_dimensions));
}

TEST_CASE("a bias of what has a halo is stored without it") {
  using features = tensor<partition<grid, whole, whole>, shape_of<4, 6>, double>;
  using with_halo = partition<grid, whole, haloed<blocks<row>, 8, 1, -1, 1>>;
  const layer_plan p = nn::linear<8, output_as<with_halo>>::plan(value_of<features>);
  REQUIRE(p.why.ok());
  CHECK(p.weight(1).dims[0].kind == cover::haloed);
  CHECK((p.stored(1).dims[0].kind == cover::tiled && p.stored(1).levels(0) == 1));
}

TEST_CASE("experts have their weights where they are, and move what a linear layer of each would") {
  struct expert : axis<2> {};
  struct data : axis<3> {};
  struct model : axis<2> {};
  using cube = mesh<expert, data, model>;
  using slots = tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                       shape<dim<5>, dim<7>, dim<2>, dim<6>>, double>;
  using columns = nn::experts<5, 4, cut_out<model>>;
  using rows = nn::experts<5, 4, cut_in<model>>;
  const layer_plan p = columns::plan(value_of<slots>);
  REQUIRE(p.why.ok());
  using weight =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 6, 4>, double>;
  using bias =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 1, 4>, double>;
  CHECK((same(p.stored(0), value_of<weight>.layout) && same(p.stored(1), value_of<bias>.layout)));
  CHECK(p.parameter(0).initial == init::usual(6));
  CHECK(p.parameter(1).initial == init::usual(6));
  STATIC_REQUIRE(std::is_same_v<sequential_type<slots, columns>::output, sequential_type<slots, rows>::output>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<slots, columns>::output,
                                tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                                       shape<dim<5>, dim<7>, dim<2>, dim<4>>, double>>);
  // Gathered: each worker lacks one half of the features of its slots; reduced: it gets a term of each of its results.
  // an all_reduce of all weights over the slots' three workers
  constexpr index_t gradients = 2 * (3 - 1) * 5 * (6 + 1) * 4;
  constexpr traffic_value gathered = traffic<sequential_type<slots, columns>>();
  STATIC_REQUIRE(gathered.forward.bytes == 8 * 5 * 7 * 2 * 6);
  STATIC_REQUIRE(gathered.backward.bytes == 8 * (5 * 7 * 2 * 6 + gradients));
  constexpr traffic_value reduced = traffic<sequential_type<slots, rows>>();
  STATIC_REQUIRE(reduced.forward.bytes == 8 * 5 * 7 * 2 * 4);
  STATIC_REQUIRE(reduced.backward.bytes == reduced.forward.bytes + 8 * gradients);
  // Stored over the slots' workers too: each lacks two thirds of its experts' weights, which come twice (a bias once,
  // which backward does not read), and gets two terms of its part of their gradient.
  constexpr traffic_value stored = traffic<sequential_type<slots, nn::sharded_over<columns, data>>>();
  STATIC_REQUIRE(stored.forward.bytes == gathered.forward.bytes + 8 * gradients / 2);
  STATIC_REQUIRE(stored.backward.bytes == gathered.forward.bytes + 8 * (gradients / 2 + (3 - 1) * 5 * 6 * 4));
  for (const traffic_value& t : {gathered, reduced, stored})
    CHECK((t.forward.bytes == t.forward.lower_bound_bytes && t.backward.bytes == t.backward.lower_bound_bytes));
  // Without a word from the program the weights' cut is that of a linear layer: the fewer of inputs and outputs move.
  CHECK(nn::experts<5, 4>::plan(value_of<slots>).stored(0).levels(1) == 1);
  CHECK(nn::experts<5, 40>::plan(value_of<slots>).stored(0).levels(2) == 1);
  CHECK(nn::experts_layer{.experts = 5, .out = 4, .cut_out = {"model"}}.plan(value_of<slots>).output() == p.output());
}

TEST_CASE("gated experts gather their slots once, and are one serial layer of experts") {
  struct expert : axis<2> {};
  struct data : axis<3> {};
  struct model : axis<2> {};
  using cube = mesh<expert, data, model>;
  using slots = tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                       shape<dim<5>, dim<7>, dim<2>, dim<6>>, double>;
  using layer = nn::gated_experts<5, 3, cut_out<model>>;
  const layer_plan p = layer::plan(value_of<slots>);
  REQUIRE(p.why.ok());
  using weight =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 6, 3>, double>;
  using bias =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 1, 3>, double>;
  REQUIRE(p.parameters() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(same(p.stored(i), i % 2 == 0 ? value_of<weight>.layout : value_of<bias>.layout));
    CHECK(p.parameter(i).initial == init::usual(6));
    CHECK(p.parameter(i).serial == serial_view{i % 2 == 0 ? "weight" : "bias", 2, 1, i < 2 ? 0 : 3, 6});
  }
  using half = tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                      shape<dim<5>, dim<7>, dim<2>, dim<3>>, double>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<slots, layer>::outputs, detail::type_list<half, half>>);
  constexpr index_t halves = 2 * 5 * (6 + 1) * 3;  // of weight and bias
  constexpr traffic_value gathered = traffic<sequential_type<slots, layer>>();
  STATIC_REQUIRE(gathered.forward.bytes == 8 * 5 * 7 * 2 * 6);
  STATIC_REQUIRE(gathered.backward.bytes == 8 * (5 * 7 * 2 * 6 + 2 * (3 - 1) * halves));
  constexpr traffic_value stored = traffic<sequential_type<slots, nn::sharded_over<layer, data>>>();
  STATIC_REQUIRE(stored.forward.bytes == gathered.forward.bytes + 8 * (3 - 1) * halves);
  STATIC_REQUIRE(stored.backward.bytes == gathered.forward.bytes + 8 * (3 - 1) * (halves + 2 * 5 * 6 * 3));
  for (const traffic_value& t : {gathered, stored})
    CHECK((t.forward.bytes == t.forward.lower_bound_bytes && t.backward.bytes == t.backward.lower_bound_bytes));
  const layer_plan of_values =
      nn::gated_experts_layer{.experts = 5, .out = 3, .cut_out = {"model"}}.plan(value_of<slots>);
  CHECK((of_values.output() == p.output() && of_values.output(1) == p.output(1)));
}

TEST_CASE("outputs are cut in grains where the layer says so") {
  using features = tensor<partition<mesh<row>, whole, whole>, shape<batch, dim<6>>, double>;
  using heads = sequential_type<features, nn::linear<24, cut_out<grains<8, row>>>>;
  STATIC_REQUIRE(std::is_same_v<heads::output,
                                tensor<partition<mesh<row>, whole, grains<8, row>>, shape<batch, dim<24>>, double>>);
  const layer_plan p = nn::linear<24, cut_out<grains<8, row>>>::plan(value_of<features>);
  CHECK((p.stored(0).dims[0].grain() == 8 && p.stored(1).dims[0].grain() == 8));
}

TEST_CASE("a dimension grows by a role, and its cut with it") {
  using plane = tensor<partition<grid, blocks<row>, grains<2, col>>, shape<dim<5>, dim<7>>, double>;
  static constexpr signature twice = operation("hw->hw").scaled('h', 2).scaled('w', 3).linear();
  STATIC_REQUIRE(
      std::is_same_v<operation_type<twice, plane>,
                     tensor<partition<grid, grains<2, row>, grains<6, col>>, shape<dim<10>, dim<21>>, double>>);
  STATIC_REQUIRE(operation("hw->hw").scaled('h', 0).check().is(code::role_does_not_fit));
  STATIC_REQUIRE(operation("hw->w").scaled('h', 2).check().is(code::role_does_not_fit));
}

TEST_CASE("blocks that come out even are split as grains are") {
  static constexpr signature pairs = operation("z->ab").split('z', 'a', 'b', 4).linear();
  using even = tensor<partition<grid, blocks<row>>, shape_of<24>, double>;
  STATIC_REQUIRE(
      std::is_same_v<operation_type<pairs, even>, tensor<partition<grid, blocks<row>, whole>, shape_of<6, 4>, double>>);
  const auto refused = [](index_t n, index_t grain) {
    layout x = value_of<even>.layout;
    x.dims[0].extent = n;
    x.dims[0].set_grain(grain);
    static_vector<operand, 4> one = no_items<operand, 4>;
    one.push({x, false});
    return infer(pairs, one).why;
  };
  CHECK(refused(24, 2).ok());
  CHECK(refused(24, 4).ok());
  CHECK(refused(20, 1).is(code::split_through_part));
  CHECK(refused(20, 4).ok());
}

TEST_CASE("the average of whole images exchanges sums alone") {
  using net = sequential_type<image, nn::global_avg_pool>;
  STATIC_REQUIRE(std::is_same_v<net::output, tensor<partition<grid, whole, whole, whole, whole>,
                                                    shape<batch, dim<3>, dim<1>, dim<1>>, double>>);
  constexpr traffic_value t = traffic<net>(bind<batch>(4));
  STATIC_REQUIRE(t.forward.bytes == 2 * (4 - 1) * 4 * 3 * 8);  // an all_reduce of 4 x 3 means over four workers
  STATIC_REQUIRE(t.backward.bytes == t.forward.bytes);
  CHECK(nn::global_avg_pool::plan({value_of<image>.layout, element::int64}).why.is(code::mean_of_integers));
}

TEST_CASE("a layout says what a kernel needs") {
  const layout x = value_of<tensor<partition<mesh<row>, blocks<row>>, shape_of<10>>>.layout;
  CHECK(same(x.halo(0, {3, 2, 1, 1, 1}),
             value_of<tensor<partition<mesh<row>, haloed<blocks<row>, 5, 2, -1, 1>>, shape_of<10>>>.layout));
}

TEST_CASE("column and row forms are spellings") {
  struct model : axis<4> {};
  struct data : axis<2> {};
  using m = mesh<data, model>;
  using x = tensor<partition<m, blocks<data>, whole>, shape<batch, dim<12>>, double>;
  using column = typename sequential_type<x, nn::linear<8, cut_out<model>>>::output;
  STATIC_REQUIRE(
      std::is_same_v<column, tensor<partition<m, blocks<data>, blocks<model>>, shape<batch, dim<8>>, double>>);
  using row_form = sequential_type<column, nn::linear<5, cut_in<model>, output_as<partition<m, blocks<data>, whole>>>>;
  STATIC_REQUIRE(std::is_same_v<typename row_form::output,
                                tensor<partition<m, blocks<data>, whole>, shape<batch, dim<5>>, double>>);
  const traffic_value t = traffic<row_form>(bind<batch>(2));
  CHECK(t.forward.bytes == 2 * 4 * (2 * 5 * 3 * 8 / 4));  // all_reduce of 1 x 5 over four, on two lines
}

TEST_CASE("traffic counts parameters and is what must be moved") {
  using net = sequential_type<image, nn::conv<6, kernel<3, 3>, padding<1, 1>>>;
  const traffic_value t = traffic<net>(bind<batch>(1));
  CHECK(t.forward.bytes == t.forward.lower_bound_bytes);
  CHECK(t.backward.bytes == t.backward.lower_bound_bytes);
  // the weights' all_reduce over four workers
  CHECK(t.backward.bytes - t.forward.bytes == 8 * 2 * 3 * (6 * 3 * 9 + 6));
}

TEST_CASE("the memory of a network: what lives at once, in bytes on the busiest worker") {
  struct one : axis<1> {};
  struct many : dyn {};
  using picture = tensor<partition<mesh<one>, whole, whole, whole, whole>, shape<many, dim<4>, dim<8>, dim<8>>, double>;
  using three = nn::conv<8, kernel<3, 3>, padding<1, 1>>;
  using net = sequential_type<picture, three, nn::relu, three>;
  // At two pictures: the input and a box of eight features, and the windows that convolutions copy out.
  constexpr index_t input = 4096, box = 8192, first_windows = 36864, windows = 73728;
  constexpr index_t first = 8 * 4 * 9 * 8, weight = 8 * 8 * 9 * 8, bias = 8 * 8;
  constexpr memory_value m = peak_memory<net, bind<many>(2)>();
  static_assert(m == peak_memory<net>(bind<many>(2)));
  CHECK(m.forward == std::max(input + box + first_windows, input + box + box + windows));
  // The second layer's backward: its output and that one's gradient, what was saved (the input, the result of relu),
  // and what it gives.
  CHECK(m.training == input + box + box + box + box + weight + bias + windows);
  CHECK(m.parameters == first + weight + 2 * bias);
  CHECK(m.gradients == m.parameters);
  // Padding at one end alone, which LibTorch does not do itself: the input in a frame.
  constexpr index_t framed = 6400;
  CHECK(
      peak_memory<sequential_type<picture, nn::conv<8, kernel<3, 3>, padding_at<0, 2, 0, 2>>>>(bind<many>(2)).forward ==
      input + framed + box + first_windows);
  // A skip keeps its value until it is read; a view is no memory of its own.
  CHECK(peak_memory<network_type<skip_of_three, picture>>(bind<many>(2)).forward == 4 * input);
  CHECK(peak_memory<sequential_type<picture, nn::flatten, nn::flatten>>(bind<many>(2)) ==
        memory_value{input, input, 0, 0, 0});
  // Each worker has its part, and what it gathers.
  struct across : axis<4> {};
  using cut_rows = partition<mesh<across>, whole, whole, blocks<across>, whole>;
  using rows = tensor<cut_rows, shape<many, dim<4>, dim<8>, dim<8>>, double>;
  using gathered = sequential_type<rows, nn::repartition<partition<mesh<across>, whole, whole, whole, whole>>>;
  CHECK(peak_memory<gathered>(bind<many>(2)).forward == input / 4 + input);
}

TEST_CASE("rules for local operations, axis by axis") {
  struct a : axis<2> {};
  const auto of = [](placement kind, int cut_dim = 0) {
    layout x;
    x.mesh = mesh<a>::value;
    x.placements.resize(1);
    for (int i = 0; i < 2; ++i) {
      dimension d;
      d.extent = 4;
      x.dims.push(d);
    }
    if (kind == placement::cut) x.cut_by(cut_dim, 0);
    else x.placements[0] = {kind};
    return x;
  };
  const auto result = [&](linearity kind, const char* left, const layout& x, const char* right, const layout& y,
                          const char* out) {
    signature s;
    s.kind = kind;
    s.operands.push(named(left));
    s.operands.push(named(right));
    s.result = named(out);
    static_vector<operand, 4> operands;
    operands.push({x, false});
    operands.push({y, false});
    return infer(s, operands);
  };
  constexpr placement R = placement::replicate, P = placement::partial, I = placement::invariant, V = placement::cut,
                      O = placement::on;
  const auto sum = [&](placement x, placement y) {
    return result(linearity::additive, "ij", of(x), "ij", of(y), "ij");
  };
  const auto product = [&](placement x, placement y) {
    return result(linearity::multilinear, "ij", of(x), "ij", of(y), "ij");
  };
  const auto other = [&](placement x, placement y) {
    return result(linearity::nonlinear, "ij", of(x), "ij", of(y), "ij");
  };

  for (placement k : {R, P, I, V, O}) {
    CHECK(sum(k, k).why.ok());
    CHECK(sum(k, k).layout.placements[0].kind == k);
  }
  CHECK(sum(P, R).why.is(code::replicate_added_to_partial));
  CHECK(sum(R, P).why.is(code::replicate_added_to_partial));
  CHECK(sum(I, P).why.is(code::invariant_mixed));
  CHECK(sum(I, R).why.is(code::invariant_mixed));
  CHECK(sum(V, R).why.is(code::cut_unalike));
  CHECK(sum(O, R).why.is(code::held_on_one_coordinate));
  CHECK(product(R, R).layout.placements[0].kind == R);
  CHECK(product(P, R).layout.placements[0].kind == P);
  CHECK(product(R, P).layout.placements[0].kind == P);
  CHECK(product(I, I).layout.placements[0].kind == I);
  CHECK(product(V, V).layout.placements[0].kind == V);
  CHECK(product(P, P).why.is(code::product_of_partials));
  CHECK(product(I, R).why.is(code::invariant_mixed));
  CHECK(other(R, R).why.ok());
  CHECK(other(V, V).why.ok());
  CHECK(other(P, P).why.is(code::nonlinear_on_partial));
  layout most = of(P);  // the largest term of −x is not that of x
  most.placements[0].with = combine::max;
  CHECK(result(linearity::multilinear, "ij", most, "ij", of(R), "ij").why.is(code::nonlinear_on_partial));
  CHECK(result(linearity::additive, "ij", of(P), "ij", most, "ij").why.is(code::nonlinear_on_partial));
  CHECK(result(linearity::additive, "ij", most, "ij", of(P), "ij").why.is(code::nonlinear_on_partial));

  // Contractions: a tiling summed over is partial; an operand without the dimension must be whole.
  const auto matmul = [&](const layout& x, const layout& y) {
    return result(linearity::multilinear, "ik", x, "kj", y, "ij");
  };
  CHECK(matmul(of(V, 1), of(V, 0)).layout.placements[0].kind == P);
  CHECK(matmul(of(V, 0), of(R)).layout.placements[0].dimension == 0);
  CHECK(matmul(of(R), of(V, 1)).layout.placements[0].dimension == 1);
  CHECK(matmul(of(V, 1), of(R)).why.is(code::cut_unalike));
  CHECK(matmul(of(V, 0), of(P)).why.is(code::product_of_partials));
  layout haloed = of(V, 1);
  haloed.dims[1].kind = cover::haloed;
  haloed.dims[1].outputs = 4;
  haloed.dims[1].needs = sliding{3, 1, 1, 1, 1}.needs();
  layout beside = of(V, 0);
  beside.dims[0] = haloed.dims[1];
  CHECK(matmul(haloed, beside).why.is(code::haloed_summed));
  beside.dims[0].kind = cover::pending;
  haloed.dims[1].kind = cover::pending;
  CHECK(matmul(haloed, beside).why.is(code::product_of_partials));  // terms times terms
  beside.dims[0].kind = cover::haloed;
  CHECK(matmul(haloed, beside).layout.placements[0].kind == P);  // terms times copies, summed
  beside.dims[0].kind = cover::pending;
  CHECK(other(R, V).why.is(code::cut_unalike));
}

TEST_CASE("operands meet on meshes that differ by axes of extent 1") {
  dice d{22};
  int accepted = 0;
  for (int i = 0; i < 6000; ++i) {
    const auto extents = roll_extents(d, 2);
    const mesh_value mesh = roll_mesh(d, 3);
    signature s;
    s.kind = static_cast<linearity>(d.roll(0, 2));
    s.operands.push(letters_of(extents.count));
    s.operands.push(s.operands[0]);
    s.result = d.once_in(2) ? letters{} : s.operands[0];
    const layout x = roll_layout(d, mesh, extents, {true, true, true, true});
    const layout y = d.once_in(2) ? x : roll_layout(d, mesh, extents, {true, true, true, true});
    const layout u = with_ones(d, x);
    const layout v = with_ones(d, y);
    const bool x_constant = d.once_in(5);
    const bool y_constant = d.once_in(5);
    const auto result = [&](const layout& left, const layout& right) {
      static_vector<operand, 4> operands;
      operands.push({left, x_constant});
      operands.push({right, y_constant});
      return infer(s, operands);
    };
    const inferred plain = result(x, y);
    const inferred other = result(u, v);
    INFO(i);
    REQUIRE(plain.why.because == other.why.because);
    REQUIRE(!plain.why.is(code::meshes_differ));
    if (!plain.why.ok()) continue;
    ++accepted;
    CHECK(other.layout.mesh == u.mesh);
    CHECK(same(plain.layout, other.layout));
  }
  CHECK(accepted > 1000);
}

TEST_CASE("operands on meshes that differ otherwise are refused") {
  struct one : axis<1> {};
  struct wide : axis<3> {};
  struct other_row : axis<2> {};
  const auto code_of = [](const mesh_value& left, const mesh_value& right) {
    signature s;
    s.kind = linearity::additive;
    s.operands.push(letters{});
    s.operands.push(letters{});
    static_vector<operand, 4> operands;
    for (const mesh_value* m : {&left, &right}) {
      layout x;
      x.mesh = *m;
      x.placements.resize(m->axes.count);
      operands.push({x, false});
    }
    return infer(s, operands).why.because;
  };
  const mesh_value two = mesh<row, col>::value;
  CHECK(code_of(two, mesh<row, one, col>::value) == nullptr);
  CHECK(code_of(mesh<one, row, col>::value, two) == nullptr);
  CHECK(code_of(two, mesh<row>::value) == &code::meshes_differ);
  CHECK(code_of(two, mesh<row, wide>::value) == &code::meshes_differ);
  CHECK(code_of(two, mesh<row, other_row>::value) == &code::meshes_differ);
  CHECK(code_of(two, mesh<col, row>::value) == &code::meshes_differ);
  CHECK(code_of(two, placed<mesh<one, row, col>, 4>::value) == &code::meshes_differ);
  CHECK(code_of(two, placed<mesh<row, one, col>, 0, 4, 7, 1>::value) == &code::meshes_differ);
  CHECK(code_of(two, placed<mesh<row, one, col>, 0, 2, 7, 1>::value) == nullptr);
  static constexpr int ranks[]{0, 1, 2, 3};
  mesh_value listed = mesh<row, one, col>::value;
  listed.ranks = ranks;
  CHECK(code_of(two, listed) == nullptr);
  static constexpr int turned[]{0, 2, 1, 3};
  listed.ranks = turned;
  CHECK(code_of(two, listed) == &code::meshes_differ);
}

TEST_CASE("constants count as copies, but not among terms") {
  struct a : axis<2> {};
  layout terms;
  terms.mesh = mesh<a>::value;
  terms.placements.push({placement::partial});
  layout copies = terms;
  copies.placements[0] = {placement::replicate};
  layout alike = terms;
  alike.placements[0] = {placement::invariant};
  const auto both = [](linearity kind, const layout& x, bool x_constant, const layout& y, bool y_constant) {
    signature s;
    s.kind = kind;
    s.operands.push(letters{});
    s.operands.push(letters{});
    static_vector<operand, 4> operands;
    operands.push({x, x_constant});
    operands.push({y, y_constant});
    return infer(s, operands);
  };
  CHECK(both(linearity::additive, terms, true, copies, true).why.is(code::replicate_added_to_partial));
  CHECK(both(linearity::additive, terms, false, alike, true).why.is(code::replicate_added_to_partial));
  CHECK(both(linearity::multilinear, terms, false, copies, true).layout.placements[0].kind == placement::partial);
  CHECK(both(linearity::multilinear, alike, false, copies, true).layout.placements[0].kind == placement::invariant);
}

TEST_CASE("a windowed operation on a cut dimension needs its own halo") {
  struct a : axis<2> {};
  layout x;
  x.mesh = mesh<a>::value;
  x.placements.resize(1);
  dimension d;
  d.extent = 8;
  x.dims.push(d);
  x.cut_by(0, 0);
  const sliding three{3, 1, 1, 1, 1};
  signature s;
  s.operands.push(named("i"));
  s.result = named("i");
  s.special.push({'i', treatment::windowed, three, 0});
  const auto of = [&](const layout& given) {
    static_vector<operand, 4> one;
    one.push({given, false});
    return infer(s, one);
  };
  CHECK(of(x).why.is(code::window_without_halo));
  dimension h = d;
  h.kind = cover::haloed;
  h.outputs = 8;
  h.needs = three.needs();
  x.dims[0] = h;
  CHECK(of(x).why.ok());
  h.needs = sliding{2, 1, 1, 0, 1}.needs();
  x.dims[0] = h;
  CHECK(of(x).why.is(code::window_without_halo));
  h.needs = sliding{5, 1, 2, 2, 1}.needs();  // the halo of two such windows in sequence: that of the second is left
  x.dims[0] = h;
  REQUIRE(of(x).why.ok());
  CHECK(of(x).layout.dims[0].kind == cover::haloed);
  CHECK(of(x).layout.dims[0].needs == three.needs());
}

TEST_CASE(
    "what a window leaves out the only worker lacks, whether an axis of extent 1 cuts the dimension or none does") {
  struct one : axis<1> {};
  using whole_line = tensor<partition<mesh<one>, blocks<one>>, shape_of<9>, double>;
  for (const bool cut : {true, false}) {
    layout blocks = value_of<whole_line>.layout;
    if (!cut) blocks.release(0);
    const auto of = [&](const signature& s, const layout& x) {
      static_vector<operand, 4> operands;
      operands.push({x, false});
      if (s.operands.count == 2) operands.push({blocks, false});
      return infer(s, operands);
    };
    const sliding third{1, 3, 0, 0, 1};
    const layout some = blocks.halo(0, third);  // the elements [0, 7)
    CHECK(of(operation("i->i"), some).layout.dims[0].kind == cover::haloed);
    CHECK(of(operation("i->i").windowed('i', third), some).layout.dims[0].kind == cover::tiled);
    CHECK(of(operation("i->i").windowed('i', {2, 3, 0, 0, 1}), some).why.is(code::window_without_halo));
    CHECK(of(operation("i->i").whole("i"), some).why.is(code::dimension_needed_whole));
    CHECK(of(operation("i->").linear(), some).why.is(code::dimension_needed_whole));
    CHECK(of(operation("i,i->i"), some).why.is(code::dimension_needed_whole));
    CHECK_FALSE(same(some, blocks));
    const layout all = blocks.halo(0, {3, 3, 0, 0, 1});
    CHECK(same(all, blocks));
    for (const signature& s : {operation("i->i").whole("i"), operation("i->").linear(), operation("i,i->i")})
      CHECK(of(s, all).why.ok());
  }
}

TEST_CASE("a range of a cut dimension stays where it is: a tiling, or the copies that there were") {
  using cut = tensor<partition<grid, whole, blocks<row>>, shape_of<4, 10>, double>;
  static constexpr signature middle = operation("ab->ab").narrowed('b', 2, 9).linear();
  using range = operation_type<middle, cut>;
  STATIC_REQUIRE(
      std::is_same_v<range,
                     tensor<partition<grid, whole, haloed<blocks<row>, 10, 1, -2, -2>>, shape_of<4, 7>, double>>);
  STATIC_REQUIRE(
      std::is_same_v<
          cotangent_type<range>,
          tensor<partition<grid, whole, haloed<blocks<row>, 10, 1, -2, -2>, partial<col>>, shape_of<4, 7>, double>>);
  using balanced = primitive<range, tensor<partition<grid, whole, blocks<row>>, shape_of<4, 7>, double>>;
  STATIC_REQUIRE(balanced::verb == verb::repartition);
  STATIC_REQUIRE(balanced::cost().total == 2 * 4);  // 3 and 4 become 4 and 3, on both lines
  static constexpr signature everything = operation("ab->ab").narrowed('b', 0, 10).linear();
  STATIC_REQUIRE(std::is_same_v<operation_type<everything, cut>, cut>);
  static constexpr signature total = operation("ab->a").linear();
  STATIC_REQUIRE(
      std::is_same_v<operation_type<total, range>, tensor<partition<grid, whole, partial<row>>, shape_of<4>, double>>);

  dice d{20261121};
  int tilings = 0;
  int copies = 0;
  for (int round = 0; round < 2000; ++round) {
    const mesh_value m = roll_mesh(d, 3);
    static_vector<index_t, max_dimensions> extents;
    extents.push(d.roll(0, 3));
    extents.push(d.roll(0, 12));
    layout x = roll_layout(d, m, extents, {false, true, true, true});
    if (x.levels(1) > 0 && d.once_in(3)) {  // any window, with a divisor and elements out of reach
      dimension& any = x.dims[1];
      any.balance(1);
      any.kind = cover::haloed;
      any.outputs = d.roll(0, 15);
      any.needs = {d.roll(1, 3), d.roll(-4, 4), 0, d.roll(1, 3), d.roll(0, 3), d.roll(0, 3)};
      any.needs.b2 = any.needs.b + d.roll(0, 3);
    }
    const index_t begin = d.roll(0, static_cast<int>(extents[1]));
    const index_t end = d.roll(static_cast<int>(begin), static_cast<int>(extents[1]));
    static_vector<operand, 4> one;
    one.push({x, false});
    const inferred y = infer(operation("ab->ab").narrowed('b', begin, end), one);
    const dimension& from = x.dims[1];
    if (!y.why.ok()) {
      REQUIRE(y.why.is(code::window_without_halo));
      REQUIRE(from.needs.edge != boundary::zero);
      continue;
    }
    const dimension& to = y.layout.dims[1];
    REQUIRE(to.extent == end - begin);
    REQUIRE((!from.tiles() || to.tiles()));
    (from.tiles() ? tilings : copies) += x.levels(1) > 0;
    for (int w = 0; w < m.size(); ++w) {
      std::vector<index_t> kept;
      for (index_t e : oracle::held(x, 1, m.at(w)))
        if (e >= begin && e < end) kept.push_back(e - begin);
      REQUIRE(oracle::held(y.layout, 1, m.at(w)) == kept);
    }
    if (!from.tiles() || x.dims[0].kind != cover::tiled) continue;
    layout blocks = y.layout;
    blocks.dims[1].tile();
    blocks.dims[1].balance(1);
    REQUIRE(check_change(y.layout, blocks).ok());
    REQUIRE(same(cotangent(cotangent(y.layout)), y.layout));
    REQUIRE(cotangent(y.layout).dims[1].tiles());
  }
  CHECK(tilings > 400);
  CHECK(copies > 100);
}

TEST_CASE("a normalisation gathers what workers have of its groups, an upsampling what its outputs read") {
  constexpr auto moved = [](auto net) { return traffic<decltype(net)>(bind<batch>(5)); };
  // Of three channels each of four workers gets two numbers from the three others; back it gives as many. Weights and
  // biases are summed.
  constexpr traffic_value channels = moved(sequential_type<image, nn::batch_norm<>>{});
  STATIC_REQUIRE(channels.forward.bytes == 4 * 3 * 2 * 3 * 8);
  STATIC_REQUIRE(channels.forward.bytes == channels.forward.lower_bound_bytes);
  STATIC_REQUIRE(channels.backward.bytes == channels.forward.bytes + 2 * 2 * 3 * 3 * 8);
  // Rows of 8 over two workers: of each of 5 x 3 x 9 one number goes each way.
  STATIC_REQUIRE(moved(sequential_type<image, nn::rms_norm<no_affine>>{}).forward.bytes == 2 * 5 * 3 * 9 * 8);
  STATIC_REQUIRE(
      moved(sequential_type<tensor<partition<grid, blocks<row>, blocks<col>, whole>, shape<batch, dim<3>, dim<4>>>,
                            nn::layer_norm<>>{})
          .forward.bytes == 0);
  // Of 5 x 3 instances each of four workers gets two numbers from the three others.
  STATIC_REQUIRE(moved(sequential_type<image, nn::instance_norm<>>{}).forward.bytes == 4 * 5 * 3 * 2 * 3 * 8);
  // Running means over samples, each of three channels two numbers, have no way back.
  using samples_cut = tensor<partition<grid, blocks<row>, whole, whole>, shape<batch, dim<3>, dim<4>>, double>;
  constexpr traffic_value running = moved(sequential_type<samples_cut, nn::instance_norm<tracking>>{});
  STATIC_REQUIRE(running.forward.bytes == 4 * 3 * 2 * 8);
  STATIC_REQUIRE(running.backward.bytes == 0);
  // Groups of channels that are whole on each of two workers stay where they are; of others, all, each gets two numbers
  // from the other.
  using halves = partition<grid, whole, blocks<row>>;
  STATIC_REQUIRE(moved(sequential_type<tensor<halves, shape<batch, dim<8>>>, nn::group_norm<2>>{}).forward.bytes == 0);
  STATIC_REQUIRE(moved(sequential_type<tensor<halves, shape<batch, dim<8>>>, nn::group_norm<4>>{}).forward.bytes == 0);
  STATIC_REQUIRE(
      moved(sequential_type<tensor<halves, shape<batch, dim<6>>>, nn::group_norm<3, no_affine>>{}).forward.bytes ==
      4 * 5 * 3 * 2 * 8);
  // 9 rows are 5 and 4, 18 are 9 and 9: the second worker reads the fifth. 8 columns and 16 are halves alike.
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<factor<2, 2>>>{}).forward.bytes == 5 * 3 * 8 * 8);
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<factor<1, 4>>>{}).forward.bytes == 0);
  // To 12 rows of 9 the steps are 3/4, which are exact: 6 and 6, so the first worker reads nothing of the second, which
  // reads the fifth.
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<size<12, 16>>>{}).forward.bytes == 5 * 3 * 8 * 8);
  // Steps of 2/3 are not exact: 13 rows are 7 and 6, of [0, 5) and [4, 9), and there may be one more each way: rows 3,
  // 4 and 5 move.
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<factor<3, 2>, divisor<2>>>{}).forward.bytes ==
                 5 * 3 * 3 * 8 * 8);
  STATIC_REQUIRE(
      std::is_same_v<after<nn::upsample<factor<2, 3>>>, tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>,
                                                               shape<batch, dim<3>, dim<18>, dim<24>>, double>>);
}

namespace {

// The extent of a transposed convolution, dimension by dimension.
template <class... Options>
constexpr index_t grown(int d) {
  return value_of<after<nn::conv_transpose<4, Options...>>>.layout.dims[d].extent;
}
// How many elements workers hold under one layout that they lack under another.
index_t lacking(const layout& held, const layout& known) {
  index_t n = 0;
  for (int r = 0; r < 64; ++r) {
    const auto has = oracle::in_memory(known, r);
    const std::set<oracle::element> all(has.begin(), has.end());
    for (const oracle::element& e : oracle::in_memory(held, r)) n += all.count(e) == 0 ? 1 : 0;
  }
  return n;
}
template <class... Layers>
constexpr layer_plan plan_of_one() {
  return sequential_type<image, Layers...>::program.nodes[0].record->plan();
}

}  // namespace

TEST_CASE("a transposed convolution gives (n - 1) s - 2 p + d (k - 1) + output padding + 1, cut as what it takes") {
  using two = nn::conv_transpose<4, kernel<3, 2>, stride<2>, padding<1, 0>, output_padding<1, 0>>;
  STATIC_REQUIRE(std::is_same_v<after<two>, tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>,
                                                   shape<batch, dim<4>, dim<18>, dim<16>>, double>>);
  STATIC_REQUIRE(grown<kernel<3, 3>>(2) == 11);
  STATIC_REQUIRE(grown<kernel<3, 3>, stride<3, 1>>(2) == 8 * 3 + 2 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, stride<3, 1>>(3) == 7 + 2 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, dilation<4>, output_padding<3>>(3) == 7 + 8 + 3 + 1);
  STATIC_REQUIRE(grown<kernel<1, 1>, stride<5>, output_padding<4>>(2) == 8 * 5 + 4 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, padding_at<1, 0, 2, 1>>(3) == 7 - 2 - 1 + 2 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, stride<2>, output_size<20, 17>>(2) == 20);
  // In the weight [in, out / groups, kernel…] inputs come first; the bound of its initial values is LibTorch's.
  constexpr layer_plan grouped = nn::conv_transpose<6, kernel<3, 2>, groups<3>>::plan(value_of<image>);
  CHECK((grouped.weight(0).dims[0].extent == 3 && grouped.weight(0).dims[1].extent == 2 &&
         grouped.weight(0).dims[3].extent == 2));
  CHECK(grouped.parameter(0).initial == init::usual(2 * 3 * 2));
  const auto why = [](auto layer) { return layer.plan(value_of<image>).why; };
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, stride<2>, output_padding<2>>{}).is(code::output_padding_too_large));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, stride<2>, output_padding<-1>>{}).is(code::output_padding_too_large));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, stride<2>, output_size<18>>{}).is(code::output_padding_too_large));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, output_size<0>>{}).is(code::padding_leaves_nothing));
  CHECK(why(nn::conv_transpose<4, kernel<1, 1>, padding<5>>{}).is(code::padding_leaves_nothing));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, padding<-1>>{}).is(code::window_not_positive));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, groups<2>>{}).is(code::groups_do_not_divide));
  CHECK(why(nn::conv<4, kernel<3, 3>, stride<1, 2>, padding_same>{}).is(code::same_padding_steps));
}

TEST_CASE("a transposed convolution moves the input's halo or the result's terms, whichever is less") {
  constexpr auto forward = [](auto net) {
    const traffic_value t = traffic<decltype(net)>(bind<batch>(5));
    return t.forward.bytes == t.forward.lower_bound_bytes && t.backward.lower_bound_bytes == t.backward.bytes
               ? t.forward.bytes
               : -1;
  };
  // 9 rows are 5 and 4, 18 are 9 and 9: the second worker reads the fifth row of 3 features, or adds the tenth, of as
  // many as it gives.
  using wide = nn::conv_transpose<9, kernel<2, 1>, stride<2, 1>>;
  using narrow = nn::conv_transpose<1, kernel<2, 1>, stride<2, 1>>;
  STATIC_REQUIRE(forward(sequential_type<image, wide>{}) == 5 * 3 * 8 * 8);
  STATIC_REQUIRE(forward(sequential_type<image, narrow>{}) == 5 * 1 * 8 * 8);
  CHECK(plan_of_one<wide>().used().dims[2].kind == cover::haloed);
  CHECK(plan_of_one<narrow>().raw().dims[2].kind == cover::pending);
  // A kernel as long as its stride over parts that come out even moves nothing.
  STATIC_REQUIRE(forward(sequential_type<image, nn::conv_transpose<1, kernel<1, 2>, stride<1, 2>>>{}) == 0);
  STATIC_REQUIRE(forward(sequential_type<image, nn::conv_transpose<9, kernel<1, 2>, stride<1, 2>>>{}) == 0);
  // Backward is the adjoint: as much goes back, and the parameters' gradients are summed.
  constexpr traffic_value t = traffic<sequential_type<image, narrow>>(bind<batch>(5));
  STATIC_REQUIRE(t.backward.bytes == t.forward.bytes + 2 * 3 * (3 * 1 * 2 + 1) * 8);
  // No other way to share moves less, rows and columns apart.
  constexpr auto best = [](auto layer) {
    const layout x = detail::of_one_sample(value_of<image>.layout, 1);
    const contraction what = layer.description();
    const detail::contraction_planner form(x, what);
    index_t least = INT64_MAX;
    for (unsigned spread = 0; spread < 4; ++spread)
      least = std::min(least, detail::moved(form.plan({{}, {}, spread}), element::float32));
    return least == detail::moved(form.plan(detail::cheapest(form, what, element::float32, {})), element::float32);
  };
  STATIC_REQUIRE(best(nn::conv_transpose<2, kernel<5, 5>, padding<2>>{}));
  STATIC_REQUIRE(best(nn::conv_transpose<3, kernel<4, 3>, stride<2, 3>>{}));
  STATIC_REQUIRE(best(nn::conv_transpose<8, kernel<3, 2>, stride<2, 4>, dilation<2>>{}));
}

TEST_CASE("what a transposed convolution moves is what workers lack, element by element, and as much comes back") {
  dice d{7};
  int moving[2]{};
  for (int round = 0; round < 400; ++round) {
    static_vector<index_t, max_dimensions> e;
    for (const int most : {2, 3, 9}) e.push(d.roll(1, most));
    const layout x = roll_layout(d, roll_mesh(d, 3), e, {});
    contraction c;
    c.feature = 1;
    c.out = d.roll(1, 3);
    c.transposed = true;
    c.kernels.push({d.roll(1, 5), d.roll(1, 4), d.roll(0, 2), d.roll(0, 2), d.roll(1, 3)});
    c.output_padding.push(d.roll(0, static_cast<int>(std::max(c.kernels[0].stride, c.kernels[0].dilation)) - 1));
    const detail::contraction_planner form(x, c);
    for (unsigned spread = 0; spread <= form.spreading(); ++spread) {
      const layer_plan p = form.plan({{}, {}, spread});
      if (p.why.is(code::padding_leaves_nothing)) continue;
      INFO("round " << round << (spread > 0 ? ", terms" : ", halo"));
      REQUIRE(p.why.ok());
      const sliding& s = c.kernels[0];
      REQUIRE(p.output().dims[2].extent ==
              (e[2] - 1) * s.stride - s.before - s.after + s.dilation * (s.kernel - 1) + c.output_padding[0] + 1);
      const index_t comes = lacking(p.used(), p.given()) + lacking(p.raw(), p.output());
      REQUIRE(cost_between(p.given(), p.used()).total + cost_between(p.raw(), p.output()).total == comes);
      REQUIRE(cost_between(cotangent(p.output()), cotangent(p.raw())).total +
                  cost_between(cotangent(p.used()), cotangent(p.given())).total ==
              comes);
      moving[spread] += comes > 0;
    }
  }
  CHECK(moving[0] > 50);
  CHECK(moving[1] > 50);
}

TEST_CASE("a role spreads what each element gives: a cut leaves terms of the overlaps") {
  static constexpr signature grow = operation("ch->ch").spread('h', sliding{3, 2, 1, 1, 1}.needs(), 9).linear();
  using rows = tensor<partition<mesh<row>, whole, blocks<row>>, shape_of<3, 5>, double>;
  using given = operation_type<grow, rows>;
  STATIC_REQUIRE(
      std::is_same_v<given,
                     tensor<partition<mesh<row>, whole, pending<blocks<row>, 5, 2, -1, 1>>, shape_of<3, 9>, double>>);
  STATIC_REQUIRE(
      std::is_same_v<operation_type<grow, tensor<partition<mesh<row>, whole, whole>, shape_of<3, 5>, double>>,
                     tensor<partition<mesh<row>, whole, whole>, shape_of<3, 9>, double>>);
  // terms of what is not linear
  STATIC_REQUIRE(operation("h->h").spread('h', sliding{3, 2, 1, 1, 1}.needs(), 9).check().is(code::role_does_not_fit));
  // What an output reads may be nothing: of a kernel of one tap that steps by three.
  static constexpr signature sparse =
      operation("h->h").resampled('h', sliding{1, 3, 0, 0, 1}.transposed(), 13).linear();
  STATIC_REQUIRE(sparse.check().ok());
  STATIC_REQUIRE(operation("h->h").resampled('h', window{1, 3, 0, 3}, 13).check().is(code::role_does_not_fit));
}

TEST_CASE("padding that keeps the extents is the kernel's, the odd one at the end") {
  constexpr contraction c = nn::conv<4, padding_same, kernel<4, 3>, dilation<1, 3>>::description();
  STATIC_REQUIRE(
      (c.kernels[0].before == 1 && c.kernels[0].after == 2 && c.kernels[1].before == 3 && c.kernels[1].after == 3));
  STATIC_REQUIRE(std::is_same_v<after<nn::conv<4, padding_same, kernel<4, 3>>>,
                                after<nn::conv<4, kernel<4, 3>, padding_at<1, 2, 1, 1>>>>);
  STATIC_REQUIRE(std::is_same_v<after<nn::conv<4, padding_valid, kernel<4, 3>>>, after<nn::conv<4, kernel<4, 3>>>>);
}

TEST_CASE("an upsampling reads what stands around its outputs, and more only where floating point is not exact") {
  constexpr auto by = [](double factor, interpolation mode) {
    upsampling u;
    u.factors.push(factor);
    u.mode = mode;
    return u;
  };
  STATIC_REQUIRE(by(2, interpolation::nearest).over(0, 9).reads() == window{1, 0, 0, 2});
  STATIC_REQUIRE(by(1.5, interpolation::nearest).over(0, 17).exact() == window{2, 0, 0, 3});
  STATIC_REQUIRE(by(1.1, interpolation::linear).over(0, 17).exact() == window{20, -1, 21, 22});
  STATIC_REQUIRE(by(2, interpolation::cubic).over(0, 9).reads() == window{2, -1 - 4, -1 + 8, 4});
  STATIC_REQUIRE(by(3, interpolation::cubic).over(0, 9).slack() == 1);
  STATIC_REQUIRE(by(3, interpolation::cubic).over(0, 1 << 24).slack() == 9);
  for (const auto mode :
       {interpolation::nearest, interpolation::nearest_exact, interpolation::linear, interpolation::cubic})
    for (const bool corners : {false, true})
      for (index_t n = 1; n < (corners && mode == interpolation::nearest_exact ? 1 : 40); ++n)  // which has none
        for (index_t m = 1; m < 60; ++m) {
          const resampling r{n, m, 0, mode, corners};
          const double step = corners ? (m > 1 ? static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0)
                                      : static_cast<double>(n) / static_cast<double>(m);
          const double half = corners || mode == interpolation::nearest ? 0 : 0.5;
          bool there = true;
          for (index_t y = 0; y < m; ++y) {
            const double place =
                (static_cast<double>(y) + half) * step - (mode == interpolation::nearest_exact ? 0 : half);
            const reach wide = reach_of(mode);
            const auto below = static_cast<index_t>(std::floor(place + 1e-9));  // a place on an element is on it
            there = there && r.exact().first(y) == below - wide.before && r.exact().last(y) == below + wide.after &&
                    r.reads().first(y) == r.exact().first(y) - r.slack();
          }
          INFO(static_cast<int>(mode) << " corners " << corners << ": " << n << " to " << m);
          REQUIRE(there);
        }
}

TEST_CASE("an upsampling refuses what it cannot make") {
  constexpr auto why = [](const nn::upsample_layer& l) { return l.plan(value_of<image>).why; };
  STATIC_REQUIRE(why({.factors = {1.5, 2}, .mode = interpolation::cubic, .align_corners = true}).ok());
  STATIC_REQUIRE(why({.sizes = {4, 5}}).ok());
  STATIC_REQUIRE(why({.factors = {1.5, 2}, .sizes = {4, 5}}).is(code::option_given_twice));
  STATIC_REQUIRE(why({}).is(code::layer_takes_other_dimensions));
  STATIC_REQUIRE(why({.sizes = {4}}).is(code::layer_takes_other_dimensions));
  STATIC_REQUIRE(why({.sizes = {4, 4, 4, 4}}).is(code::wrong_kernel));
  STATIC_REQUIRE(why({.factors = {2, 0}}).is(code::factor_not_positive));
  STATIC_REQUIRE(why({.factors = {2, -3}}).is(code::factor_not_positive));
  STATIC_REQUIRE(why({.factors = {2, 1e300}}).is(code::factor_not_positive));
  REQUIRE(why({.factors = {2, std::nan("")}}).is(code::factor_not_positive));
  STATIC_REQUIRE(why({.factors = {0.1, 2}}).is(code::nothing_to_resample));
  STATIC_REQUIRE(why({.factors = {2e9, 2}}).is(code::nothing_to_resample));
  STATIC_REQUIRE(why({.sizes = {4, 0}}).is(code::nothing_to_resample));
  STATIC_REQUIRE(why({.factors = {2, 2}, .align_corners = true}).is(code::nearest_has_no_corners));
  STATIC_REQUIRE(why({.factors = {2, 2}, .mode = interpolation::nearest_exact, .align_corners = true})
                     .is(code::nearest_has_no_corners));
  STATIC_REQUIRE(
      why({.factors = {2, 2}, .mode = interpolation::linear, .antialias = true}).is(code::antialias_not_there));
}

TEST_CASE("a linear layer takes as many dimensions as a tensor has") {
  using deep =
      tensor<partition<grid, whole, whole, whole, whole, whole, whole, whole, whole>, shape_of<1, 2, 1, 2, 1, 2, 1, 4>>;
  STATIC_REQUIRE(sequential_type<deep, nn::linear<3>>::program.count == 1);
}

}  // namespace tessera::testing
