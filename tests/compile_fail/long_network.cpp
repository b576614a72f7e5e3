// One mistake in the middle of a long network is one error: no layer behind it adds another. The network's own type, which
// both compilers print once, is the longest part of the message.
#include <tessera/core.hpp>

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
struct batch : ts::dyn {};
using grid = ts::mesh<row, col>;
using input = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape<batch, ts::dim<64>>>;
using terms = ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>;

template <class Middle>
using network = ts::network<
    input,
    nn::linear<64>, nn::relu, nn::linear<63>, nn::relu, nn::linear<62>, nn::relu, nn::linear<61>, nn::relu,
    nn::linear<60>, nn::relu, nn::linear<59>, nn::relu, nn::linear<58>, nn::relu, nn::linear<57>, nn::relu,
    nn::linear<56>, nn::relu, nn::linear<55>, nn::relu, nn::linear<54>, nn::relu, nn::linear<53>, nn::relu, Middle,
    nn::relu, nn::linear<51>, nn::relu, nn::linear<50>, nn::relu, nn::linear<49>, nn::relu, nn::linear<48>,
    nn::relu, nn::linear<47>, nn::relu, nn::linear<46>, nn::relu, nn::linear<45>, nn::relu, nn::linear<44>,
    nn::relu, nn::linear<43>, nn::relu, nn::linear<42>, nn::relu, nn::linear<41>, nn::relu, nn::linear<40>,
    nn::relu>;

static_assert(network<nn::linear<52>>::layers::count == 50);
static_assert(ts::traffic<network<nn::linear<52>>>(ts::bind<batch>(8)).forward.busiest_worker_bytes > 0);

#if defined(POOL_OF_MATRIX)  // expect: [tessera.layer.dimensions] && at_layer<24, tessera::layer_takes_other_dimensions<4, 2>
using bad = network<nn::max_pool<ts::kernel<2, 2>>>;
static_assert(bad::layers::count >= 0);
#elif defined(RELU_OF_TERMS)  // expect: [tessera.rule.nonlinear] && at_layer<25, tessera::nonlinear_on_partial<1, 0>
using bad = network<nn::linear<52, ts::output_as<terms>>>;
static_assert(bad::layers::count >= 0);
#elif defined(FOREIGN_AXIS)  // expect: [tessera.partition.axis] && at_layer<24, tessera::axis_not_in_mesh<1, 2>
struct ring : ts::axis<4> {};
using bad = network<nn::repartition<ts::partition<grid, ts::blocks<row>, ts::blocks<ring>>>>;
static_assert(bad::layers::count >= 0);
#endif
