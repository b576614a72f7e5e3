#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What language models are made of, against the serial network: embeddings, tied weights.

namespace {

using by_key = std::map<std::string, at::Tensor>;

double apart(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return 1e9;
  return a.numel() == 0 ? 0 : (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

/// Leaves of the serial model, with the values that a network has.
template <class Net>
by_key leaves_of(const Net& net) {
  by_key w = nn::state_of(net);
  for (auto& [key, t] : w) t.set_requires_grad(true);
  return w;
}
std::vector<at::Tensor> listed(const by_key& w) {
  std::vector<at::Tensor> all;
  for (const auto& [key, t] : w) all.push_back(t);
  return all;
}

/// How far gradients are from those of the serial leaves.
template <class Net>
double gradients_apart(const Net& net, const by_key& w) {
  double worst = 0;
  net.each_parameter([&](const nn::parameter& p) {
    const tensor<dyn> g(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad());
    worst = std::max(worst, apart(full_tensor(g), p.part_of(w.at(p.key()).grad())));
  });
  return worst;
}
template <class Net>
double states_apart(const Net& net, const by_key& w) {
  double worst = 0;
  for (const auto& [key, t] : nn::state_of(net)) worst = std::max(worst, apart(t, w.at(key)));
  return worst;
}

struct sequences : dyn {};

template <int R, int C>
struct token_grid {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using rows = partition<grid, blocks<up>, whole, invariant<across>>;
  using pieces = partition<grid, blocks<up>, blocks<across>>;
};

template <class Partition, index_t Rows, index_t Features, class Index, class First, class Second>
struct tied_model {
  using grid = typename Partition::mesh_type;
  using tokens = tensor<Partition, shape<sequences, dim<5>>, Index>;
  struct model {
    constexpr auto operator()(auto x) const {
      const auto hidden =
          tanh(x | nn::shared<struct table, nn::embedding<Rows, Features, weights_as<double>, First>>{});
      return hidden | nn::shared<struct table, nn::linear<Rows, no_bias, Second>>{};
    }
  };
  using net = nn::network<model, tokens>;
};

template <class M>
double tied_apart(const team<typename M::grid>& workers, index_t rows) {
  typename M::net net{workers, seed{3}};
  const by_key w = leaves_of(net);
  double worst = w.size() == 1 ? 0 : 1e9;
  torch::optim::Adam ours(net.parameters(), torch::optim::AdamOptions(0.01));
  torch::optim::Adam theirs(listed(w), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 3; ++step) {
    const at::Tensor t = (global_of({step == 1 ? 4 : 2, 5}, numbers{static_cast<std::uint64_t>(step)}).abs() * 1000)
                             .to(at::kLong)
                             .remainder(rows);
    ours.zero_grad();
    theirs.zero_grad();
    const auto y = net(distribute<typename M::tokens>(
        workers, t.to(tessera::detail::scalar_type(value_of<typename M::tokens>.element))));
    const at::Tensor& table = w.at("table.weight");
    const at::Tensor serial = at::linear(at::tanh(at::embedding(table, t)), table);
    sum(y * y).backward();
    (serial * serial).sum().backward();
    worst = std::max({worst, apart(full_tensor(y), serial), gradients_apart(net, w)});
    ours.step();
    theirs.step();
  }
  return std::max(worst, states_apart(net, w));
}

template <int R, int C, index_t Rows, index_t Features, class Index>
void judge_tied() {
  using G = token_grid<R, C>;
  using across = typename G::across;
  const auto judge = [](auto model) {
    using M = decltype(model);
    const auto run = in_team<typename M::grid>([](auto& t) { return tied_apart<M>(t, Rows); });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r < 1e-12);
  };
  judge(tied_model<typename G::rows, Rows, Features, Index, cut_in<across>, cut_out<across>>{});
  judge(tied_model<typename G::rows, Rows, Features, Index, cut_out<across>, cut_in<across>>{});
  judge(tied_model<typename G::pieces, Rows, Features, Index, cut_in<across>, cut_out<across>>{});
}

}  // namespace

TEST_CASE(
    "an embedding and the projection that is tied to it train as the serial ones, rows or features cut, unevenly, "
    "workers without any") {
  judge_tied<1, 1, 11, 6, std::int64_t>();
  judge_tied<2, 2, 11, 6, std::int32_t>();
  judge_tied<1, 4, 3, 2, std::int64_t>();
  judge_tied<3, 2, 5, 1, std::int64_t>();
}

namespace {

template <class Partition, class Index, class... Cut>
struct padded_table {
  using grid = typename Partition::mesh_type;
  using tokens = tensor<Partition, shape<sequences, dim<5>>, Index>;
  using net = nn::sequential<tokens, nn::embedding<11, 3, weights_as<double>, padding_idx<-2>, Cut...>>;
};

/// How far an embedding with padding is from LibTorch's over three steps, and the same of a file from it: an input that
/// lies so, a weight cut so.
template <class M>
double padded_apart(const team<typename M::grid>& workers, const std::string& lies, const std::string& cut) {
  using tokens = typename M::tokens;
  const element index = value_of<tokens>.element;
  typename M::net net{workers, seed{3}};
  nn::program p;
  nn::read_network(p,
                   R"({"inputs": [{"name": "tokens", "shape": ["sequences", 5], "element": ")" +
                       std::string(name_of(index)) + R"(", "dims": )" + lies + R"(}],
    "nodes": [{"name": "y", "of": "tokens", "layer": "embedding", "num_embeddings": 11, "embedding_dim": 3,
     "weights_as": "double", "padding_idx": -2, )" +
                       cut + R"(}],
    "outputs": "y"})",
                   workers.mesh(), "embedding.json");
  nn::dynamic_network from_file{workers, seed{3}, p};
  const by_key w = leaves_of(net);
  const at::Tensor& table = w.at("0.weight");
  double worst = at::equal((table != 0).any(1), at::arange(11) != 9) ? 0 : 1e9;
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.1).momentum(0.9);
  torch::optim::SGD of_types(net.parameters(), options);
  torch::optim::SGD of_values(from_file.parameters(), options);
  torch::optim::SGD theirs(listed(w), options);
  for (int step = 0; step < 3; ++step) {
    at::Tensor t = (global_of({step == 1 ? 4 : 2, 5}, numbers{static_cast<std::uint64_t>(step)}).abs() * 1000)
                       .to(at::kLong)
                       .remainder(11);
    t.select(1, step).fill_(9);
    for (auto* each : {&of_types, &of_values, &theirs}) each->zero_grad();
    const auto x = distribute<tokens>(workers, t.to(tessera::detail::scalar_type(index)));
    const auto y = net(x);
    const tensor<dyn> z = from_file(x);
    const at::Tensor all = at::embedding(table, t, 9);  // as torch::nn::Embedding does
    sum(y * y + y).backward();
    sum(z * z + z).backward();
    (all * all + all).sum().backward();
    worst = std::max({worst, apart(full_tensor(y), all), apart(full_tensor(z), all), gradients_apart(net, w),
                      gradients_apart(from_file, w)});
    for (auto* each : {&of_types, &of_values, &theirs}) each->step();
    worst = std::max({worst, states_apart(net, w), states_apart(from_file, w)});
  }
  return worst;
}

template <int R, int C, class Index>
void judge_padded() {
  using G = token_grid<R, C>;
  using across = typename G::across;
  const std::string rows = R"([{"blocks": ["up"]}, {"whole": true}], "meaning": {"across": "invariant"})";
  const std::string pieces = R"([{"blocks": ["up"]}, {"blocks": ["across"]}])";
  const auto judge = [](auto model, const std::string& lies, const std::string& cut) {
    using M = decltype(model);
    const auto run = in_team<typename M::grid>([&](auto& t) { return padded_apart<M>(t, lies, cut); });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r < 1e-12);
  };
  judge(padded_table<typename G::rows, Index, cut_in<across>>{}, rows, R"("cut_in": ["across"])");
  judge(padded_table<typename G::rows, Index, cut_out<across>>{}, rows, R"("cut_out": ["across"])");
  judge(padded_table<typename G::pieces, Index, cut_in<across>>{}, pieces, R"("cut_in": ["across"])");
}

}  // namespace

TEST_CASE(
    "the row of padding begins as zeros and stays as it is, as LibTorch's does, rows or features cut, typed and from a "
    "file") {
  judge_padded<1, 1, std::int64_t>();
  judge_padded<2, 2, std::int32_t>();
  judge_padded<1, 4, std::int64_t>();
}

namespace {

/// What a file says of an embedding with rolled options, and what LibTorch is told.
struct rolled_lookup {
  std::string file;
  at::ScalarType type = at::kDouble;
  std::optional<double> max_norm;
  double norm_type = 2;
  bool by_frequency = false;
  bool frozen = false;
  index_t padding = -1;
};

constexpr index_t table_rows = 7;
constexpr index_t table_features = 5;

rolled_lookup roll_lookup(dice& d) {
  static const std::vector<std::string> lying{
      R"("dims": [{"blocks": ["up"]}, {"whole": true}], "meaning": {"across": "invariant"})",
      R"("dims": [{"blocks": ["up"]}, {"blocks": ["across"]}])",
      R"("dims": [{"blocks": ["across", "up"]}, {"whole": true}])", R"("dims": [{"whole": true}, {"whole": true}])",
      R"("dims": [{"whole": true}, {"blocks": ["up"]}], "meaning": {"across": {"on": 0}})"};
  static const std::vector<std::string> cuts{"",
                                             R"(, "cut_in": ["across"])",
                                             R"(, "cut_out": ["across"])",
                                             R"(, "cut_in": ["up", "across"])",
                                             R"(, "cut_in": ["up"], "cut_out": ["across"])",
                                             R"(, "cut_out": ["across", "up"])"};
  static const std::vector<std::string> stored{"", R"(, "sharded_over": ["up"])",
                                               R"(, "sharded_over": ["up", "across"])",
                                               R"(, "sharded_over": ["across"], "gathered": "once")"};
  static const std::vector<std::pair<at::ScalarType, std::string>> elements{
      {at::kDouble, "double"}, {at::kFloat, "float"}, {at::kHalf, "half"}, {at::kBFloat16, "bfloat16"}};
  const auto one = [&](const auto& all) {
    return all[static_cast<std::size_t>(d.roll(0, static_cast<int>(all.size()) - 1))];
  };
  rolled_lookup r;
  const std::string lies = one(lying);
  const auto [type, element] = d.once_in(2) ? elements[0] : one(elements);
  r.type = type;
  r.file = R"({"inputs": [{"name": "tokens", "shape": ["sequences", 5], "element": ")" +
           std::string(d.once_in(2) ? "int64" : "int32") + "\", " + lies +
           R"(}], "nodes": [{"name": "y", "of": "tokens", "layer": "embedding", "num_embeddings": 7, "embedding_dim": 5,
         "weights_as": ")" +
           element + '"' + (lies == lying.back() ? "" : one(cuts)) + one(stored);
  if (!d.once_in(4)) {
    r.max_norm = 0.5 * d.roll(0, 4);
    r.file += fmt::format(", \"max_norm\": {}", *r.max_norm);
    if (const int type_of_norm = d.roll(0, 4); type_of_norm == 0) {
      r.norm_type = std::numeric_limits<double>::infinity();
      r.file += R"(, "norm_type": "inf")";
    } else if (type_of_norm < 4) {
      r.norm_type = 0.5 * d.roll(1, 7);
      r.file += fmt::format(", \"norm_type\": {}", r.norm_type);
    }
  }
  if (r.by_frequency = d.once_in(2); r.by_frequency) r.file += R"(, "scale_grad_by_freq": true)";
  if (r.frozen = d.once_in(5); r.frozen) r.file += R"(, "frozen": true)";
  if (d.once_in(2)) {
    r.padding = d.roll(0, 6);
    r.file += fmt::format(", \"padding_idx\": {}", d.once_in(2) ? r.padding : r.padding - table_rows);
  }
  r.file += R"(}], "outputs": "y"})";
  return r;
}

/// How far it is from LibTorch's over two steps; weights are given.
double rolled_apart(const nn::engine::made_of<kind::team, team_handle>& workers, const rolled_lookup& r) {
  nn::program p;
  nn::read_network(p, r.file, workers.value->mesh(), "embedding.json");
  nn::dynamic_network net{workers, seed{3}, p};
  const at::Tensor given = (2 * global_of({table_rows, table_features}, numbers{5})).to(r.type);
  nn::assign(net, {{"0.weight", given}});
  by_key w{{"0.weight", given.clone().set_requires_grad(!r.frozen)}};
  at::Tensor table = w.at("0.weight");
  torch::optim::SGD ours(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.5));
  torch::optim::SGD theirs(listed(w), torch::optim::SGDOptions(0.1).momentum(0.5));
  tensor_value lies = p.inputs()[0].is;
  double worst = 0;
  for (int step = 0; step < 2; ++step) {
    const at::Tensor t = (global_of({step == 0 ? 4 : 1, 5}, numbers{static_cast<std::uint64_t>(step)}).abs() * 1000)
                             .to(at::kLong)
                             .remainder(5) +
                         step;
    lies.layout.dims[0].extent = t.size(0);
    const auto y = net(tessera::detail::distribute_value(workers.value, lies.layout, lies.element,
                                                         t.to(tessera::detail::scalar_type(lies.element))));
    if (r.max_norm) {
      const at::NoGradGuard no_record;
      at::embedding_renorm_(table, t, *r.max_norm, r.norm_type);
    }
    const at::Tensor serial = at::embedding(table, t, r.padding, r.by_frequency);
    worst = std::max({worst, apart(full_tensor(y), serial), states_apart(net, w)});
    if (r.frozen) {
      for (const at::Tensor& each : net.parameters()) worst = each.requires_grad() ? 1e9 : worst;
      continue;
    }
    ours.zero_grad();
    theirs.zero_grad();
    sum(y * y + y).backward();
    (serial * serial + serial).sum().backward();
    worst = std::max(worst, gradients_apart(net, w));
    ours.step();
    theirs.step();
    worst = std::max(worst, states_apart(net, w));
  }
  nn::agree_on_copies(net);
  return worst;
}

template <int R, int C>
void judge_rolled(std::uint64_t from, int rounds) {
  dice d{from};
  std::vector<rolled_lookup> all;
  for (int i = 0; i < rounds; ++i) all.push_back(roll_lookup(d));
  const auto run = in_team<typename token_grid<R, C>::grid>([&](auto& t) {
    std::vector<double> far;
    for (const rolled_lookup& r : all) far.push_back(rolled_apart(t, r));
    return far;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double most = all[i].type == at::kDouble  ? 1e-12
                        : all[i].type == at::kFloat ? 1e-5
                        : all[i].type == at::kHalf  ? 2e-2
                                                    : 0.15;
    INFO(all[i].file);
    for (const auto& r : run.results) CHECK((*r)[i] < most);
  }
}

}  // namespace

TEST_CASE(
    "embeddings with given weights, rows made no longer than they may be, gradients by frequency and frozen train as "
    "LibTorch's, on rolled partitions") {
  judge_rolled<1, 1>(1, 20);
  judge_rolled<2, 2>(2, 40);
  judge_rolled<3, 2>(3, 40);
  judge_rolled<1, 4>(4, 40);
}

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

/// Whether the networks of programs have the bits of the typed one: output, and all gradients.
template <class Net>
bool alike_in_bits(const auto& workers, const at::Tensor& values, std::initializer_list<const nn::program*> programs) {
  const at::Tensor given = values.to(tessera::detail::scalar_type(value_of<typename Net::input>.element));
  const auto run = [&](const auto& net) {
    auto x = distribute<typename Net::input>(workers, given);
    x.requires_grad();
    const tensor<dyn> y = net(x.dynamic());
    sum(y * y).backward();
    std::vector<at::Tensor> seen{full_tensor(y), full_tensor(x.grad())};
    for (const at::Tensor& w : net.parameters()) seen.push_back(w.grad());
    return seen;
  };
  const std::vector<at::Tensor> typed = run(Net{workers, seed{4}});
  return std::all_of(programs.begin(), programs.end(), [&](const nn::program* p) {
    const std::vector<at::Tensor> seen = run(nn::dynamic_network{workers, seed{4}, *p});
    return std::equal(seen.begin(), seen.end(), typed.begin(), typed.end(),
                      [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
  });
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

struct here : axis<2> {};
using pair = mesh<here>;
using few_tokens = tensor<partition<pair, blocks<here>>, shape<dim<4>>, std::int64_t>;
using table_net = nn::sequential<few_tokens, nn::embedding<7, 3>>;
static_assert(nn::embedding_layer{.rows = 7, .features = 3}.plan(value_of<few_tokens>).output() ==
              value_of<table_net::output>.layout);
static_assert(nn::embedding_layer{.rows = 7, .features = 3}
                  .plan({value_of<few_tokens>.layout, element::float32})
                  .why.is(code::indices_wanted));

// Tied, but of other elements.
struct other_element {
  constexpr auto operator()(auto x) const {
    return (x | nn::shared<struct table, nn::embedding<7, 3>>{} | nn::cast<double>{}) |
           nn::shared<struct table, nn::linear<7, no_bias>>{};
  }
};

using few_rows = tensor<partition<pair, blocks<here>, whole>, shape<dim<4>, dim<3>>, double>;

// Two parameters that say that they are parts of one serial tensor; from `Begin` on the second.
template <index_t Begin>
struct in_parts {
  static constexpr const char* name = "in_parts";
  static constexpr layer_plan plan(const tensor_value& x) {
    layer_plan p = nn::gated<2, no_bias>::plan(x);
    layer_plan q;
    q.add_input(p.given(), p.used());
    q.add_output(p.output());
    for (int i = 0; i < 2; ++i) {
      parameter_value w = p.parameter(i);
      if (i == 1) w.serial.begin = Begin;
      q.add_parameter(w);
    }
    return q;
  }
  static at::Tensor forward(const nn::call& c) { return at::linear(c.used(), c.weight(0)); }
};

}  // namespace

TEST_CASE(
    "attention over heads and a gated feed-forward train as the serial ones, heads cut unevenly, keys fewer than "
    "queries and than workers") {
  judge_block<1, 1, 4, 2>();
  judge_block<2, 2, 3, 3>();
  judge_block<1, 3, 8, 4>();
  judge_block<3, 2, 2, 1>();
}

TEST_CASE("a block of values and one from a file are the typed one bit for bit, in bfloat16 with float masters too") {
  judge_built_alike<double, double, 2, 2, 3, 3>();
  judge_built_alike<bfloat16, float, 1, 1, 4, 2>();
  judge_built_alike<bfloat16, float, 2, 2, 3, 3>();
  judge_built_alike<bfloat16, float, 1, 3, 8, 4>();
}

TEST_CASE(
    "a block in bfloat16 with float masters is no further from double than twice the serial one with the same casts") {
  judge_rounding<1, 1, 4, 2>();
  judge_rounding<2, 2, 3, 3>();
  judge_rounding<1, 3, 8, 4>();
}

TEST_CASE("an index of no row is named on every worker, whoever has it") {
  const auto run = in_team<pair>([](auto& t) {
    table_net net{t, seed{1}};
    std::string all;
    for (const index_t wrong : {7, -1, 3}) try {
        net(distribute<few_tokens>(t, at::tensor({0, 1, 2, static_cast<int>(wrong)}, at::kLong)));
        all += "fits";
      } catch (const error& e) {
        all += std::string(e.code()) +
               (std::string(e.what()).find(std::to_string(wrong)) != std::string::npos ? " " : " other ");
      }
    return all;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "tessera.embedding.index tessera.embedding.index fits");
  const auto alone = in_team<pair>([](auto& t) {
    table_net net{t, seed{1}};
    net.compare_indices(false);
    return told([&] { net(distribute<few_tokens>(t, at::tensor({0, 1, 2, 7}, at::kLong))); });
  });
  INFO(alone.errors());
  REQUIRE(alone.well());
  CHECK(*alone.results[0] == "tessera.agree.lost");  // the other one does not come to where copies are compared
  CHECK(*alone.results[1] == "tessera.embedding.index");
  CHECK(refusals<pair>("tessera.network.shared", [](auto& t) { nn::network<other_element, few_tokens>(t, seed{1}); }) ==
        2);
}

TEST_CASE("a state dict speaks of the serial tensors that parameters are parts of") {
  const auto run = in_team<pair>([](auto& t) {
    nn::network<nn::heads<4, 2, 2>, few_rows> net{t, seed{1}};
    nn::state_dict state = nn::state_of(net);
    bool right =
        state.size() == 2 && state.at("0.weight").sizes().equals({16, 3}) && state.at("0.bias").sizes().equals({16});
    for (auto& [key, values] : state) values = at::arange(values.numel(), at::kDouble).view(values.sizes());
    nn::assign(net, state);
    for (const auto& [key, values] : nn::state_of(net)) right = right && at::equal(values, state.at(key));
    net.each_parameter([&](const nn::parameter& p) {
      if (p.path() == "0.k_weight")
        right = right && at::equal(p.stored().local(), state.at("0.weight").narrow(0, 8, 4).view({2, 2, 3}));
    });
    state.erase("0.bias");
    state.at("0.weight") = state.at("0.weight").narrow(0, 0, 15);
    try {
      nn::assign(net, state);
      right = false;
    } catch (const error& e) {
      const std::string said = e.what();
      right = right && said.find("0.bias is missing; 0.weight is Double[15, 3] and not Double[16, 3]") != said.npos;
    }
    return right;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
  const auto asks = [](auto net) { return [](auto& t) { nn::state_of(typename decltype(net)::type(t, seed{1})); }; };
  CHECK(refusals<pair>("none", asks(std::type_identity<nn::sequential<few_rows, in_parts<2>>>{})) == 2);
  CHECK(refusals<pair>("tessera.network.serial", asks(std::type_identity<nn::sequential<few_rows, in_parts<1>>>{})) ==
        2);
  CHECK(refusals<pair>("tessera.network.serial", asks(std::type_identity<nn::sequential<few_rows, in_parts<3>>>{})) ==
        2);
}

namespace {

struct sources : dyn {};

/// Tokens in slots, [experts, source, slot, features], which go to where their expert is and come back. Sources are cut
/// over all workers but `model`'s, experts over `place` alone, so `copy` has the same experts again, whose weights are
/// stored in parts.
template <int P, int C, int M>
struct mixture {
  struct place : axis<P> {};
  struct copy : axis<C> {};
  struct model : axis<M> {};
  using grid = mesh<place, copy, model>;
  using by_source = partition<grid, whole, blocks<place, copy>, whole, whole, invariant<model>>;
  using by_expert = partition<grid, blocks<place>, blocks<copy>, whole, whole, invariant<model>>;
};

/// The gated feed-forward of three experts, typed and of values, in bfloat16 with float masters.
using three_places = mixture<2, 2, 1>;
using slots_of_three = tensor<three_places::by_source, shape<dim<3>, sources, dim<2>, dim<5>>, float>;
struct feeding_three {
  constexpr auto operator()(auto given) const {
    using model = three_places::model;
    const auto x = given | nn::cast<bfloat16>{} | nn::repartition<three_places::by_expert>{};
    const auto [gate, up] = x | nn::gated_experts<3, 7, cut_out<model>, weights_as<float>>{};
    const auto y =
        gelu(gate) * up | nn::experts<3, 6, cut_in<model>, output_as<three_places::by_expert>, weights_as<float>>{};
    return y | nn::repartition<three_places::by_source>{} | nn::cast<float>{};
  }
};
void write_feeding_three(nn::program& p) {
  const layout to = value_of<tensor<three_places::by_expert, shape_of<1, 1, 1, 1>>>.layout;
  const auto x = p.input<slots_of_three>() | nn::cast_layer{element::bfloat16} | nn::repartition_layer{to};
  const auto [gate, up] =
      x | nn::sharded({"copy"}, nn::gated_experts_layer{
                                    .experts = 3, .out = 7, .cut_out = {"model"}, .weights_as = element::float32});
  const nn::experts_layer rows{
      .experts = 3, .out = 6, .cut_in = {"model"}, .output_as = to, .weights_as = element::float32};
  const auto y = gelu(gate) * up | nn::sharded({"copy"}, rows);
  p.output(y | nn::repartition_layer{value_of<slots_of_three>.layout} | nn::cast_layer{element::float32});
}

/// The gated feed-forward of so many experts as a file says it.
std::string mixture_file(index_t experts, const std::string& element, const std::string& weights) {
  const std::string meaning = R"("meaning": {"model": "invariant"}})";
  const std::string by_source =
      R"({"dims": [{"whole": true}, {"blocks": ["place", "copy"]}, {"whole": true}, {"whole": true}], )" + meaning;
  const std::string by_expert =
      R"({"dims": [{"blocks": ["place"]}, {"blocks": ["copy"]}, {"whole": true}, {"whole": true}], )" + meaning;
  const std::string layer =
      R"("sharded_over": ["copy"], "experts": )" + std::to_string(experts) + R"(, "weights_as": ")" + weights + '"';
  return R"({"inputs": [{"name": "given", "shape": [)" + std::to_string(experts) +
         R"(, "sources", 2, 5], "element": ")" + weights + R"(", )" + by_source.substr(1) + R"(],
    "nodes": [
      {"name": "x", "of": "given", "layer": "cast", "to": ")" +
         element + R"("},
      {"name": "sent", "of": "x", "layer": "repartition", "to": )" +
         by_expert + R"(},
      {"name": "wide", "of": "sent", "layer": "gated_experts", )" +
         layer + R"(, "out_features": 7, "cut_out": ["model"]},
      {"name": "gate", "of": "wide.0", "function": "gelu"},
      {"name": "through", "of": ["gate", "wide.1"], "function": "mul"},
      {"name": "fed", "of": "through", "layer": "experts", )" +
         layer + R"(, "out_features": 6, "cut_in": ["model"], "output_as": )" + by_expert + R"(},
      {"name": "back", "of": "fed", "layer": "repartition", "to": )" +
         by_source + R"(},
      {"name": "y", "of": "back", "layer": "cast", "to": ")" +
         weights + R"("}],
    "outputs": "y"})";
}

/// The same in one process; products are rounded once to the element, as those of layers are.
at::Tensor serial_mixture(const at::Tensor& given, const by_key& w, at::ScalarType element) {
  const bool half = at::isReducedFloatingType(element);
  const auto wide = [&](const at::Tensor& t) { return half ? t.to(element).to(at::kFloat) : t.to(element); };
  const auto of_each = [&](const at::Tensor& x, const std::string& key) {
    return at::baddbmm(wide(w.at(key + ".bias")), wide(x), wide(w.at(key + ".weight"))).to(element);
  };
  const std::vector<at::Tensor> both = of_each(given.flatten(1, 2), "0").chunk(2, -1);
  const at::Tensor y = of_each(at::gelu(both[0]) * both[1], "1");
  return y.unflatten(1, given.sizes().slice(1, 2)).to(given.scalar_type());
}

/// How far a network from a file is from the serial product of each expert, over three steps of Adam.
double mixture_apart(const auto& workers, const layout& by_source, index_t experts) {
  nn::program p;
  nn::read_network(p, mixture_file(experts, "double", "double"), workers.mesh(), "mixture.json");
  nn::dynamic_network net{workers, seed{4}, p};
  const by_key w = leaves_of(net);
  double worst = w.size() == 4 && w.at("0.weight").sizes().equals({experts, 5, 14}) &&
                         w.at("1.bias").sizes().equals({experts, 1, 6})
                     ? 0
                     : 1e9;
  torch::optim::Adam ours(net.parameters(), torch::optim::AdamOptions(0.01));
  torch::optim::Adam theirs(listed(w), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 3; ++step) {
    const at::Tensor given = global_of({experts, step == 1 ? 3 : 7, 2, 5}, numbers{static_cast<std::uint64_t>(step)})
                                 .set_requires_grad(true);
    ours.zero_grad();
    theirs.zero_grad();
    layout lies = by_source;
    for (int d = 0; d < 4; ++d) lies.dims[d].extent = given.size(d);
    tensor<dyn> x = distribute(workers, lies, given.detach());
    x.requires_grad();
    const tensor<dyn> y = net(x);
    const at::Tensor serial = serial_mixture(given, w, at::kDouble);
    sum(y * y).backward();
    (serial * serial).sum().backward();
    worst = std::max(
        {worst, apart(full_tensor(y), serial), apart(full_tensor(x.grad()), given.grad()), gradients_apart(net, w)});
    ours.step();
    theirs.step();
  }
  return std::max(worst, states_apart(net, w));
}

template <int P, int C, int M>
void judge_mixture(index_t experts) {
  using places = mixture<P, C, M>;
  const layout& by_source = value_of<tensor<typename places::by_source, shape_of<1, 1, 1, 1>>>.layout;
  const auto run = in_team<typename places::grid>([&](auto& t) { return mixture_apart(t, by_source, experts); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-11);
}

}  // namespace

TEST_CASE(
    "gated experts train as the serial products of each, their tokens sent to them and back, unevenly, workers without "
    "experts or tokens") {
  judge_mixture<1, 1, 1>(4);
  judge_mixture<3, 1, 1>(2);
  judge_mixture<2, 2, 2>(5);
}

TEST_CASE("gated experts of values and from a file are the typed ones bit for bit, in bfloat16 with float masters") {
  const auto run = in_team<three_places::grid>([](auto& t) {
    nn::program written;
    write_feeding_three(written);
    nn::program read;
    nn::read_network(read, mixture_file(3, "bfloat16", "float"), t.mesh(), "mixture.json");
    return alike_in_bits<nn::network<nn::sharded_over<feeding_three, three_places::copy>, slots_of_three>>(
        t, global_of({3, 7, 2, 5}, numbers{1}), {&written, &read});
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("experts of every real element are as near to double as it, columns rounded once and rows once a term") {
  struct place : axis<2> {};
  struct model : axis<3> {};
  using grid = mesh<place, model>;
  const layout slots = value_of<tensor<partition<grid, blocks<place>, whole, blocks<model>>, shape_of<3, 4, 7>>>.layout;
  using part = std::function<nn::dynamic_flow(const nn::dynamic_flow&)>;
  const auto far = [&](const part& layer, element e, double epsilon) {
    const auto run = in_team<grid>([&](team<grid>& t) {
      nn::program p;
      p.output(layer(p.input(tensor_value{slots, e})));
      const nn::dynamic_network net{t, seed{1}, p};
      const at::Tensor x = global_of({3, 4, 7}, numbers{5}).to(tessera::detail::scalar_type(e));
      const nn::state_dict w = nn::state_of(net);
      const auto serial = [&](auto&& taken) {
        const auto wide = [&](const at::Tensor& z) { return taken(z.to(at::kDouble)); };
        return at::baddbmm(wide(w.at("0.bias")), wide(x), wide(w.at("0.weight"))).slice(2, -5);
      };
      const at::Tensor y = tessera::full_tensor(net(distribute(t, slots, x))).to(at::kDouble);
      const at::Tensor bound = serial([](const at::Tensor& z) { return z.abs(); });  // of what is added
      return ((y - serial([](const at::Tensor& z) { return z; })).abs() / bound).max().item<double>() / epsilon;
    });
    INFO(run.errors());
    return run.well() ? *run.results[0] : 1e300;
  };
  const part columns = [](const auto& x) {
    return x | nn::experts_layer{.experts = 3, .out = 5, .cut_out = {"model"}};
  };
  const part rows = [](const auto& x) { return x | nn::experts_layer{.experts = 3, .out = 5, .cut_in = {"model"}}; };
  const part let_through = [](const auto& x) {
    const auto [gate, up] = x | nn::gated_experts_layer{.experts = 3, .out = 5, .cut_out = {"model"}};
    return up;
  };
  CHECK(far(columns, element::float16, 0x1p-10) < 0.75);
  CHECK(far(let_through, element::float16, 0x1p-10) < 0.75);
  CHECK(far(rows, element::float16, 0x1p-10) < 2);
  CHECK(far(columns, element::bfloat16, 0x1p-7) < 0.75);
  CHECK(far(let_through, element::bfloat16, 0x1p-7) < 0.75);
  CHECK(far(rows, element::bfloat16, 0x1p-7) < 2);
  CHECK(far(columns, element::float32, 0x1p-23) < 4);
  CHECK(far(let_through, element::float32, 0x1p-23) < 4);
  CHECK(far(rows, element::float32, 0x1p-23) < 4);
  CHECK(far(columns, element::float64, 0x1p-52) < 4);
  CHECK(far(let_through, element::float64, 0x1p-52) < 4);
  CHECK(far(rows, element::float64, 0x1p-52) < 4);
}
