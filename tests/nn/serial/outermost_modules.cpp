#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/serial/outermost_modules.hpp>

namespace tessera::testing::outermost {
namespace {

template <class Module>
std::string found(const torch::nn::Module& root) {
  std::string all;
  for (const auto& [path, module] : nn::outermost_modules(
           root, [](const torch::nn::Module& m) { return dynamic_cast<const Module*>(&m) != nullptr; }))
    all += path + " ";
  return all;
}

TEST_CASE("modules are found with their paths, and none inside of another one", "[law]") {
  namespace tn = torch::nn;
  // A container of LibTorch takes no other one as it is.
  struct block : tn::Module {
    explicit block(const std::vector<std::shared_ptr<tn::Module>>& inside) {
      for (const auto& m : inside) register_module(fmt::format("{}", children().size()), m);
    }
  };
  using all_of = std::vector<std::shared_ptr<tn::Module>>;
  const auto linear = [] { return tn::Linear(2, 2).ptr(); };
  const auto innermost = std::make_shared<block>(all_of{linear()});
  const auto inner = std::make_shared<block>(all_of{linear(), tn::GELU().ptr(), innermost});
  const block root(all_of{linear(), inner, tn::GELU().ptr()});
  CHECK(found<tn::LinearImpl>(root) == "0 1.0 1.2.0 ");
  CHECK(found<block>(root) == "1 ");
  CHECK(found<tn::GELUImpl>(root) == "1.1 2 ");
  CHECK(found<tn::ReLUImpl>(root).empty());
  const auto all = nn::outermost_modules(root, [](const tn::Module&) { return true; });
  CHECK(all.size() == 3);
  CHECK(all[1].second == inner);
}

}  // namespace
}  // namespace tessera::testing::outermost
