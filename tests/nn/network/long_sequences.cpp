// A transformer whose samples, sequence and heads are all cut, beside one of plain LibTorch; and a sequence whose
// scores no worker could hold.

#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/layer/cross_entropy.hpp>
#include <tessera/nn/network/network.hpp>
#include <tessera/nn/parameter/state_dict.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <map>

using namespace tessera;
using namespace tessera::testing;

namespace long_sequences {

template <int P>
struct data : axis<P> {};
template <int P>
struct seq : axis<P> {};
template <int P>
struct model : axis<P> {};

constexpr index_t samples = 2, length = 13, width = 12, heads = 4, key_heads = 2, features = 4, hidden = 10,
                  classes = 9;

/// Blocks whose rows lie in a zigzag over `Seq`, whose heads, features and classes are cut over `Model`.
template <class M, class Data, class Seq, class Model>
struct transformer_of {
  using stream = partition<M, blocks<Data>, zigzag<Seq>, whole, invariant<Model>>;
  using tokens =
      tensor<partition<M, blocks<Data>, zigzag<Seq>, invariant<Model>>, shape_of<samples, length>, std::int64_t>;

  struct normalised {
    constexpr auto operator()(auto x) const { return x * rsqrt(mean<2>(square(x), keep_dims) + 1e-5); }
  };
  struct block {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = normalised{}(x) | nn::heads<heads, key_heads, features, cut_out<Model>, no_bias>{};
      const auto y = x + (nn::attention<causal, streamed<>>{}(rotary<1>(q), rotary<1>(k), v) |
                          nn::linear<width, cut_in<Model>, output_as<stream>>{});
      const auto [gate, up] = normalised{}(y) | nn::gated<hidden, cut_out<Model>>{};
      return y + (silu(gate) * up | nn::linear<width, cut_in<Model>, output_as<stream>>{});
    }
  };
  struct scores {
    constexpr auto operator()(auto inputs) const {
      return permute<0, 2, 1>(
          normalised{}(inputs | nn::embedding<classes, width, cut_in<Model>, output_as<stream>, weights_as<double>>{} |
                       block{} | block{}) |
          nn::linear<classes, cut_out<Model>, no_bias>{});
    }
  };
  using network = nn::network<scores, tokens>;
};

using weights = std::map<std::string, at::Tensor>;

at::Tensor normalised(const at::Tensor& x) { return x * at::rsqrt(at::square(x).mean(-1, true) + 1e-5); }

at::Tensor turned(const at::Tensor& x) {  // [b, h, t, d]
  const index_t half = x.size(-1) / 2;
  const at::Tensor turns = at::pow(10000.0, at::arange(half, at::kDouble) / -static_cast<double>(half));
  const at::Tensor angles = at::arange(x.size(2), at::kDouble).unsqueeze(1) * turns;
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * at::cos(angles) - halves[1] * at::sin(angles),
                  halves[1] * at::cos(angles) + halves[0] * at::sin(angles)},
                 -1);
}

at::Tensor serial_block(const at::Tensor& x, const weights& w, const std::string& path) {
  const auto linear = [&](const at::Tensor& in, const std::string& key) {
    return at::linear(in, w.at(path + key + ".weight"), w.at(path + key + ".bias"));
  };
  const auto by_head = [](const at::Tensor& t, index_t repeated) {
    return t.unflatten(-1, {-1, features}).transpose(1, 2).repeat_interleave(repeated, 1);
  };
  const auto qkv = at::linear(normalised(x), w.at(path + "0.weight"))
                       .split_with_sizes({heads * features, key_heads * features, key_heads * features}, -1);
  const at::Tensor a =
      at::scaled_dot_product_attention(turned(by_head(qkv[0], 1)), turned(by_head(qkv[1], heads / key_heads)),
                                       by_head(qkv[2], heads / key_heads), std::nullopt, 0, true);
  const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), "1");
  const auto both = linear(normalised(y), "2").chunk(2, -1);
  return y + linear(at::silu(both[0]) * both[1], "3");
}

at::Tensor serial_loss(const weights& w, const at::Tensor& inputs, const at::Tensor& labels) {
  at::Tensor x = at::embedding(w.at("0.weight"), inputs);
  for (const char* path : {"1.", "2."}) x = serial_block(x, w, path);
  return at::cross_entropy_loss(at::linear(normalised(x), w.at("3.weight")).transpose(1, 2), labels);
}

/// What differs of five steps, one along the gradients and four of Adam: losses, gradients, weights in the end.
template <class M, class Data, class Seq, class Model>
std::string differences() {
  using made = transformer_of<M, Data, Seq, Model>;
  const auto out = in_team<M>([](const team<M>& t) -> std::string {
    typename made::network net{t, seed{3}};
    const at::Tensor inputs = at::arange(samples * length, at::kLong).mul(7).remainder(classes).view({samples, length});
    const at::Tensor labels = inputs.mul(5).add(2).remainder(classes);
    weights w;
    std::vector<at::Tensor> all;
    for (const auto& [key, one] : nn::state_of(net)) {
      w[key] = one.clone().requires_grad_();
      all.push_back(w[key]);
    }
    torch::optim::SGD ours_first(net.parameters(), torch::optim::SGDOptions(0.5)),
        theirs_first(all, torch::optim::SGDOptions(0.5));
    torch::optim::Adam ours(net.parameters(), torch::optim::AdamOptions(0.01)),
        theirs(all, torch::optim::AdamOptions(0.01));
    const auto own_inputs = distribute<typename made::tokens>(t, inputs);
    const auto own_labels = distribute<typename made::tokens>(t, labels);
    std::string wrong;
    for (int step = 0; step < 5; ++step) {
      ours.zero_grad();
      theirs.zero_grad();
      const auto loss = nn::cross_entropy(net(own_inputs), own_labels);
      loss.backward();
      const at::Tensor wanted = serial_loss(w, inputs, labels);
      wanted.backward();
      if (std::abs(item(loss) - wanted.item<double>()) > 1e-10) wrong += fmt::format("the loss of step {}; ", step);
      if (step > 0) {
        ours.step();
        theirs.step();
        continue;
      }
      ours_first.step();  // a step along the gradients, which tells them
      theirs_first.step();
      for (const auto& [key, one] : nn::state_of(net))
        if (!at::allclose(one, w.at(key), 1e-10, 1e-12)) wrong += "the gradient of " + key + "; ";
    }
    for (const auto& [key, one] : nn::state_of(net))
      if (!at::allclose(one, w.at(key), 1e-7, 1e-9)) wrong += key + "; ";
    return wrong;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("a transformer over samples, sequence and heads is the serial one", "[law][runtime][gradient]") {
  CHECK(differences<mesh<data<2>, seq<2>, model<2>>, data<2>, seq<2>, model<2>>() == "");
  CHECK(differences<mesh<data<1>, seq<3>, model<1>>, data<1>, seq<3>, model<1>>() == "");
}

struct one_head {
  constexpr auto operator()(auto x) const {
    const auto [q, k, v] = x | nn::heads<1, 1, 4, no_bias>{};
    return nn::attention<causal, streamed<>>{}(rotary<1>(q), rotary<1>(k), v) | nn::linear<4>{};
  }
};

TEST_CASE("a sequence is trained whose scores take 64 times a worker's peak", "[law][runtime]") {
  constexpr index_t rows = 8192;
  using pair = mesh<seq<4>>;
  using tokens = tensor<partition<pair, whole, zigzag<seq<4>>, whole>, shape_of<1, rows, 4>>;
  const auto out = in_team<pair>([](const team<pair>& t) -> std::string {
    nn::network<one_head, tokens> net{t, seed{1}};
    const auto x = distribute<tokens>(t, at::sin(at::arange(rows * 4).to(at::kFloat)).view({1, rows, 4}));
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.01));
    double before = 0, after = 0;
    std::int64_t peak = 0;
    for (int step = 0; step < 3; ++step) {
      const engine::memory_count taken;
      optimizer.zero_grad();
      const auto loss = nn::mse_loss(net(x), x);
      loss.backward();
      optimizer.step();
      peak = std::max(peak, taken.peak());
      (step == 0 ? before : after) = item(loss);
    }
    if (!(after < before)) return fmt::format("the loss does not fall: {} to {}", before, after);
    const std::int64_t scores = rows * rows * 4;
    return scores >= 64 * peak ? "" : fmt::format("scores of {} bytes and a peak of {}", scores, peak);
  });
  CHECK(out.errors() == "");
  for (const auto& one_result : out.results) CHECK(one_result.value_or("") == "");
}

}  // namespace long_sequences
