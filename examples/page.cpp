// The page that the README shows: a network whose cut, shapes and traffic are known while compiling, and one step of
// it.
#include <tessera/tessera.hpp>
namespace ts = tessera;

struct row : ts::axis<2> {};  // an axis of the worker grid is a type, so every message can name it
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;  // a Cartesian topology of 2 x 2 workers

// N C H W: height, width cut
using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
// channels cut over all four
using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
// N F: features cut over all four
using flat = ts::partition<grid, ts::whole, ts::blocks<row, col>>;
struct batch : ts::dyn {};  // an extent known at run time has a name too
using label_type = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<row, col>>, ts::shape<batch>, std::int64_t>;

using digits_net = ts::nn::sequential<
    ts::tensor<image, ts::shape<batch, ts::dim<1>, ts::dim<8>, ts::dim<8>>, double>,  // what comes in
    ts::nn::conv<6, ts::kernel<3, 3>, ts::padding<1, 1>>, ts::nn::relu, ts::nn::max_pool<ts::kernel<2, 2>>,
    // 6 channels over 2 x 2 workers: 2 1 2 1, in grains of 16
    ts::nn::repartition<channels>, ts::nn::flatten, ts::nn::linear<32>, ts::nn::relu, ts::nn::linear<10>>;

static_assert(std::is_same_v<digits_net::output, ts::tensor<flat, ts::shape<batch, ts::dim<10>>, double>>);
// a budget, kept by the compiler
static_assert(ts::traffic<digits_net>(ts::bind<batch>(64)).forward.busiest_worker_bytes == 33'792);

int main(int argc, char** argv) {
  const at::Tensor images = at::sin(at::arange(64 * 64, at::kDouble)).view({64, 1, 8, 8});
  const at::Tensor labels = at::arange(64, at::kLong).remainder(10);
  // four threads of this process; under mpirun, four processes
  return ts::launch<grid>(argc, argv, [&](ts::team<grid>& team) {
    digits_net net{team, ts::seed{7}};  // the same initial bits as on one worker
    // everybody has the file: my part of it, nothing moves
    auto x = ts::distribute<digits_net::input>(team, images);
    auto y = ts::distribute<label_type>(team, labels);
    auto loss = ts::nn::cross_entropy(net(x), y);  // invariant over the grid, so its backward is free
    loss.backward();
    if (team.first()) fmt::print("loss {:.12f}\n", ts::item(loss));
  });
}
