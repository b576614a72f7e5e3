// Saves without end, from the newest checkpoint of a folder on; check.py kills it. It ends with an error where that
// checkpoint does not have the values that were saved: program FOLDER [once].
#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/file/checkpoint_folder.hpp>
#include <tessera/tessera.hpp>

#include <torch/optim/sgd.h>
#include <unistd.h>

#include <cstdio>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

struct crew : ts::axis<2> {};
using grid = ts::mesh<crew>;
struct batch : ts::dyn {};
using inputs = ts::tensor<ts::partition<grid, ts::blocks<crew>, ts::whole>, ts::shape<batch, ts::dim<64>>, double>;
// Tiles of uneven weights, and vectors of which both workers have copies.
using net_type = nn::network<nn::chain<nn::sharded_over<nn::linear<129>, crew>, nn::layer_norm<>>, inputs>;

/// What a parameter is in the save of a number.
at::Tensor value_of(const nn::parameter& p, std::int64_t save) {
  std::vector<ts::index_t> extents;
  for (const auto& d : p.stored().layout().dims) extents.push_back(d.extent);
  const ts::index_t n = c10::multiply_integers(extents);
  return at::arange(n, at::kDouble).add_(static_cast<double>(save * 1000003)).view(extents);
}

bool has_values(const net_type& net, std::int64_t save) {
  bool all = true;
  net.each_parameter([&](const nn::parameter& p) {
    all = at::equal(ts::full_tensor(ts::detach(p.stored())), value_of(p, save)) && all;
  });
  return all;
}

int run(int argc, char** argv) {
  const std::filesystem::path folder = argv[1];
  const bool once = argc > 2;
  return ts::launch<grid>(argc, argv, [&](ts::team<grid>& workers) {
    const at::NoGradGuard no_graph;
    net_type net{workers, ts::seed{1}};
    torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.5));
    std::int64_t save = 0;
    nn::checkpoint all{{"net", net}, {"optimizer", optimizer}, {"save", save}};
    const bool begins = workers.state()->collect(nn::engine::checkpoint_folder(folder).whole().empty()).front() != 0;
    if (!begins) {
      all.load(folder);
      const auto rate = dynamic_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).lr();
      if (!has_values(net, save) || rate != static_cast<double>(save))
        throw std::runtime_error(fmt::format("save {} has other values", save));
    }
    std::string pids;
    for (const auto pid : workers.state()->collect(static_cast<std::uint64_t>(::getpid())))
      pids += fmt::format(" {}", pid);
    if (workers.first()) fmt::print("loaded {}{}\n", save, pids);
    std::fflush(stdout);
    while (!once) {
      ++save;
      net.each_parameter([&](const nn::parameter& p) { p.assign(value_of(p, save)); });
      dynamic_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).lr(static_cast<double>(save));
      const bool background = save % 3 == 0;
      all.save(folder, {.keep = 2, .background = background});
      if (workers.first() && !background) fmt::print("whole {}\n", save);
      std::fflush(stdout);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return run(argc, argv);
}
