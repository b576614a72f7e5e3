#include "tests/support/tensors.hpp"

#include <tessera/nn/serial/outermost_modules.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

namespace tessera::testing {
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
  tn::Sequential inner(tn::Linear(2, 3), tn::GELU(), tn::Sequential(tn::Linear(3, 3)));
  tn::Sequential root(tn::Linear(2, 2), inner, tn::GELU());
  CHECK(found<tn::LinearImpl>(*root) == "0 1.0 1.2.0 ");
  CHECK(found<tn::SequentialImpl>(*root) == "1 ");
  CHECK(found<tn::GELUImpl>(*root) == "1.1 2 ");
  CHECK(found<tn::ReLUImpl>(*root).empty());
  const auto all = nn::outermost_modules(*root, [](const tn::Module&) { return true; });
  CHECK(all.size() == 3);
  CHECK(all[1].second == inner.ptr());
}

}  // namespace
}  // namespace tessera::testing
