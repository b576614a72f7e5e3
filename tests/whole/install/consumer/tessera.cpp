#include <tessera/nn/file/weights_file.hpp>

// behind weights_file.hpp, since headers stand in any order
#include <tessera/inspect/inspect.hpp>
#include <tessera/nn/file/network_file.hpp>
#include <tessera/tessera.hpp>

namespace ts = tessera;

struct line : ts::axis<2> {};
using halves = ts::tensor<ts::partition<ts::mesh<line>, ts::blocks<line>>, ts::shape_of<5>, double>;

int main(int argc, char** argv) {
  ts::launch_options options;
  options.transport = ts::transport_choice::in_process;
  return ts::launch<ts::mesh<line>>(argc, argv, options, [](ts::team<ts::mesh<line>>& team) {
    auto x = ts::distribute<halves>(team, at::arange(5, at::kDouble));
    x.requires_grad();
    const auto loss = ts::to<ts::partition<ts::mesh<line>, ts::invariant<line>>>(ts::sum(x * x));
    loss.backward();
    const at::Tensor gradient = ts::full_tensor(x.grad());
    if (team.first()) fmt::print("{} {} {}\n", ts::text_of<halves>(), ts::item(loss), gradient.sum().item<double>());
  });
}
