#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

#include <torch/optim/adam.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

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
    "experts or tokens",
    "[gradient]") {
  judge_mixture<1, 1, 1>(4);
  judge_mixture<3, 1, 1>(2);
  judge_mixture<2, 2, 2>(5);
}

TEST_CASE("gated experts of values and from a file are the typed ones bit for bit, in bfloat16 with float masters",
          "[runtime]") {
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

TEST_CASE("experts of every real element are as near to double as it, columns rounded once and rows once a term",
          "[runtime]") {
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
      const at::Tensor x = global_of({3, 4, 7}, numbers{5}).to(tessera::detail::scalar_type_of(e));
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
