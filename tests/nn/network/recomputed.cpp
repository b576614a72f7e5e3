#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What runs again for its backward, and gradients that are scaled: nothing else changes.

namespace {

struct recomputed_samples : dyn {};

template <int D, int M>
struct recomputing {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using images =
      tensor<partition<grid, blocks<data>, whole, blocks<model>>, shape<recomputed_samples, dim<4>, dim<9>>, double>;
};

/// A network with all that a second run could spoil: masks, running statistics, weights that are shared and stored as
/// tiles, terms, results of several parts; what `wrap` makes of each part.
template <class Wrap>
void masked_and_normed(nn::program& p, const tensor_value& image, const Wrap& wrap) {
  const auto x = p.input(image);
  const auto stem = [&](const nn::dynamic_flow& in) {
    const auto y = in | nn::conv_layer{.out = 4, .kernel = {3}, .padding = {1}, .bias = false} |
                   nn::batch_norm_layer{} | nn::dropout_layer{.probability = 0.3};
    return flows{relu(in + y), y};
  };
  const auto tied = [] {
    return nn::shared_under("tied", nn::sharded({"data"}, nn::conv_layer{.out = 4, .kernel = {1}}));
  };
  const auto inner = [&](const nn::dynamic_flow& in) { return in | tied() | nn::dropout_layer{}; };
  const auto outer = [&](const nn::dynamic_flow& in) {
    return tanh(in | wrap(inner)) * in | nn::batch_norm_layer{} | tied();
  };
  const auto [a, b] = x | wrap(stem);
  const auto c = (a * b) | wrap(outer);
  p.output(c | wrap(nn::sharded({"data", "model"}, nn::conv_layer{.out = 3, .kernel = {3}, .padding = {1}})));
  p.output(a | nn::scale_gradient<1, 4>{});
}

/// Outputs, gradients and buffers of three training steps, and of a gradient's gradient.
template <class Images>
std::vector<at::Tensor> lived(const auto& t, nn::dynamic_network& net) {
  std::vector<at::Tensor> all;
  for (const index_t n : {5, 1, 4}) {
    auto x = distribute<Images>(t, global_of({n, 4, 9}, numbers{static_cast<std::uint64_t>(n)}));
    x.requires_grad();
    const auto y = net({x.dynamic()});
    for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
    sum(y[0] * y[0]).backward(true);
    sum(y[1] * y[1] * y[1]).backward(true);
    const at::Tensor first = torch::autograd::grad({sum(y[0] * y[0] * y[0]).local()}, {x.local()}, {}, true, true)[0];
    (first * first).sum().backward();
    all.insert(all.end(), {full_tensor(y[0]).detach(), full_tensor(y[1]).detach(), full_tensor(x.grad())});
    for (const at::Tensor& w : net.parameters()) all.push_back(w.grad().clone());
    net.each_buffer([&](const nn::buffer& b) { all.push_back(b.value().clone()); });
    const at::NoGradGuard no_graph;
    for (at::Tensor w : net.parameters()) w.sub_(w.grad(), 1e-3);
  }
  return all;
}

const auto as_it_is = [](const auto& part) { return part; };
const auto run_again = [](const auto& part) { return nn::recomputed(part); };

template <int D, int M>
void judge_recomputed() {
  using N = recomputing<D, M>;
  const int well = satisfied<typename N::grid>([](auto& t) {
    nn::program p, q;
    masked_and_normed(p, value_of<typename N::images>, as_it_is);
    masked_and_normed(q, value_of<typename N::images>, run_again);
    nn::dynamic_network plain{t, seed{5}, p};
    nn::dynamic_network again{t, seed{5}, q};
    const std::vector<at::Tensor> wanted = lived<typename N::images>(t, plain);
    const std::vector<at::Tensor> got = lived<typename N::images>(t, again);
    if (again.parameters().size() != 9) return false;
    bool same = wanted.size() == got.size() && wanted.size() > 50;
    for (std::size_t i = 0; same && i < wanted.size(); ++i)
      same = wanted[i].numel() == 0 || (wanted[i] - got[i]).abs().max().item<double>() <=
                                           1e-11 * std::max(1.0, wanted[i].abs().max().item<double>());
    return same;
  });
  CHECK(well == D * M);
}

}  // namespace

TEST_CASE(
    "what runs again for its backward learns what it does by itself, to the second order, and assigns its buffers "
    "once",
    "[gradient]") {
  judge_recomputed<1, 1>();
  judge_recomputed<2, 2>();
  judge_recomputed<4, 1>();
}

TEST_CASE(
    "a gradient that is scaled is the serial one times the number, and what runs again gives the serial gradients",
    "[gradient]") {
  using N = recomputing<2, 2>;
  const int well = satisfied<N::grid>([](auto& t) {
    using net_type = nn::network<
        nn::chain<nn::recompute<nn::chain<nn::conv<3, kernel<3>, padding<1>>, nn::relu, nn::scale_gradient<-1, 4>>>,
                  nn::conv<2, kernel<1>>>,
        N::images>;
    const net_type net{t, seed{5}};
    std::map<std::string, at::Tensor> w;
    for (const auto& [key, value] : nn::state_of(net)) w[key] = value.clone().requires_grad_(true);
    const at::Tensor a = global_of({5, 4, 9}, numbers{1}).set_requires_grad(true);
    auto x = distribute<N::images>(t, a.detach());
    x.requires_grad();
    const auto y = net(x);
    sum(y * y).backward();
    const at::Tensor hidden = at::relu(at::conv1d(a, w.at("0.0.weight"), w.at("0.0.bias"), 1, 1));
    const at::Tensor scaled = hidden * -0.25;
    const at::Tensor serial = at::conv1d(hidden.detach() + scaled - scaled.detach(), w.at("1.weight"), w.at("1.bias"));
    (serial * serial).sum().backward();
    bool same = at::allclose(full_tensor(y), serial.detach()) && at::allclose(full_tensor(x.grad()), a.grad());
    net.each_parameter([&](const nn::parameter& p) {
      const tensor<dyn> g(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad());
      same = same && at::allclose(full_tensor(g), w.at(p.path()).grad());
    });
    return same;
  });
  CHECK(well == 4);
}

TEST_CASE(
    "a program of values and one from a file run a part again, which may be some nodes of one name; a stepped "
    "parameter is told",
    "[refusal][gradient]") {
  using N = recomputing<2, 2>;
  constexpr const char* in_a_file = R"({
    "inputs": [{"name": "x", "shape": ["recomputed_samples", 4, 9], "element": "double",
     "dims": [{"blocks": ["data"]}, {"whole": true}, {"blocks": ["model"]}]}],
    "nodes": [
      {"name": "a", "of": "x", "layer": "conv", "out_channels": 3, "kernel_size": 3, "padding": 1,
       "recompute": "block"},
      {"name": "b", "of": "a", "function": "relu", "recompute": "block"},
      {"name": "c", "of": "b", "function": "scale_gradient", "number": -0.25, "recompute": "block"},
      {"name": "y", "of": "c", "layer": "conv", "out_channels": 2, "kernel_size": 1}
    ],
    "outputs": ["y"]
  })";
  const int well = satisfied<N::grid>([&](auto& t) {
    nn::program p, q;
    nn::read_network(p, in_a_file, N::grid::value, "a file");
    const auto x = q.input<N::images>();
    const auto block = [](const nn::dynamic_flow& in) {
      return scale_gradient(relu(in | nn::conv_layer{.out = 3, .kernel = {3}, .padding = {1}}), -0.25);
    };
    q.output(nn::recomputed(block)(x) | nn::conv_layer{.out = 2, .kernel = {1}});
    const auto parts = [](const nn::program& of) {
      const auto made = of.finish();
      return made.view.recomputed_count == 1 && made.view.recomputed[0].first == 0 && made.view.recomputed[0].end == 3;
    };
    const nn::dynamic_network net{t, seed{5}, p};
    const at::Tensor a = global_of({5, 4, 9}, numbers{1});
    auto in = distribute<N::images>(t, a);
    const auto y = net(in);
    {
      const at::NoGradGuard no_graph;
      net.parameters()[0].mul_(2);
    }
    return parts(p) && parts(q) && told([&] { sum(y * y).backward(); }) == "tessera.parameter.changed";
  });
  CHECK(well == 4);
}

namespace recomputed_lookups {

struct words : dyn {};
struct data : axis<2> {};
using grid = mesh<data>;
using indices = tensor<partition<grid, blocks<data>>, shape<words>, std::int64_t>;
struct looked_up {
  constexpr auto operator()(auto x) const {
    return x | nn::embedding<7, 4, max_norm<1, 2>, weights_as<double>>{} | nn::linear<3>{};
  }
};

/// The weights behind two steps, in each of which a part that runs again has looked up rows that were too long.
template <class Part>
nn::state_dict stepped(const team<grid>& t) {
  const nn::network<Part, indices> net{t, seed{5}};
  for (int step = 0; step < 2; ++step) {
    const auto y = net(distribute<indices>(t, at::arange(5, at::kLong) + step));
    sum(y * y).backward();
    nn::reduce_gradients(net);
    const at::NoGradGuard none;
    for (const at::Tensor& w : net.parameters()) {
      w.sub_(w.grad());
      w.mutable_grad().reset();
    }
  }
  return nn::state_of(net);
}

// A second run bounded nothing, but told that rows had changed, and the held weight was taken for stepped.
TEST_CASE("rows of a held table that are bounded run again as they are", "[regression][gradient]") {
  const auto run = in_team<grid>([](const team<grid>& t) {
    using part = nn::recompute<looked_up>;
    const nn::state_dict wanted = stepped<looked_up>(t);
    const auto differs = [&](const nn::state_dict& found) {
      for (auto one = found.begin(), other = wanted.begin(); one != found.end(); ++one, ++other)
        if (!at::allclose(one->second, other->second, 1e-12, 1e-14)) return true;
      return found.size() != wanted.size();
    };
    return differs(stepped<part>(t)) || differs(stepped<nn::sharded_over<part, gathered<gathering::held>>>(t)) ||
           differs(stepped<nn::bundled<part>>(t)) || differs(stepped<nn::bundled<part, data>>(t));
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(!*r);
}

}  // namespace recomputed_lookups
