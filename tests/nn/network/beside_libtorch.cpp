#include <torch/data/dataloader.h>
#include <torch/data/datasets/base.h>
#include <torch/data/samplers/random.h>
#include <torch/data/samplers/sequential.h>
#include <torch/nn/init.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>

#include "tests/support/tensors.hpp"

// Each row of docs/libtorch.md: what of LibTorch gives the serial numbers on a worker's part, and what does not.

namespace tessera::testing::beside_libtorch {

using namespace engine;

namespace {

struct beside_batch : dyn {};
struct by_row : axis<2> {};
struct by_column : axis<2> {};
using grid = mesh<by_row, by_column>;
using input = tensor<partition<grid, blocks<by_row>, blocks<by_column>>, shape<beside_batch, dim<5>>, double>;
using labels = tensor<partition<grid, blocks<by_row>, invariant<by_column>>, shape<beside_batch>, std::int64_t>;
using classifier = nn::sequential<input, nn::linear<6>, nn::relu, nn::linear<4>>;
using parameters = std::vector<at::Tensor>;

const at::Tensor& samples() {
  static const at::Tensor all = global_of({9, 5}, numbers{3});
  return all;
}
at::Tensor classes() { return at::arange(9, at::kLong).remainder(4); }

// 0.bias 0.weight 2.bias 2.weight
at::Tensor serial_loss(const parameters& w, const at::Tensor& x, const at::Tensor& y) {
  return at::cross_entropy_loss(at::linear(at::relu(at::linear(x, w[1], w[0])), w[3], w[2]), y);
}

/// One run beside the serial one: `step(parameters, loss)` is called after each backward, with each one's own
/// parameters.
template <class Make>
double difference(const team<grid>& t, Make&& make) {
  classifier net{t, seed{5}};
  parameters serial;
  for (const auto& [key, w] : nn::state_of(net)) serial.push_back(w.clone().requires_grad_(true));
  auto ours = make(net.parameters());
  auto theirs = make(serial);
  double worst = 0;
  for (int i = 0; i < 4; ++i) {
    const at::Tensor x = samples().narrow(0, i, 5);
    const at::Tensor y = classes().narrow(0, i, 5);
    const auto loss = nn::cross_entropy(net(distribute<input>(t, x)), distribute<labels>(t, y));
    const at::Tensor expected = serial_loss(serial, x, y);
    loss.backward();
    expected.backward();
    ours(item(loss));
    theirs(expected.item<double>());
  }
  std::size_t i = 0;
  for (const auto& [key, w] : nn::state_of(net))
    worst = std::max(worst, (w - serial[i++]).abs().max().template item<double>());
  nn::agree_on_copies(net);
  return worst;
}

template <class Make>
bool is_serial(Make&& make) {
  return satisfied<grid>([&](const team<grid>& t) { return difference(t, make) < 1e-12; }) == 4;
}

/// An optimizer that steps after every backward.
template <class Optimizer, class Options>
auto stepping(Options options) {
  return [options](const parameters& w) {
    const auto optimizer = std::make_shared<Optimizer>(w, options);
    return [optimizer](double) {
      optimizer->step();
      optimizer->zero_grad();
    };
  };
}

/// How many different tensors the workers along by_row hold, where they hold copies.
bool copies_differ(const team<grid>& t, const at::Tensor& mine) {
  const auto all = t.state()->collect(tessera::detail::content_hash(mine), "comparing tensors");
  return all[0] != all[2] || all[1] != all[3];
}

/// The samples, as LibTorch's data loaders read them.
struct sample_rows : torch::data::datasets::Dataset<sample_rows, at::Tensor> {
  at::Tensor get(std::size_t i) override { return samples()[static_cast<index_t>(i)]; }
  std::optional<std::size_t> size() const override { return samples().size(0); }
};

/// Whether each batch of a data loader is the same on the workers that hold copies.
template <class Sampler>
bool loads_alike(const team<grid>& t) {
  const auto loader = torch::data::make_data_loader(sample_rows{}, Sampler(9), 4);
  bool alike = true;
  for (const std::vector<at::Tensor>& batch : *loader)
    if (copies_differ(t, at::stack(batch))) alike = false;
  return alike;
}

}  // namespace

TEST_CASE("optimizers that step each element by itself give the serial weights", "[gradient]") {
  CHECK(is_serial(
      stepping<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01))));
  CHECK(is_serial(stepping<torch::optim::Adam>(torch::optim::AdamOptions(0.1).amsgrad(true))));
  CHECK(is_serial(stepping<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1))));
  CHECK(is_serial(stepping<torch::optim::RMSprop>(torch::optim::RMSpropOptions(0.1).centered(true))));
  CHECK(is_serial(stepping<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1))));
}

TEST_CASE("an optimizer that needs sums over all weights does not", "[refusal]") {
  const auto lbfgs = [](const parameters& w) {
    const auto optimizer = std::make_shared<torch::optim::LBFGS>(w, torch::optim::LBFGSOptions(0.1).max_iter(1));
    return [optimizer](double loss) { optimizer->step([loss] { return at::full({}, loss); }); };
  };
  CHECK(satisfied<grid>([&](const team<grid>& t) {
          try {
            return difference(t, lbfgs) > 1e-6;
          } catch (const error& e) {
            return e.is(code::copies_differ);
          }
        }) == 4);
}

TEST_CASE("learning rates follow schedules, and plateaus of the loss's value", "[gradient]") {
  CHECK(is_serial([](const parameters& w) {
    const auto optimizer = std::make_shared<torch::optim::SGD>(w, torch::optim::SGDOptions(0.5));
    const auto steps = std::make_shared<torch::optim::StepLR>(*optimizer, 2, 0.1);
    return [=](double) {
      optimizer->step();
      optimizer->zero_grad();
      steps->step();
    };
  }));
  CHECK(is_serial([](const parameters& w) {
    const auto optimizer = std::make_shared<torch::optim::SGD>(w, torch::optim::SGDOptions(3.0));
    const auto plateau = std::make_shared<torch::optim::ReduceLROnPlateauScheduler>(
        *optimizer, torch::optim::ReduceLROnPlateauScheduler::min, 0.5F, 0);
    return [=](double loss) {
      optimizer->step();
      optimizer->zero_grad();
      plateau->step(static_cast<float>(loss));
    };
  }));
}

TEST_CASE(
    "gradients are accumulated, clipped by value and changed by hooks as the serial ones; LibTorch clips a norm of one "
    "part",
    "[gradient]") {
  CHECK(is_serial([](const parameters& w) {
    const auto optimizer = std::make_shared<torch::optim::SGD>(w, torch::optim::SGDOptions(0.5));
    return [=, n = 0](double) mutable {
      if (++n % 2 != 0) return;
      torch::nn::utils::clip_grad_value_(w, 0.01);
      optimizer->step();
      optimizer->zero_grad();
    };
  }));
  CHECK(is_serial([](const parameters& w) {
    for (const at::Tensor& p : w) p.register_hook([](const at::Tensor& g) { return g * 0.5; });
    return stepping<torch::optim::SGD>(torch::optim::SGDOptions(0.5))(w);
  }));
  CHECK(satisfied<grid>([](const team<grid>& t) {
          classifier net{t, seed{5}};
          nn::cross_entropy(net(distribute<input>(t, samples())), distribute<labels>(t, classes())).backward();
          const double whole = nn::grad_norm(net);
          const double part = torch::nn::utils::clip_grad_norm_(net.parameters(), 1e9);
          return std::abs(part - whole) > 1e-3 * whole;
        }) == 4);
}

TEST_CASE("an average of the weights follows a clone, and nothing is recorded without gradients", "[runtime]") {
  CHECK(satisfied<grid>([](const team<grid>& t) {
          classifier net{t, seed{5}};
          classifier average = net.clone();
          const nn::state_dict start = nn::state_of(net);
          const auto optimizer = stepping<torch::optim::SGD>(torch::optim::SGDOptions(0.5))(net.parameters());
          nn::cross_entropy(net(distribute<input>(t, samples())), distribute<labels>(t, classes())).backward();
          optimizer(0);
          const at::NoGradGuard no_record;
          const parameters w = net.parameters();
          parameters a = average.parameters();
          for (std::size_t i = 0; i < w.size(); ++i) a[i].mul_(0.9).add_(w[i], 0.1);
          nn::agree_on_copies(average);
          double off = 0;
          const nn::state_dict end = nn::state_of(net);
          for (const auto& [key, v] : nn::state_of(average))
            off = std::max(off, (v - (0.9 * start.at(key) + 0.1 * end.at(key))).abs().max().item<double>());
          return off < 1e-15 && !net(distribute<input>(t, samples())).local().requires_grad();
        }) == 4);
}

TEST_CASE("an order of samples is drawn by a generator of the worker's own; LibTorch's default one is shared or apart",
          "[runtime]") {
  CHECK(satisfied<grid>([](const team<grid>& t) {
          at::Generator own = at::detail::createCPUGenerator(7);
          const at::Tensor order = at::randperm(9, own);
          return !copies_differ(t, order) &&
                 same_bits(full_tensor(distribute<input>(t, samples().index_select(0, order))),
                           samples().index_select(0, order));
        }) == 4);
  CHECK(satisfied<grid>([](const team<grid>& t) { return copies_differ(t, at::randperm(1000)); }) == 4);
}

TEST_CASE("a data loader in order gives all workers the same batches, one in LibTorch's random order does not",
          "[runtime]") {
  CHECK(satisfied<grid>([](const team<grid>& t) { return loads_alike<torch::data::samplers::SequentialSampler>(t); }) ==
        4);
  CHECK(satisfied<grid>([](const team<grid>& t) { return !loads_alike<torch::data::samplers::RandomSampler>(t); }) ==
        4);
}

TEST_CASE(
    "LibTorch's random functions draw for each worker: copies drift apart; numbers by global index are the same on "
    "all",
    "[refusal][runtime]") {
  using copies =
      tensor<partition<grid, whole, blocks<by_column>, invariant<by_row>>, shape<beside_batch, dim<5>>, double>;
  CHECK(satisfied<grid>([](const team<grid>& t) {
          const auto x = distribute<copies>(t, samples());
          const bool drift = copies_differ(t, at::dropout(x.local(), 0.5, true));
          const auto random =
              initial<copies>(t, init::uniform(), seed{7}.at("step 3"), "dropout", bind<beside_batch>(9));
          const auto kept = map_elements(random, [](const at::Tensor& u) { return u.ge(0.5).to(at::kDouble) * 2; });
          const at::Tensor dropped = (x * kept).local();
          const bool some = dropped.eq(0).any().item<bool>() && dropped.ne(0).any().item<bool>();
          return drift && some && !copies_differ(t, dropped);
        }) == 4);
  CHECK(satisfied<grid>([](const team<grid>& t) {
          const classifier net{t, seed{5}};
          for (const at::Tensor& w : net.parameters()) torch::nn::init::normal_(w);
          return told([&] { nn::agree_on_copies(net); }) == "tessera.agree.copies";
        }) == 4);
}

TEST_CASE("a network compares the copies of its parameters now and then, and names the first that drifted",
          "[refusal]") {
  // At which of twelve calls the workers are told of copies that differ from the fifth call on; 0 where they are not.
  const auto told_at_call = [](std::optional<index_t> every, bool trains, int wanted) {
    return satisfied<grid>([&](const team<grid>& t) {
      classifier net{t, seed{5}};
      if (every) net.compare_copies_every(*every);
      net.train(trains);
      int calls = 0;
      const std::string code = told([&] {
        for (; calls < 12; ++calls) {
          if (t.rank() == 1 && calls == 4) {
            const at::NoGradGuard no_record;
            net.parameters()[1].add_(1);
          }
          net(distribute<input>(t, samples()));
        }
      });
      return (code == "tessera.agree.copies" ? calls + 1 : 0) == wanted;
    });
  };
  CHECK(told_at_call({}, true, 8) == 4);
  CHECK(told_at_call(3, true, 6) == 4);
  CHECK(told_at_call(1, true, 5) == 4);
  CHECK(told_at_call(0, true, 0) == 4);
  CHECK(told_at_call({}, false, 8) == 4);
}

TEST_CASE("means, norms and statistics of a box are the part's alone", "[runtime]") {
  CHECK(satisfied<grid>([](const team<grid>& t) {
          const auto x = distribute<input>(t, samples());
          const double whole = samples().mean().item<double>();
          const double of_parts = full_tensor(sum(x)).item<double>() / 45;
          return std::abs(x.local().mean().item<double>() - whole) > 1e-6 && std::abs(of_parts - whole) < 1e-12;
        }) == 4);
}

}  // namespace tessera::testing::beside_libtorch
