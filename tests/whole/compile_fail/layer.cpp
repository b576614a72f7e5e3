// A network names the layer that refuses what comes in, once, with its place counted from 0.
#include <tessera/network.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
struct batch : ts::dyn {};
struct width : ts::dyn {};
using grid = ts::mesh<row, col>;

using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
using features = ts::partition<grid, ts::whole, ts::blocks<row, col>>;

template <class P, class Shape = ts::shape<batch, ts::dim<3>, ts::dim<8>, ts::dim<8>>>
using images = ts::tensor<P, Shape, double>;
template <class P, class Shape = ts::shape<batch, ts::dim<16>>>
using rows_of = ts::tensor<P, Shape, double>;

using good = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::padding<1, 1>>, nn::relu,
                                 nn::max_pool<ts::kernel<3, 3>, ts::padding<1, 1>>, nn::repartition<channels>,
                                 nn::flatten, nn::linear<10>>;
#ifdef CONTROL
static_assert(good::program.count == 6);
#endif

// Windows.
#if defined(WIDE_KERNEL)
// expect: [tessera.window.kernel] && at_layer<1, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::conv<6, ts::kernel<13, 3>, ts::padding<1, 1>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(WIDE_DILATED_KERNEL)
// expect: [tessera.window.kernel] && at_layer<0, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<3>, tessera::with::extent<8>,
// tessera::with::padding<0>, tessera::with::kernel<5>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 5>, ts::dilation<1, 2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(WIDE_POOL)
// expect: [tessera.window.kernel] && at_layer<2, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<4>,
// tessera::with::padding<0>, tessera::with::kernel<5>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::max_pool<ts::kernel<2, 2>>, nn::max_pool<ts::kernel<5, 2>>,
                                nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(WIDE_KERNEL_TRAFFIC)
// expect: [tessera.window.kernel] && at_layer<0, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<0>, tessera::with::kernel<9>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<9, 3>>, nn::relu>;
static_assert(ts::traffic<bad>(ts::bind<batch>(64)).forward.busiest_worker_bytes <= 33'792);
#elif defined(NO_KERNEL)
// expect: [tessera.window.positive] && at_layer<0, &&
// tessera::verdicts::window_not_positive<tessera::with::dimension<2>, tessera::with::kernel<0>,
// tessera::with::stride<1>, tessera::with::dilation<1>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<0, 3>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(NO_STRIDE)
// expect: [tessera.window.positive] && at_layer<1, &&
// tessera::verdicts::window_not_positive<tessera::with::dimension<3>, tessera::with::kernel<2>,
// tessera::with::stride<0>, tessera::with::dilation<1>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::max_pool<ts::kernel<2, 2>, ts::stride<2, 0>>, nn::flatten>;
static_assert(bad::program.count >= 0);
#elif defined(NEGATIVE_PADDING)
// expect: [tessera.window.positive] && at_layer<0, &&
// tessera::verdicts::window_not_positive<tessera::with::dimension<2>, tessera::with::kernel<3>,
// tessera::with::stride<1>, tessera::with::dilation<1>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::padding<-1, 0>>>;
static_assert(bad::program.count >= 0);
#elif defined(POOL_PADDING)
// expect: [tessera.window.padding] && at_layer<1, &&
// tessera::verdicts::padding_wider_than_half_kernel<tessera::with::dimension<3>, tessera::with::padding<2>,
// tessera::with::kernel<3>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::max_pool<ts::kernel<3, 3>, ts::padding<1, 2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#endif

// Dimensions.
#ifdef CONTROL
static_assert(ts::sequential_type<rows_of<features>, nn::linear<8>, nn::relu, nn::linear<4>>::program.count == 3);
#endif
#if defined(CONV_OF_MATRIX)
// expect: [tessera.layer.dimensions] && at_layer<1, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<4>, tessera::with::is_given<2>>
using bad = ts::sequential_type<rows_of<features>, nn::linear<8>, nn::conv<6, ts::kernel<3, 3>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(POOL_OF_MATRIX)
// expect: [tessera.layer.dimensions] && at_layer<0, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<4>, tessera::with::is_given<2>>
using bad = ts::sequential_type<rows_of<features>, nn::max_pool<ts::kernel<2, 2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(FLATTEN_OF_VECTOR)
// expect: [tessera.layer.dimensions] && at_layer<0, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<2>, tessera::with::is_given<1>>
using bad = ts::sequential_type<ts::tensor<ts::partition<grid, ts::whole>, ts::shape<batch>>, nn::flatten, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(REPARTITION_OF_MATRIX)
// expect: [tessera.partition.dimensions] && at_layer<1, &&
// tessera::verdicts::wrong_number_of_dimensions<tessera::with::covers<4>, tessera::with::dimensions<2>>
using bad = ts::sequential_type<rows_of<features>, nn::relu, nn::repartition<image>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(REPARTITION_TO_TENSOR)
// expect: [tessera.argument.kind] && at_layer<1, && tessera::wrong_argument<tessera::kind::layer, 0,
// tessera::kind::partition, tessera::kind::tensor>
using bad = ts::sequential_type<rows_of<features>, nn::relu, nn::repartition<rows_of<features>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(RESULT_AS_TENSOR)
// expect: [tessera.argument.kind] && at_layer<0, && tessera::wrong_argument<tessera::kind::option, 0,
// tessera::kind::partition, tessera::kind::tensor>
using bad = ts::sequential_type<rows_of<features>, nn::linear<8, ts::output_as<rows_of<features>>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(RESULT_OF_OTHER_RANK)
// expect: [tessera.partition.dimensions] && at_layer<0, &&
// tessera::verdicts::wrong_number_of_dimensions<tessera::with::covers<4>, tessera::with::dimensions<2>>
using bad = ts::sequential_type<rows_of<features>, nn::linear<8, ts::output_as<image>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(DYNAMIC_FEATURES)
// expect: [tessera.layer.dynamic] && at_layer<1, && tessera::verdicts::extent_not_static<tessera::with::dimension<1>>
using bad = ts::sequential_type<rows_of<features, ts::shape<batch, width>>, nn::relu, nn::linear<8>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(DYNAMIC_CHANNELS)
// expect: [tessera.layer.dynamic] && at_layer<0, && tessera::verdicts::extent_not_static<tessera::with::dimension<1>>
using bad =
    ts::sequential_type<images<image, ts::shape<batch, width, ts::dim<8>, ts::dim<8>>>, nn::conv<6, ts::kernel<3, 3>>>;
static_assert(bad::program.count >= 0);
#elif defined(DYNAMIC_FLATTENED)
// expect: [tessera.layer.dynamic] && at_layer<1, && tessera::verdicts::extent_not_static<tessera::with::dimension<1>>
using bad =
    ts::sequential_type<images<channels, ts::shape<batch, ts::dim<4>, width, ts::dim<8>>>, nn::flatten, nn::linear<8>>;
static_assert(bad::program.count >= 0);
#elif defined(DYNAMIC_FLATTENED_UNEVEN)
// expect: [tessera.rule.merged] && at_layer<0, &&
// tessera::verdicts::grain_not_known<tessera::with::operand<0>, tessera::with::dimension<1>>
using bad =
    ts::sequential_type<images<channels, ts::shape<batch, ts::dim<3>, width, ts::dim<8>>>, nn::flatten, nn::linear<8>>;
static_assert(bad::program.count >= 0);
#endif

// Cuts and placements that a layer cannot take.
#ifdef CONTROL
static_assert(ts::sequential_type<images<channels>, nn::flatten, nn::linear<8>>::program.count == 2);
#endif
#if defined(FLATTEN_OF_CUT_HEIGHT)
// expect: [tessera.rule.whole] && at_layer<2, && tessera::verdicts::dimension_needed_whole<tessera::with::operand<0>,
// tessera::with::dimension<2>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>>, nn::relu, nn::flatten, nn::linear<10>>;
static_assert(bad::program.count >= 0);
#elif defined(RELU_OF_TERMS)
// expect: [tessera.rule.nonlinear] && at_layer<0, && tessera::verdicts::nonlinear_on_partial<row,
// tessera::with::operand<0>>
using bad =
    ts::sequential_type<rows_of<ts::partition<grid, ts::whole, ts::whole, ts::partial<row>>>, nn::relu, nn::linear<4>>;
static_assert(bad::program.count >= 0);
#elif defined(RELU_OF_KEPT_TERMS)
// expect: [tessera.rule.nonlinear] && at_layer<1, && tessera::verdicts::nonlinear_on_partial<col,
// tessera::with::operand<0>>
using terms = ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>;
using bad = ts::sequential_type<rows_of<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>>,
                                nn::linear<4, ts::cut_in<col>, ts::output_as<terms>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(POOL_OF_TERMS)
// expect: [tessera.rule.nonlinear] && at_layer<0, && tessera::verdicts::nonlinear_on_partial<col,
// tessera::with::operand<0>>
using bad =
    ts::sequential_type<images<ts::partition<grid, ts::blocks<row>, ts::whole, ts::whole, ts::whole, ts::partial<col>>>,
                        nn::max_pool<ts::kernel<2, 2>>, nn::flatten>;
static_assert(bad::program.count >= 0);
#elif defined(HALOED_FEATURES)
// expect: [tessera.move.tiling] && at_layer<1, && tessera::verdicts::not_a_tiling<tessera::with::none,
// tessera::with::dimension<1>>
using bad = ts::sequential_type<rows_of<ts::partition<grid, ts::whole, ts::haloed<ts::blocks<row>, 16, 1, -1, 1>>>,
                                nn::relu, nn::repartition<ts::partition<grid, ts::whole, ts::whole>>, nn::linear<4>>;
static_assert(bad::program.count >= 0);
#endif

// Counts.
#ifdef CONTROL
static_assert(
    ts::sequential_type<rows_of<features, ts::shape<batch, ts::dim<1024>>>, nn::linear<1024>>::program.count == 1);
#endif
#if defined(LARGE_RESULT)
// expect: [tessera.shape.overflow] && at_layer<1, && tessera::verdicts::count_overflows<tessera::with::dimension<1>,
// tessera::with::extent<4294967296>>
using large = ts::shape<ts::dim<(1LL << 32)>, ts::dim<16>>;
using bad = ts::sequential_type<rows_of<features, large>, nn::relu, nn::linear<(1LL << 32)>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(LARGE_WEIGHT)
// expect: [tessera.shape.overflow] && at_layer<0, && tessera::verdicts::count_overflows<tessera::with::dimension<1>,
// tessera::with::extent<4294967296>>
using bad =
    ts::sequential_type<rows_of<features, ts::shape<batch, ts::dim<(1LL << 32)>>>, nn::linear<(1LL << 32)>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(LARGE_INPUT)
// expect: [tessera.shape.overflow] && count_overflows<tessera::with::dimension<2>, tessera::with::extent<4294967296>>
using large = ts::shape<batch, ts::dim<(1LL << 32)>, ts::dim<(1LL << 32)>, ts::dim<1>>;
using bad = ts::sequential_type<images<channels, large>, nn::relu, nn::flatten>;
static_assert(bad::program.count >= 0);
#elif defined(STRIDES_OF_OTHER_DIMENSIONS)
// expect: [tessera.layer.options] && at_layer<0, &&
// tessera::verdicts::option_of_other_dimensions<tessera::with::kernel<2>, tessera::with::option<3>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::stride<1, 2, 1>>>;
static_assert(bad::program.count >= 0);
#elif defined(PADDING_OF_OTHER_DIMENSIONS)
// expect: [tessera.layer.options] && at_layer<1, &&
// tessera::verdicts::option_of_other_dimensions<tessera::with::kernel<4>, tessera::with::option<2>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::max_pool<ts::kernel<3, 3>, ts::padding_at<1, 1>>>;
static_assert(bad::program.count >= 0);
#elif defined(UNBOUND_BATCH)
// expect: [tessera.shape.unbound] && extent_not_bound<tessera::with::dimension<0>>
static_assert(ts::traffic<good>(ts::bind<width>(8)).forward.bytes >= 0);
#endif

// Options that a layer has no use for, and two on the same thing.
using optioned =
    ts::sequential_type<images<image>, nn::pad<ts::padding_at<1, 1>, ts::padding_mode<ts::boundary::replicate>>,
                        nn::conv<6, ts::groups<3>, ts::kernel<3, 3>, ts::stride<1>, ts::padding_at<1, 1, 1, 1>,
                                 ts::dilation<1>, ts::padding_mode<ts::boundary::periodic>, ts::no_bias>,
                        nn::max_pool<ts::ceil_mode, ts::kernel<2, 2>, ts::padding<1>, ts::stride<2>, ts::dilation<1>>,
                        nn::avg_pool<ts::kernel<2, 2>, ts::exclude_padding, ts::divisor<3>>, nn::repartition<channels>,
                        nn::flatten,
                        nn::linear<8, ts::no_bias, ts::cut_in<col>, ts::cut_out<row>, ts::output_as<features>>>;
#ifdef CONTROL
static_assert(optioned::program.count == 7);
#endif
#if defined(STRIDED_LINEAR)
// expect: [tessera.layer.not_taken] && at_layer<1, tessera::nn::linear< &&
// tessera::verdicts::option_not_taken<tessera::with::option<1>>
using bad = ts::sequential_type<rows_of<features>, nn::relu, nn::linear<4, ts::no_bias, ts::stride<2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_WITH_DIVISOR)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::conv< &&
// tessera::verdicts::option_not_taken<tessera::with::option<1>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::divisor<2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(CONV_WITH_COVER)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::conv< &&
// tessera::verdicts::option_not_taken<tessera::with::option<1>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::blocks<row>>>;
static_assert(bad::program.count >= 0);
#elif defined(GROUPED_MAX_POOL)
// expect: [tessera.layer.not_taken] && at_layer<1, tessera::nn::max_pool< &&
// tessera::verdicts::option_not_taken<tessera::with::option<1>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::max_pool<ts::kernel<2, 2>, ts::groups<2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(REFLECTED_AVG_POOL)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::avg_pool< &&
// tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<images<image>, nn::avg_pool<ts::padding_mode<ts::boundary::reflect>, ts::kernel<2, 2>>>;
static_assert(bad::program.count >= 0);
#elif defined(DILATED_PAD)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::pad< &&
// tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<images<image>, nn::pad<ts::padding_at<1, 1>, ts::dilation<2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(KERNEL_TWICE)
// expect: [tessera.layer.twice] && at_layer<0, && tessera::verdicts::option_given_twice<tessera::with::option<0>,
// tessera::with::option_again<1>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3>, ts::kernel<3>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(PADDING_AND_PADDING_AT)
// expect: [tessera.layer.twice] && at_layer<1, && tessera::verdicts::option_given_twice<tessera::with::option<1>,
// tessera::with::option_again<2>>
using bad = ts::sequential_type<images<image>, nn::relu,
                                nn::max_pool<ts::kernel<3, 3>, ts::padding<1>, ts::padding_at<1, 0, 1, 0>>>;
static_assert(bad::program.count >= 0);
#endif

// Normalisations, upsampling and dropout.
#ifdef CONTROL
static_assert(ts::sequential_type<images<image>, nn::batch_norm<ts::eps<1, 1'000>, ts::momentum<1, 2>>,
                                  nn::layer_norm<ts::over_last<2>, ts::no_bias>, nn::rms_norm<>,
                                  nn::group_norm<3, ts::no_affine>, nn::instance_norm<ts::affine, ts::tracking>,
                                  nn::upsample<ts::factor<3, 2>, ts::divisor<2>, ts::mode<ts::interpolation::linear>,
                                               ts::align_corners>,
                                  nn::dropout<ts::channelwise, ts::probability<1, 3>>>::program.count == 7);
static_assert(nn::batch_norm<ts::eps<1, 100'000>>::description().eps == 1e-5);
#endif
#if defined(EPS_WITHOUT_DIVISOR)
// expect: [tessera.layer.fraction] && at_layer<1, &&
// tessera::verdicts::fraction_without_divisor<tessera::with::numerator<1>, tessera::with::denominator<0>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::layer_norm<ts::eps<1, 0>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(EPS_BELOW_ZERO)
// expect: [tessera.layer.eps] && at_layer<0, && tessera::verdicts::eps_below_zero<>
using bad = ts::sequential_type<images<image>, nn::batch_norm<ts::eps<-1, 10>>>;
static_assert(bad::program.count >= 0);
#elif defined(MOMENTUM_TWICE)
// expect: [tessera.layer.twice] && at_layer<0, && tessera::verdicts::option_given_twice<tessera::with::option<0>,
// tessera::with::option_again<1>>
using bad = ts::sequential_type<images<image>, nn::batch_norm<ts::momentum<1, 10>, ts::cumulative>>;
static_assert(bad::program.count >= 0);
#elif defined(OVER_NO_DIMENSION)
// expect: [tessera.layer.dimension] && at_layer<0, &&
// tessera::verdicts::dimension_not_there<tessera::with::dimension<0>, tessera::with::dimensions<4>>
using bad = ts::sequential_type<images<image>, nn::layer_norm<ts::over_last<0>>>;
static_assert(bad::program.count >= 0);
#elif defined(OVER_TOO_MANY_DIMENSIONS)
// expect: [tessera.layer.dimensions] && at_layer<0, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<5>, tessera::with::is_given<4>>
using bad = ts::sequential_type<images<image>, nn::rms_norm<ts::over_last<5>>>;
static_assert(bad::program.count >= 0);
#elif defined(GROUPS_OF_CHANNELS_UNEVEN)
// expect: [tessera.layer.groups] && at_layer<1, && tessera::verdicts::groups_do_not_divide<tessera::with::in<3>,
// tessera::with::out<3>, tessera::with::groups<5>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::group_norm<5>>;
static_assert(bad::program.count >= 0);
#elif defined(NO_GROUPS_OF_CHANNELS)
// expect: [tessera.layer.groups] && at_layer<0, && tessera::verdicts::groups_do_not_divide<tessera::with::in<3>,
// tessera::with::out<3>, tessera::with::groups<0>>
using bad = ts::sequential_type<images<image>, nn::group_norm<0, ts::no_affine>>;
static_assert(bad::program.count >= 0);
#elif defined(GROUP_NORM_TRACKING)
// expect: [tessera.layer.not_taken] && at_layer<0, && tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<images<image>, nn::group_norm<1, ts::tracking>>;
static_assert(bad::program.count >= 0);
#elif defined(NORM_OF_TERMS)
// expect: [tessera.rule.nonlinear] && at_layer<0, && tessera::verdicts::nonlinear_on_partial<col,
// tessera::with::operand<0>>
using terms = ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>;
using bad = ts::sequential_type<rows_of<terms>, nn::batch_norm<>>;
static_assert(bad::program.count >= 0);
#elif defined(NORM_OF_INTEGERS)
// expect: [tessera.function.element] && at_layer<0, &&
// tessera::verdicts::no_function_of_element<tessera::with::given_element<tessera::element::int64>>
using bad = ts::sequential_type<ts::tensor<features, ts::shape<batch, ts::dim<16>>, std::int64_t>, nn::batch_norm<>>;
static_assert(bad::program.count >= 0);
#elif defined(NO_FACTOR)
// expect: [tessera.layer.factor] && at_layer<0, && tessera::verdicts::factor_not_positive<tessera::with::dimension<3>,
// tessera::with::factor<0>>
using bad = ts::sequential_type<images<image>, nn::upsample<ts::factor<2, 0>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(UPSAMPLED_TO_NOTHING)
// expect: [tessera.layer.size] && at_layer<0, && tessera::verdicts::nothing_to_resample<tessera::with::dimension<2>,
// tessera::with::from<8>, tessera::with::to<0>>
using bad = ts::sequential_type<images<image>, nn::upsample<ts::factor<1, 40>, ts::divisor<20>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(DIVIDED_SIZE)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::upsample< &&
// tessera::verdicts::option_not_taken<tessera::with::option<1>>
using bad = ts::sequential_type<images<image>, nn::upsample<ts::size<7, 9>, ts::divisor<2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(ADAPTED_TO_NOTHING)
// expect: [tessera.layer.size] && at_layer<1, && tessera::verdicts::nothing_to_resample<tessera::with::dimension<3>,
// tessera::with::from<8>, tessera::with::to<0>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::adaptive_max_pool<4, 0>>;
static_assert(bad::program.count >= 0);
#elif defined(SHUFFLED_UNEVENLY)
// expect: [tessera.signature.split] && at_layer<1, && tessera::verdicts::split_uneven<tessera::with::dimension<1>,
// tessera::with::extent<3>, tessera::with::inner_extent<4>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::pixel_shuffle<2>>;
static_assert(bad::program.count >= 0);
#elif defined(FOLDED_BEYOND_A_STEP)
// expect: [tessera.layer.output_padding] && at_layer<0, &&
// tessera::verdicts::output_padding_too_large<tessera::with::dimension<2>, tessera::with::output_padding<1>,
// tessera::with::bound<1>>
using bad = ts::sequential_type<images<image>, nn::fold<ts::kernel<3, 1>, ts::dilation<2>, ts::output_padding<1>>>;
static_assert(bad::program.count >= 0);
#elif defined(SIZE_AND_FACTOR)
// expect: [tessera.layer.twice] && at_layer<1, && tessera::verdicts::option_given_twice<tessera::with::option<0>,
// tessera::with::option_again<2>>
using bad = ts::sequential_type<images<image>, nn::relu,
                                nn::upsample<ts::factor<2, 2>, ts::mode<ts::interpolation::linear>, ts::size<7, 9>>>;
static_assert(bad::program.count >= 0);
#elif defined(CORNERS_OF_NEAREST)
// expect: [tessera.layer.corners] && at_layer<0, && tessera::verdicts::nearest_has_no_corners<>
using bad = ts::sequential_type<images<image>, nn::upsample<ts::factor<2, 2>, ts::align_corners>>;
static_assert(bad::program.count >= 0);
#elif defined(ANTIALIAS)
// expect: [tessera.layer.antialias] && at_layer<0, && tessera::verdicts::antialias_not_there<>
using bad = ts::sequential_type<images<image>,
                                nn::upsample<ts::size<7, 9>, ts::mode<ts::interpolation::linear>, ts::antialias>>;
static_assert(bad::program.count >= 0);
#elif defined(FACTOR_OF_OTHER_DIMENSIONS)
// expect: [tessera.layer.dimensions] && at_layer<0, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<3>, tessera::with::is_given<4>>
using bad = ts::sequential_type<images<image>, nn::upsample<ts::factor<2>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(TRANSFORMED_TWICE)
// expect: [tessera.fft.dimensions] && at_layer<1, &&
// tessera::verdicts::transform_dimensions<tessera::with::dimensions<2>>
using bad = ts::sequential_type<images<image>, nn::relu, nn::fft<2, 2>>;
static_assert(bad::program.count >= 0);
#elif defined(TRANSFORMED_WITH_STRIDE)
// expect: [tessera.layer.not_taken] && at_layer<0, && tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<images<image>, nn::fft<2, ts::stride<2>{}>>;
static_assert(bad::program.count >= 0);
#elif defined(MORE_THAN_CERTAIN)
// expect: [tessera.layer.probability] && at_layer<1, && tessera::verdicts::no_probability<>
using bad = ts::sequential_type<images<image>, nn::relu, nn::dropout<ts::probability<3, 2>>>;
static_assert(bad::program.count >= 0);
#endif

// Indices, heads and elements.
using tokens = ts::partition<grid, ts::blocks<row>, ts::whole, ts::invariant<col>>;
using indices = ts::tensor<tokens, ts::shape<batch, ts::dim<5>>, std::int64_t>;
#ifdef CONTROL
static_assert(ts::sequential_type<indices, nn::embedding<9, 16, ts::cut_in<col>>, nn::cast<double>,
                                  nn::linear<4>>::program.count == 3);
#endif
#if defined(EMBEDDING_OF_NUMBERS)
// expect: [tessera.embedding.element] && at_layer<1, &&
// tessera::verdicts::indices_wanted<tessera::with::given_element<tessera::element::float64>>
using bad = ts::sequential_type<rows_of<features>, nn::relu, nn::embedding<9, 16>>;
static_assert(bad::program.count >= 0);
#elif defined(EMBEDDING_WITHOUT_ROWS)
// expect: [tessera.shape.negative] && at_layer<0, && tessera::verdicts::extent_negative<tessera::with::dimension<0>,
// tessera::with::extent<0>>
using bad = ts::sequential_type<indices, nn::embedding<0, 16>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(WEIGHTS_OF_INTEGERS)
// expect: [tessera.tensor.cotangent] && at_layer<0,
using bad = ts::sequential_type<rows_of<features>, nn::linear<4, ts::weights_as<int>>>;
static_assert(bad::program.count >= 0);
#elif defined(CAST_TO_INTEGERS)
// expect: [tessera.function.element] && at_layer<1, &&
// tessera::verdicts::no_function_of_element<tessera::with::given_element<tessera::element::float64>>
using bad = ts::sequential_type<rows_of<features>, nn::relu, nn::cast<std::int64_t>>;
static_assert(bad::program.count >= 0);
#elif defined(PADDING_OF_NO_ROW)
// expect: [tessera.embedding.index] && at_layer<0, tessera::nn::embedding< &&
// tessera::verdicts::index_out_of_range<tessera::with::index<-10>, tessera::with::rows<9>>
using bad = ts::sequential_type<indices, nn::embedding<9, 16, ts::padding_idx<-10>>>;
static_assert(bad::program.count >= 0);
#elif defined(BIASED_EMBEDDING)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::embedding< &&
// tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<indices, nn::embedding<9, 16, ts::no_bias>>;
static_assert(bad::program.count >= 0);
#elif defined(UNEVEN_GROUPS_OF_HEADS)
// expect: [tessera.layer.heads] && at_layer<0, && tessera::verdicts::heads_do_not_divide<tessera::with::heads<4>,
// tessera::with::key_heads<3>>
using bad = ts::sequential_type<rows_of<features>, nn::heads<4, 3, 8>>;
static_assert(bad::program.count >= 0);
#endif

// Transposed convolutions, and padding that keeps extents.
#ifdef CONTROL
static_assert(
    ts::sequential_type<images<image>,
                        nn::conv_transpose<6, ts::kernel<2, 3>, ts::stride<2>, ts::output_padding<1>, ts::groups<3>>,
                        nn::conv_transpose<4, ts::kernel<3, 3>, ts::padding<1>>,
                        nn::conv<2, ts::kernel<2, 3>, ts::padding_same>>::program.count == 3);
// wider than a part
static_assert(ts::sequential_type<images<image>, nn::conv_transpose<6, ts::kernel<21, 3>>>::program.count == 1);
#endif
#if defined(OUTPUT_PADDING_OF_A_STEP)
// expect: [tessera.layer.output_padding] && at_layer<1, &&
// tessera::verdicts::output_padding_too_large<tessera::with::dimension<3>, tessera::with::output_padding<2>,
// tessera::with::bound<2>>
using bad = ts::sequential_type<images<image>, nn::relu,
                                nn::conv_transpose<6, ts::kernel<3, 3>, ts::stride<3, 2>, ts::output_padding<2>>>;
static_assert(bad::program.count >= 0);
#elif defined(OUTPUT_SIZE_OUT_OF_REACH)
// expect: [tessera.layer.output_padding] && at_layer<0, &&
// tessera::verdicts::output_padding_too_large<tessera::with::dimension<2>, tessera::with::output_padding<-1>,
// tessera::with::bound<2>>
using bad =
    ts::sequential_type<images<image>, nn::conv_transpose<6, ts::kernel<3, 3>, ts::stride<2>, ts::output_size<16, 17>>>;
static_assert(bad::program.count >= 0);
#elif defined(OUTPUT_SIZE_AND_PADDING)
// expect: [tessera.layer.twice] && at_layer<0, && tessera::verdicts::option_given_twice<tessera::with::option<1>,
// tessera::with::option_again<2>>
using bad = ts::sequential_type<images<image>,
                                nn::conv_transpose<6, ts::kernel<3, 3>, ts::output_padding<0>, ts::output_size<10>>>;
static_assert(bad::program.count >= 0);
#elif defined(NOTHING_LEFT)
// expect: [tessera.layer.nothing_left] && at_layer<0, &&
// tessera::verdicts::padding_leaves_nothing<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::result<0>>
using bad = ts::sequential_type<images<image>, nn::conv_transpose<6, ts::kernel<1, 1>, ts::padding<4, 0>>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(INTEGER_WEIGHTS)
// expect: [tessera.tensor.cotangent] && at_layer<1, && tessera::verdicts::element_has_no_cotangent<>
using bad = ts::sequential_type<ts::tensor<image, ts::shape<batch, ts::dim<3>, ts::dim<8>, ts::dim<8>>, std::int32_t>,
                                nn::relu, nn::conv<6, ts::kernel<3, 3>>>;
static_assert(bad::program.count >= 0);
#elif defined(GROUPS_THAT_DO_NOT_DIVIDE)
// expect: [tessera.layer.groups] && at_layer<0, && tessera::verdicts::groups_do_not_divide<tessera::with::in<3>,
// tessera::with::out<6>, tessera::with::groups<2>>
using bad = ts::sequential_type<images<image>, nn::conv_transpose<6, ts::kernel<3, 3>, ts::groups<2>>>;
static_assert(bad::program.count >= 0);
#elif defined(REFLECTED_RESULT)
// expect: [tessera.layer.not_taken] && at_layer<0, && tessera::verdicts::option_not_taken<tessera::with::option<1>>
using bad = ts::sequential_type<images<image>,
                                nn::conv_transpose<6, ts::kernel<3, 3>, ts::padding_mode<ts::boundary::reflect>>>;
static_assert(bad::program.count >= 0);
#elif defined(TRANSPOSED_IN_ONE_HALO)
// expect: [tessera.layer.fused_halo] && tessera::verdicts::layer_has_no_window<tessera::with::layer<1>>
using bad = ts::sequential_type<images<image>, nn::fused_halo<nn::relu, nn::conv_transpose<6, ts::kernel<3, 3>>>>;
static_assert(bad::program.count >= 0);
#elif defined(SAME_PADDING_OF_STEPS)
// expect: [tessera.layer.same_padding] && at_layer<0, &&
// tessera::verdicts::same_padding_steps<tessera::with::dimension<3>, tessera::with::stride<2>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::stride<1, 2>, ts::padding_same>>;
static_assert(bad::program.count >= 0);
#elif defined(SAME_PADDING_AND_WIDTHS)
// expect: [tessera.layer.twice] && at_layer<0, && tessera::verdicts::option_given_twice<tessera::with::option<1>,
// tessera::with::option_again<2>>
using bad = ts::sequential_type<images<image>, nn::conv<6, ts::kernel<3, 3>, ts::padding_same, ts::padding<1>>>;
static_assert(bad::program.count >= 0);
#endif

// Experts.
using slots = ts::partition<grid, ts::blocks<row>, ts::whole, ts::blocks<col>>;
using learned_slots = ts::partition<grid, ts::lengths<row>, ts::whole, ts::blocks<col>>;
template <class P, class Shape = ts::shape<ts::dim<5>, batch, ts::dim<6>>>
using slots_of = ts::tensor<P, Shape, double>;
#ifdef CONTROL
static_assert(ts::sequential_type<slots_of<slots>, nn::experts<5, 8, ts::cut_out<col>>, nn::relu,
                                  nn::sharded_over<nn::experts<5, 6, ts::no_bias>, row>>::program.count == 3);
// a slot each
static_assert(ts::sequential_type<ts::tensor<features, ts::shape<ts::dim<5>, ts::dim<6>>>, nn::experts<5, 8>>::program
                  .count == 1);
static_assert(ts::sequential_type<slots_of<slots>,
                                  nn::sharded_over<nn::gated_experts<5, 8, ts::cut_out<col>>, row>>::program.count ==
              1);
#endif
#if defined(OTHER_EXPERTS)
// expect: [tessera.shape.extent] && at_layer<1, tessera::nn::experts< &&
// tessera::verdicts::extents_differ<tessera::with::dimension<0>, tessera::with::first<5>, tessera::with::second<4>>
using bad = ts::sequential_type<slots_of<slots>, nn::relu, nn::experts<4, 8>, nn::relu>;
static_assert(bad::program.count >= 0);
#elif defined(DYNAMIC_EXPERTS)
// expect: [tessera.layer.dynamic] && at_layer<0, && tessera::verdicts::extent_not_static<tessera::with::dimension<0>>
using bad = ts::sequential_type<slots_of<slots, ts::shape<batch, ts::dim<5>, ts::dim<6>>>, nn::experts<5, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(LEARNED_EXPERTS)
// expect: [tessera.lengths.unknown] && at_layer<0, && tessera::verdicts::lengths_not_known<tessera::with::dimension<0>>
using bad = ts::sequential_type<slots_of<learned_slots>, nn::experts<5, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(EXPERTS_OF_VECTOR)
// expect: [tessera.layer.dimensions] && at_layer<0, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<2>, tessera::with::is_given<1>>
using bad =
    ts::sequential_type<ts::tensor<ts::partition<grid, ts::blocks<row>>, ts::shape<ts::dim<5>>>, nn::experts<5, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(LESS_THAN_NO_EXPERTS)
// expect: [tessera.shape.negative] && at_layer<0, && tessera::verdicts::extent_negative<tessera::with::dimension<0>,
// tessera::with::extent<-1>>
using bad = ts::sequential_type<slots_of<slots>, nn::experts<-1, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(OTHER_GATED_EXPERTS)
// expect: [tessera.shape.extent] && at_layer<0, tessera::nn::gated_experts< &&
// tessera::verdicts::extents_differ<tessera::with::dimension<0>, tessera::with::first<5>, tessera::with::second<4>>
using bad = ts::sequential_type<slots_of<slots>, nn::gated_experts<4, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(LESS_THAN_NO_GATED_EXPERTS)
// expect: [tessera.shape.negative] && at_layer<0, && tessera::verdicts::extent_negative<tessera::with::dimension<0>,
// tessera::with::extent<-1>>
using bad = ts::sequential_type<slots_of<slots>, nn::gated_experts<-1, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(GATED_EXPERTS_OF_VECTOR)
// expect: [tessera.layer.dimensions] && at_layer<0, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<2>, tessera::with::is_given<1>>
using bad = ts::sequential_type<ts::tensor<ts::partition<grid, ts::blocks<row>>, ts::shape<ts::dim<5>>>,
                                nn::gated_experts<5, 8>>;
static_assert(bad::program.count >= 0);
#elif defined(STRIDED_EXPERTS)
// expect: [tessera.layer.not_taken] && at_layer<0, tessera::nn::experts< &&
// tessera::verdicts::option_not_taken<tessera::with::option<0>>
using bad = ts::sequential_type<slots_of<slots>, nn::experts<5, 8, ts::stride<2>>>;
static_assert(bad::program.count >= 0);
#endif
