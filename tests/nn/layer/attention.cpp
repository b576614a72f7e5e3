#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

#include <torch/optim/sgd.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Attention over heads and a gated feed-forward, against the serial block.

namespace {

/// A block without norms: attention over heads of which the keys have fewer, then a gated feed-forward, both with a
/// skip.
template <int R, int C, int Heads, int Keys, class Element, class Weights>
struct block_of {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using stream = partition<grid, blocks<up>, whole, whole, invariant<across>>;
  using input = tensor<stream, shape<sequences, dim<5>, dim<6>>, Weights>;
  using by_column = cut_out<across>;
  using by_row = cut_in<across>;
  struct model {
    constexpr auto operator()(auto given) const {
      const auto x = given | nn::cast<Element>{};
      const auto [q, k, v] = x | nn::heads<Heads, Keys, 2, by_column, weights_as<Weights>>{};
      const auto y =
          x + (nn::attention<causal>{}(q, k, v) | nn::linear<6, by_row, output_as<stream>, weights_as<Weights>>{});
      const auto [gate, let_through] = y | nn::gated<7, by_column, weights_as<Weights>>{};
      return (y + (silu(gate) * let_through | nn::linear<6, by_row, output_as<stream>, weights_as<Weights>>{})) |
             nn::cast<Weights>{};
    }
  };
  using net = nn::network<model, input>;
  static constexpr element used = tessera::engine::element_of<Element>;
  static constexpr element stored = tessera::engine::element_of<Weights>;

  // The same of values.
  static void write(nn::program& p, index_t heads, index_t keys) {
    const layout& lies = value_of<input>.layout;
    const auto row = [&] {
      return nn::linear_layer{.out = 6, .cut_in = {"across"}, .output_as = lies, .weights_as = stored};
    };
    const auto x = p.input<input>() | nn::cast_layer{used};
    const auto [q, k, v] =
        x |
        nn::heads_layer{.heads = heads, .key_heads = keys, .features = 2, .cut_out = {"across"}, .weights_as = stored};
    const auto y = x + (nn::attention<causal>{}(q, k, v) | row());
    const auto [gate, let_through] = y | nn::gated_layer{.out = 7, .cut_out = {"across"}, .weights_as = stored};
    p.output((y + (silu(gate) * let_through | row())) | nn::cast_layer{stored});
  }
};

/// The same block as a file says it.
std::string block_file(index_t heads, index_t keys, const std::string& element, const std::string& weights) {
  const std::string stream =
      R"({"dims": [{"blocks": ["up"]}, {"whole": true}, {"whole": true}], "meaning": {"across": "invariant"}})";
  const std::string stored = R"("weights_as": ")" + weights + '"';
  const std::string row =
      R"("layer": "linear", "out_features": 6, "cut_in": ["across"], )" + stored + R"(, "output_as": )" + stream;
  return R"({"inputs": [{"name": "given", "shape": ["sequences", 5, 6], "element": ")" + weights + R"(", )" +
         stream.substr(1) + R"(],
    "nodes": [
      {"name": "x", "of": "given", "layer": "cast", "to": ")" +
         element + R"("},
      {"name": "qkv", "of": "x", "layer": "heads", "heads": )" +
         std::to_string(heads) + R"(, "key_heads": )" + std::to_string(keys) +
         R"(, "features": 2, "cut_out": ["across"], )" + stored + R"(},
      {"name": "seen", "of": ["qkv.0", "qkv.1", "qkv.2"], "function": "attention", "is_causal": true},
      {"name": "told", "of": "seen", )" +
         row + R"(},
      {"name": "y", "of": ["x", "told"], "function": "add"},
      {"name": "both", "of": "y", "layer": "gated", "out_features": 7, "cut_out": ["across"], )" +
         stored + R"(},
      {"name": "gate", "of": "both.0", "function": "silu"},
      {"name": "through", "of": ["gate", "both.1"], "function": "mul"},
      {"name": "fed", "of": "through", )" +
         row + R"(},
      {"name": "z", "of": ["y", "fed"], "function": "add"},
      {"name": "all", "of": "z", "layer": "cast", "to": ")" +
         weights + R"("}],
    "outputs": "all"})";
}

/// The same in one process; products are rounded once to the element, as those of layers are.
at::Tensor serial_block(const at::Tensor& given, const by_key& w, index_t heads, index_t keys, at::ScalarType element) {
  const bool half = at::isReducedFloatingType(element);
  const auto wide = [&](const at::Tensor& t) { return half ? t.to(element).to(at::kFloat) : t.to(element); };
  const auto linear = [&](const at::Tensor& x, const std::string& key) {
    return at::linear(wide(x), wide(w.at(key + ".weight")), wide(w.at(key + ".bias"))).to(element);
  };
  const at::Tensor x = given.to(element);
  const std::vector<at::Tensor> qkv = linear(x, "0").split_with_sizes({heads * 2, keys * 2, keys * 2}, -1);
  const auto by_head = [&](const at::Tensor& t, index_t repeated) {
    return t.unflatten(-1, {t.size(-1) / 2, 2}).transpose(1, 2).repeat_interleave(repeated, 1);
  };
  const at::Tensor a = at::scaled_dot_product_attention(by_head(qkv[0], 1), by_head(qkv[1], heads / keys),
                                                        by_head(qkv[2], heads / keys), std::nullopt, 0, true);
  const at::Tensor y = x + linear(a.transpose(1, 2).flatten(-2), "1");
  const std::vector<at::Tensor> both = linear(y, "2").chunk(2, -1);
  return (y + linear(at::silu(both[0]) * both[1], "3")).to(given.scalar_type());
}

template <class B>
double block_apart(const team<typename B::grid>& workers, index_t heads, index_t keys) {
  typename B::net net{workers, seed{4}};
  const by_key w = leaves_of(net);
  double worst = w.size() == 8 && w.at("0.weight").sizes().equals({(heads + 2 * keys) * 2, 6}) &&
                         w.at("2.bias").sizes().equals({14})
                     ? 0
                     : 1e9;
  // a bias of keys has no gradient but rounding
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.005).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(listed(w), options);
  for (int step = 0; step < 5; ++step) {
    const at::Tensor given =
        global_of({step == 1 ? 4 : 2, 5, 6}, numbers{static_cast<std::uint64_t>(step)}).set_requires_grad(true);
    ours.zero_grad();
    theirs.zero_grad();
    auto x = distribute<typename B::input>(workers, given.detach());
    x.requires_grad();
    const auto y = net(x);
    const at::Tensor serial = serial_block(given, w, heads, keys, at::kDouble);
    sum(y * y).backward();
    (serial * serial).sum().backward();
    worst = std::max(
        {worst, apart(full_tensor(y), serial), apart(full_tensor(x.grad()), given.grad()), gradients_apart(net, w)});
    ours.step();
    theirs.step();
  }
  return std::max(worst, states_apart(net, w));
}

template <int R, int C, int Heads, int Keys>
void judge_block() {
  using B = block_of<R, C, Heads, Keys, double, double>;
  const auto run = in_team<typename B::grid>([](auto& t) { return block_apart<B>(t, Heads, Keys); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

/// The block of values and the one from a file.
template <class B>
bool built_alike(const team<typename B::grid>& workers, index_t heads, index_t keys) {
  nn::program written;
  B::write(written, heads, keys);
  nn::program read;
  nn::read_network(read, block_file(heads, keys, name_of(B::used), name_of(B::stored)), workers.mesh(), "block.json");
  return alike_in_bits<typename B::net>(workers, global_of({3, 5, 6}, numbers{1}), {&written, &read});
}

template <class Element, class Weights, int R, int C, int Heads, int Keys>
void judge_built_alike() {
  using B = block_of<R, C, Heads, Keys, Element, Weights>;
  CHECK(satisfied<typename B::grid>([](auto& t) { return built_alike<B>(t, Heads, Keys); }) == R * C);
}

/// How far outputs are from a run in double, and all gradients, each as a share: of the network, and of the serial one
/// with the same casts.
struct rounding {
  double ours[2]{};
  double serial[2]{};
};

template <class B>
rounding rounding_of(const team<typename B::grid>& workers, index_t heads, index_t keys) {
  typename B::net net{workers, seed{4}};
  const by_key w = leaves_of(net);
  by_key exact;
  for (const auto& [key, t] : w) exact[key] = t.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor given = global_of({3, 5, 6}, numbers{1}).to(at::kFloat);
  const auto y = net(distribute<typename B::input>(workers, given));
  const at::Tensor serial = serial_block(given, w, heads, keys, at::kBFloat16);
  const at::Tensor truth = serial_block(given.to(at::kDouble), exact, heads, keys, at::kDouble);
  sum(y * y).backward();
  (serial * serial).sum().backward();
  (truth * truth).sum().backward();
  std::vector<at::Tensor> g[3];
  net.each_parameter([&](const nn::parameter& p) {
    const tensor<dyn> own(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad());
    if (own.type() != element::float32) throw std::runtime_error("the masters are no floats");
    const at::Tensor all[]{full_tensor(own), p.part_of(w.at(p.key()).grad()), p.part_of(exact.at(p.key()).grad())};
    for (int i = 0; i < 3; ++i) g[i].push_back(all[i].flatten().to(at::kDouble));
  });
  const auto share = [](const at::Tensor& a, const at::Tensor& of) {
    return ((a.detach().to(at::kDouble) - of).norm() / of.norm()).template item<double>();
  };
  return {{share(full_tensor(y), truth.detach()), share(at::cat(g[0]), at::cat(g[2]))},
          {share(serial, truth.detach()), share(at::cat(g[1]), at::cat(g[2]))}};
}

template <int R, int C, int Heads, int Keys>
void judge_rounding() {
  using B = block_of<R, C, Heads, Keys, bfloat16, float>;
  const auto run = in_team<typename B::grid>([](auto& t) { return rounding_of<B>(t, Heads, Keys); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results)
    for (int i = 0; i < 2; ++i) {
      CHECK(r->ours[i] < 2 * r->serial[i]);
      CHECK(r->serial[i] < 0.02);
    }
}

}  // namespace

TEST_CASE(
    "attention over heads and a gated feed-forward train as the serial ones, heads cut unevenly, keys fewer than "
    "queries and than workers",
    "[gradient]") {
  judge_block<1, 1, 4, 2>();
  judge_block<2, 2, 3, 3>();
  judge_block<1, 3, 8, 4>();
  judge_block<3, 2, 2, 1>();
}

TEST_CASE("a block of values and one from a file are the typed one bit for bit, in bfloat16 with float masters too",
          "[runtime]") {
  judge_built_alike<double, double, 2, 2, 3, 3>();
  judge_built_alike<bfloat16, float, 1, 1, 4, 2>();
  judge_built_alike<bfloat16, float, 2, 2, 3, 3>();
  judge_built_alike<bfloat16, float, 1, 3, 8, 4>();
}

TEST_CASE(
    "a block in bfloat16 with float masters is no further from double than twice the serial one with the same casts",
    "[runtime]") {
  judge_rounding<1, 1, 4, 2>();
  judge_rounding<2, 2, 3, 3>();
  judge_rounding<1, 3, 8, 4>();
}
