// Weights that two stages share, beside one process that has them once.

#include "tests/support/stage_layouts.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace tied_weights {

using namespace tessera;
using namespace tessera::testing;
using pipeline::order;
using pipeline::schedule;

template <int P>
struct data : axis<P> {};
template <int P>
struct stages : axis<P> {};

/// A table of words on the first stage, and the same one for scores on the last, behind layers of their own.
template <class Layer, class Table, class Scores>
void build(nn::program& p, const mesh_value& m, const Table& table, const Scores& scores) {
  const int last = last_stage(m);
  const auto words = p.input({on_stage(m, {dynamic}, 0), element::int64});
  const auto wanted = p.input({on_stage(m, {dynamic}, last), element::int64});
  auto h = tanh(Layer{}(words | nn::shared_under("table", table)));
  for (int s = 1; s <= last; ++s) {
    h = to(on_stage(m, {dynamic, 4}, s), h);
    if (s < last) h = sin(h);
  }
  h = tanh(Layer{}(h));
  p.output(nn::cross_entropy(h | nn::shared_under("table", scores), wanted));
}

/// Four steps, without a word where they are those of one process. Where the schedule has steps, each stage clips its
/// gradients by the norm of all, and steps.
template <class M, class Layer = nn::linear<4>, class Table, class Scores>
std::string differs(const schedule& s, index_t rows, const Table& table, const Scores& scores) {
  const mesh_value& m = M::value;
  const auto out = in_team<M>([&](const team<M>& t) -> std::string {
    nn::program p;
    build<Layer>(p, m, table, scores);
    nn::dynamic_network net(t, seed{5}, p), plain = net.clone();
    std::map<std::string, at::Tensor> w;
    std::vector<at::Tensor> leaves;
    for (const auto& [key, one] : nn::state_of(net)) leaves.push_back(w[key] = one.clone().requires_grad_());
    if (w.size() != 5 || w.count("table.weight") == 0) return "other keys";
    torch::optim::Adam here(net.parameters(), 0.05), serial(leaves, 0.05);
    double norm = 0;
    nn::pipeline_options options{.rows = pipeline::micro_batch_sizes::uneven};
    const auto clip_and_step = [&](const nn::stage_pass&) {
      norm = nn::clip_grad_norm(net, 0.5);
      here.step();
    };
    if (s.steps) options.step = clip_and_step;
    nn::pipeline_parallel pipeline(net, last_axis(m), s, options);
    std::string wrong;
    for (std::uint64_t step = 0; step < 4; ++step) {
      const at::Tensor x = (global_of({rows}, numbers{2 * step}) * 3.4 + 3.5).to(at::kLong);
      const at::Tensor y = (global_of({rows}, numbers{2 * step + 1}) * 3.4 + 3.5).to(at::kLong);
      here.zero_grad();
      serial.zero_grad();
      const std::vector<tensor<dyn>> given{distribute(t, on_stage(m, {rows}, 0), x),
                                           distribute(t, on_stage(m, {rows}, last_stage(m)), y)};
      if (step == 2) pipeline.forward(given);  // without gradients, between two steps
      if (step == 1) pipeline.forward_backward(given, false);
      const double loss = full_tensor(pipeline.forward_backward(given)[0]).template item<double>();
      const auto linear = [&](const at::Tensor& of, const std::string& at) {
        return at::tanh(at::linear(of, w.at(at + ".weight"), w.at(at + ".bias")));
      };
      at::Tensor h = linear(w.at("table.weight").index_select(0, x), "0");
      for (int stage = 1; stage < last_stage(m); ++stage) h = h.sin();
      const at::Tensor wanted = at::cross_entropy_loss(at::linear(linear(h, "1"), w.at("table.weight")), y);
      (step == 1 ? 2 * wanted : wanted).backward();
      if (std::abs(loss - wanted.item<double>()) > 1e-12) wrong += fmt::format("loss of step {} ", step);
      if (step == 0) {  // and as a network without a pipeline
        plain(given)[0].backward();
        plain.each_parameter([&](const nn::parameter& q) {
          const at::Tensor off = full_tensor(q.stored().grad()) - w.at(q.path()).grad();
          if (off.abs().max().template item<double>() > 1e-12) wrong += "plain " + q.path() + " ";
        });
      }
      double squares = 0;
      for (const at::Tensor& one : leaves) squares += one.grad().square().sum().item<double>();
      if (!s.steps) clip_and_step({});
      if (std::abs(norm - std::sqrt(squares)) > 1e-12) wrong += "norm ";
      const double scale = std::min(1.0, 0.5 / (std::sqrt(squares) + 1e-6));
      for (const at::Tensor& one : leaves) one.mutable_grad().mul_(scale);
      serial.step();
    }
    for (const auto& [key, one] : nn::state_of(net))
      if ((one - w.at(key)).abs().max().template item<double>() > 1e-10) wrong += key + " ";
    return wrong;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("a table that the first and the last stage share trains as one", "[law][runtime][gradient]") {
  using table = nn::embedding<7, 4, weights_as<double>>;
  using scores = nn::linear<7, no_bias>;
  for (const bool steps : {false, true}) {
    for (const order by : {order::gpipe, order::one_f_one_b, order::zb_h1})
      CHECK(differs<mesh<stages<2>>>({by, {2, 3}, steps}, 8, table{}, scores{}) == "");
    const schedule turns{order::one_f_one_b, {2, 3}, steps};
    CHECK(differs<mesh<stages<3>>>({order::zb_h1, {3, 4}, steps}, 9, table{}, scores{}) == "");
    CHECK(differs<mesh<data<2>, stages<2>>>(turns, 11, table{}, scores{}) == "");
    CHECK(differs<mesh<data<2>, stages<2>>>(turns, 11, nn::bundled<table>{}, nn::bundled<scores>{}) == "");
    using layer = nn::bundled<nn::linear<4>>;
    CHECK(differs<mesh<stages<2>>, layer>(turns, 8, nn::bundled<table>{}, nn::bundled<scores>{}) == "");
    CHECK(differs<mesh<data<2>, stages<2>>, layer>(turns, 11, nn::bundled<table>{}, nn::bundled<scores>{}) == "");
  }
}

// What a shared weight moves was known by the address of its name, which another pipeline's had once the first was
// gone. So workers counted its calls otherwise, and compared at other ones.
TEST_CASE("pipelines of shared weights one after another agree, whatever their workers keep", "[regression]") {
  using grid = mesh<stages<2>>;
  const auto out = in_team<grid>([](const team<grid>& t) {
    std::vector<std::unique_ptr<nn::pipeline_parallel>> kept;
    for (int i = 0; i < 6; ++i) {
      nn::program p;
      build<nn::linear<4>>(p, grid::value, nn::embedding<7, 4, weights_as<double>>{}, nn::linear<7, no_bias>{});
      const nn::dynamic_network net(t, seed{5}, p);
      auto pipeline = std::make_unique<nn::pipeline_parallel>(net, "stages<2>", schedule{order::gpipe, {2, 2}});
      const at::Tensor x = at::arange(4, at::kLong);
      pipeline->forward_backward(
          {distribute(t, on_stage(grid::value, {4}, 0), x), distribute(t, on_stage(grid::value, {4}, 1), x)});
      if (t.rank() == 1) kept.push_back(std::move(pipeline));
    }
    return 0;
  });
  CHECK(out.errors() == "");
}

// Megatron#7227, #7228: the norm of a table on two stages counted it twice and was 40.
TEST_CASE("a norm counts shared weights once: √800", "[regression]") {
  using grid = mesh<stages<2>>;
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    nn::program p;
    const auto words = p.input({on_stage(grid::value, {dynamic}, 0), element::int64});
    const auto h = words | nn::shared_under("table", nn::embedding<2, 1, weights_as<double>>{});
    const auto there = to(on_stage(grid::value, {dynamic, 1}, 1), h);
    p.output(sum(there | nn::shared_under("table", nn::linear<2, no_bias>{})));
    nn::dynamic_network net(t, seed{5}, p);
    nn::assign(net, {{"table.weight", at::tensor({4.0, 6.0}, at::kDouble).view({2, 1})}});
    nn::pipeline_parallel pipeline(net, "stages<2>", schedule{order::one_f_one_b, {2, 2}}, {.loss_is_mean = false});
    const auto given = distribute(t, on_stage(grid::value, {2}, 0), at::tensor({0, 1}, at::kLong));
    pipeline.forward_backward({given});
    net.each_parameter([](const nn::parameter& q) { q.stored().local().mutable_grad().reset(); });
    const index_t before = t.state()->total.bytes;
    // (t₀ + t₁)²
    pipeline.forward_backward({given});
    const index_t bytes = t.state()->total.bytes - before;
    std::string wrong;
    if (std::abs(nn::clip_grad_norm(net, 1e9) - std::sqrt(800.0)) > 1e-12) wrong += "norm ";
    // the table comes once and its gradient goes once, two numbers each; a number for each of two micro-batches each
    // way
    if (bytes != 16 + 16) wrong += fmt::format("{} bytes ", bytes);
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

// The other stage scaled rows of its copy alone: the table kept them as long as they were, without a word.
TEST_CASE("a table with max_norm is not shared over stages, whichever layer is the first", "[refusal][regression]") {
  using grid = mesh<stages<2>>;
  const nn::embedding_layer words{.rows = 7, .features = 4, .weights_as = element::float64, .max_norm = 0.5};
  const auto refuses = [&](const auto& first, const auto& last, element e, std::vector<index_t> extents) {
    return refusals<grid>("tessera.network.rewritten", [&](team<grid>& t) {
      nn::program p;
      const auto x = p.input({on_stage(grid::value, extents, 0), e});
      const auto there = p.input({on_stage(grid::value, {dynamic}, 1), element::int64});
      p.output(x | nn::shared_under("table", first));
      p.output(there | nn::shared_under("table", last));
      const nn::dynamic_network net(t, seed{5}, p);
    });
  };
  CHECK(refuses(words, nn::embedding<7, 4, weights_as<double>>{}, element::int64, {dynamic}) == 2);
  CHECK(refuses(nn::linear<7, no_bias>{}, words, element::float64, {dynamic, 4}) == 2);
}

TEST_CASE("a stage that is the only one shares weights wherever what takes them lies", "[regression]") {
  using grid = mesh<stages<1>>;
  const auto out = in_team<grid>([](const team<grid>& t) {
    layout lies = on_stage(grid::value, {5}, -1);
    lies.set_placement(0, tessera::engine::held_on(0));
    nn::program p;
    const auto h =
        tanh(p.input({lies, element::int64}) | nn::shared_under("table", nn::embedding<7, 4, weights_as<double>>{}));
    p.output(h | nn::shared_under("table", nn::linear<7, no_bias>{}));
    const nn::dynamic_network net{t, seed{5}, p};
    const at::Tensor x = at::arange(5, at::kLong), w = nn::state_of(net).at("table.weight");
    const at::Tensor wanted = at::linear(at::tanh(w.index_select(0, x)), w);
    return at::allclose(full_tensor(net(distribute(t, lies, x))), wanted, 1e-12, 1e-12);
  });
  CHECK(out.errors() == "");
  CHECK(out.results[0].value_or(false));
}

}  // namespace tied_weights
