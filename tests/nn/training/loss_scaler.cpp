#include "tests/support/counting_transport.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/training/loss_scaler.hpp>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <bit>

// Loss scales: all workers step or none, after one exchange, and what is learned is what one learns without a scale.

namespace tessera::testing::scaling {

using namespace engine;

namespace {

using nn::judgement;
using nn::loss_scaler;

constexpr double infinite = std::numeric_limits<double>::infinity();

struct scaled_batch : dyn {};

template <int D, int M>
struct scaled_on {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using rows = tensor<partition<grid, blocks<data>, whole>, shape<scaled_batch, dim<5>>, double>;
  using cut_columns = partition<grid, blocks<data>, blocks<model>>;
  /// Weights that all have, that model cuts, so that some workers have none of a small one, and of tiles.
  using network = nn::sequential<rows, nn::linear<7>, nn::relu, nn::linear<3, output_as<cut_columns>>,
                                 nn::sharded_over<nn::linear<2>, data>>;
};

template <class On>
auto loss_of(const typename On::network& net, const team<typename On::grid>& t, std::uint64_t batch) {
  const auto y = net(distribute<typename On::rows>(t, global_of({7, 5}, numbers{batch})));
  return sum(y * y);
}

template <int D, int M>
void judge_learning() {
  using on = scaled_on<D, M>;
  for (const double most : {infinite, 0.5}) {
    const auto run = in_team<typename on::grid>([&](auto& t) -> std::string {
      typename on::network net{t, seed{5}}, beside{t, seed{5}};
      torch::optim::Adam optimizer(net.parameters(), 0.05), plain(beside.parameters(), 0.05);
      loss_scaler scaler({.interval = 2});
      for (std::uint64_t k = 0; k < 6; ++k) {
        optimizer.zero_grad();
        plain.zero_grad();
        scaler.scaled(loss_of<on>(net, t, k)).backward();
        loss_of<on>(beside, t, k).backward();
        const judgement expected = nn::judged(beside);
        if (std::isfinite(most)) nn::clip_grad_norm(beside, most);
        plain.step();
        const judgement found = scaler.step(optimizer, net, {.most = most});
        if (!found.finite || found.norm != expected.norm) return fmt::format("{} != {}", found.norm, expected.norm);
        for (std::size_t i = 0; i < net.parameters().size(); ++i)
          if (!same_bits(net.parameters()[i], beside.parameters()[i])) return fmt::format("step {}", k);
      }
      return scaler.scale() == 65536 * 8 && scaler.good_steps() == 0 ? "" : fmt::format("scale {}", scaler.scale());
    });
    INFO(D << " " << M << " " << run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r == "");
  }
}

}  // namespace

TEST_CASE("what is learned with a scale is what is learned without, to the bit, clipped or not", "[law][gradient]") {
  judge_learning<1, 1>();
  judge_learning<2, 2>();
  judge_learning<3, 2>();
  judge_learning<1, 5>();
}

TEST_CASE("an infinity that one worker alone has keeps all from stepping", "[law][gradient]") {
  using on = scaled_on<3, 2>;
  for (int where = 0; where < 6; ++where)
    for (const double bad : {infinite, -infinite, std::nan("")}) {
      launch_options options = threads_only();
      options.checks = checks::never;  // copies of one parameter differ
      const auto run = in_team<on::grid>(
          [&](auto& t) -> std::string {
            on::network net{t, seed{5}};
            torch::optim::SGD optimizer(net.parameters(), 0.05);
            loss_scaler scaler({.scale = 8});
            std::string wrong;
            for (std::uint64_t k = 0; k < 3; ++k) {
              optimizer.zero_grad();
              scaler.scaled(loss_of<on>(net, t, k)).backward();
              if (t.rank() == where && k == 1) net.parameters()[0].mutable_grad().view({-1})[0] = bad;
              std::vector<at::Tensor> before;
              for (const at::Tensor& p : net.parameters()) before.push_back(p.detach().clone());
              const judgement found = scaler.step(optimizer, net);
              if (found.finite != (k != 1) || std::isfinite(found.norm) != found.finite) wrong += "judged otherwise; ";
              bool same = true;
              for (std::size_t i = 0; i < before.size(); ++i) same = same && same_bits(before[i], net.parameters()[i]);
              if (same != (k == 1)) wrong += "stepped otherwise; ";
              if (scaler.scale() != (k == 0 ? 8 : 4)) wrong += fmt::format("scale {}; ", scaler.scale());
            }
            return wrong;
          },
          options);
      INFO(where << " " << run.errors());
      REQUIRE(run.well());
      for (const auto& r : run.results) CHECK(*r == "");
    }
}

TEST_CASE("a judgement is one exchange, however many parameters there are and whatever follows", "[law][gradient]") {
  for (const int workers : {2, 3, 5}) {
    const auto run = on_workers(workers, [&](const std::shared_ptr<transport>& carrier) -> std::string {
      mesh_value m;
      m.axes.push({text("data"), workers});
      const auto counting = std::make_shared<counting_transport>(carrier);
      const auto team = std::make_shared<team_state>(counting, row_major(m));
      team->checks = checks::never;
      nn::program p;
      layout x = {};
      x.mesh = team->mesh();
      x.placements.resize(1);
      x.dims.resize(2);
      x.dims[0].extent = 7;
      x.dims[1].extent = 3;
      x.cut_by(0, 0);
      auto f = p.input({x, element::float64});
      for (int i = 0; i < 4; ++i)
        f = f | nn::sharded({"data"}, nn::linear_layer{.out = 3}) | nn::linear_layer{.out = 3};
      p.output(f);
      const nn::dynamic_network net{team, seed{5}, p};
      torch::optim::SGD optimizer(net.parameters(), 0.01);
      loss_scaler scaler;
      std::string wrong;
      const auto counted = [&](const char* what, const auto& call) {
        for (int time = 0; time < 2; ++time) {  // the second time nothing is bound
          optimizer.zero_grad();
          const tensor<dyn> y = net({distribute(team, x, global_of({7, 3}, numbers{1}))})[0];
          scaler.scaled(sum(y * y)).backward();
          const int before = counting->begun;
          call();
          if (time == 1 && counting->begun != before + 1)
            wrong += fmt::format("{} exchanges: {}; ", counting->begun - before, what);
        }
      };
      std::vector<double> norms;
      counted("judged", [&] { norms.push_back(nn::judged(net).norm); });
      counted("clipped", [&] { norms.push_back(nn::clip_grad_norm(net, 1)); });
      counted("stepped", [&] { norms.push_back(scaler.step(optimizer, net).norm); });
      counted("stepped and clipped", [&] { norms.push_back(scaler.step(optimizer, net, {.most = 0.1}).norm); });
      for (const double n : norms)
        for (const std::uint64_t other : team->collect(std::bit_cast<std::uint64_t>(n), "comparing norms"))
          if (other != std::bit_cast<std::uint64_t>(n)) wrong += "workers have other norms; ";
      return wrong;
    });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r == "");
  }
}

TEST_CASE("gradients whose squares are no numbers are finite, and their norm is", "[law][gradient]") {
  CHECK(satisfied<scaled_on<2, 2>::grid>([](auto& t) {
          using on = scaled_on<2, 2>;
          const on::network net{t, seed{5}};
          for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::full_like(p, 1e200);
          // 35 + 7 elements, 21 + 3, 6 + 2
          const judgement found = nn::judged(net);
          return found.finite && std::abs(found.norm / (1e200 * std::sqrt(74)) - 1) < 1e-14;
        }) == 4);
}

TEST_CASE("a scale moves as LibTorch's, from and to what is saved, and never below 1", "[law]") {
  CHECK(satisfied<scaled_on<2, 1>::grid>([](auto& t) {
          using on = scaled_on<2, 1>;
          const on::network net{t, seed{5}};
          loss_scaler scaler({.scale = 4, .interval = 3});
          double scale = 4;
          int good = 0, steps = 0, taken = 0;
          bool same = true;
          rolls d{7};
          for (int k = 0; k < 200; ++k) {
            const bool overflows = d.once_in(k < 100 ? 3 : 9);
            for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::full_like(p, overflows ? infinite : 1.0);
            scaler.step([&] { ++steps; }, net);
            taken += !overflows;
            good = overflows ? 0 : good + 1;
            if (overflows) scale = std::max(scale / 2, 1.0);
            if (good == 3) scale *= 2;
            if (good == 3) good = 0;
            same = same && scaler.scale() == scale && scaler.good_steps() == good && steps == taken;
            if (k % 50 == 20) {
              loss_scaler other({.scale = 16, .interval = 3});
              other.load_state(scaler.state());
              scaler = other;
            }
          }
          return same;
        }) == 2);
}

TEST_CASE("between unscaling and a step gradients may be read and changed", "[gradient]") {
  CHECK(satisfied<scaled_on<2, 2>::grid>([](auto& t) {
          using on = scaled_on<2, 2>;
          on::network net{t, seed{5}};
          torch::optim::SGD optimizer(net.parameters(), 1);
          loss_scaler scaler;
          bool well = true;
          for (std::uint64_t k = 0; k < 3; ++k) {
            optimizer.zero_grad();
            scaler.scaled(loss_of<on>(net, t, k)).backward();
            const judgement found = scaler.unscale(net);
            well = well && std::abs(nn::grad_norm(net) / found.norm - 1) < 1e-14;
            nn::clip_grad_norm(net, found.norm / 2);
            std::vector<at::Tensor> expected;
            for (const at::Tensor& p : net.parameters())
              expected.push_back(p.grad().defined() ? (p - p.grad()).detach() : p.detach().clone());
            well = well && scaler.step(optimizer, net).norm == found.norm;
            for (std::size_t i = 0; i < expected.size(); ++i)
              well = well && same_bits(net.parameters()[i], expected[i]);
          }
          return well;
        }) == 4);
}

TEST_CASE("what cannot be scaled is refused on every worker, and changes nothing", "[refusal]") {
  using on = scaled_on<2, 2>;
  const auto run = in_team<on::grid>([](auto& t) -> std::string {
    on::network net{t, seed{5}};
    torch::optim::SGD optimizer(net.parameters(), 0.05);
    loss_scaler scaler;
    std::string wrong;
    const auto refuses = [&](const std::string& code, const std::function<void()>& f) {
      if (const std::string is = told(f); is != code) wrong += fmt::format("{} instead of {}; ", is, code);
    };
    for (const nn::loss_scaler_options& bad : {nn::loss_scaler_options{.scale = 0.5},
                                               {.scale = infinite},
                                               {.scale = std::nan("")},
                                               {.growth = 0.5},
                                               {.growth = infinite},
                                               {.backoff = 0},
                                               {.backoff = 2},
                                               {.interval = 0}})
      refuses("tessera.scaler.options", [&] { loss_scaler{bad}; });
    refuses("tessera.scaler.loss", [&] { scaler.scaled(at::scalar_tensor(3, at::kLong)); });
    refuses("tessera.scaler.loss", [&] { scaler.scaled(at::Tensor()); });
    const tensor<dyn> whole_number(t.state(), tessera::engine::one_number(on::grid::value),
                                   at::scalar_tensor(3, at::kLong));
    refuses("tessera.scaler.loss", [&] { scaler.scaled(whole_number); });
    scaler.scaled(loss_of<on>(net, t, 1)).backward();
    refuses("tessera.gradient.clip", [&] { scaler.step(optimizer, net, {.most = -1}); });
    refuses("tessera.gradient.clip", [&] { scaler.step(optimizer, net, {.order = 0}); });
    refuses("none", [&] { scaler.unscale(net); });
    refuses("tessera.scaler.twice", [&] { scaler.unscale(net); });
    refuses("tessera.scaler.twice", [&] { scaler.scaled(loss_of<on>(net, t, 1)); });
    refuses("tessera.scaler.twice", [&] { scaler.step(optimizer, net, {.most = 1}); });
    refuses("tessera.scaler.twice", [&] { scaler.step(optimizer, net, {.order = infinite}); });
    refuses("none", [&] { scaler.step(optimizer, net); });
    const at::Tensor before = net.parameters()[0].detach().clone();
    refuses("tessera.scaler.twice", [&] { scaler.step(optimizer, net); });
    if (!same_bits(before, net.parameters()[0]) || scaler.good_steps() != 1) wrong += "stepped twice; ";
    scaler.scaled(loss_of<on>(net, t, 1)).backward();  // adds to what is there
    refuses("none", [&] { scaler.step(optimizer, net); });
    for (const nn::state_dict& numbers :
         {nn::state_dict{},
          {{"scale", at::scalar_tensor(2, at::kFloat)}},
          {{"scale", at::scalar_tensor(0.5, at::kFloat)}, {"good_steps", at::scalar_tensor(2, at::kLong)}},
          {{"scale", at::scalar_tensor(2, at::kFloat)}, {"good_steps", at::scalar_tensor(-2, at::kLong)}},
          {{"scale", at::scalar_tensor(2, at::kFloat)}, {"steps", at::scalar_tensor(2, at::kLong)}}})
      refuses("tessera.training.state", [&] { scaler.load_state(numbers); });
    if (scaler.scale() != 65536 || scaler.good_steps() != 2) wrong += "another scale; ";
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

TEST_CASE("workers whose scales differ are told before they step", "[refusal]") {
  using on = scaled_on<2, 2>;
  CHECK(refusals<on::grid>("tessera.agree.fingerprint", [](auto& t) {
          on::network net{t, seed{5}};
          for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::ones_like(p);
          loss_scaler scaler({.scale = t.rank() == 2 ? 8.0 : 4.0});
          scaler.step([] {}, net);
        }) == 4);
}

TEST_CASE("a gradient of float16 is not unscaled, those of float masters are", "[refusal]") {
  using on = scaled_on<2, 1>;
  const auto learns = [](element used, element stored) {
    return [=](auto& t) -> std::string {
      nn::program p;
      auto x = value_of<on::rows>;
      x.element = used;
      x.layout.dims[0].extent = 7;
      p.output(p.input(x) | nn::linear_layer{.out = 4, .weights_as = stored});
      const nn::dynamic_network net{t, seed{5}, p};
      for (at::Tensor& w : net.parameters()) w.mutable_grad() = at::ones_like(w);
      loss_scaler scaler;
      return told([&] { scaler.step([] {}, net); });
    };
  };
  const auto told_by = [&](element used, element stored) {
    const auto run = in_team<on::grid>(learns(used, stored));
    return run.well() && run.of(0) == run.of(1) ? run.of(0) : run.errors() + "they differ";
  };
  CHECK(told_by(element::float16, element::float16) == "tessera.scaler.half");
  CHECK(told_by(element::float16, element::float32) == "none");
  CHECK(told_by(element::bfloat16, element::bfloat16) == "none");
}

}  // namespace tessera::testing::scaling
