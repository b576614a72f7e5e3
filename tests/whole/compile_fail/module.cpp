// A mistake in a module is one error at its line, wherever the module stands.
#include <tessera/functions.hpp>
#include <tessera/network.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
struct batch : ts::dyn {};
using grid = ts::mesh<row, col>;
using image = ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>,
                         ts::shape<batch, ts::dim<3>, ts::dim<8>, ts::dim<8>>, double>;
using samples = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole, ts::whole, ts::whole>,
                           ts::shape<batch, ts::dim<3>, ts::dim<8>, ts::dim<8>>, double>;
using three = nn::conv<3, ts::kernel<3, 3>, ts::padding<1, 1>>;

using rows = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape<batch, ts::dim<3>>, double>;
using everywhere = ts::partition<grid, ts::whole, ts::whole>;
constexpr auto kept = ts::operation("nf->nf").linear();
double twice(double a) { return 2 * a; }

// Fifty nodes, then another.
template <int N>
struct many {
  constexpr auto operator()(auto x) const {
    if constexpr (N == 0) return x;
    else return many<N - 1>{}(x | three{});
  }
};
struct deep {
  constexpr auto operator()(auto x) const { return x | many<50>{} | nn::relu{}; }
};
struct of_functions {
  constexpr auto operator()(auto x) const {
    return ts::norm<1>(x, 3) + ts::norm<1>(x, std::numeric_limits<double>::infinity());
  }
};

#if defined(WIDE_KERNEL)
// expect: [tessera.window.kernel] && kernel_too_wide<tessera::with::dimension<2>,
// tessera::with::extent<8>, tessera::with::padding<0>, tessera::with::kernel<9>>
struct model {
  constexpr auto operator()(auto x) const {
    auto y = x | three{};
    auto z = y | nn::conv<3, ts::kernel<9, 3>>{};
    return z | nn::relu{} | three{};
  }
};
using net = ts::network_type<model, image>;
static_assert(net::program.count >= 0);
#elif defined(IN_A_MODULE_OF_A_MODULE)
// expect in 3 modules: [tessera.window.kernel] && kernel_too_wide<tessera::with::dimension<2>,
// tessera::with::extent<8>, tessera::with::padding<0>, tessera::with::kernel<9>>
template <int K>
struct part {
  constexpr auto operator()(auto x) const { return x | nn::relu{} | nn::max_pool<ts::kernel<K, 1>>{}; }
};
struct model {
  constexpr auto operator()(auto x) const {
    return x | three{} | part<1>{} | nn::named<struct inner, part<9>>{} | nn::relu{};
  }
};
static_assert(ts::traffic<ts::network_type<model, image>>(ts::bind<batch>(2)).forward.bytes >= 0);
#elif defined(BEHIND_FIFTY)
// expect: [tessera.layer.dimensions] && layer_takes_other_dimensions<tessera::with::takes<4>,
// tessera::with::is_given<2>>
struct model {
  constexpr auto operator()(auto x) const {
    auto y = x | many<50>{} | nn::flatten{};
    return y | three{} | nn::relu{};
  }
};
static_assert(ts::network_type<model, samples>::program.count >= 0);
#elif defined(IN_A_CHAIN)
// expect: [tessera.layer.dimensions] && at_layer<2, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<4>, tessera::with::is_given<2>>
struct model {
  constexpr auto operator()(auto x) const {
    return x | nn::chain<nn::relu, nn::flatten, three, nn::relu>{} | nn::relu{};
  }
};
static_assert(ts::network_type<model, samples>::program.count >= 0);
#elif defined(TWO_MISTAKES)
// expect: [tessera.layer.dimensions] && layer_takes_other_dimensions<tessera::with::takes<4>,
// tessera::with::is_given<2>>
struct model {
  constexpr auto operator()(auto x) const {
    auto y = x | nn::flatten{} | three{};
    auto z = y | nn::max_pool<ts::kernel<99, 99>>{};
    return ts::flows{y, z};
  }
};
static_assert(ts::network_type<model, samples>::program.count >= 0);
#elif defined(AN_OPTION)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::flow, 1, tessera::kind::layer,
// tessera::kind::option>
struct model {
  constexpr auto operator()(auto x) const { return x | ts::kernel<3, 3>{}; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(ASSIGNED)
// expect: [tessera.network.assigned] && flow_of_another_type<>
struct model {
  constexpr auto operator()(auto x) const {
    x = x | nn::relu{};
    x = x | nn::conv<5, ts::kernel<3, 3>>{};
    return x | nn::relu{};
  }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(A_PART_THAT_HOLDS_VALUES)
// expect: [tessera.network.value] && part_holds_values<>
struct scaled {
  static constexpr const char* name = "scaled";
  int by = 2;
  static constexpr ts::layer_plan plan(const ts::tensor_value& x) { return nn::relu::plan(x); }
};
struct model {
  constexpr auto operator()(auto x) const { return x | scaled{3}; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(TWO_INPUTS_FOR_ONE)
// expect: [tessera.signature.operands] && wrong_number_of_operands<
struct model {
  constexpr auto operator()(auto x) const { return nn::relu{}(x, x); }
};
static_assert(
    ts::network_type<model, ts::tensor<ts::partition<grid, ts::blocks<row>>, ts::shape_of<8>>>::program.count >= 0);
#elif defined(A_VERB_OF_ANOTHER_NAME)
// expect in 2 modules: [tessera.verb.pair] && not_this_verb<tessera::with::wanted_verb<tessera::verb::broadcast>,
// tessera::with::found_verb<tessera::verb::all_gather>>
struct model {
  constexpr auto operator()(auto x) const { return ts::broadcast<everywhere>(x) | nn::relu{}; }
};
static_assert(ts::network_type<model, rows>::program.count >= 0);
#elif defined(TO_A_TENSOR)
// expect in 2 modules: [tessera.argument.kind] && wrong_argument<tessera::kind::call, 0, tessera::kind::partition,
// tessera::kind::tensor>
struct model {
  constexpr auto operator()(auto x) const { return ts::to<rows>(x) | nn::relu{}; }
};
static_assert(ts::network_type<model, rows>::program.count >= 0);
#elif defined(AN_OPERATION_THAT_HOLDS_VALUES)
// expect: [tessera.network.value] && part_holds_values<>
struct model {
  constexpr auto operator()(auto x) const {
    const int by = 2;
    return ts::apply<kept>([by](const auto& a) { return a * by; }, x);
  }
};
static_assert(ts::network_type<model, rows>::program.count >= 0);
#elif defined(A_POINTER_THAT_IS_NO_CONSTANT)
// expect: [tessera.network.value] && part_holds_values<>
struct model {
  constexpr auto operator()(auto x) const { return ts::apply<kept>(&twice, x); }
};
static_assert(ts::network_type<model, rows>::program.count >= 0);
#elif defined(END_TO_END_OF_UNKNOWN_LENGTH)
// expect in 2 modules: [tessera.concat.extent] && ranges_not_known<tessera::with::dimension<0>>
struct model {
  constexpr auto operator()(auto x) const { return ts::concat<0>(x, x); }
};
static_assert(ts::network_type<model, rows>::program.count >= 0);
#elif defined(END_TO_END_CUT_UNALIKE)
// expect in 2 modules: [tessera.rule.cut] && cut_unalike<row, tessera::with::operand<1>, tessera::with::dimension<0>>
struct model {
  constexpr auto operator()(auto x, auto y) const { return ts::concat<0>(x, y); }
};
using by_rows = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>, ts::shape_of<4, 6>, double>;
using by_columns = ts::tensor<ts::partition<grid, ts::whole, ts::blocks<row>>, ts::shape_of<4, 6>, double>;
static_assert(ts::network_type<model, by_rows, by_columns>::program.count >= 0);
#elif defined(A_NORM_OF_NO_ORDER)
// expect: [tessera.function.norm] && norm_not_positive<>
struct model {
  constexpr auto operator()(auto x) const { return ts::norm<1>(x, -1); }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(A_SHRINK_BELOW_NOTHING)
// expect: [tessera.function.options] && activation_undefined<>
struct model {
  constexpr auto operator()(auto x) const { return ts::softshrink(x, -1); }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(A_NUMBER_OUT_OF_RANGE)
// expect: [tessera.tensor.number] && number_does_not_fit<tessera::with::expected_element<tessera::element::int8>>
struct model {
  constexpr auto operator()(auto x) const { return x * 2 + 300; }
};
static_assert(
    ts::network_type<model, ts::tensor<ts::partition<grid, ts::blocks<row>>, ts::shape_of<8>, std::int8_t>>::program
        .count >= 0);
#elif defined(A_NORM_BEYOND)
// expect in 2 modules: [tessera.layer.dimension] && dimension_not_there<tessera::with::dimension<4>,
// tessera::with::dimensions<4>>
struct model {
  constexpr auto operator()(auto x) const { return ts::norm<4>(x) + 1; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(AN_EXTENT_BEYOND)
// expect: [tessera.layer.dimension] && dimension_not_there<tessera::with::dimension<4>, tessera::with::dimensions<4>>
struct model {
  constexpr auto operator()(auto x) const { return x | nn::conv<x.template extent<4>(), ts::kernel<1, 1>>{}; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(GIVES_A_NUMBER)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::module, 0, tessera::kind::flow,
// tessera::kind::element>
struct model {
  constexpr auto operator()(auto) const { return 3; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(NOT_CONSTANT)
// expect: [tessera.network.module] && module_not_constant<>
struct model {
  auto operator()(auto x) const { return x | nn::relu{}; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(ONE_OF_SEVERAL_RESULTS)
// expect: [tessera.layer.heads] && heads_do_not_divide<tessera::with::heads<4>, tessera::with::key_heads<3>>
struct model {
  constexpr auto operator()(auto x) const {
    const auto [gate, up] = x | nn::relu{} | nn::named<struct inner, nn::gated<4>>{};
    const auto [q, k, v] = gate | nn::heads<4, 3, 8>{};
    return nn::attention<>{}(q, k, v);
  }
};
static_assert(ts::network_type<model, ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole>,
                                                 ts::shape<batch, ts::dim<8>>>>::program.count >= 0);
#elif defined(STORED_OVER_ANOTHER_AXIS)
// expect in 2 modules: [tessera.partition.axis] && axis_not_in_mesh<depth, tessera::with::mesh_axes<2>>
struct depth : ts::axis<2> {};
struct model {
  constexpr auto operator()(auto x) const { return x | nn::relu{} | nn::sharded_over<three, row, depth>{} | three{}; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(STORED_OVER_NO_AXIS)
// expect in 2 modules: [tessera.argument.kind] && wrong_argument<tessera::kind::module, 0, tessera::kind::axis,
// tessera::kind::element>
struct model {
  constexpr auto operator()(auto x) const { return x | nn::sharded_over<nn::chain<three, three>, int>{}; }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(GATHERED_IN_TWO_WAYS)
// expect in 2 modules: [tessera.layer.twice] && option_given_twice<tessera::with::option<1>,
// tessera::with::option_again<2>>
using held = ts::gathered<ts::gathering::held>;
struct model {
  constexpr auto operator()(auto x) const {
    return x | nn::sharded_over<nn::chain<three, three>, row, ts::gathered<ts::gathering::once>, held>{};
  }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(STORED_AND_WRONG)
// expect in 2 modules: [tessera.window.kernel] && kernel_too_wide<tessera::with::dimension<2>,
// tessera::with::extent<8>, tessera::with::padding<0>, tessera::with::kernel<9>>
struct model {
  constexpr auto operator()(auto x) const {
    return x | nn::sharded_over<nn::chain<three, nn::conv<3, ts::kernel<9, 3>>>, row>{};
  }
};
static_assert(ts::network_type<model, image>::program.count >= 0);
#elif defined(NO_MODULE)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::network, 0, tessera::kind::module,
// tessera::kind::partition>
static_assert(ts::network_type<ts::partition<grid, ts::whole>, image>::program.count >= 0);
#elif defined(NO_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::network, 1, tessera::kind::tensor,
// tessera::kind::mesh>
static_assert(ts::network_type<deep, grid>::program.count >= 0);
#else
static_assert(ts::network_type<deep, image>::program.count == 51);
static_assert(ts::network_type<nn::sharded_over<deep, row, col>, image>::program.count == 51);
static_assert(ts::network_type<of_functions, image>::program.count == 3);
struct of_verbs {
  constexpr auto operator()(auto x) const {
    return ts::apply<kept, &twice>(
        ts::apply<kept>([](const auto& a) { return a; }, ts::to<everywhere>(ts::all_gather<everywhere>(x))));
  }
};
static_assert(ts::network_type<of_verbs, rows>::program.count == 4);
#endif
