#include "tests/support/tensors.hpp"

#include <tessera/nn/serial/model_parts.hpp>

namespace tessera::testing::parts_of_models {
namespace {

TEST_CASE("files of parts are named by part and stage where there are several", "[law]") {
  const nn::model_parts both{.tensor = 2, .pipe = 4}, tensors{.tensor = 3}, stages{.pipe = 2}, one{};
  CHECK(both.suffix(1, 2) == "_tp_1_pp_2");
  CHECK(tensors.suffix(2, 0) == "_tp_2");
  CHECK(stages.suffix(0, 1) == "_pp_1");
  CHECK(one.suffix(0, 0).empty());
  CHECK(both.path_of("runs/net.safetensors", 0, 3) == "runs/net_tp_0_pp_3.safetensors");
  CHECK(both.path_of("net", 0, 0) == "net_tp_0_pp_0");
  CHECK(one.path_of("runs/a.b.pth", 0, 0) == "runs/a.b.pth");
  for (const auto& wrong : {std::pair(2, 0), {-1, 0}, {0, 4}, {0, -1}})
    CHECK(told([&] { both.suffix(wrong.first, wrong.second); }) == "tessera.paths.value");
}

TEST_CASE("each layer lies on one stage", "[refusal]") {
  const std::map<std::string, std::vector<index_t>> tensors{{"words.weight", {8, 4}},
                                                            {"blocks.0.fc.weight", {4, 4}},
                                                            {"blocks.1.fc.weight", {4, 4}},
                                                            {"head.weight", {8, 4}}};
  const nn::path_table<int> stages{{"words", 0}, {"blocks.0.**", 0}, {"blocks.1.**", 1}, {"head", 1}};
  const auto code = [&](const nn::model_parts& parts) { return told([&] { parts.check(tensors); }); };
  CHECK(code({.pipe = 2, .stages = stages}) == "none");
  CHECK(nn::model_parts{.pipe = 2, .stages = stages}.stage_of("blocks.1.fc.weight") == 1);
  CHECK(nn::model_parts{}.stage_of("blocks.1.fc.weight") == 0);
  CHECK(code({}) == "none");
  CHECK(code({.pipe = 2}) == "tessera.paths.nothing");
  CHECK(code({.pipe = 2, .stages = {{"**", 0}, {"tail", 1}}}) == "tessera.paths.nothing");
  CHECK(code({.pipe = 2, .stages = {{"**", 0}, {"head", 1}}}) == "tessera.paths.twice");
  CHECK(code({.pipe = 2, .stages = {{"**", 2}}}) == "tessera.paths.value");
  CHECK(code({.tensor = 2, .cuts = {{"tail", {}}}}) == "tessera.paths.nothing");
  CHECK(code({.tensor = 0}) == "tessera.paths.value");
  CHECK(code({.pipe = 0}) == "tessera.paths.value");
}

}  // namespace
}  // namespace tessera::testing::parts_of_models
