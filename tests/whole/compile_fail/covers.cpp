// Covers, placements and windows that do not fit are refused with their numbers.
#include <tessera/network.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<3> {};
struct both : ts::product<row, col> {};
using grid = ts::mesh<row, col>;

template <class... Entries>
using line = ts::tensor<ts::partition<grid, Entries...>, ts::shape_of<10>>;
template <class M>
using on_mesh = ts::tensor<ts::partition<M, ts::blocks<row>>, ts::shape_of<10>>;
using image =
    ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<4, 6, 9, 9>>;
using copies = line<ts::whole>;

// Lengths: one for each part, all elements.
static_assert(ts::primitive<line<ts::lengths<col, ts::dim<4>, ts::dim<0>, ts::dim<6>>>, copies>::cost().total ==
              60 - 20);
static_assert(ts::primitive<line<ts::blocks<both>>, copies>::cost().total == 50);
#if defined(HALO_OF_A_ZIGZAG)
// expect: [tessera.deal.interval] && interval_wanted<tessera::with::dimension<0>>
using bad = ts::primitive<line<ts::blocks<row>>, line<ts::haloed<ts::zigzag<row>, 10, 1, -1, 1>>>;
static_assert(bad::cost().total >= 0);
#elif defined(ZIGZAG_OF_BLOCKS)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::cover, 0, tessera::kind::axis, tessera::kind::cover>
using bad = ts::primitive<line<ts::zigzag<ts::blocks<row>>>, copies>;
static_assert(bad::cost().total >= 0);
#elif defined(WINDOW_OVER_A_ZIGZAG)
// expect: [tessera.deal.interval] && at_layer<0, && tessera::verdicts::interval_wanted<tessera::with::dimension<2>>
using bad =
    ts::sequential_type<ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::zigzag<row>>, ts::shape_of<1, 2, 12>>,
                        nn::max_pool<ts::kernel<3>>>;
static_assert(bad::program.count >= 0);
#elif defined(TOO_FEW_LENGTHS)
// expect: [tessera.lengths.count] && wrong_number_of_lengths<tessera::with::dimension<0>, tessera::with::parts<3>,
// tessera::with::lengths<2>>
using bad = ts::primitive<line<ts::lengths<col, ts::dim<4>, ts::dim<6>>>, copies>;
static_assert(bad::cost().total >= 0);
#elif defined(LENGTHS_OF_ANOTHER_EXTENT)
// expect: [tessera.lengths.sum] && lengths_do_not_add_up<tessera::with::dimension<0>, tessera::with::extent<10>,
// tessera::with::sum<9>>
using bad = ts::primitive<line<ts::lengths<col, ts::dim<4>, ts::dim<2>, ts::dim<3>>>, copies>;
static_assert(bad::cost().total >= 0);
#elif defined(LENGTHS_IN_A_NETWORK)
// expect: [tessera.lengths.sum] && lengths_do_not_add_up<tessera::with::dimension<0>, tessera::with::extent<10>,
// tessera::with::sum<12>>
using bad = ts::sequential_type<line<ts::lengths<row, ts::dim<4>, ts::dim<8>>>, nn::relu>;
static_assert(bad::program.count >= 0);
#endif

// Lists of ranks: one for each worker, all different.
static_assert(ts::primitive<on_mesh<ts::on_ranks<grid, 5, 3, 1, 0, 2, 4>>, on_mesh<grid>>::cost().total > 0);
#if defined(TOO_FEW_RANKS)
// expect: [tessera.mesh.ranks] && wrong_number_of_ranks<tessera::with::workers<6>, tessera::with::ranks<5>>
using bad = ts::primitive<on_mesh<ts::on_ranks<grid, 5, 3, 1, 0, 2>>, copies>;
static_assert(bad::cost().total >= 0);
#elif defined(RANK_TWICE)
// expect: [tessera.mesh.placement] && placement_overlaps<tessera::with::workers<6>>
using bad = ts::primitive<on_mesh<ts::on_ranks<grid, 5, 3, 1, 0, 2, 5>>, copies>;
static_assert(bad::cost().total >= 0);
#endif

// Windows: what their boundary can give.
static_assert(ts::sequential_type<image, nn::conv<6, ts::kernel<5, 5>, ts::padding<2, 2>,
                                                  ts::padding_mode<ts::boundary::reflect>>>::program.count == 1);
#if defined(WIDE_REFLECTION)
// expect: [tessera.window.reflect] && at_layer<0, &&
// tessera::verdicts::reflection_too_wide<tessera::with::dimension<2>, tessera::with::extent<9>,
// tessera::with::padding<9>>
using bad = ts::sequential_type<
    image, nn::conv<6, ts::kernel<5, 5>, ts::padding<9, 2>, ts::padding_mode<ts::boundary::reflect>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(WIDE_REFLECTION_OF_A_TYPE)
// expect: [tessera.window.reflect] && reflection_too_wide<tessera::with::dimension<0>, tessera::with::extent<10>,
// tessera::with::padding<11>>
using bad =
    ts::primitive<line<ts::blocks<row>>, line<ts::haloed<ts::blocks<row>, 10, 1, -11, 11, 1, ts::boundary::reflect>>>;
static_assert(bad::cost().total >= 0);
#elif defined(NO_EDGE)
// expect: [tessera.window.empty] && at_layer<0, && tessera::verdicts::nothing_to_pad_from<tessera::with::dimension<2>,
// tessera::with::before<1>, tessera::with::after<1>>
using none = ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>>, ts::shape_of<4, 6, 0>>;
using bad =
    ts::sequential_type<none, nn::conv<6, ts::kernel<1>, ts::padding<1>, ts::padding_mode<ts::boundary::periodic>>>;
static_assert(bad::program.count >= 0);
#endif

// One halo for several layers.
using three = ts::kernel<3, 3>;
static_assert(
    ts::sequential_type<image, nn::fused_halo<nn::conv<6, three>, nn::relu, nn::conv<6, three>>>::program.count == 4);
#if defined(FLATTEN_IN_ONE_HALO)
// expect: [tessera.layer.fused_halo] && within<1, && at_layer<0, &&
// tessera::verdicts::layer_has_no_window<tessera::with::layer<1>>
using bad = ts::sequential_type<image, nn::relu, nn::fused_halo<nn::conv<6, three>, nn::flatten>>;
static_assert(bad::program.count >= 0);
#elif defined(TWO_BOUNDARIES)
// expect: [tessera.window.compose] && at_layer<0, &&
// tessera::verdicts::windows_do_not_compose<tessera::with::dimension<2>, tessera::with::layer<0>>
using ring = nn::conv<6, three, ts::padding<1, 1>, ts::padding_mode<ts::boundary::periodic>>;
using bad = ts::sequential_type<image, nn::fused_halo<ring, nn::conv<6, three, ts::padding<1, 1>>>>;
static_assert(bad::program.count >= 0);
#elif defined(REFLECTION_OF_A_REFLECTION)
// expect: [tessera.window.compose] && within<1, && at_layer<0, &&
// tessera::verdicts::windows_do_not_compose<tessera::with::dimension<2>, tessera::with::layer<0>>
using mirror = nn::conv<6, three, ts::padding<1, 1>, ts::padding_mode<ts::boundary::reflect>>;
using bad = ts::sequential_type<image, nn::relu, nn::fused_halo<mirror, nn::relu, mirror>>;
static_assert(bad::program.count >= 0);
#elif defined(RING_THAT_DOES_NOT_CLOSE)
// expect: [tessera.window.compose] && at_layer<0, &&
// tessera::verdicts::windows_do_not_compose<tessera::with::dimension<2>, tessera::with::layer<0>>
using step = nn::conv<6, three, ts::stride<2>, ts::padding<1, 1>, ts::padding_mode<ts::boundary::periodic>>;
using bad = ts::sequential_type<image, nn::fused_halo<step, step>>;
static_assert(bad::program.count >= 0);
#endif

// Groups divide the features.
static_assert(ts::sequential_type<image, nn::conv<4, three, ts::groups<2>>>::program.count == 1);
#if defined(GROUPS_OF_OTHER_FEATURES)
// expect: [tessera.layer.groups] && at_layer<0, && tessera::verdicts::groups_do_not_divide<tessera::with::in<6>,
// tessera::with::out<4>, tessera::with::groups<4>>
using bad = ts::sequential_type<image, nn::conv<4, three, ts::groups<4>>>;
static_assert(bad::program.count >= 0);
#endif

// The terms of one tensor combine in one way.
static_assert(ts::primitive<line<ts::whole, ts::partial<row, ts::max>>, copies>::cost().total > 0);
#if defined(TWO_COMBINES)
// expect: [tessera.partial.combine] && mixed_combines<col, tessera::with::none>
using bad = ts::primitive<line<ts::whole, ts::partial<row, ts::max>, ts::partial<col>>, copies>;
static_assert(bad::cost().total >= 0);
#elif defined(TWO_COMBINES_OF_A_TENSOR)
// expect: [tessera.partial.combine] && mixed_combines<col, tessera::with::none>
using bad = ts::sequential_type<line<ts::whole, ts::partial<row, ts::min>, ts::partial<col, ts::max>>,
                                nn::repartition<ts::partition<grid, ts::whole>>>;
static_assert(bad::program.count >= 0);
#elif defined(MAXIMUM_OF_WINDOW_TERMS)
// expect: [tessera.partial.combine] && mixed_combines<col, tessera::with::dimension<0>>
using terms = line<ts::pending<ts::blocks<row>, 9, 1, -1, 1>, ts::partial<col, ts::max>>;
using bad = ts::primitive<terms, copies>;
static_assert(bad::cost().total >= 0);
#endif

// Slices leave something of the tensor, and padding counts in pairs.
static_assert(ts::sequential_type<image, nn::pad<ts::padding_at<1, -2, -3, 0>>, nn::slice<1, 2, 5>>::program.count ==
              2);
#if defined(ODD_PADDING)
// expect: [tessera.layer.options] && at_layer<0, &&
// tessera::verdicts::option_of_other_dimensions<tessera::with::kernel<4>, tessera::with::option<3>>
using bad = ts::sequential_type<image, nn::pad<ts::padding_at<1, 1, 2>>>;
static_assert(bad::program.count >= 0);
#elif defined(SLICE_OF_NOTHING)
// expect: [tessera.signature.range] && at_layer<0, && tessera::verdicts::range_outside<tessera::with::dimension<3>,
// tessera::with::extent<9>, tessera::with::begin<5>, tessera::with::end<4>>
using bad = ts::sequential_type<image, nn::pad<ts::padding_at<-5, -5>>>;
static_assert(bad::program.count >= 0);
#endif
