#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

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
        workers, t.to(tessera::detail::scalar_type_of(value_of<typename M::tokens>.element))));
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
    "workers without any",
    "[gradient]") {
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
    const auto x = distribute<tokens>(workers, t.to(tessera::detail::scalar_type_of(index)));
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
    "file",
    "[gradient]") {
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
                                                         t.to(tessera::detail::scalar_type_of(lies.element))));
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
    "LibTorch's, on rolled partitions",
    "[law][gradient]") {
  judge_rolled<1, 1>(1, 20);
  judge_rolled<2, 2>(2, 40);
  judge_rolled<3, 2>(3, 40);
  judge_rolled<1, 4>(4, 40);
}

namespace {

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

}  // namespace

TEST_CASE("an index of no row is named on every worker, whoever has it", "[refusal]") {
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
