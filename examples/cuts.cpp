// Which cut, before anything runs: candidates are types, and a table says what each moves and holds. No LibTorch, no
// MPI.
#include <tessera/functions.hpp>
#include <tessera/network.hpp>

#include <cstdio>

namespace ts = tessera;
namespace nn = ts::nn;

// [net]
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
struct batch : ts::dyn {};

// One network, for images that lie in any way.
template <class Cut>
using convnet = ts::sequential_type<ts::tensor<Cut, ts::shape<batch, ts::dim<3>, ts::dim<64>, ts::dim<64>>>,
                                    nn::conv<32, ts::kernel<3, 3>, ts::padding<1>>, nn::relu,
                                    nn::max_pool<ts::kernel<2, 2>>, nn::conv<64, ts::kernel<3, 3>, ts::padding<1>>,
                                    nn::relu, nn::global_avg_pool, nn::flatten, nn::linear<10>>;
// [end]

// [candidates]
using samples = ts::partition<grid, ts::blocks<row, col>, ts::whole, ts::whole, ts::whole>;
using tiles = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using strips = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row, col>, ts::whole>;
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
// samples over row, height over col
using both = ts::partition<grid, ts::blocks<row>, ts::whole, ts::blocks<col>, ts::whole>;
// [end]

// [perceptron]
using by_sample = ts::partition<grid, ts::blocks<row, col>, ts::whole>;
using on_all = ts::partition<grid, ts::whole, ts::whole, ts::invariant<row, col>>;
using on_both = ts::partition<grid, ts::blocks<row>, ts::whole, ts::invariant<col>>;

template <class Cut>
using features = ts::tensor<Cut, ts::shape<batch, ts::dim<1024>>>;
using data_parallel = ts::sequential_type<features<by_sample>, nn::linear<4096>, nn::relu, nn::linear<1024>>;
using sharded = ts::network_type<nn::sharded_over<nn::chain<nn::linear<4096>, nn::relu, nn::linear<1024>>, row, col>,
                                 features<by_sample>>;
using tensor_parallel = ts::sequential_type<features<on_all>, nn::linear<4096, ts::cut_out<row, col>>, nn::relu,
                                            nn::linear<1024, ts::cut_in<row, col>, ts::output_as<on_all>>>;
using two_ways = ts::sequential_type<features<on_both>, nn::linear<4096, ts::cut_out<col>>, nn::relu,
                                     nn::linear<1024, ts::cut_in<col>, ts::output_as<on_both>>>;
// [end]

// [budget]
// What was decided stays decided: the compiler tells who makes the other cut the better one.
template <class Net>
inline constexpr ts::index_t step_of_64 = ts::traffic<Net, ts::bind<batch>(64)>().forward.busiest_worker_bytes +
                                          ts::traffic<Net, ts::bind<batch>(64)>().backward.busiest_worker_bytes;
static_assert(step_of_64<convnet<samples>> < step_of_64<convnet<tiles>>);
// [end]

// [line]
template <class Net>
void line(const char* name, ts::index_t count) {
  const auto moved = ts::traffic<Net>(ts::bind<batch>(count));
  const auto held = ts::peak_memory<Net>(ts::bind<batch>(count));
  std::printf("%-16s %6lld %12lld %12lld %9lld %12lld %12lld\n", name, static_cast<long long>(count),
              static_cast<long long>(moved.forward.busiest_worker_bytes),
              static_cast<long long>(moved.backward.busiest_worker_bytes),
              static_cast<long long>(moved.forward.messages + moved.backward.messages),
              static_cast<long long>(held.training), static_cast<long long>(held.parameters));
}
// [end]

void head() {
  std::printf("%-16s %6s %12s %12s %9s %12s %12s\n", "cut", "batch", "forward B", "backward B", "messages", "memory B",
              "parameters B");
}

int main() {
  head();
  for (const ts::index_t count : {4, 64}) {
    line<convnet<samples>>("samples", count);
    line<convnet<tiles>>("tiles", count);
    line<convnet<strips>>("strips", count);
    line<convnet<channels>>("channels", count);
    line<convnet<both>>("both", count);
  }
  std::printf("\n");
  head();
  for (const ts::index_t count : {64, 4096}) {
    line<data_parallel>("data parallel", count);
    line<sharded>("sharded", count);
    line<tensor_parallel>("tensor parallel", count);
    line<two_ways>("two ways", count);
  }
}
