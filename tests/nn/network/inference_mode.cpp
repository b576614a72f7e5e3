#include "tests/support/tensors.hpp"

#include <tessera/nn/gradient/reduce_gradients.hpp>

#include <c10/core/InferenceMode.h>

namespace tessera::testing::inference_mode {

using namespace engine;

namespace {

struct data : axis<2> {};
struct samples : dyn {};
using rows = tensor<partition<mesh<data>, blocks<data>, whole>, shape<samples, dim<5>>, double>;
using images =
    tensor<partition<mesh<data>, whole, whole, blocks<data>, whole>, shape<samples, dim<4>, dim<12>, dim<12>>, double>;
using body = nn::chain<nn::linear<7>, nn::relu, nn::linear<3>>;
using windows = nn::chain<nn::conv<4, kernel<3, 3>, padding<1, 1>, padding_mode<boundary::reflect>>,
                          nn::avg_pool<kernel<3, 3>, stride<1, 1>, padding<1, 1>, exclude_padding>, nn::batch_norm<>,
                          nn::upsample<factor<2, 2>>, nn::max_pool<kernel<2, 2>>>;

/// The gradients of all parameters, behind a call without a graph or not.
template <class Net, class Team>
std::vector<at::Tensor> gradients(const Team& t, const at::Tensor& global, bool infers) {
  Net net{t, seed{3}};
  const auto x = distribute<typename Net::input>(t, global);
  if (infers) {
    const c10::InferenceMode no_graphs;
    net.eval();
    net(x);
    net.train();
  }
  const auto y = net(x);
  sum(y * y).backward();
  nn::reduce_gradients(net);
  std::vector<at::Tensor> all;
  for (const at::Tensor& w : net.parameters()) all.push_back(w.grad());
  return all;
}
template <class Module, class In>
std::string differs(const std::vector<index_t>& extents) {
  using net = nn::network<Module, In>;
  const auto run = in_team<mesh<data>>([&](const auto& t) -> std::string {
    const at::Tensor global = global_of(extents, numbers{1});
    const auto wanted = gradients<net>(t, global, false), found = gradients<net>(t, global, true);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (!found[i].defined() || !found[i].equal(wanted[i])) return fmt::format("the gradient of parameter {}", i);
    return "";
  });
  return run.well() ? *run.results[0] + *run.results[1] : run.errors();
}

}  // namespace

TEST_CASE("a network that was first called in LibTorch's inference mode trains as one that was not",
          "[law][runtime][gradient][regression]") {
  CHECK(differs<body, rows>({6, 5}) == "");
  CHECK(differs<nn::recompute<body>, rows>({6, 5}) == "");
  CHECK(differs<nn::sharded_over<body, data>, rows>({6, 5}) == "");
  CHECK(differs<nn::sharded_over<body, data, gathered<gathering::once>>, rows>({6, 5}) == "");
  CHECK(differs<nn::sharded_over<body, data, gathered<gathering::held>>, rows>({6, 5}) == "");
  CHECK(differs<nn::bundled<body>, rows>({6, 5}) == "");
  CHECK(differs<nn::bundled<body, data>, rows>({6, 5}) == "");
  CHECK(differs<windows, images>({2, 4, 12, 12}) == "");
}

}  // namespace tessera::testing::inference_mode
