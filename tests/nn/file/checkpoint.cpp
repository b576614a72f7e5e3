#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>

#include <unistd.h>

#include <fstream>

namespace tessera::testing::checkpoints {
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

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Saves a network once, or as often as is said.
void save_square(const std::filesystem::path& folder, int times = 1) {
  const auto saved = in_team<square>([&](auto& t) {
    square_net net{t, seed{3}};
    std::int64_t n = 7;
    nn::checkpoint all{{"net", net}, {"step", n}};
    for (int i = 0; i < times; ++i) all.save(folder);
    return true;
  });
  INFO(saved.errors());
  REQUIRE(saved.well());
}

TEST_CASE("what is loaded and saved again is the same bytes, and old checkpoints go", "[law]") {
  const scratch folder("again"), other("again2");
  save_square(folder.path, 4);
  CHECK(!std::filesystem::exists(folder.path / "checkpoint_00000002"));
  CHECK(std::filesystem::exists(folder.path / "checkpoint_00000003" / "index.json"));
  const auto again = in_team<square>([&](auto& t) {
    square_net net{t, seed{9}};
    std::int64_t n = 0;
    nn::checkpoint all{{"net", net}, {"step", n}};
    all.load(folder.path);
    all.save(other.path, {.background = true});
    all.finish();
    return true;
  });
  INFO(again.errors());
  REQUIRE(again.well());
  for (const auto& f : std::filesystem::directory_iterator(folder.path / "checkpoint_00000004"))
    CHECK(bytes_of(f.path()) == bytes_of(other.path / "checkpoint_00000001" / f.path().filename()));
}

TEST_CASE("a bad checkpoint is one error on every worker, and changes nothing", "[refusal]") {
  const scratch folder("bad");
  save_square(folder.path);
  const auto here = folder.path / "checkpoint_00000001";
  const auto index = here / "index.json", file = here / "worker_0.safetensors";
  const auto refused = [&](const std::string& code) {
    const auto said = in_team<three>([&](auto& t) {
      three_net net{t, seed{9}};
      const nn::state_dict before = nn::state_of(net);
      std::int64_t n = 0;
      nn::checkpoint all{{"net", net}, {"step", n}};
      const std::string is = told([&] { all.load(folder.path); });
      const nn::state_dict after = nn::state_of(net);
      bool same = n == 0;
      for (const auto& [key, w] : before) same = same && at::equal(w, after.at(key));
      return same ? is : "changed";
    });
    for (const auto& r : said.results) CHECK(r.value_or("lost") == code);
  };
  const auto with = [&](const std::filesystem::path& path, const std::string& bytes, const std::string& code) {
    const std::string was = bytes_of(path);
    std::ofstream(path, std::ios::binary) << bytes;
    refused(code);
    std::ofstream(path, std::ios::binary) << was;
  };
  refused("changed");  // that is, loaded
  std::string text = bytes_of(index);
  with(index, text.substr(0, text.size() / 2), "tessera.file.altered");
  std::string other = text;
  other.replace(other.find("\"version\":1"), 11, "\"version\":2");
  with(index, other, "tessera.checkpoint.version");
  other = text;
  other.replace(other.find("\"value\":7"), 9, "\"value\":8");
  with(index, other, "tessera.file.altered");
  std::string data = bytes_of(file);
  data.back() = static_cast<char>(data.back() ^ 1);
  with(file, data, "tessera.file.altered");
  with(file, data.substr(0, data.size() - 9), "tessera.file.truncated");
  std::filesystem::rename(file, folder.path / "gone");
  refused("tessera.file.missing");
  std::filesystem::rename(folder.path / "gone", file);
  std::filesystem::remove(index);
  refused("tessera.checkpoint.missing");
}

TEST_CASE("entries that no checkpoint can have are refused", "[refusal]") {
  const scratch folder("entries");
  const auto codes = in_team<square>([&](auto& t) {
    square_net net{t, seed{3}}, stranger{t, seed{4}};
    std::int64_t n = 7;
    torch::optim::Adam optimizer(stranger.parameters());
    torch::optim::LBFGS whole(net.parameters());
    std::string all = told([&] { nn::checkpoint{{"net", net}, {"net", n}}; });
    all += " " + told([&] { nn::checkpoint{{"net", net}, {"optimizer", whole}}; });
    nn::checkpoint of_others{{"net", net}, {"optimizer", optimizer}};
    all += " " + told([&] { of_others.save(folder.path); });
    nn::checkpoint background{{"net", net}};
    background.save(folder.path, {.background = true});
    const auto file = folder.path / "checkpoint_00000001" / fmt::format("worker_{}.safetensors", t.rank());
    while (!std::filesystem::exists(file)) ::usleep(1000);
    std::filesystem::remove(file);
    return all + " " + told([&] { background.finish(); });
  });
  for (const auto& r : codes.results)
    CHECK(r.value_or("lost") ==
          "tessera.checkpoint.entry tessera.checkpoint.optimizer tessera.checkpoint.leaves tessera.checkpoint.folder");
}

}  // namespace
}  // namespace tessera::testing::checkpoints
