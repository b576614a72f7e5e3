// A step of a small GPT over two workers that share the batch, its gradients in bundles and one by one, in turns: what
// moves on the way back, as counted while compiling and as seen, and the ratio of times. Then the whole step of a
// larger transformer over two workers, by samples, by samples with parameters as tiles, and by heads, over half a step
// of plain LibTorch on one of them, in turns.
#include <tessera/tessera.hpp>

#include <ATen/Parallel.h>
#include <torch/optim/adam.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace ts = tessera;
namespace nn = tessera::nn;

namespace {

constexpr int turns = 30, warm = 6;
constexpr ts::index_t tokens = 64, width = 128, words = 512;

struct data : ts::axis<2> {};
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using sequences =
    ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<tokens>>, std::int64_t>;

struct block {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::layer_norm<>{} | nn::heads<4, 4, width / 4>{};
    const auto y = x + (nn::attention<ts::causal>{}(q, k, v) | nn::linear<width>{});
    return y + (gelu(y | nn::layer_norm<>{} | nn::linear<4 * width>{}) | nn::linear<width>{});
  }
};
using gpt = nn::chain<nn::embedding<words, width>, block, block, block, block, nn::layer_norm<>, nn::linear<words>>;
using alone_type = nn::network<gpt, sequences>;
using bundled_type = nn::network<nn::bundled<gpt>, sequences>;

constexpr ts::index_t samples = 8;
constexpr auto alone = ts::traffic<alone_type>(ts::bind<batch>(samples)).backward;
constexpr auto bundled = ts::traffic<bundled_type>(ts::bind<batch>(samples)).reduced;
static_assert(alone.bytes == bundled.bytes);

struct seen {
  double ms = 0;
  ts::index_t messages = 0;
};

template <class Net>
seen step(const ts::team<crew>& team, const Net& net, const at::Tensor& x) {
  for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
  const auto scores = net(ts::distribute<sequences>(team, x));
  const auto loss = ts::sum(scores * scores);
  const ts::index_t before = team.state()->total.messages;
  const auto began = std::chrono::steady_clock::now();
  loss.backward();
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  return {ms, team.state()->total.messages - before};
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// The transformer whose whole step is timed.
namespace wide {

constexpr int turns = 15, warm = 3;
constexpr ts::index_t rows = 16, length = 128, width = 256, heads = 8, key_heads = 4, features = 32, hidden = 1024,
                      bytes = 256;

struct table;
struct order;

template <int Data, int Model, bool Tiles = false>
struct model {
  struct samples : ts::axis<Data> {};
  struct split : ts::axis<Model> {};
  using grid = ts::mesh<samples, split>;
  using stream = ts::partition<grid, ts::blocks<samples>, ts::whole, ts::whole, ts::invariant<split>>;
  using tokens = ts::tensor<ts::partition<grid, ts::blocks<samples>, ts::whole, ts::invariant<split>>,
                            ts::shape_of<rows, length>, std::int64_t>;
  using places = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<split>>, ts::shape_of<length>, std::int64_t>;
  using column = ts::cut_out<split>;
  using row = ts::cut_in<split>;

  struct normalised {
    constexpr auto operator()(auto x) const { return x * rsqrt(ts::mean<2>(square(x), ts::keep_dims) + 1e-5); }
  };
  struct block {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = normalised{}(x) | nn::heads<heads, key_heads, features, column>{};
      const auto y = x + (nn::attention<ts::causal>{}(q, k, v) | nn::linear<width, row, ts::output_as<stream>>{});
      const auto [gate, up] = normalised{}(y) | nn::gated<hidden, column>{};
      return y + (silu(gate) * up | nn::linear<width, row, ts::output_as<stream>>{});
    }
  };
  struct transformer {
    constexpr auto operator()(auto inputs, auto where, auto labels) const {
      const auto begin = (inputs | nn::shared<table, nn::embedding<bytes, width>>{}) +
                         (where | nn::named<order, nn::embedding<length, width>>{});
      const auto end = normalised{}(begin | block{} | block{} | block{} | block{});
      const auto scores = end | nn::shared<table, nn::linear<bytes, ts::no_bias>>{};
      return ts::flows{ts::flatten<0, 1>(scores), ts::flatten<0, 1>(labels)};
    }
  };
  using in_tiles = nn::sharded_over<transformer, samples, ts::gathered<ts::gathering::once>>;
  using network = nn::network<std::conditional_t<Tiles, in_tiles, transformer>, tokens, places, tokens>;
};

using weights = std::map<std::string, at::Tensor>;

at::Tensor normalised(const at::Tensor& x) { return x * at::rsqrt(at::square(x).mean(-1, true) + 1e-5); }

/// The loss in plain LibTorch.
at::Tensor serial_loss(const weights& w, const at::Tensor& inputs, const at::Tensor& labels) {
  at::Tensor x = at::embedding(w.at("table.weight"), inputs) + w.at("order.weight");
  for (const char* path : {"0.", "1.", "2.", "3."}) {
    const auto linear = [&](const at::Tensor& in, const std::string& key) {
      return at::linear(in, w.at(path + key + ".weight"), w.at(path + key + ".bias"));
    };
    const auto by_head = [](const at::Tensor& t, std::int64_t repeated) {
      return t.unflatten(-1, {-1, features}).transpose(1, 2).repeat_interleave(repeated, 1);
    };
    const auto qkv =
        linear(normalised(x), "0").split_with_sizes({heads * features, key_heads * features, key_heads * features}, -1);
    const at::Tensor a = at::scaled_dot_product_attention(by_head(qkv[0], 1), by_head(qkv[1], heads / key_heads),
                                                          by_head(qkv[2], heads / key_heads), std::nullopt, 0, true);
    const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), "1");
    const auto both = linear(normalised(y), "2").chunk(2, -1);
    x = y + linear(at::silu(both[0]) * both[1], "3");
  }
  return at::cross_entropy_loss(at::linear(normalised(x), w.at("table.weight")).flatten(0, 1), labels.flatten());
}

double since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Times both steps and their optimizers in turns and prints the ratio of medians. Weights and batches are the same,
/// and so are the losses.
template <class Cut>
void timed(const ts::team<typename Cut::grid>& team, const char* cut) {
  at::set_num_threads(1);
  typename Cut::network net{team, ts::seed{7}};
  nn::state_dict initial = nn::state_of(net);
  for (const char* key : {"table.weight", "order.weight"}) initial.at(key) *= 0.02;
  nn::assign(net, initial);
  weights w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : initial) leaves.push_back(w[key] = t.clone().set_requires_grad(true));
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(3e-3)),
      serial_optimizer(leaves, torch::optim::AdamOptions(3e-3));
  const auto where = ts::distribute<typename Cut::places>(team, at::arange(length, at::kLong));
  std::vector<double> together, alone, stepping, stepping_alone;
  for (int i = 0; i < turns; ++i) {
    const at::Tensor text =
        ((at::arange(rows * length + 1, at::kLong) + i * 7919) * 7919).remainder(104729).remainder(bytes);
    const at::Tensor inputs = text.narrow(0, 0, rows * length).view({rows, length}),
                     labels = text.narrow(0, 1, rows * length).view({rows, length});
    const auto x = ts::distribute<typename Cut::tokens>(team, inputs);
    const auto y = ts::distribute<typename Cut::tokens>(team, labels);
    team.state()->collect(std::uint64_t{0}, "both are here");
    const auto began = std::chrono::steady_clock::now();
    optimizer.zero_grad();
    const auto [scores, wanted] = net(x, where, y);
    const auto loss = nn::cross_entropy(scores, wanted);
    loss.backward();
    const auto stepped = std::chrono::steady_clock::now();
    optimizer.step();
    if (i >= warm) stepping.push_back(since(stepped));
    const double mine = ts::item(loss);
    team.state()->collect(std::uint64_t{0}, "both have stepped");
    if (i >= warm) together.push_back(since(began));
    double serial = 0;
    if (team.first()) {
      const auto begun = std::chrono::steady_clock::now();
      serial_optimizer.zero_grad();
      const at::Tensor serial_loss_now = serial_loss(w, inputs, labels);
      serial_loss_now.backward();
      const auto alone_stepped = std::chrono::steady_clock::now();
      serial_optimizer.step();
      if (i >= warm) {
        stepping_alone.push_back(since(alone_stepped));
        alone.push_back(since(begun));
      }
      serial = serial_loss_now.item<double>();
    }
    team.state()->collect(std::uint64_t{0}, "the serial step is done");
    if (team.first() && !(std::abs(serial - mine) < 1e-2)) throw std::runtime_error("other losses");
  }
  if (team.first())
    fmt::print(
        "{{\"benchmark\": \"training\", \"step\": \"{}\", \"seconds\": {:.4f}, \"serial_seconds\": {:.4f}, "
        "\"optimizer_seconds\": {:.4f}, \"serial_optimizer_seconds\": {:.4f}, \"over_half_a_serial_step\": {:.3f}}}\n",
        cut, median(together), median(alone), median(stepping), median(stepping_alone),
        median(together) / (median(alone) / 2));
}

}  // namespace wide

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    const alone_type one_by_one{team, ts::seed{1}};
    const bundled_type together{team, ts::seed{1}};
    const at::Tensor x = at::arange(samples * tokens).remainder(words).view({samples, tokens});
    std::vector<double> ratios;
    ts::index_t messages = 0, fewer = 0;
    for (int i = 0; i < turns; ++i) {
      const seen a = step(team, one_by_one, x), b = step(team, together, x);
      messages = a.messages;
      fewer = b.messages;
      if (i >= warm) ratios.push_back(b.ms / a.ms);
    }
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"training\", \"bytes\": {}, \"messages_counted\": {}, \"messages_of_a_worker\": {}, "
          "\"in_bundles_counted\": {}, \"in_bundles_of_a_worker\": {}, \"backward_ratio\": {:.3f}}}\n",
          bundled.bytes, alone.messages, messages, bundled.messages, fewer, median(ratios));
    wide::timed<wide::model<2, 1>>(team.over<wide::model<2, 1>::grid>(), "by samples");
    wide::timed<wide::model<2, 1, true>>(team.over<wide::model<2, 1, true>::grid>(), "by samples, parameters as tiles");
    wide::timed<wide::model<1, 2>>(team.over<wide::model<1, 2>::grid>(), "by heads");
  });
}
