#include "tests/support/copied.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/serial/cut_state.hpp>

namespace tessera::testing::cut_states {
namespace {

/// A model with biases, vectors, numbers and a weight of queries, keys and values.
nn::state_dict model() {
  return {{"blocks.0.qkv.weight", global_of({15, 4}, numbers{1})},
          {"blocks.0.qkv.bias", global_of({15}, numbers{2})},
          {"blocks.0.proj.weight", global_of({4, 5}, numbers{3})},
          {"blocks.0.proj.bias", global_of({4}, numbers{4})},
          {"blocks.0.norm.weight", global_of({4}, numbers{5})},
          {"norm.steps", at::scalar_tensor(7, at::kLong)},
          {"conv.weight", global_of({3, 7, 2, 2}, numbers{6})},
          {"conv.bias", global_of({3}, numbers{7})},
          {"weight", global_of({6, 2}, numbers{8})}};
}
const nn::cut_table table{{"blocks.*.qkv", {.dimension = 0, .joined = 3}},
                          {"blocks.*.proj", {.dimension = 1}},
                          {"conv", {.dimension = 1}},
                          {"", {}}};

/// A part of a tensor, element by element: that of a layout over a mesh of one axis.
at::Tensor part_by_layout(const at::Tensor& t, int dimension, int parts, int part) {
  mesh_value m;
  m.axes.push({text("parts"), parts});
  layout x = copied(row_major(m), t.sizes().vec());
  x.cut_by(dimension, 0);
  const interval mine = box_of(x, part)[dimension];
  std::vector<at::Tensor> slices;
  for (index_t i = mine.lo; i < mine.hi; ++i) slices.push_back(t.select(dimension, i));
  std::vector<index_t> none = t.sizes().vec();
  none[static_cast<std::size_t>(dimension)] = 0;
  return slices.empty() ? at::empty(none, t.options()) : at::stack(slices, dimension);
}

TEST_CASE("parts of a state are those of a layout, and make up the state", "[law]") {
  const nn::state_dict whole = model();
  for (int parts = 1; parts <= 8; ++parts) {
    std::vector<nn::state_dict> all;
    for (int r = 0; r < parts; ++r) {
      all.push_back(nn::cut_state(whole, table, parts, r));
      const nn::state_dict& mine = all.back();
      CHECK(mine.size() == whole.size());
      for (const char* key : {"blocks.0.proj.bias", "blocks.0.norm.weight", "norm.steps", "conv.bias"})
        CHECK(at::equal(mine.at(key), whole.at(key)));
      CHECK(at::equal(mine.at("weight"), part_by_layout(whole.at("weight"), 0, parts, r)));
      for (const char* key : {"blocks.0.proj.weight", "conv.weight"})
        CHECK(at::equal(mine.at(key), part_by_layout(whole.at(key), 1, parts, r)));
      for (const char* key : {"blocks.0.qkv.weight", "blocks.0.qkv.bias"}) {
        std::vector<at::Tensor> thirds;
        for (const at::Tensor& third : whole.at(key).chunk(3)) thirds.push_back(part_by_layout(third, 0, parts, r));
        CHECK(at::equal(mine.at(key), at::cat(thirds)));
      }
    }
    const nn::state_dict again = nn::joined_state(all, table);
    CHECK(again.size() == whole.size());
    for (const auto& [key, t] : whole) CHECK(at::equal(again.at(key), t));
  }
}

TEST_CASE("tables that a model cannot have are refused", "[refusal]") {
  const auto code = [](const nn::cut_table& t, int parts = 2, int part = 0) {
    return told([&] { nn::cut_state(model(), t, parts, part); });
  };
  CHECK(code(table) == "none");
  CHECK(code({{"blocks", {}}}) == "tessera.paths.nothing");
  CHECK(code({{"conv.weight", {}}}) == "tessera.paths.nothing");
  CHECK(code({{"blocks.*.qkv", {}}, {"blocks.0.*", {}}}) == "tessera.paths.twice");
  CHECK(code({{"blocks.0.norm", {.dimension = 1}}}) == "tessera.paths.value");
  CHECK(code({{"norm", {}}}) == "tessera.paths.value");
  CHECK(code({{"conv", {.dimension = -1}}}) == "tessera.paths.value");
  CHECK(code({{"conv", {.dimension = 1, .joined = 2}}}) == "tessera.paths.value");
  CHECK(code({{"conv", {.dimension = 1, .joined = 0}}}) == "tessera.paths.value");
  for (const auto& [parts, part] : {std::pair(0, 0), {2, 2}, {2, -1}})
    CHECK(code(table, parts, part) == "tessera.paths.value");
}

TEST_CASE("parts that are none of one state are refused", "[refusal]") {
  const auto code = [](const auto& change) {
    std::vector<nn::state_dict> parts{nn::cut_state(model(), table, 2, 0), nn::cut_state(model(), table, 2, 1)};
    change(parts);
    return told([&] { nn::joined_state(parts, table); });
  };
  CHECK(code([](auto&) {}) == "none");
  CHECK(code([](auto& p) { p.clear(); }) == "tessera.paths.value");
  CHECK(code([](auto& p) { std::swap(p[0], p[1]); }) == "tessera.paths.value");  // the first part is the longer one
  CHECK(code([](auto& p) { p[1].erase("weight"); }) == "tessera.network.parameters");
  CHECK(code([](auto& p) { p[1]["more"] = p[1].at("weight"); }) == "tessera.network.parameters");
  CHECK(code([](auto& p) { p[1]["weight"] = p[1].at("weight").to(at::kFloat); }) == "tessera.paths.value");
  CHECK(code([](auto& p) { p[1]["weight"] = p[1].at("weight").reshape({-1}); }) == "tessera.paths.value");
  CHECK(code([](auto& p) { p[1]["conv.bias"] = p[1].at("conv.bias") + 1; }) == "tessera.agree.copies");
}

}  // namespace
}  // namespace tessera::testing::cut_states
