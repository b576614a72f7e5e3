#include "tests/support/tensors.hpp"

#include <tessera/nn/file/checkpoint.hpp>

#include <torch/optim/adam.h>
#include <unistd.h>

namespace tessera::testing {
namespace {

struct saved_batch : dyn {};
struct up : axis<2> {};
struct across : axis<2> {};
struct along3 : axis<3> {};
using square = mesh<up, across>;
using three = mesh<along3>;
using on_square_in = tensor<partition<square, blocks<up>, blocks<across>>, shape<saved_batch, dim<5>>, double>;
using on_three_in = tensor<partition<three, whole, blocks<along3>>, shape<saved_batch, dim<5>>, double>;
using square_net = nn::sequential<on_square_in, nn::linear<6>, nn::relu, nn::linear<4>>;
using three_net = nn::sequential<on_three_in, nn::linear<6>, nn::relu, nn::linear<4>>;

/// A folder of its own for the checkpoints of a test.
struct scratch {
  std::filesystem::path path;
  explicit scratch(const std::string& name)
      : path(std::filesystem::temp_directory_path() / fmt::format("tessera_{}_{}", name, ::getpid())) {
    std::filesystem::create_directories(path);
  }
  ~scratch() { std::filesystem::remove_all(path); }
};

template <class In, class Net, class Team>
void train(Team& t, Net& net, torch::optim::Adam& optimizer, int steps) {
  const at::Tensor x = global_of({7, 5}, numbers{3});
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    sum(net(distribute<In>(t, x)) * net(distribute<In>(t, x))).backward();
    optimizer.step();
  }
}

TEST_CASE("five steps, a checkpoint and five steps on another mesh are ten steps", "[law]") {
  const scratch folder("steps");
  const auto begun = in_team<square>([&](auto& t) {
    square_net net{t, seed{3}};
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.05));
    std::int64_t n = 5;
    nn::checkpoint all{{"net", net}, {"optimizer", optimizer}, {"step", n}};
    train<on_square_in>(t, net, optimizer, 5);
    all.save(folder.path);
    train<on_square_in>(t, net, optimizer, 5);
    return nn::state_of(net);
  });
  INFO(begun.errors());
  REQUIRE(begun.well());
  const auto ended = in_team<three>([&](auto& t) {
    three_net net{t, seed{8}};
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.5));
    std::int64_t n = 0;
    nn::checkpoint all{{"net", net}, {"optimizer", optimizer}, {"step", n}};
    const index_t read = all.load(folder.path);
    train<on_three_in>(t, net, optimizer, static_cast<int>(n));
    return std::make_pair(nn::state_of(net), read);
  });
  INFO(ended.errors());
  REQUIRE(ended.well());
  index_t read = 0;
  for (const auto& r : ended.results) read += r->second;
  CHECK(read == 3 * 8 * (6 * 5 + 6 + 4 * 6 + 4));  // weights and two states of Adam, each element once
  for (const auto& [key, w] : begun.of(0)) CHECK(at::allclose(ended.of(0).first.at(key), w, 1e-12, 1e-12));
}

}  // namespace
}  // namespace tessera::testing
