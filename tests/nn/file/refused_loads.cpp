#include "tests/support/tensors.hpp"

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/training/average.hpp>

#include <filesystem>

namespace tessera::testing::refused_loads {

using namespace engine;

namespace {

struct data : axis<2> {};
struct samples : dyn {};
using rows = tensor<partition<mesh<data>, blocks<data>, whole>, shape<samples, dim<5>>, double>;
using network = nn::sequential<rows, nn::linear<7>, nn::relu, nn::linear<3>>;

/// A count that takes back only what is not below its own.
struct rising {
  index_t count = 0;
  nn::state_dict state() const { return {{"count", at::scalar_tensor(count, at::kLong)}}; }
  void load_state(const nn::state_dict& from) {
    const index_t given = from.at("count").item<index_t>();
    if (given < count) throw error(refusal{code::other_parameters, given, count});
    count = given;
  }
};

std::string changes(const team<mesh<data>>& t, const std::filesystem::path& folder) {
  network net{t, seed{3}}, other{t, seed{4}};
  nn::average average(net), kept(other);
  rising small, large{7};
  nn::checkpoint{{"net", net}, {"average", average}, {"count", small}}.save(folder);
  const at::Tensor first = kept.values()[0].lies.local().clone(), weight = other.parameters()[0].detach().clone();
  nn::checkpoint mine{{"net", other}, {"average", kept}, {"count", large}};
  std::string s = told([&] { mine.load(folder); });
  if (!first.equal(kept.values()[0].lies.local())) s += ", averages changed";
  if (!weight.equal(other.parameters()[0]) || large.count != 7) s += ", others changed";
  large.count = 0;
  mine.load(folder);
  if (!kept.values()[0].lies.local().equal(average.values()[0].lies.local())) s += ", averages not loaded";
  return s;
}

}  // namespace

TEST_CASE("a checkpoint that one entry refuses leaves all others as they were, tensors with small state too",
          "[refusal][regression]") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera_refused_loads_{}", ::getpid());
  const auto run = in_team<mesh<data>>([&](const auto& t) { return changes(t, folder); });
  std::filesystem::remove_all(folder);
  INFO(run.errors());
  for (const auto& r : run.results) CHECK(r.value_or("lost") == std::string(code::other_parameters.code));
}

}  // namespace tessera::testing::refused_loads
