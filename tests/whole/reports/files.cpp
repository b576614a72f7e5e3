#include "beside_serial.hpp"

#include <torch/optim/sgd.h>
#include <unistd.h>
#include <tessera/nn/file/weights_file.hpp>

#include <filesystem>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// States that are saved and loaded.

namespace {

/// A file that is gone with its test.
struct file_for_now {
  std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("tessera_reports_{}", ::getpid());
  ~file_for_now() { std::filesystem::remove(path); }
};

/// An embedding whose table is the projection's too, and a layer with one large weight and small ones.
auto classifier_of(index_t rows, index_t features, bool tied) {
  return [=](const std::vector<nn::dynamic_flow>& v) {
    const nn::embedding_layer table{
        .rows = rows, .features = features, .weights_as = element::float64, .cut_in = {"a"}};
    const nn::linear_layer last{.out = rows, .bias = false, .cut_out = {"a"}};
    const auto x = v[0] | nn::shared_under("table", table) | nn::under("wide", nn::linear_layer{.out = features}) |
                   nn::under("norm", nn::layer_norm_layer{});
    return tied ? x | nn::shared_under("table", last) : x | nn::under("last", last);
  };
}

/// Trains a step, saves, and gives the state; or loads and gives what a further step makes of it.
std::map<std::string, at::Tensor> saved_by(const mesh_value& on, const std::filesystem::path& path, index_t rows,
                                           bool tied, bool loads) {
  const auto all = on_workers(on.size(), [&](const std::shared_ptr<transport>& carrier) {
    const team_handle t = std::make_shared<team_state>(carrier, on);
    const layout x = lying(on, {2, 3});
    const trained_net made(t, {{x, element::int64}}, classifier_of(rows, 3, tied));
    torch::optim::SGD optimizer(made.net.parameters(), torch::optim::SGDOptions(0.1));
    const auto step = [&] {
      optimizer.zero_grad();
      go_back(made.net(distribute(t, x, at::arange(6).remainder(rows).view({2, 3}))));
      optimizer.step();
    };
    if (loads) nn::load(made.net, path);
    else step(), nn::save(made.net, path);
    const auto before = nn::state_of(made.net);
    if (!loads) return before;
    step();
    auto after = nn::state_of(made.net);
    for (const auto& [key, w] : before) after.emplace("loaded " + key, w);
    return after;
  });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 1; r < on.size(); ++r)
    for (const auto& [key, w] : all.of(0)) CHECK(same_bits(w, all.of(r).at(key)));
  return all.of(0);
}

}  // namespace

// ColossalAI#6167, #6124: 65535 rows over two were saved as 65536. pytorch#150862: a part without rows took another
// one's place in the file. Megatron-LM#6024, radixark/Megatron-LM#66: padded buffers, and one large parameter among
// small ones, were saved at wrong offsets. verl#6334, lmms-engine#157: a tied table was two after a load.
TEST_CASE("reports: what any number of workers saves any other loads: same keys, same rows, the same next step",
          "[regression][runtime]") {
  const file_for_now file;
  for (const index_t rows : {5, 7})
    for (const bool tied : {false, true})
      for (const mesh_value& saving : {workers(1), workers(4)}) {
        const auto saved = saved_by(saving, file.path, rows, tied, false);
        CHECK(saved.at("table.weight").sizes() == at::IntArrayRef({rows, 3}));
        CHECK(saved.count("last.weight") == (tied ? 0 : 1));
        std::map<std::string, at::Tensor> first;
        for (const mesh_value& loading : {workers(1), workers(2), workers(3), workers(4, 2)}) {
          const auto loaded = saved_by(loading, file.path, rows, tied, true);
          for (const auto& [key, w] : saved) {
            INFO(key << " of " << saving.size() << " loaded by " << loading.size());
            CHECK(same_bits(w, loaded.at("loaded " + key)));
            if (!first.empty()) CHECK(close(first.at(key), loaded.at(key)));
          }
          if (first.empty()) first = loaded;
        }
      }
}
