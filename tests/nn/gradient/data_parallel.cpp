#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/gradient/data_parallel.hpp>

#include <numeric>

// A module of LibTorch, trained by several workers with samples of their own: what one process makes of all samples.

namespace tessera::testing::copies {
namespace {

using nn::data_parallel;
using nn::data_parallel_options;

mesh_value row_of(int workers) {
  mesh_value m;
  m.axes.push({text("data"), workers});
  return row_major(m);
}

/// Runs f(team) on so many workers, a number that only run time knows.
template <class F>
auto on_row(int workers, F&& f) {
  return on_workers(workers, [&](const std::shared_ptr<transport>& carrier) {
    return f(std::make_shared<team_state>(carrier, row_of(workers)));
  });
}

torch::nn::Sequential model(double factor = 1) {
  torch::nn::Sequential net(torch::nn::Linear(4, 7), torch::nn::Tanh(), torch::nn::Linear(7, 3), torch::nn::Tanh(),
                            torch::nn::Linear(3, 2));
  net->to(at::kDouble);
  const at::NoGradGuard no_graph;
  double begin = 0;
  for (at::Tensor& w : net->parameters()) {
    w.copy_((at::arange(w.numel(), at::kDouble) + begin).sin().view(w.sizes()) * factor);
    begin += 10;
  }
  return net;
}

const at::Tensor& inputs() {
  static const at::Tensor x = at::arange(88, at::kDouble).sin().view({22, 4});
  return x;
}
const at::Tensor& targets() {
  static const at::Tensor y = at::arange(44, at::kDouble).cos().view({22, 2});
  return y;
}

/// The samples of a worker: uneven, and none on the second of more than two.
std::pair<std::int64_t, std::int64_t> samples_of(int rank, int workers) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(workers));
  for (std::int64_t i = 0; i < 22; ++i) {
    const auto to = static_cast<std::size_t>(i * i % workers);
    ++sizes[workers > 2 && to == 1 ? 0 : to];
  }
  const std::int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + rank, std::int64_t{0});
  return {begin, begin + sizes[static_cast<std::size_t>(rank)]};
}

double distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const double far = (a[i] - b[i]).abs().max().item<double>(); far > most || std::isnan(far)) most = far;
  return std::isnan(most) ? HUGE_VAL : most;
}

std::vector<at::Tensor> gradients_of(const torch::nn::Sequential& net) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& w : net->parameters()) all.push_back(w.grad().defined() ? w.grad() : at::zeros_like(w));
  return all;
}

TEST_CASE("workers with uneven samples, and with none, step as one process with all", "[gradient]") {
  for (const int workers : {1, 2, 3, 5}) {
    const auto far = on_row(workers, [&](const team_handle& team) {
      torch::nn::Sequential net = model(), serial = model();
      data_parallel parallel(team, *net);
      torch::optim::Adam optimizer(net->parameters(), 0.05), beside(serial->parameters(), 0.05);
      const auto [begin, end] = samples_of(team->rank(), workers);
      const at::Tensor x = inputs().slice(0, begin, end), y = targets().slice(0, begin, end);
      double most = 0;
      for (int step = 0; step < 6; ++step) {
        optimizer.zero_grad(step % 2 == 0);
        {
          const auto window = parallel.window(true, static_cast<double>(end - begin));
          torch::mse_loss(net->forward(x), y).backward();
        }
        beside.zero_grad();
        torch::mse_loss(serial->forward(inputs()), targets()).backward();
        most = std::max(most, distance(gradients_of(net), gradients_of(serial)));
        optimizer.step();
        beside.step();
      }
      return std::max(most, distance(net->parameters(), serial->parameters()));
    });
    REQUIRE(far.errors() == "");
    for (int r = 0; r < workers; ++r) CHECK(far.of(r) < 1e-13);
  }
}

/// The gradients of two windows of three backwards, with bundles of so many bytes.
std::vector<at::Tensor> of_windows(const team_handle& team, index_t bundle_bytes, bool averages,
                                   index_t* moved_inside) {
  torch::nn::Sequential net = model();
  data_parallel_options options;
  options.bundle_bytes = bundle_bytes;
  options.averages = averages;
  data_parallel parallel(team, *net, options);
  for (int step = 0; step < 2; ++step)
    for (int pass = 0; pass < 3; ++pass) {
      const auto window = parallel.window(pass == 2);
      const std::int64_t sample = (step * 3 + pass + team->rank() * 5) % 22;
      const index_t before = team->total.bytes;
      torch::mse_loss(net->forward(inputs().slice(0, sample, sample + 1)), targets().slice(0, sample, sample + 1))
          .backward();
      if (moved_inside != nullptr && pass != 2) *moved_inside += team->total.bytes - before;
    }
  std::vector<at::Tensor> all = gradients_of(net);
  for (at::Tensor& one : all) one = one.clone();
  return all;
}

TEST_CASE("a window moves gradients once, and bundles of any size give equal bits", "[law]") {
  for (const int workers : {2, 3, 4}) {
    const auto same = on_row(workers, [&](const team_handle& team) {
      index_t moved = 0;
      const std::vector<at::Tensor> all = of_windows(team, index_t{25} << 20, true, &moved);
      const std::vector<at::Tensor> alone = of_windows(team, 16, true, nullptr);
      const std::vector<at::Tensor> some = of_windows(team, 700, true, nullptr);
      const std::vector<at::Tensor> sums = of_windows(team, 700, false, nullptr);
      bool equal = moved == 0;
      for (std::size_t i = 0; i < all.size(); ++i)
        equal = equal && all[i].equal(alone[i]) && all[i].equal(some[i]) &&
                at::allclose(sums[i], all[i] * workers, 1e-13, 1e-15);
      return equal;
    });
    REQUIRE(same.errors() == "");
    for (int r = 0; r < workers; ++r) CHECK(same.of(r));
  }
}

TEST_CASE("gradients that were there before a window stay beneath what it brings", "[gradient]") {
  const auto far = on_row(3, [](const team_handle& team) {
    torch::nn::Sequential net = model();
    data_parallel parallel(team, *net);
    const auto backward = [&](std::int64_t sample) {
      torch::mse_loss(net->forward(inputs().slice(0, sample, sample + 1)), targets().slice(0, sample, sample + 1))
          .backward();
    };
    backward(team->rank());
    backward(7 + team->rank());
    torch::nn::Sequential serial = model();
    for (const std::int64_t first : {0, 7}) {
      const at::Tensor x = inputs().slice(0, first, first + 3), y = targets().slice(0, first, first + 3);
      torch::mse_loss(serial->forward(x), y).backward();
    }
    return distance(gradients_of(net), gradients_of(serial));
  });
  REQUIRE(far.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(far.of(r) < 1e-14);
}

TEST_CASE("a parameter that a graph does not use, on one worker or on all, counts zero", "[gradient]") {
  const auto well = on_row(3, [](const team_handle& team) {
    torch::nn::Sequential net = model();
    torch::nn::Linear nobody(3, 3);
    nobody->to(at::kDouble);
    torch::nn::Module all;
    all.register_module("net", net.ptr());
    all.register_module("nobody", nobody.ptr());
    data_parallel parallel(team, all);
    const int rank = team->rank();
    // the second worker goes through one layer alone
    const at::Tensor h = net[0]->as<torch::nn::Linear>()->forward(inputs());
    (rank == 1 ? h.sum() : net->forward(inputs()).sum()).backward();

    torch::nn::Sequential serial = model();
    serial[0]->as<torch::nn::Linear>()->forward(inputs()).sum().backward();
    serial->forward(inputs()).sum().backward();
    serial->forward(inputs()).sum().backward();
    std::vector<at::Tensor> wanted = gradients_of(serial);
    for (at::Tensor& one : wanted) one = one / 3;
    return distance(gradients_of(net), wanted) < 1e-13 && nobody->weight.grad().eq(0).all().item<bool>();
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 3; ++r) CHECK(well.of(r));
}

TEST_CASE("a worker of weight zero counts nothing, whatever its gradients are", "[gradient]") {
  const auto far = on_row(2, [](const team_handle& team) {
    torch::nn::Sequential net = model(), serial = model();
    data_parallel parallel(team, *net);
    const auto window = parallel.window(true, team->rank() == 1 ? 0 : 3);
    (net->forward(inputs()).sum() * (team->rank() == 1 ? std::nan("") : 1.0)).backward();
    serial->forward(inputs()).sum().backward();
    return distance(gradients_of(net), gradients_of(serial));
  });
  REQUIRE(far.errors() == "");
  for (int r = 0; r < 2; ++r) CHECK(far.of(r) < 1e-13);
}

TEST_CASE("gradients that are let go inside a window begin as zeros again", "[gradient]") {
  const auto far = on_row(2, [](const team_handle& team) {
    torch::nn::Sequential net = model(), serial = model();
    data_parallel parallel(team, *net);
    {
      const auto window = parallel.window(false);
      net->forward(inputs()).sum().backward();
    }
    net->zero_grad();
    net[0]->as<torch::nn::Linear>()->forward(inputs()).sum().backward();
    serial[0]->as<torch::nn::Linear>()->forward(inputs()).sum().backward();
    return distance(gradients_of(net), gradients_of(serial));
  });
  REQUIRE(far.errors() == "");
  for (int r = 0; r < 2; ++r) CHECK(far.of(r) < 1e-13);
}

TEST_CASE("a gradient that somebody keeps stays what it was", "[gradient]") {
  const auto well = on_row(2, [](const team_handle& team) {
    torch::nn::Sequential net = model();
    data_parallel parallel(team, *net);
    const auto backward = [&](double factor) { (net->forward(inputs()).sum() * factor).backward(); };
    backward(1);
    const at::Tensor kept = net->parameters()[0].grad(), view = net->parameters()[1].grad().view({-1}).detach();
    const at::Tensor was = kept.clone(), view_was = view.clone();
    net->zero_grad();
    backward(2);
    return kept.equal(was) && view.equal(view_was) && net->parameters()[0].grad().equal(was * 2);
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 2; ++r) CHECK(well.of(r));
}

TEST_CASE("a gradient that LibTorch conjugates when it is read is averaged as it reads", "[gradient]") {
  const auto well = on_row(2, [](const team_handle& team) {
    torch::nn::Module net;
    const at::Tensor w =
        net.register_parameter("w", at::complex(at::ones({3}, at::kDouble), at::ones({3}, at::kDouble)));
    data_parallel parallel(team, net);
    const at::Tensor c = at::complex(at::arange(3, at::kDouble), at::arange(3, at::kDouble) + 1);
    at::real(w.conj() * c).sum().backward();
    return w.grad().resolve_conj().equal(c);  // of Re(conj(w) c)
  });
  REQUIRE(well.errors() == "");
  for (int r = 0; r < 2; ++r) CHECK(well.of(r));
}

TEST_CASE("a step exchanges one message a bundle and worker, of the bundle's bytes", "[law]") {
  const auto counted = on_row(2, [](const team_handle& team) {
    torch::nn::Sequential net = model();
    net[2]->to(at::kFloat);  // elements do not mix
    data_parallel_options options;
    options.bundle_bytes = 1024;
    data_parallel parallel(team, *net, options);
    const std::vector<index_t> bundles = parallel.bundle_bytes();
    const received before = team->total;
    const at::Tensor h = at::tanh(net[0]->as<torch::nn::Linear>()->forward(inputs()));
    net[4]
        ->as<torch::nn::Linear>()
        ->forward(net[2]->as<torch::nn::Linear>()->forward(h.to(at::kFloat)).to(at::kDouble))
        .sum()
        .backward();
    return std::vector<index_t>{static_cast<index_t>(bundles.size()), team->total.messages - before.messages,
                                std::accumulate(bundles.begin(), bundles.end(), index_t{0}),
                                team->total.bytes - before.bytes};
  });
  REQUIRE(counted.errors() == "");
  for (int r = 0; r < 2; ++r) {
    CHECK(counted.of(r)[0] == 2);
    CHECK(counted.of(r)[1] == counted.of(r)[0]);
    CHECK(counted.of(r)[2] == 8 * (4 * 7 + 7 + 3 * 2 + 2) + 4 * (7 * 3 + 3));  // nothing is padded
    CHECK(counted.of(r)[3] == counted.of(r)[2]);
  }
}

TEST_CASE("workers begin with the first one's values, or compare their own", "[runtime]") {
  const auto codes = on_row(3, [](const team_handle& team) {
    torch::nn::Sequential net = model(team->rank() == 0 ? 1 : 3);
    data_parallel parallel(team, *net);
    if (distance(net->parameters(), model()->parameters()) != 0) return std::string("other values");
    data_parallel_options compared;
    compared.begins = nn::first_values::compared;
    torch::nn::Sequential equal = model(), other = model(team->rank() == 2 ? 3 : 1);
    const std::string first = told([&] { data_parallel(team, *equal, compared); });
    return first + " " + told([&] { data_parallel(team, *other, compared); });
  });
  for (int r = 0; r < 3; ++r) CHECK(codes.of(r) == "none tessera.data_parallel.module");
}

TEST_CASE("buffers stay, or become their mean or the first worker's behind backward", "[runtime]") {
  for (const auto rule : {nn::buffer_rule::own, nn::buffer_rule::averaged, nn::buffer_rule::brought}) {
    const auto means = on_row(2, [&](const team_handle& team) {
      torch::nn::Sequential net(torch::nn::BatchNorm1d(4));
      net->to(at::kDouble);
      data_parallel_options options;
      options.buffers = rule;
      data_parallel parallel(team, *net, options);
      const at::Tensor x = inputs().slice(0, 11 * team->rank(), 11 * team->rank() + 11);
      net->forward(x).square().sum().backward();
      return net[0]->as<torch::nn::BatchNorm1d>()->running_mean.clone();
    });
    REQUIRE(means.errors() == "");
    const at::Tensor first = inputs().slice(0, 0, 11).mean(0) / 10, second = inputs().slice(0, 11, 22).mean(0) / 10;
    const bool own = rule == nn::buffer_rule::own, brought = rule == nn::buffer_rule::brought;
    CHECK(at::allclose(means.of(0), own || brought ? first : (first + second) / 2));
    CHECK(at::allclose(means.of(1), own ? second : brought ? first : (first + second) / 2));
  }
}

TEST_CASE("what a program does wrong is one error with its code on every worker", "[refusal]") {
  const auto codes = on_row(2, [](const team_handle& team) {
    std::vector<std::string> all;
    const auto refused = [&](auto&& f) { all.push_back(told(f)); };
    torch::nn::Sequential net = model();
    torch::nn::Sequential odd = model();
    if (team->rank() == 1) odd->push_back(torch::nn::Linear(2, 2));
    refused([&] { data_parallel(team, *odd); });
    torch::nn::Sequential wide(torch::nn::Linear(4, 2 + team->rank()));
    refused([&] { data_parallel(team, *wide); });

    data_parallel parallel(team, *net);
    refused([&] { data_parallel(team, *net); });
    refused([&] {
      const auto one = parallel.window(false);
      const auto two = parallel.window(true);
    });
    refused([&] { const auto one = parallel.window(true, -1.0); });
    refused([&] { net->forward(inputs()).sum().backward({}, true, true); });
    const auto window = parallel.window(false);
    net->forward(inputs()).sum().backward();
    try {
      torch::optim::SGD(net->parameters(), 0.1).step();
    } catch (const c10::Error& e) {
      all.emplace_back(std::string(e.what()).find("[tessera.data_parallel.window]") == std::string::npos ? "other"
                                                                                                         : "step");
    }
    torch::nn::Sequential sparse(torch::nn::Embedding(torch::nn::EmbeddingOptions(5, 3).sparse(true)));
    data_parallel rows(team, *sparse);
    refused([&] { sparse->forward(at::arange(3)).sum().backward(); });
    return std::accumulate(all.begin(), all.end(), std::string(),
                           [](const std::string& before, const std::string& one) { return before + one + " "; });
  });
  for (int r = 0; r < 2; ++r)
    CHECK(codes.of(r) ==
          "tessera.data_parallel.module tessera.data_parallel.module tessera.data_parallel.twice "
          "tessera.data_parallel.windows "
          "tessera.data_parallel.weight tessera.data_parallel.graph step "
          "tessera.data_parallel.sparse ");
}

TEST_CASE("a parameter that comes later, and a backward of one worker alone, are told", "[refusal]") {
  const auto later = on_row(2, [](const team_handle& team) {
    torch::nn::Sequential net = model();
    data_parallel parallel(team, *net);
    net->push_back(torch::nn::Linear(2, 2));
    net[5]->to(at::kDouble);
    return told([&] { net->forward(inputs()).sum().backward(); });
  });
  for (int r = 0; r < 2; ++r) CHECK(later.of(r) == "tessera.data_parallel.parameters");

  const auto alone = on_row(2, [](const team_handle& team) {
    torch::nn::Sequential net = model();
    data_parallel parallel(team, *net);
    return team->rank() == 1 ? "none" : told([&] { net->forward(inputs()).sum().backward(); });
  });
  REQUIRE(alone.results[0]);
  CHECK(alone.of(0).starts_with("tessera."));
}

}  // namespace
}  // namespace tessera::testing::copies
