// The program of docs/first_program.md.
#include <tessera/tessera.hpp>
namespace ts = tessera;

struct data : ts::axis<2> {};  // two workers share the batch
using pair = ts::mesh<data>;
struct batch : ts::dyn {};
using samples = ts::tensor<ts::partition<pair, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<4>>>;
using labels = ts::tensor<ts::partition<pair, ts::blocks<data>>, ts::shape<batch>, std::int64_t>;
using net_type = ts::nn::sequential<samples, ts::nn::linear<16>, ts::nn::relu, ts::nn::linear<3>>;

int main(int argc, char** argv) {
  return ts::launch<pair>(argc, argv, [](ts::team<pair>& team) {
    net_type net{team, ts::seed{1}};
    const auto x =
        ts::distribute<samples>(team, at::sin(at::arange(28)).view({7, 4}).to(at::kFloat));  // 7 samples: 4 and 3
    const auto y = ts::distribute<labels>(team, at::arange(7).remainder(3));
    const auto loss = ts::nn::cross_entropy(net(x), y);
    loss.backward();  // gradients of the weights are summed over data
    if (team.first()) fmt::print("loss {}\n", ts::item(loss));
  });
}
