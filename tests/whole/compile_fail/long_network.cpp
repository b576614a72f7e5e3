// One mistake in the middle of a long network is one error: no layer behind it adds another, and the layers are not
// printed.
#include <tessera/functions.hpp>
#include <tessera/network.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
struct batch : ts::dyn {};
using grid = ts::mesh<row, col>;
using input = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape<batch, ts::dim<64>>>;
using terms = ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>;

template <class Middle>
using network = ts::sequential_type<
    input, nn::linear<64>, nn::relu, nn::linear<63>, nn::relu, nn::linear<62>, nn::relu, nn::linear<61>, nn::relu,
    nn::linear<60>, nn::relu, nn::linear<59>, nn::relu, nn::linear<58>, nn::relu, nn::linear<57>, nn::relu,
    nn::linear<56>, nn::relu, nn::linear<55>, nn::relu, nn::linear<54>, nn::relu, nn::linear<53>, nn::relu, Middle,
    nn::relu, nn::linear<51>, nn::relu, nn::linear<50>, nn::relu, nn::linear<49>, nn::relu, nn::linear<48>, nn::relu,
    nn::linear<47>, nn::relu, nn::linear<46>, nn::relu, nn::linear<45>, nn::relu, nn::linear<44>, nn::relu,
    nn::linear<43>, nn::relu, nn::linear<42>, nn::relu, nn::linear<41>, nn::relu, nn::linear<40>, nn::relu>;

// The same with names that are long to print: 25 convolutions and 25 relus.
using cut = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using image = ts::tensor<cut, ts::shape<batch, ts::dim<3>, ts::dim<8>, ts::dim<8>>, double>;

template <ts::index_t Out>
using conv = nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>>;

template <class Middle>
using convolutions =
    ts::sequential_type<image, conv<1>, nn::relu, conv<2>, nn::relu, conv<3>, nn::relu, conv<4>, nn::relu, conv<5>,
                        nn::relu, conv<6>, nn::relu, conv<7>, nn::relu, conv<8>, nn::relu, conv<9>, nn::relu, conv<10>,
                        nn::relu, conv<11>, nn::relu, conv<12>, nn::relu, Middle, nn::relu, conv<14>, nn::relu,
                        conv<15>, nn::relu, conv<16>, nn::relu, conv<17>, nn::relu, conv<18>, nn::relu, conv<19>,
                        nn::relu, conv<20>, nn::relu, conv<21>, nn::relu, conv<22>, nn::relu, conv<23>, nn::relu,
                        conv<24>, nn::relu, conv<25>, nn::relu>;

using wide = nn::conv<13, ts::kernel<13, 3>, ts::padding<1, 1>>;
using never_used = convolutions<wide>;  // naming it is no error

#if defined(WIDE_CONVOLUTION)
// expect: [tessera.window.kernel] && at_layer<24, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
using bad = convolutions<wide>;
using output = bad::output;
#elif defined(WIDE_CONVOLUTION_TRAFFIC)
// expect: [tessera.window.kernel] && at_layer<24, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
using bad = convolutions<wide>;
static_assert(ts::traffic<bad>().forward.bytes <= 0);
#elif defined(WIDE_CONVOLUTION_USED)
// expect: [tessera.window.kernel] && at_layer<24, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
using bad = convolutions<wide>;
static_assert(std::is_same_v<bad::input, image> && bad::program.count >= 0 && !bad::verdict::ok);
static_assert(ts::TensorType<ts::sequential_type<bad::output, nn::relu, conv<3>>::output>);
static_assert(ts::primitive<bad::output, ts::engine::canonical_tensor<image>>::cost().total >= 0);
static_assert(ts::TensorType<ts::result_type<ts::functions::sum<>, bad::output>>);
#elif defined(WIDE_CONVOLUTION_DERIVED)
// expect: [tessera.window.kernel] && at_layer<24, &&
// tessera::verdicts::kernel_too_wide<tessera::with::dimension<2>, tessera::with::extent<8>,
// tessera::with::padding<1>, tessera::with::kernel<13>>
struct net : convolutions<wide> {};
static_assert(std::is_same_v<net::input, image>);
#elif defined(NO_LAYER)
// expect: [tessera.argument.kind] && at_layer<24, && tessera::wrong_argument<tessera::kind::flow, 1,
// tessera::kind::layer, tessera::kind::option>
using bad = convolutions<ts::kernel<3, 3>>;
static_assert(bad::program.count >= 0);
#elif defined(NO_TENSOR)
// expect: [tessera.argument.kind] && wrong_argument<tessera::kind::network, 0, tessera::kind::tensor,
// tessera::kind::partition>
using bad = ts::sequential_type<cut, conv<1>, nn::relu, conv<2>, nn::relu>;
static_assert(ts::traffic<bad>(ts::bind<batch>(8)).forward.bytes >= 0);
#elif defined(POOL_OF_MATRIX)
// expect: [tessera.layer.dimensions] && at_layer<24, &&
// tessera::verdicts::layer_takes_other_dimensions<tessera::with::takes<4>, tessera::with::is_given<2>>
using bad = network<nn::max_pool<ts::kernel<2, 2>>>;
static_assert(bad::program.count >= 0);
#elif defined(RELU_OF_TERMS)
// expect: [tessera.rule.nonlinear] && at_layer<25, && tessera::verdicts::nonlinear_on_partial<col,
// tessera::with::operand<0>>
using bad = network<nn::linear<52, ts::output_as<terms>>>;
static_assert(bad::program.count >= 0);
#elif defined(FOREIGN_AXIS)
// expect: [tessera.partition.axis] && at_layer<24, && tessera::verdicts::axis_not_in_mesh<ring,
// tessera::with::mesh_axes<2>>
struct ring : ts::axis<4> {};
using bad = network<nn::repartition<ts::partition<grid, ts::blocks<row>, ts::blocks<ring>>>>;
static_assert(bad::program.count >= 0);
#else
static_assert(network<nn::linear<52>>::program.count == 50);
static_assert(ts::traffic<network<nn::linear<52>>>(ts::bind<batch>(8)).forward.busiest_worker_bytes > 0);
static_assert(convolutions<conv<13>>::program.count == 50);
static_assert(ts::value_of<convolutions<conv<13>>::output>.layout.dims[1].extent == 25);
#endif
