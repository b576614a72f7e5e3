#include "tests/support/counting_transport.hpp"
#include "tests/support/leaf_training.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/gradient/data_parallel.hpp>

#include <unistd.h>

#include <filesystem>
#include <numeric>

// ZeRO of stages 1 and 2 for a module of LibTorch: what workers step that divide its bundles, beside what they step
// whole.

namespace tessera::testing::sharded {
namespace {

using nn::bundle_shards;
using nn::bundle_shards_options;

using optimizer_maker = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

const std::vector<optimizer_maker>& elementwise_rules() {
  namespace to = torch::optim;
  static const std::vector<optimizer_maker> all{
      [](auto p) { return std::make_unique<to::SGD>(p, to::SGDOptions(0.1).momentum(0.9).weight_decay(0.01)); },
      [](auto p) { return std::make_unique<to::Adam>(p, to::AdamOptions(0.05).amsgrad(true)); },
      [](auto p) { return std::make_unique<to::AdamW>(p, to::AdamWOptions(0.05).weight_decay(0.1)); },
      [](auto p) { return std::make_unique<to::RMSprop>(p, to::RMSpropOptions(0.05).momentum(0.5).centered(true)); },
      [](auto p) { return std::make_unique<to::Adagrad>(p, to::AdagradOptions(0.1)); }};
  return all;
}

/// Whether steps of shards and of a data parallel module give the same bits.
bool steps_alike(const team_handle& team, at::ScalarType type, const bundle_shards_options& options,
                 const optimizer_maker& make, int passes) {
  torch::nn::Sequential net = model(type), whole = model(type);
  bundle_shards shards(team, *net, options);
  nn::data_parallel parallel(team, *whole, {.averages = options.averages});
  const auto optimizer = make(shards.parameters()), beside = make(whole->parameters());
  for (int step = 0; step < 4; ++step) {
    optimizer->zero_grad(step % 2 == 0);
    beside->zero_grad(step % 2 == 0);
    for (int pass = 0; pass < passes; ++pass) {
      {
        const auto window = shards.window(pass + 1 == passes);
        backward(net, type, team->rank(), 3 * step + pass);
      }
      const auto window = parallel.window(pass + 1 == passes);
      backward(whole, type, team->rank(), 3 * step + pass);
    }
    optimizer->step();
    beside->step();
    shards.gather();
  }
  return equal(net->parameters(), whole->parameters());
}

TEST_CASE("shards step as whole parameters do, to the bit, by every elementwise rule", "[law]") {
  for (const int workers : {1, 2, 3, 4})
    for (const auto type : {at::kDouble, at::kFloat}) {
      const auto others = on_mesh(row_of(workers), [&](const team_handle& team) {
        std::string differ;
        int number = 0;
        for (std::size_t rule = 0; rule < elementwise_rules().size(); ++rule)
          for (const index_t bytes : {index_t{25} << 20, index_t{200}})
            for (const auto& [stage, passes] : {std::pair(1, 1), std::pair(1, 3), std::pair(2, 1)})
              if (tried(number++) && !steps_alike(team, type, {.stage = stage, .masters = false, .bundle_bytes = bytes},
                                                  elementwise_rules()[rule], passes))
                differ += fmt::format(" rule {} of {} passes in stage {}, {} bytes;", rule, passes, stage, bytes);
        return differ;
      });
      INFO(workers << " workers, " << c10::toString(type));
      REQUIRE(others.errors() == "");
      for (int r = 0; r < workers; ++r) CHECK(others.of(r) == "");
    }
}

TEST_CASE("a stage that reduces each backward steps as one that waits", "[law]") {
  const auto far = on_mesh(row_of(3), [](const team_handle& team) {
    std::vector<std::vector<at::Tensor>> results;
    for (const int stage : {1, 2}) {
      torch::nn::Sequential net = model(at::kDouble);
      bundle_shards shards(team, *net, {.stage = stage, .bundle_bytes = 200});
      torch::optim::Adam optimizer(shards.parameters(), 0.05);
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        for (int pass = 0; pass < 3; ++pass) {
          const auto window = shards.window(pass == 2, 1.0 + team->rank() * pass);
          backward(net, at::kDouble, team->rank(), 3 * step + pass);
        }
        optimizer.step();
        shards.gather();
      }
      results.push_back(net->parameters());
    }
    double most = 0;
    for (std::size_t i = 0; i < results[0].size(); ++i)
      most = std::max(most, (results[0][i] - results[1][i]).abs().max().item<double>());
    return most;
  });
  REQUIRE(far.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(far.of(r) < 1e-13);
}

TEST_CASE("masters are stepped in float, rounded and then moved", "[law]") {
  for (const int workers : {1, 2, 3}) {
    const auto same = on_mesh(row_of(workers), [](const team_handle& team) {
      torch::nn::Sequential net = model(at::kBFloat16), whole = model(at::kBFloat16);
      bundle_shards shards(team, *net, {.averages = false, .bundle_bytes = 60});
      nn::data_parallel parallel(team, *whole, {.averages = false});
      std::vector<at::Tensor> masters;
      for (const at::Tensor& w : whole->parameters())
        masters.push_back(w.detach().to(at::kFloat).set_requires_grad(true));
      torch::optim::Adam optimizer(shards.parameters(), 0.003), beside(masters, 0.003);
      for (int step = 0; step < 5; ++step) {
        optimizer.zero_grad();
        whole->zero_grad();
        backward(net, at::kBFloat16, team->rank(), step);
        backward(whole, at::kBFloat16, team->rank(), step);
        optimizer.step();
        shards.gather();
        const std::vector<at::Tensor> rounded = whole->parameters();
        for (std::size_t i = 0; i < masters.size(); ++i) masters[i].mutable_grad() = rounded[i].grad().to(at::kFloat);
        beside.step();
        const at::NoGradGuard no_graph;
        for (std::size_t i = 0; i < masters.size(); ++i) rounded[i].copy_(masters[i]);
      }
      const bool in_float = shards.parameters()[0].scalar_type() == at::kFloat;
      return in_float && equal(net->parameters(), whole->parameters());
    });
    REQUIRE(same.errors() == "");
    for (int r = 0; r < workers; ++r) CHECK(same.of(r));
  }
}

TEST_CASE("stages move the bytes that they are known to move, a message a bundle and way", "[law]") {
  constexpr index_t n = 67 * 8;
  constexpr int passes = 3;
  for (const int workers : {2, 3, 4})
    for (const int stage : {1, 2}) {
      const auto counted = on_mesh(row_of(workers), [&](const team_handle& team) {
        torch::nn::Sequential net = model(at::kDouble);
        bundle_shards shards(team, *net, {.stage = stage, .bundle_bytes = 200});
        torch::optim::SGD optimizer(shards.parameters(), 0.1);
        const std::vector<index_t> bundles = shards.bundle_bytes();
        const received before = team->total;
        for (int pass = 0; pass < passes; ++pass) {
          const auto window = shards.window(pass + 1 == passes);
          backward(net, at::kDouble, team->rank(), pass);
        }
        const received reduced = team->total;
        optimizer.step();
        shards.gather();
        index_t steps = 0;
        for (const at::Tensor& one : shards.parameters()) steps += one.numel();
        return std::vector<index_t>{reduced.bytes - before.bytes,
                                    team->total.bytes - reduced.bytes,
                                    reduced.messages - before.messages,
                                    team->total.messages - reduced.messages,
                                    std::accumulate(bundles.begin(), bundles.end(), index_t{0}),
                                    static_cast<index_t>(bundles.size()),
                                    steps};
      });
      REQUIRE(counted.errors() == "");
      std::vector<index_t> all(7, 0);
      for (int r = 0; r < workers; ++r) {
        for (std::size_t i = 0; i < all.size(); ++i) all[i] += counted.of(r)[i];
        CHECK(counted.of(r)[4] == n);  // nothing is padded
      }
      const index_t bundles = counted.of(0)[5], times = stage == 1 ? 1 : passes;
      CHECK(bundles > 2);
      CHECK(all[0] == times * (workers - 1) * n);
      CHECK(all[1] == (workers - 1) * n);
      CHECK(all[2] == times * workers * (workers - 1) * bundles);
      CHECK(all[3] == workers * (workers - 1) * bundles);
      CHECK(all[6] * 8 == n);  // each element is stepped once
    }
}

TEST_CASE("values are compared where a step may not have been gathered, and nowhere else", "[law]") {
  const auto begun = on_workers(3, [](const std::shared_ptr<transport>& carrier) {
    const auto counting = std::make_shared<counting_transport>(carrier);
    const auto team = std::make_shared<team_state>(counting, row_of(3));
    team->checks = checks::never;
    torch::nn::Sequential net = model(at::kDouble);
    bundle_shards shards(team, *net, {.bundle_bytes = 200});
    torch::optim::SGD optimizer(shards.parameters(), 0.1);
    std::vector<int> exchanges;
    for (int pass = 0; pass < 4; ++pass) {  // the first one binds
      const int before = counting->begun;
      backward(net, at::kDouble, team->rank(), pass);
      if (pass > 0) exchanges.push_back(counting->begun - before - static_cast<int>(shards.bundle_bytes().size()));
      if (pass == 2) continue;  // a step is left out
      optimizer.step();
      shards.gather();
    }
    return exchanges;
  });
  REQUIRE(begun.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(begun.of(r) == std::vector<int>{0, 0, 1});
}

TEST_CASE("shards of a bundle differ by one element at most, and end in the middle of parameters", "[law]") {
  for (const int workers : {2, 3, 5, 8}) {
    const auto sizes = on_mesh(row_of(workers), [](const team_handle& team) {
      torch::nn::Sequential net = model(at::kDouble);
      const bundle_shards shards(team, *net);
      const auto blocks = shards.parameters();
      return blocks.size() == 1 ? blocks[0].numel() : -1;
    });
    REQUIRE(sizes.errors() == "");
    for (int r = 0; r < workers; ++r) {
      CHECK(sizes.of(r) >= 67 / workers);
      CHECK(sizes.of(r) <= 67 / workers + 1);
    }
  }
}

TEST_CASE("workers along other axes have copies of shards", "[gradient]") {
  const auto well = on_mesh(row_of(3, 2), [](const team_handle& team) {
    const bundle_shards_options hybrid{.masters = false, .bundle_bytes = 200, .over = {"data"}};
    torch::nn::Sequential net = model(at::kDouble);
    const bundle_shards shards(team, *net, hybrid);
    index_t mine = 0;
    for (const at::Tensor& one : shards.parameters()) mine += one.numel();
    const bool third = mine >= 67 / 3 - 2 && mine <= 67 / 3 + 3;
    return third && steps_alike(team, at::kDouble, hybrid, elementwise_rules()[1], 2);
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 6; ++r) CHECK(well.of(r));
}

TEST_CASE("leaves by name begin with the first worker's values, and those without a gradient are left out", "[law]") {
  const auto well = on_mesh(row_of(3), [](const team_handle& team) {
    torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
    net->parameters()[1].set_requires_grad(false);
    whole->parameters()[1].set_requires_grad(false);
    bundle_shards::named_tensors leaves{{"none", at::Tensor()}};
    for (const auto& one : net->named_parameters()) {
      const at::NoGradGuard no_graph;
      if (one.value().requires_grad()) one.value().add_(team->rank());
      leaves.emplace_back(one.key(), one.value());
    }
    bundle_shards shards(team, leaves, {.bundle_bytes = 200});
    nn::data_parallel parallel(team, *whole);
    torch::optim::Adam optimizer(shards.parameters(), 0.05), beside(whole->parameters(), 0.05);
    bool same = equal(net->parameters(), whole->parameters()) && shards.leaves().size() == 5;
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      beside.zero_grad();
      backward(net, at::kDouble, team->rank(), step);
      backward(whole, at::kDouble, team->rank(), step);
      optimizer.step();
      beside.step();
      shards.gather();
    }
    return same && equal(net->parameters(), whole->parameters());
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(well.of(r));
}

TEST_CASE("groups of an optimizer have shards of their own", "[gradient]") {
  const auto well = on_mesh(row_of(3), [](const team_handle& team) {
    torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
    const auto is_bias = [](const std::string&, const at::Tensor& p) { return p.dim() == 1 ? 1 : 0; };
    bundle_shards shards(team, *net, {.group = is_bias});
    nn::data_parallel parallel(team, *whole);
    std::vector<at::Tensor> weights, biases;
    for (const at::Tensor& w : whole->parameters()) (w.dim() == 1 ? biases : weights).push_back(w);
    const auto made = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
      auto optimizer = std::make_unique<torch::optim::AdamW>(a, torch::optim::AdamWOptions(0.05).weight_decay(0.3));
      torch::optim::OptimizerParamGroup second(b);
      second.set_options(std::make_unique<torch::optim::AdamWOptions>(0.01));
      optimizer->add_param_group(second);
      return optimizer;
    };
    const auto optimizer = made(shards.parameters(0), shards.parameters(1)), beside = made(weights, biases);
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      beside->zero_grad();
      backward(net, at::kDouble, team->rank(), step);
      backward(whole, at::kDouble, team->rank(), step);
      optimizer->step();
      beside->step();
      shards.gather();
    }
    return equal(net->parameters(), whole->parameters());
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(well.of(r));
}

TEST_CASE("shards keep what was there, and begin anew where it was let go", "[gradient]") {
  for (const int stage : {1, 2}) {
    const auto well = on_mesh(row_of(2), [&](const team_handle& team) {
      torch::nn::Sequential net = model(at::kDouble), whole = model(at::kDouble);
      bundle_shards shards(team, *net, {.stage = stage});
      nn::data_parallel parallel(team, *whole);
      torch::optim::SGD optimizer(shards.parameters(), 0.1), beside(whole->parameters(), 0.1);
      const auto both = [&](bool last, int pass) {
        {
          const auto window = shards.window(last);
          backward(net, at::kDouble, team->rank(), pass);
        }
        const auto window = parallel.window(last);
        backward(whole, at::kDouble, team->rank(), pass);
      };
      bool same = true;
      const auto step = [&] {
        optimizer.step();
        beside.step();
        shards.gather();
        for (std::size_t i = 0; i < whole->parameters().size(); ++i)
          same = same && at::allclose(net->parameters()[i], whole->parameters()[i], 1e-13, 1e-14);
      };
      both(true, 0);
      both(true, 1);  // adds to what was there; the step was left out
      step();
      both(true, 2);   // to what was stepped
      both(false, 2);  // let go
      optimizer.zero_grad();
      beside.zero_grad();
      both(true, 3);
      step();
      return same;
    });
    REQUIRE(well.errors() == "");
    for (int r = 0; r < 2; ++r) CHECK(well.of(r));
  }
}

/// A run of some steps, from a checkpoint or to one: on so many workers, by a stage, or by whole parameters in stage 0.
std::vector<at::Tensor> run_of(int workers, int stage, int from, int to, const std::filesystem::path& load,
                               const std::filesystem::path& save) {
  const auto run = on_mesh(row_of(workers), [&](const team_handle& team) {
    torch::nn::Sequential net = model(at::kDouble);
    const std::unique_ptr<bundle_shards> shards =
        stage > 0
            ? std::make_unique<bundle_shards>(team, *net, bundle_shards_options{.stage = stage, .bundle_bytes = 300})
            : nullptr;
    const std::unique_ptr<nn::data_parallel> parallel =
        stage > 0 ? nullptr : std::make_unique<nn::data_parallel>(team, *net);
    torch::optim::AdamW optimizer(shards ? shards->parameters() : net->parameters(), torch::optim::AdamWOptions(0.05));
    nn::checkpoint all{shards ? nn::checkpoint_entry("net", *shards) : nn::checkpoint_entry("net", team, *net),
                       {"optimizer", optimizer}};
    if (!load.empty()) all.load(load);
    for (int step = from; step < to; ++step) {
      optimizer.zero_grad();
      backward(net, at::kDouble, 0, step);  // all workers have the same samples
      optimizer.step();
      if (shards) shards->gather();
    }
    if (!save.empty()) all.save(save);
    return net->parameters();
  });
  INFO(run.errors());
  REQUIRE(run.errors() == "");
  for (int r = 1; r < workers; ++r) CHECK(equal(run.of(r), run.of(0)));
  return run.of(0);
}

TEST_CASE("a run goes on with other workers, another stage, or whole parameters", "[law]") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera_shards_{}", ::getpid());
  const std::vector<at::Tensor> wanted = run_of(1, 0, 0, 6, {}, {});
  for (const auto& [workers, stage] : {std::pair(3, 1), std::pair(4, 2), std::pair(2, 0)})
    for (const auto& [others, next] : {std::pair(2, 2), std::pair(5, 1), std::pair(3, 0)}) {
      std::filesystem::remove_all(folder);
      run_of(workers, stage, 0, 3, {}, folder);
      const std::vector<at::Tensor> found = run_of(others, next, 3, 6, folder, {});
      for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(at::allclose(found[i], wanted[i], 1e-11, 1e-12));
    }
  std::filesystem::remove_all(folder);
}

/// The code in what LibTorch says of a gradient without memory.
template <class F>
std::string said(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    const std::string what = e.what();
    const auto begin = what.find("[tessera.");
    return begin == what.npos ? "other" : what.substr(begin + 1, what.find(']', begin) - begin - 1);
  }
  return "none";
}

TEST_CASE("what a program does wrong with shards is one error with its code", "[refusal]") {
  const auto codes = on_mesh(row_of(2), [](const team_handle& team) {
    std::vector<std::string> all;
    torch::nn::Sequential net = model(at::kDouble);
    bundle_shards shards(team, *net);
    all.push_back(told([&] { bundle_shards(team, *net); }));
    all.push_back(told([&] { bundle_shards(team, *torch::nn::Tanh()); }));
    all.push_back(told([&] { bundle_shards(team, *model(at::kDouble), {.stage = 3}); }));
    all.push_back(told([&] { bundle_shards(team, *model(at::kDouble), {.over = {"model"}}); }));
    torch::optim::SGD optimizer(shards.parameters(), 0.1), wrong(net->parameters(), 0.1);
    {
      const auto window = shards.window(false);
      backward(net, at::kDouble, team->rank(), 0);
    }
    all.push_back(said([&] { optimizer.step(); }));
    backward(net, at::kDouble, team->rank(), 1);
    all.push_back(said([&] { wrong.step(); }));  // of parameters, whose gradients lie on shards
    if (team->rank() == 0) optimizer.step();     // one worker's is enough
    all.push_back(said([&] { backward(net, at::kDouble, team->rank(), 2); }));
    return all;
  });
  const std::vector<std::string> wanted{
      "tessera.shards.twice",         "tessera.shards.none",     "tessera.shards.stage", "tessera.partition.axis",
      "tessera.data_parallel.window", "tessera.shards.gradient", "tessera.shards.gather"};
  REQUIRE(codes.errors() == "");
  for (int r = 0; r < 2; ++r) CHECK(codes.of(r) == wanted);
}

TEST_CASE("a gradient that is given by hand is refused", "[refusal]") {
  const auto codes = on_mesh(row_of(1), [](const team_handle& team) {
    torch::nn::Sequential net = model(at::kDouble);
    bundle_shards shards(team, *net);
    net->parameters()[2].mutable_grad() = at::ones_like(net->parameters()[2]);
    return said([&] { backward(net, at::kDouble, 0, 0); });
  });
  CHECK(codes.of(0) == "tessera.shards.gradient");
}

}  // namespace
}  // namespace tessera::testing::sharded
