// What each layer of a network takes while it trains: time, bytes and memory on all workers, as a table and as a Chrome
// trace.
#include <tessera/inspect/profile.hpp>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <fstream>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
struct batch : ts::dyn {};

using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
using pixels = ts::tensor<image, ts::shape<batch, ts::dim<3>, ts::dim<32>, ts::dim<32>>, double>;

template <ts::index_t Out>
struct residual {
  constexpr auto operator()(auto x) const {
    using three = ts::nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>>;
    return relu(x + (x | three{} | ts::nn::relu{} | three{}));
  }
};
using net_type = ts::nn::sequential<pixels, ts::nn::conv<8, ts::kernel<3, 3>, ts::padding<1, 1>>, residual<8>,
                                    ts::nn::max_pool<ts::kernel<4, 4>>, ts::nn::repartition<channels>, ts::nn::flatten,
                                    ts::nn::linear<10>>;

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [&](ts::team<grid>& team) {
    net_type net{team, ts::seed{7}};
    const auto x =
        ts::distribute<pixels>(team, at::sin(at::arange(16 * 3 * 32 * 32, at::kDouble)).view({16, 3, 32, 32}));
    const auto step = [&] {
      const auto y = net(x);
      ts::sum(y * y).backward();
    };
    step();  // binds: exchanges are planned once

    const ts::profile seen(net);
    for (int i = 0; i < 5; ++i) step();
    const std::string table = seen.table(), trace = seen.chrome_trace();  // by all workers together
    if (!team.first()) return;
    std::printf("%s\n%s", table.c_str(), ts::network_table<net_type>(ts::bind<batch>(16)).c_str());
    if (argc > 1) std::ofstream(argv[1]) << trace;
  });
}
