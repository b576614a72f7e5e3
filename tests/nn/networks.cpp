#include "tests/support/tensors.hpp"

#include <tessera/nn/weights_file.hpp>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace tessera;
using namespace tessera::testing;

namespace {

struct sample : dyn {};

/// A convolutional classifier on R x C workers: images cut over height and width, then features over all.
template <int R, int C>
struct image_net {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using input = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>, shape<sample, dim<2>, dim<7>, dim<6>>, double>;
  using channels = partition<grid, whole, blocks<up, across>, whole, whole>;
  using labels = tensor<partition<grid, whole, invariant<up, across>>, shape<sample>, std::int64_t>;
  using net = nn::sequential<input, nn::conv<3, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::max_pool<kernel<2, 2>>, nn::repartition<channels>,
                             nn::flatten, nn::linear<6>, nn::relu, nn::linear<4>>;
};

/// The same keys and shapes with samples cut: a repartition has no number, as the serial model has none.
template <int R, int C>
struct sample_net {
  using base = image_net<R, C>;
  using grid = typename base::grid;
  using input = tensor<partition<grid, blocks<typename base::up>, whole, whole, whole>, shape<sample, dim<2>, dim<7>, dim<6>>, double>;
  using labels = tensor<partition<grid, blocks<typename base::up>>, shape<sample>, std::int64_t>;
  using net = nn::sequential<input, nn::conv<3, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::max_pool<kernel<2, 2>>, nn::flatten,
                             nn::linear<6>, nn::relu, nn::linear<4>>;
};

/// The same again, with the first linear layer's result, its bias and all behind it on another mesh.
template <int R, int C>
struct two_mesh_net {
  struct around : axis<R * C> {};
  using base = image_net<R, C>;
  using grid = typename base::grid;
  using input = typename base::input;
  using ring = mesh<around>;
  using labels = tensor<partition<ring, whole, invariant<around>>, shape<sample>, std::int64_t>;
  using net = nn::sequential<input, nn::conv<3, kernel<3, 3>, padding<1, 1>>, nn::relu, nn::max_pool<kernel<2, 2>>,
                             nn::repartition<typename base::channels>, nn::flatten,
                             nn::linear<6, output_as<partition<ring, whole, blocks<around>>>>, nn::relu, nn::linear<4>>;
};

at::Tensor serial_loss(const at::Tensor& x, const at::Tensor& labels, const nn::state_dict& w) {
  at::Tensor y = at::relu(at::conv2d(x, w.at("0.weight"), w.at("0.bias"), at::IntArrayRef({1, 1}), at::IntArrayRef({1, 1})));
  y = at::max_pool2d(y, {2, 2}).flatten(1);
  y = at::linear(at::relu(at::linear(y, w.at("4.weight"), w.at("4.bias"))), w.at("6.weight"), w.at("6.bias"));
  return at::cross_entropy_loss(y, labels);
}

struct training_run {
  nn::state_dict start;
  nn::state_dict end;
  double worst = 0;  ///< largest difference of a loss or an input gradient from the serial run
};

/// A few steps of a network beside the serial one.
template <class N>
training_run trained(const team<typename N::grid>& workers, index_t samples) {
  typename N::net net{workers, seed{5}};
  training_run run;
  run.start = nn::state_of(net);
  nn::state_dict w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : run.start) leaves.push_back(w[key] = t.clone().requires_grad_(true));
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.1).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(leaves, options);
  for (int step = 0; step < 3; ++step) {
    const index_t n = step == 1 ? samples + 2 : samples;  // another batch, another binding
    const at::Tensor images = global_of({n, 2, 7, 6}, numbers{static_cast<std::uint64_t>(step)});
    const at::Tensor labels = at::arange(n, at::kLong).mul(3).remainder(4);
    ours.zero_grad();
    theirs.zero_grad();
    auto x = take<typename N::input>(workers, images);
    x.requires_grad();
    const at::Tensor whole_images = images.clone().requires_grad_(true);
    const auto loss = nn::cross_entropy(net(x), take<typename N::labels>(workers, labels));
    const at::Tensor expected = serial_loss(whole_images, labels, w);
    loss.backward();
    expected.backward();
    run.worst = std::max(run.worst, std::abs(value(loss) - expected.item<double>()));
    const at::Tensor gradient = global(x.grad());
    run.worst = std::max(run.worst, (gradient - whole_images.grad()).abs().max().template item<double>());
    ours.step();
    theirs.step();
  }
  run.end = nn::state_of(net);
  for (const auto& [key, t] : run.end) run.worst = std::max(run.worst, (t - w.at(key)).abs().max().template item<double>());
  return run;
}

bool same_state(const nn::state_dict& a, const nn::state_dict& b) {
  bool same = a.size() == b.size();
  for (const auto& [key, t] : a) same = same && b.count(key) == 1 && same_bits(t, b.at(key));
  return same;
}

template <class N>
void judge_training(index_t samples, const nn::state_dict& start) {
  const auto run = in_team<typename N::grid>([&](auto& workers) { return trained<N>(workers, samples); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    CHECK(r->worst < 1e-12);
    CHECK(same_state(r->start, start));
    CHECK(same_state(r->end, run.of(0).end));
  }
}

struct scratch_file {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("tessera_test_{}.safetensors", ::getpid());
  ~scratch_file() { std::filesystem::remove(path); }
  std::string bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
};

using saver = image_net<2, 2>;
using loader = sample_net<3, 1>;

/// What loading a file into a network that differs from it comes to: the code on each worker, and whether nothing changed.
struct loaded {
  std::string code;
  bool kept = false;
};

}  // namespace

TEST_CASE("networks train to the serial losses, gradients and weights on any partition, from the same bits") {
  const auto alone = in_team<image_net<1, 1>::grid>([](auto& t) { return nn::state_of(image_net<1, 1>::net{t, seed{5}}); });
  REQUIRE(alone.well());
  const nn::state_dict& start = alone.of(0);
  judge_training<image_net<1, 1>>(5, start);
  judge_training<image_net<2, 2>>(3, start);
  judge_training<image_net<1, 4>>(4, start);
  judge_training<sample_net<3, 1>>(2, start);  // fewer samples than workers
  judge_training<two_mesh_net<2, 2>>(3, start);
}

TEST_CASE("weights saved from one partition load into another, bit for bit") {
  const scratch_file file;
  const auto saved = in_team<saver::grid>([&](auto& t) {
    const saver::net net{t, seed{8}};
    nn::save(net, file.path);
    return nn::state_of(net);
  });
  REQUIRE(saved.well());
  const auto read = in_team<loader::grid>([&](auto& t) {
    loader::net net{t, seed{9}};
    nn::load(net, file.path);
    return nn::state_of(net);
  });
  INFO(read.errors());
  REQUIRE(read.well());
  for (const auto& r : read.results) CHECK(same_state(*r, saved.of(0)));
  CHECK_FALSE(std::filesystem::exists(file.path.string() + ".part"));
}

TEST_CASE("a weights file that is missing, truncated, altered or foreign is one error on every worker, and nothing changes") {
  const scratch_file file;
  const auto saved = in_team<saver::grid>([&](auto& t) {
    nn::save(saver::net{t, seed{8}}, file.path);
    return true;
  });
  REQUIRE(saved.well());
  const std::string good = file.bytes();
  std::string altered = good;
  altered[altered.size() - 3] ^= 1;
  std::string renamed = good;
  renamed.replace(renamed.find("6.bias"), 6, "8.bias");
  std::string reshaped = good;
  const auto at = reshaped.find("[3,2,3,3]");
  REQUIRE(at != std::string::npos);
  reshaped.replace(at, 9, "[2,3,3,3]");
  std::string endless = good;
  for (int i = 0; i < 8; ++i) endless[static_cast<std::size_t>(i)] = '\x7f';
  nn::write_state(file.path, {{"0.weight", at::zeros({2, 3})}});
  const std::string other = file.bytes();  // whole, but of another network
  const std::pair<std::string, const char*> cases[]{
      {"", "tessera.file.truncated"},
      {good.substr(0, 5), "tessera.file.truncated"},
      {good.substr(0, 100), "tessera.file.truncated"},
      {good.substr(0, good.size() - 1), "tessera.file.truncated"},
      {altered, "tessera.file.altered"},
      {renamed, "tessera.file.altered"},
      {reshaped, "tessera.file.altered"},
      {other, "tessera.network.parameters"},
      {endless, "tessera.file.format"},
      {"this is a text that is certainly longer than eight bytes", "tessera.file.format"},
      {std::string("\x02\0\0\0\0\0\0\0{}", 10), "tessera.file.format"},
  };
  const auto attempt = [&](const std::filesystem::path& path) {
    return in_team<loader::grid>([&](auto& t) {
      loader::net net{t, seed{9}};
      const nn::state_dict before = nn::state_of(net);
      loaded l;
      try {
        nn::load(net, path);
      } catch (const error& e) {
        l.code = e.code();
      }
      l.kept = same_state(before, nn::state_of(net));
      return l;
    });
  };
  for (const auto& [bytes, code] : cases) {
    file.write(bytes);
    const auto all = attempt(file.path);
    INFO(code << " of " << bytes.size() << " bytes: " << all.errors());
    REQUIRE(all.well());
    for (const auto& r : all.results) {
      CHECK(r->code == code);
      CHECK(r->kept);
    }
  }
  const auto unlike = in_team<loader::grid>([&](auto& t) {
    loader::net net{t, seed{9}};
    nn::state_dict state = nn::state_of(net);
    state.at("6.bias") = at::zeros({2, 9}, at::kDouble);
    try {
      nn::assign(net, state);
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  });
  for (const auto& said : unlike.results) CHECK(said->find("6.bias is Double[2, 9] and not Double[") != std::string::npos);
  for (const auto& r : attempt(file.path.string() + ".nowhere").results) {
    REQUIRE(r);
    CHECK(r->code == "tessera.file.missing");
    CHECK(r->kept);
  }
}
