// What can be seen of a partition, a plan and a network before anything runs: text, JSON and pictures. No LibTorch, no
// MPI.
#include <tessera/functions.hpp>
#include <tessera/inspect/inspect.hpp>

#include <cstdio>
#include <fstream>

namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
struct batch : ts::dyn {};

using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
using pixels = ts::tensor<image, ts::shape<batch, ts::dim<1>, ts::dim<8>, ts::dim<8>>, double>;
using digits = ts::sequential_type<pixels, ts::nn::conv<6, ts::kernel<3, 3>, ts::padding<1, 1>>, ts::nn::relu,
                                   ts::nn::max_pool<ts::kernel<2, 2>>, ts::nn::repartition<channels>, ts::nn::flatten,
                                   ts::nn::linear<32>, ts::nn::relu, ts::nn::linear<10>>;

// Two depths, joined: what skips lives until it is read.
template <ts::index_t Out>
using three = ts::nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>>;
template <ts::index_t Out>
struct residual {
  constexpr auto operator()(auto x) const {
    const auto y = x | three<Out>{} | ts::nn::relu{} | three<Out>{};
    return relu(y + (x | ts::nn::named<struct skip, ts::nn::conv<Out, ts::kernel<1, 1>>>{}));
  }
};
struct two_depths {
  constexpr auto operator()(auto x) const {
    const auto wide = x | ts::nn::named<struct encoder, residual<8>>{};
    const auto deep = wide | ts::nn::max_pool<ts::kernel<2, 2>>{} | ts::nn::named<struct bottom, residual<16>>{};
    const auto small = wide | ts::nn::conv<8, ts::kernel<2, 2>, ts::stride<2, 2>>{};
    const auto mask =
        ts::concat<1>(small, deep) | ts::nn::named<struct decoder, residual<8>>{} | ts::nn::conv<1, ts::kernel<1, 1>>{};
    return ts::flows{mask, deep};
  }
};
using colours = ts::tensor<image, ts::shape<batch, ts::dim<3>, ts::dim<32>, ts::dim<32>>, float>;
using masks = ts::network_type<two_depths, colours>;

using spread = ts::tensor<ts::partition<grid, ts::blocks<row>, ts::blocks<col>>, ts::shape_of<12, 10>, float>;
using around = ts::tensor<
    ts::partition<grid, ts::haloed<ts::blocks<row>, 12, 1, -1, 1>, ts::haloed<ts::blocks<col>, 10, 1, -1, 1>>,
    ts::shape_of<12, 10>, float>;
using terms =
    ts::tensor<ts::partition<grid, ts::blocks<row>, ts::whole, ts::partial<col>>, ts::shape_of<12, 10>, float>;

/// Writes a picture into the folder that the program was given, if any.
void save(const char* folder, const std::string& name, const std::string& svg) {
  if (folder != nullptr) std::ofstream(std::string(folder) + "/" + name + ".svg") << svg;
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : nullptr;

  std::printf("%s\n%s\n", ts::text_of<spread>().c_str(), ts::picture<spread>().c_str());  // a partition
  save(folder, "partition", ts::svg_of<spread>());
  save(folder, "halo", ts::svg_of<around>());

  using halo = ts::primitive<spread, around>;  // a plan, and its adjoint
  std::printf("%s\n%s\n", ts::plan_text<halo>().c_str(), ts::plan_json<ts::adjoint<halo>>().c_str());
  save(folder, "halo_exchange", ts::svg_of<halo>());
  save(folder, "reduce_scatter", ts::svg_of<ts::primitive<terms, spread>>());

  std::printf("%s\n", ts::network_table<digits>(ts::bind<batch>(64)).c_str());  // a network
  std::printf("%s\n", ts::network_json<digits>(ts::bind<batch>(64)).c_str());
  save(folder, "network", ts::network_svg<digits>(ts::bind<batch>(64)));
  std::printf("%s\n", ts::network_table<masks>(ts::bind<batch>(8)).c_str());  // one with skips and branches
  save(folder, "branches", ts::network_svg<masks>(ts::bind<batch>(8)));
}
