#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/gradient/data_parallel.hpp>

#include <unistd.h>

#include <filesystem>
#include <numeric>

// Data parallel modules whose optimizer's state is divided by an option: one program, with and without.

namespace tessera::testing::divided_steps {
namespace {

using nn::data_parallel;
using nn::data_parallel_options;

mesh_value row_of(int workers, int rows = 1) {
  mesh_value m;
  if (rows > 1) m.axes.push({text("node"), rows});
  m.axes.push({text("data"), workers});
  return row_major(m);
}

template <class F>
auto on_mesh(const mesh_value& m, F&& f) {
  return on_workers(
      m.size(), [&](const std::shared_ptr<transport>& carrier) { return f(std::make_shared<team_state>(carrier, m)); });
}

/// Linear layers from one number of features to the next, with values that begin anywhere: 4, 7, 3, 2 have 67 elements.
torch::nn::Sequential model(at::ScalarType type, const std::vector<std::int64_t>& features = {4, 7, 3, 2},
                            double begin = 0) {
  torch::nn::Sequential net;
  for (std::size_t i = 1; i < features.size(); ++i) {
    net->push_back(torch::nn::Linear(features[i - 1], features[i]));
    net->push_back(torch::nn::Tanh());
  }
  const at::NoGradGuard no_graph;
  for (at::Tensor& w : net->parameters()) {
    w.copy_((at::arange(w.numel(), at::kDouble) + begin).sin().view(w.sizes()));
    begin += 10;
  }
  net->to(type);
  return net;
}

/// A backward of one worker's samples, of which it has two or three.
at::Tensor loss_of(torch::nn::Sequential& net, int rank, int pass) {
  const at::Tensor w = net->parameters().front();
  const std::int64_t rows = 2 + (rank + pass) % 2, in = w.size(1);
  const at::Tensor x = (at::arange(rows * in, at::kDouble) + 5 * rank + 17 * pass).sin().view({rows, in});
  const at::Tensor y = net->forward(x.to(w.scalar_type()));
  return (y - (at::arange(y.numel(), y.options()) + 3 * rank + 11 * pass).cos().view_as(y)).square().mean();
}

using optimizer_maker = std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)>;

const std::vector<optimizer_maker>& rules() {
  namespace to = torch::optim;
  static const std::vector<optimizer_maker> all{
      [](auto p) { return std::make_unique<to::SGD>(p, to::SGDOptions(0.1)); },
      [](auto p) { return std::make_unique<to::SGD>(p, to::SGDOptions(0.1).momentum(0.9).weight_decay(0.01)); },
      [](auto p) { return std::make_unique<to::Adam>(p, to::AdamOptions(0.05).amsgrad(true)); },
      [](auto p) { return std::make_unique<to::AdamW>(p, to::AdamWOptions(0.05).weight_decay(0.1)); }};
  return all;
}

/// The program: four steps of a module, each of some backwards.
std::vector<at::Tensor> trained(const team_handle& team, torch::nn::Sequential net, data_parallel_options options,
                                int stage, const optimizer_maker& make, int passes = 1, bool weighed = false) {
  options.stage = stage;
  data_parallel parallel(team, *net, options);
  const auto optimizer = make(parallel.parameters());
  for (int step = 0; step < 4; ++step) {
    optimizer->zero_grad(step % 2 == 0);
    for (int pass = 0; pass < passes; ++pass) {
      const auto weight = weighed ? std::optional(1.0 + team->rank()) : std::nullopt;
      const auto window = parallel.window(pass + 1 == passes, weight);
      loss_of(net, team->rank(), 3 * step + pass).backward();
    }
    optimizer->step();
    parallel.gather();
  }
  return net->parameters();
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
}

TEST_CASE("one option divides the optimizer's state, and no bit of a step changes", "[law]") {
  for (const int workers : {1, 2, 3, 4})
    for (const auto type : {at::kDouble, at::kFloat}) {
      const auto others = on_mesh(row_of(workers), [&](const team_handle& team) {
        std::string differ;
        for (std::size_t rule = 0; rule < rules().size(); ++rule)
          for (const index_t bytes : {index_t{25} << 20, index_t{200}})
            for (const auto& [stage, passes] : {std::pair(1, 1), std::pair(1, 3), std::pair(2, 1)}) {
              const data_parallel_options options{.averages = passes == 1, .bundle_bytes = bytes};
              if (!equal(trained(team, model(type), options, stage, rules()[rule], passes, passes == 3),
                         trained(team, model(type), options, 0, rules()[rule], passes, passes == 3)))
                differ += fmt::format(" rule {} of {} passes in stage {}, {} bytes;", rule, passes, stage, bytes);
            }
        return differ;
      });
      INFO(workers << " workers, " << c10::toString(type));
      REQUIRE(others.errors() == "");
      for (int r = 0; r < workers; ++r) CHECK(others.of(r) == "");
    }
}

TEST_CASE("workers that outnumber elements step as one does", "[law]") {
  for (const auto type : {at::kDouble, at::kFloat}) {
    const auto same = on_mesh(row_of(5), [&](const team_handle& team) {
      bool all = true;
      for (const auto& rule : rules())
        for (const index_t bytes : {index_t{25} << 20, index_t{1}})  // of two elements or of one
          all = all && equal(trained(team, model(type, {1, 1}), {.bundle_bytes = bytes}, 1, rule),
                             trained(team, model(type, {1, 1}), {.bundle_bytes = bytes}, 0, rule));
      return all;
    });
    REQUIRE(same.errors() == "");
    for (int r = 0; r < 5; ++r) CHECK(same.of(r));
  }
}

TEST_CASE("a divided step moves (p - 1)/p of its gradients and as much of parameters, a message a bundle and way",
          "[law]") {
  constexpr index_t n = 67 * 8;
  for (const int workers : {2, 3, 4}) {
    const auto counted = on_mesh(row_of(workers), [&](const team_handle& team) {
      torch::nn::Sequential net = model(at::kDouble);
      data_parallel parallel(team, *net, {.bundle_bytes = 200, .stage = 1});
      torch::optim::Adam optimizer(parallel.parameters(), 0.1);
      const index_t bundles = static_cast<index_t>(parallel.bundle_bytes().size());
      const received before = team->total;
      for (int pass = 0; pass < 3; ++pass) {
        const auto window = parallel.window(pass == 2);
        loss_of(net, team->rank(), pass).backward();
      }
      const received reduced = team->total;
      optimizer.step();
      parallel.gather();
      index_t kept = 0;  // of the optimizer's state
      for (const auto& [leaf, state] : optimizer.state())
        kept += static_cast<const torch::optim::AdamParamState&>(*state).exp_avg().numel();
      return std::vector<index_t>{reduced.bytes - before.bytes,
                                  team->total.bytes - reduced.bytes,
                                  reduced.messages - before.messages,
                                  team->total.messages - reduced.messages,
                                  8 * kept,
                                  bundles};
    });
    REQUIRE(counted.errors() == "");
    std::vector<index_t> all(6, 0);
    const index_t bundles = counted.of(0)[5];
    CHECK(bundles > 2);
    for (int r = 0; r < workers; ++r) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += counted.of(r)[i];
      CHECK(counted.of(r)[4] / 8 <= 67 / workers + bundles);  // an element more a bundle at most
    }
    CHECK(all[0] == (workers - 1) * n);
    CHECK(all[1] == (workers - 1) * n);
    CHECK(all[2] == workers * (workers - 1) * bundles);
    CHECK(all[3] == workers * (workers - 1) * bundles);
    CHECK(all[4] == n);  // each element's state is somewhere once
  }
}

TEST_CASE("groups of an optimizer are stepped by their own options, divided or not", "[gradient]") {
  const auto same = on_mesh(row_of(3), [](const team_handle& team) {
    std::vector<std::vector<at::Tensor>> results;
    for (const int stage : {0, 1}) {
      torch::nn::Sequential net = model(at::kDouble);
      data_parallel parallel(team, *net, {.stage = stage, .group = [](const std::string&, const at::Tensor& p) {
                                            return p.dim() == 1 ? 1 : 0;
                                          }});
      torch::optim::AdamW optimizer(parallel.parameters(0), torch::optim::AdamWOptions(0.05).weight_decay(0.3));
      torch::optim::OptimizerParamGroup biases(parallel.parameters(1));
      biases.set_options(std::make_unique<torch::optim::AdamWOptions>(0.01));
      optimizer.add_param_group(biases);
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        loss_of(net, team->rank(), step).backward();
        optimizer.step();
        parallel.gather();
      }
      results.push_back(net->parameters());
    }
    return equal(results[0], results[1]) && !equal(results[0], model(at::kDouble)->parameters());
  });
  REQUIRE(same.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(same.of(r));
}

TEST_CASE("along axes that are not named modules differ, and each line of workers has its own mean", "[gradient]") {
  const auto well = on_mesh(row_of(3, 2), [](const team_handle& team) {
    const int node = team->at()[0], mine = team->at()[1];
    const auto own = [&](double begin) { return model(at::kDouble, {4, 7, 3, 2}, begin); };
    std::string wrong;
    for (const int stage : {0, 1}) {
      torch::nn::Sequential net = own(node == 0 ? 0 : 100), serial = own(node == 0 ? 0 : 100);
      if (mine != 0) net = own(7);  // what the first of a line has is brought
      data_parallel parallel(team, *net, {.stage = stage, .over = {"data"}});
      torch::optim::SGD optimizer(parallel.parameters(), 0.1), beside(serial->parameters(), 0.1);
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        loss_of(net, team->rank(), step).backward();
        optimizer.step();
        parallel.gather();
        beside.zero_grad();
        for (int other = 0; other < 3; ++other) (loss_of(serial, 3 * node + other, step) / 3).backward();
        beside.step();
      }
      for (std::size_t i = 0; i < serial->parameters().size(); ++i)
        if (!at::allclose(net->parameters()[i], serial->parameters()[i], 1e-12, 1e-13))
          wrong += fmt::format("{} in stage {}; ", i, stage);
    }
    return wrong;
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 6; ++r) CHECK(well.of(r) == "");
}

TEST_CASE("gradients are clipped by the norm of the whole module, divided or not", "[gradient]") {
  const auto well = on_mesh(row_of(3), [](const team_handle& team) {
    std::string wrong;
    for (const int stage : {0, 1})
      for (const double order : {1.0, 2.0, HUGE_VAL})
        for (const double most : {0.05, 1e3}) {
          torch::nn::Sequential net = model(at::kDouble), serial = model(at::kDouble);
          data_parallel parallel(team, *net, {.bundle_bytes = 200, .stage = stage});
          torch::optim::SGD optimizer(parallel.parameters(), 1), beside(serial->parameters(), 1);
          loss_of(net, team->rank(), 0).backward();
          for (int other = 0; other < 3; ++other) (loss_of(serial, other, 0) / 3).backward();
          const double norm = nn::clip_grad_norm(parallel, most, order);
          const double wanted = torch::nn::utils::clip_grad_norm_(serial->parameters(), most, order);
          optimizer.step();
          beside.step();
          parallel.gather();
          bool same = std::abs(norm - wanted) < 1e-12 * wanted;
          for (std::size_t i = 0; i < serial->parameters().size(); ++i)
            same = same && at::allclose(net->parameters()[i], serial->parameters()[i], 1e-12, 1e-13);
          if (!same) wrong += fmt::format("stage {}, order {}, most {}; ", stage, order, most);
        }
    return wrong;
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(well.of(r) == "");
}

TEST_CASE("buffers follow their rule where the state is divided", "[runtime]") {
  const auto means = on_mesh(row_of(2), [](const team_handle& team) {
    torch::nn::Sequential net(torch::nn::BatchNorm1d(4));
    net->to(at::kDouble);
    data_parallel parallel(team, *net, {.buffers = nn::buffer_rule::averaged, .stage = 1});
    const at::Tensor x = (at::arange(44, at::kDouble) + 100 * team->rank()).view({11, 4});
    net->forward(x).square().sum().backward();
    return net[0]->as<torch::nn::BatchNorm1d>()->running_mean.clone();
  });
  REQUIRE(means.errors() == "");
  const at::Tensor first = at::arange(44, at::kDouble).view({11, 4}).mean(0);
  for (int r = 0; r < 2; ++r) CHECK(at::allclose(means.of(r), (first + 50) / 10));
}

/// A run of some steps, from a checkpoint or to one, on so many workers.
std::vector<at::Tensor> run_of(int workers, int stage, int from, int to, const std::filesystem::path& load,
                               const std::filesystem::path& save) {
  const auto run = on_mesh(row_of(workers), [&](const team_handle& team) {
    torch::nn::Sequential net = model(at::kDouble);
    data_parallel parallel(team, *net, {.bundle_bytes = 300, .stage = stage});
    torch::optim::AdamW optimizer(parallel.parameters(), torch::optim::AdamWOptions(0.05));
    nn::checkpoint all{{"net", parallel}, {"optimizer", optimizer}};
    if (!load.empty()) all.load(load);
    for (int step = from; step < to; ++step) {
      optimizer.zero_grad();
      loss_of(net, 0, step).backward();  // all workers have the same samples
      optimizer.step();
      parallel.gather();
    }
    if (!save.empty()) all.save(save);
    return net->parameters();
  });
  INFO(run.errors());
  REQUIRE(run.errors() == "");
  for (int r = 1; r < workers; ++r) CHECK(equal(run.of(r), run.of(0)));
  return run.of(0);
}

TEST_CASE("a run whose state is divided goes on with other workers, or undivided", "[law]") {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("tessera_divided_{}", ::getpid());
  const std::vector<at::Tensor> wanted = run_of(1, 0, 0, 6, {}, {});
  for (const auto& [workers, stage, others, next] :
       {std::tuple(3, 1, 2, 0), std::tuple(2, 0, 5, 1), std::tuple(4, 1, 3, 2)}) {
    std::filesystem::remove_all(folder);
    run_of(workers, stage, 0, 3, {}, folder);
    const std::vector<at::Tensor> found = run_of(others, next, 3, 6, folder, {});
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(at::allclose(found[i], wanted[i], 1e-11, 1e-12));
  }
  std::filesystem::remove_all(folder);
}

/// The code of an error, also of one that LibTorch throws for a gradient without memory.
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

TEST_CASE("what a program does wrong with a divided state is one error with its code on every worker", "[refusal]") {
  const auto codes = on_mesh(row_of(2), [](const team_handle& team) {
    std::vector<std::string> all;
    torch::nn::Sequential net = model(at::kDouble);
    all.push_back(said([&] { data_parallel(team, *net, {.stage = 3}); }));
    all.push_back(said([&] { data_parallel(team, *net, {.stage = -1}); }));
    all.push_back(said([&] { data_parallel(team, *net, {.over = {"model"}}); }));
    all.push_back(said([&] { data_parallel(team, *torch::nn::Tanh(), {.stage = 1}); }));
    data_parallel parallel(team, *net, {.stage = 1});
    all.push_back(said([&] { data_parallel(team, *net); }));
    all.push_back(said([&] { data_parallel(team, *net, {.stage = 1}); }));
    torch::optim::SGD optimizer(parallel.parameters(), 0.1), wrong(net->parameters(), 0.1);
    {
      const auto window = parallel.window(false);
      loss_of(net, team->rank(), 0).backward();
    }
    all.push_back(said([&] { optimizer.step(); }));
    loss_of(net, team->rank(), 1).backward();
    all.push_back(said([&] { wrong.step(); }));
    all.push_back(said([&] { torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0); }));
    all.push_back(said([&] { nn::clip_grad_norm(parallel, 1, 0); }));
    if (team->rank() == 0) optimizer.step();  // one worker's is enough
    all.push_back(said([&] { loss_of(net, team->rank(), 2).backward(); }));
    return all;
  });
  const std::vector<std::string> wanted{
      "tessera.shards.stage",        "tessera.shards.stage",  "tessera.partition.axis",       "tessera.shards.none",
      "tessera.data_parallel.twice", "tessera.shards.twice",  "tessera.data_parallel.window", "tessera.shards.gradient",
      "tessera.shards.gradient",     "tessera.gradient.clip", "tessera.shards.gather"};
  REQUIRE(codes.errors() == "");
  for (int r = 0; r < 2; ++r) CHECK(codes.of(r) == wanted);
}

TEST_CASE("workers that divide in other ways are told so", "[refusal]") {
  const auto codes = on_mesh(row_of(2), [](const team_handle& team) {
    torch::nn::Sequential net = model(at::kDouble);
    data_parallel parallel(team, *net, {.stage = team->rank()});
    return said([&] { loss_of(net, team->rank(), 0).backward(); });
  });
  for (int r = 0; r < 2; ++r) CHECK(codes.of(r) == "tessera.agree.fingerprint");
}

}  // namespace
}  // namespace tessera::testing::divided_steps
