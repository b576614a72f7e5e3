// Neighbourhood attention names the operand and the dimension that its windows do not fit. Compilers name the types of
// its three operands in each line, as they do where a call goes through three modules.
#include <tessera/network.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct up : ts::axis<2> {};
struct on : ts::axis<2> {};
using grid = ts::mesh<up, on>;
struct batch : ts::dyn {};
struct width : ts::dyn {};

template <class E, class Size, class... Covers>
using q_of = ts::tensor<ts::partition<grid, Covers...>, ts::shape<batch, Size, ts::dim<4>, ts::dim<1>, ts::dim<2>>, E>;
template <class E, class Size, class... Covers>
using k_of = ts::tensor<ts::partition<grid, Covers...>, ts::shape<batch, Size, ts::dim<4>, ts::dim<2>>, E>;
using ts::blocks;
using ts::whole;
using line = ts::dim<8>;
using q = q_of<double, line, whole, blocks<up>, blocks<on>, whole, whole>;
using k = k_of<double, line, whole, blocks<up>, blocks<on>, whole>;

template <class... Options>
struct seen {
  constexpr auto operator()(auto a, auto b, auto c) const { return nn::neighbourhood_attention<Options...>{}(a, b, c); }
};
template <class Q, class K, class V, class... Options>
using net = ts::network_type<seen<Options...>, Q, K, V>;

#ifdef CONTROL
static_assert(net<q, k, k, ts::kernel<7>>::program.count == 1);
// wider than a part
using narrow = k_of<double, ts::dim<3>, whole, blocks<up>, whole, whole>;
static_assert(net<q_of<double, ts::dim<3>, whole, blocks<up>, whole, whole, whole>, narrow, narrow,
                  ts::kernel<3>>::program.count == 1);
#endif

#if defined(EVEN_WINDOW)
// expect in 3 modules: [tessera.attention.even] && window_even<tessera::with::dimension<0>, tessera::with::window<4>>
static_assert(net<q, k, k, ts::kernel<4>>::program.count >= 0);
#elif defined(NO_WINDOW)
// expect in 3 modules: [tessera.layer.kernel]
static_assert(net<q, k, k>::program.count >= 0);
#elif defined(WIDE_WINDOW)
// expect in 3 modules: [tessera.window.kernel] && kernel_too_wide<tessera::with::dimension<1>,
// tessera::with::extent<8>, tessera::with::padding<0>, tessera::with::kernel<9>>
static_assert(net<q, k, k, ts::kernel<9>>::program.count >= 0);
#elif defined(STRIDED_WINDOW)
// expect in 3 modules: [tessera.layer.not_taken] && option_not_taken<tessera::with::option<1>>
static_assert(net<q, k, k, ts::kernel<3>, ts::stride<2>>::program.count >= 0);
#elif defined(MORE_DIMENSIONS_THAN_THERE_ARE)
// expect in 3 modules: [tessera.layer.dimensions] && layer_takes_other_dimensions<
static_assert(net<q, k, k, ts::kernel<3, 3, 3>>::program.count >= 0);
#elif defined(LINE_OF_ANY_LENGTH)
// expect in 3 modules: [tessera.window.dynamic] && windows_need_extent<tessera::with::dimension<1>>
using any_q = q_of<double, width, whole, blocks<up>, blocks<on>, whole, whole>;
using any_k = k_of<double, width, whole, blocks<up>, blocks<on>, whole>;
static_assert(net<any_q, any_k, any_k, ts::kernel<3>>::program.count >= 0);
#elif defined(FEATURES_THAT_ARE_CUT)
// expect in 3 modules: [tessera.rule.whole] && dimension_needed_whole<tessera::with::operand<0>,
// tessera::with::dimension<4>>
using cut_q = q_of<double, line, whole, blocks<up>, whole, whole, blocks<on>>;
using cut_k = k_of<double, line, whole, blocks<up>, whole, blocks<on>>;
static_assert(net<cut_q, cut_k, cut_k, ts::kernel<3>>::program.count >= 0);
#elif defined(KEYS_CUT_OTHERWISE)
// expect in 3 modules: [tessera.rule.cut] && cut_unalike<up, tessera::with::operand<1>, tessera::with::dimension<1>>
using whole_k = k_of<double, line, whole, whole, blocks<on>, whole>;
static_assert(net<q, whole_k, whole_k, ts::kernel<3>>::program.count >= 0);
#elif defined(LINE_IN_ZIGZAG)
// expect in 3 modules: [tessera.deal.interval] && interval_wanted<tessera::with::dimension<1>>
using dealt_q = q_of<double, line, whole, ts::zigzag<up>, blocks<on>, whole, whole>;
using dealt_k = k_of<double, line, whole, ts::zigzag<up>, blocks<on>, whole>;
static_assert(net<dealt_q, dealt_k, dealt_k, ts::kernel<3>>::program.count >= 0);
#elif defined(KEYS_WITH_A_HALO)
// expect in 3 modules: [tessera.rule.window] && window_without_halo<tessera::with::operand<1>,
// tessera::with::dimension<1>>
using haloed_k = k_of<double, line, whole, ts::haloed<blocks<up>, 8, 1, -1, 1>, blocks<on>, whole>;
static_assert(net<q, haloed_k, haloed_k, ts::kernel<3>>::program.count >= 0);
#elif defined(TERMS_OF_QUERIES)
// expect in 3 modules: [tessera.rule.nonlinear] && nonlinear_on_partial<on, tessera::with::operand<0>>
using term_q = q_of<double, line, whole, blocks<up>, whole, whole, whole, ts::partial<on>>;
using term_k = k_of<double, line, whole, blocks<up>, whole, whole, ts::partial<on>>;
static_assert(net<term_q, term_k, term_k, ts::kernel<3>>::program.count >= 0);
#elif defined(KEYS_OF_ANOTHER_ELEMENT)
// expect in 3 modules: [tessera.tensor.element] && wrong_element<
using float_k = k_of<float, line, whole, blocks<up>, blocks<on>, whole>;
static_assert(net<q, float_k, float_k, ts::kernel<3>>::program.count >= 0);
#elif defined(QUERIES_OF_INTEGERS)
// expect in 3 modules: [tessera.function.element] && no_function_of_element<
using int_q = q_of<std::int64_t, line, whole, blocks<up>, blocks<on>, whole, whole>;
using int_k = k_of<std::int64_t, line, whole, blocks<up>, blocks<on>, whole>;
static_assert(net<int_q, int_k, int_k, ts::kernel<3>>::program.count >= 0);
#elif defined(KEYS_OF_QUERIES)
// expect in 3 modules: [tessera.signature.dimensions] && operand_of_other_dimensions<tessera::with::operand<1>,
// tessera::with::takes<4>, tessera::with::is_given<5>>
static_assert(net<q, q, q, ts::kernel<3>>::program.count >= 0);
#endif
