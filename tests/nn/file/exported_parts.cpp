#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/file/weights_file.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

// A checkpoint as files of the parts of a model.

namespace tessera::testing::exported_parts {
namespace {

struct samples : dyn {};
struct data : axis<2> {};
struct model : axis<2> {};
using grid = mesh<data, model>;
using inputs = tensor<partition<grid, blocks<data>, whole, invariant<model>>, shape<samples, dim<5>>, double>;
using net_type = nn::network<nn::sharded_over<nn::chain<nn::linear<7, cut_out<model>>, nn::relu,
                                                        nn::linear<6, cut_in<model>>, nn::layer_norm<>, nn::linear<3>>,
                                              data>,
                             inputs>;

/// A folder with a checkpoint, and what else a test writes there.
struct saved {
  std::filesystem::path path;

  explicit saved(const std::string& name)
      : path(std::filesystem::temp_directory_path() / fmt::format("tessera_exported_{}_{}", name, ::getpid())) {
    std::filesystem::create_directories(path / "out");
    const auto run = in_team<grid>([&](auto& t) {
      net_type net{t, seed{3}};
      nn::checkpoint{{"net", net}}.save(path / "run");
      return true;
    });
    if (!run.well()) throw std::runtime_error(run.errors());
  }
  ~saved() { std::filesystem::remove_all(path); }

  void write(const nn::model_parts& parts) const {
    nn::export_checkpoint(path / "run", "net", path / "out" / "net.safetensors", parts);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& f : std::filesystem::directory_iterator(path / "out")) all.push_back(f.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  nn::state_dict read(const std::string& name) const { return nn::read_state(path / "out" / name); }
};

const nn::cut_table cuts{{"0", {.dimension = 0}}, {"2", {.dimension = 1}}, {"4", {.dimension = 0}}};
const nn::path_table<int> stages{{"0", 0}, {"2", 0}, {"3", 1}, {"4", 1}};

// [ranks]
/// Writes a model of two blocks for 2 × 2 workers that cut its tensors and share its stages.
void export_for_ranks(const std::filesystem::path& folder, const std::filesystem::path& path) {
  const nn::model_parts parts{
      .tensor = 2,
      .pipe = 2,
      .cuts = {{"blocks.*.qkv", {.dimension = 0, .joined = 3}}, {"blocks.*.proj", {.dimension = 1}}},
      .stages = {{"words", 0}, {"blocks.0.**", 0}, {"blocks.1.**", 1}, {"head", 1}}};
  nn::export_checkpoint(folder, "net", path, parts);
}
// [end]

TEST_CASE("a model of blocks is exported for the ranks of another system", "[law]") {
  const saved here("blocks");
  torch::nn::Module net, blocks;
  const auto add = [](torch::nn::Module& to, const std::string& name, auto layer) {
    layer->to(at::kDouble);
    to.register_module(name, layer);
  };
  add(net, "words", torch::nn::Embedding(5, 4));
  for (const char* number : {"0", "1"}) {
    const auto block = std::make_shared<torch::nn::Module>();
    add(*block, "qkv", torch::nn::Linear(4, 12));
    add(*block, "proj", torch::nn::Linear(4, 4));
    blocks.register_module(number, block);
  }
  net.register_module("blocks", std::make_shared<torch::nn::Module>(blocks));
  add(net, "head", torch::nn::Linear(4, 5));
  const auto run = in_team<grid>([&](auto& t) {
    nn::checkpoint{{"net", t, net}}.save(here.path / "blocks");
    return true;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  export_for_ranks(here.path / "blocks", here.path / "out" / "net.pth");
  CHECK(here.files() ==
        std::vector<std::string>{"net_tp_0_pp_0.pth", "net_tp_0_pp_1.pth", "net_tp_1_pp_0.pth", "net_tp_1_pp_1.pth"});
  const at::Tensor qkv = net.named_parameters()["blocks.1.qkv.weight"];
  std::vector<at::Tensor> halves;  // of queries, keys and values
  for (const at::Tensor& third : qkv.chunk(3)) halves.push_back(third.narrow(0, 2, 2));
  CHECK(at::equal(here.read("net_tp_1_pp_1.pth").at("blocks.1.qkv.weight"), at::cat(halves)));
  CHECK(here.read("net_tp_0_pp_1.pth").size() == 6);
}

TEST_CASE("files of parts make up the file of all", "[law]") {
  const saved here("whole");
  here.write({});
  CHECK(here.files() == std::vector<std::string>{"net.safetensors"});
  const nn::state_dict whole = here.read("net.safetensors");
  REQUIRE(whole.size() == 8);
  std::filesystem::remove(here.path / "out" / "net.safetensors");
  for (const int parts : {1, 2, 3, 8}) {
    const nn::model_parts of{.tensor = parts, .pipe = 2, .cuts = cuts, .stages = stages};
    here.write(of);
    std::vector<nn::state_dict> all(static_cast<std::size_t>(parts));
    for (int part = 0; part < parts; ++part)
      for (int stage = 0; stage < 2; ++stage) {
        const std::string name = of.path_of("net.safetensors", part, stage);
        nn::state_dict read = here.read(name);
        CHECK(read.size() == 4);
        for (const auto& [key, t] : read) CHECK((key < "3") == (stage == 0));
        all[static_cast<std::size_t>(part)].merge(read);
        std::filesystem::remove(here.path / "out" / name);
      }
    CHECK(here.files().empty());
    for (int part = 0; part < parts; ++part)
      for (const auto& [key, t] : nn::cut_state(whole, cuts, parts, part))
        CHECK(at::equal(all[static_cast<std::size_t>(part)].at(key), t));
    for (const auto& [key, t] : nn::joined_state(all, cuts)) CHECK(at::equal(whole.at(key), t));
  }
}

TEST_CASE("parts that cannot be written leave no file behind, and keep those that were there", "[refusal]") {
  const saved here("refused");
  const auto code = [&](const nn::model_parts& parts) { return told([&] { here.write(parts); }); };
  CHECK(code({.tensor = 2, .cuts = {{"1", {}}}}) == "tessera.paths.nothing");  // it has no tensors
  CHECK(code({.tensor = 2, .cuts = {{"0", {}}, {"*", {}}}}) == "tessera.paths.twice");
  CHECK(code({.tensor = 2, .cuts = {{"3", {.dimension = 1}}}}) == "tessera.paths.value");
  CHECK(code({.pipe = 2, .stages = {{"0", 0}}}) == "tessera.paths.nothing");
  CHECK(here.files().empty());

  const nn::model_parts two{.tensor = 2, .cuts = cuts};
  here.write(two);
  const auto names = here.files();
  const nn::state_dict before = here.read("net_tp_1.safetensors");
  rlimit was{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &was) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100, was.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &little) == 0);
  const std::string full = code(two);
  ::setrlimit(RLIMIT_FSIZE, &was);
  std::signal(SIGXFSZ, handler);
  CHECK(full == "tessera.file.space");
  CHECK(here.files() == names);
  for (const auto& [key, t] : here.read("net_tp_1.safetensors")) CHECK(at::equal(before.at(key), t));
}

}  // namespace
}  // namespace tessera::testing::exported_parts
