#pragma once

#include <tessera/inspect/network.hpp>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/nn/watch/progress_line.hpp>
#include <tessera/tessera.hpp>

#include <optional>

#include "figure.hpp"
#include "serial.hpp"

namespace digits {

namespace ts = tessera;

struct row : ts::axis<2> {};  // cuts the height of images
struct col : ts::axis<2> {};  // cuts their width
struct batch : ts::dyn {};

/// The network over a grid of Rows x Columns workers: convolutions cut over height and width, linear layers over
/// features.
template <int Rows, int Columns>
struct model {
  using grid = ts::mesh<ts::extent<row, Rows>, ts::extent<col, Columns>>;
  using image = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
  using channels = ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>;
  using labels = ts::tensor<ts::partition<grid, ts::whole, ts::invariant<row, col>>, ts::shape<batch>, std::int64_t>;

  using network =
      ts::nn::sequential<ts::tensor<image, ts::shape<batch, ts::dim<1>, ts::dim<8>, ts::dim<8>>, double>,
                         ts::nn::conv<8, ts::kernel<3, 3>, ts::padding<1, 1>>, ts::nn::relu,
                         ts::nn::max_pool<ts::kernel<2, 2>>, ts::nn::conv<16, ts::kernel<3, 3>, ts::padding<1, 1>>,
                         ts::nn::relu, ts::nn::max_pool<ts::kernel<2, 2>>, ts::nn::repartition<channels>,
                         ts::nn::flatten, ts::nn::linear<64>, ts::nn::relu, ts::nn::linear<10>>;
};

/// What a run of the program is to do.
struct task {
  split data;
  hyper how;
  std::string figure;  ///< where the picture goes; empty: none
  std::string save;    ///< where the weights go; empty: nowhere
  std::string load;    ///< where the first weights come from; empty: from the seed
  bool serial = true;  ///< train the serial network too, and compare
};

/// Trains on one worker of the team: every worker knows all images and takes its part of each batch.
template <class Model, class Team>
history train(const Team& team, typename Model::network& net, const task& job, ts::nn::progress_line* bar) {
  using input = typename Model::network::input;
  using labels = typename Model::labels;
  torch::optim::SGD optimizer(net.parameters(),
                              torch::optim::SGDOptions(job.how.learning_rate).momentum(job.how.momentum));
  const at::Tensor images = centred(job.data.train.images);
  const std::int64_t count = images.size(0);
  history h;
  net.train();
  for (int epoch = 1; epoch <= job.how.epochs; ++epoch) {
    const at::Tensor turns = at::tensor(order(job.how.seed, epoch, count), at::kLong);
    double sum = 0;
    for (std::int64_t first = 0; first < count; first += job.how.batch) {
      const at::Tensor chosen = turns.slice(0, first, std::min(first + job.how.batch, count));
      const auto x = ts::distribute<input>(team, images.index_select(0, chosen));
      const auto y = ts::distribute<labels>(team, job.data.train.labels.index_select(0, chosen));
      optimizer.zero_grad();
      const auto loss = ts::nn::cross_entropy(net(x), y);
      loss.backward();
      optimizer.step();
      sum += ts::item(loss) * static_cast<double>(chosen.size(0));
    }
    h.loss_per_epoch.push_back(sum / static_cast<double>(count));
    if (bar != nullptr) bar->update(epoch, fmt::format("loss {:.4f}", h.loss_per_epoch.back()), epoch * count);
  }
  net.eval();
  h.weights = ts::nn::state_of(net);
  return h;
}

/// What each test image is read as, by the distributed network; every worker gets all answers.
template <class Model, class Team>
at::Tensor read_test(const Team& team, const typename Model::network& net, const task& job) {
  const at::NoGradGuard no_gradients;
  const auto x = ts::distribute<typename Model::network::input>(team, centred(job.data.test.images));
  return ts::full_tensor(net(x)).argmax(1);
}

/// The largest difference between two runs, over the losses of every epoch and the final weights.
inline double largest_difference(const history& a, const history& b) {
  double worst = 0;
  for (std::size_t e = 0; e < a.loss_per_epoch.size(); ++e)
    worst = std::max(worst, std::abs(a.loss_per_epoch[e] - b.loss_per_epoch.at(e)));
  for (const auto& [name, w] : a.weights)
    worst = std::max(worst, (w - b.weights.at(name)).abs().max().template item<double>());
  return worst;
}

/// The whole program over one mesh: layout and traffic from types, training, test, comparison with the serial run,
/// picture.
template <int Rows, int Columns>
int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  using M = model<Rows, Columns>;
  return ts::launch<typename M::grid>(argc, argv, options, [&](ts::team<typename M::grid>& team) {
    const bool speaks = team.first();
    if (speaks) {
      fmt::print("{} workers, {} ({}), batches of {}; from the network's type:\n\n{}\n", team.size(),
                 ts::text_of(team.state()->mesh()), team.state()->carrier().traits().name, job.how.batch,
                 ts::network_table<typename M::network>(ts::bind<batch>(job.how.batch)));
      std::fflush(stdout);
    }
    typename M::network net{team, ts::seed{job.how.seed}};
    if (!job.load.empty()) ts::nn::load(net, job.load);
    const ts::nn::state_dict initial = ts::nn::state_of(net);
    std::optional<ts::nn::progress_line> bar;
    if (speaks) bar.emplace("epoch", job.how.epochs);
    history h = train<M>(team, net, job, bar ? &*bar : nullptr);
    bar.reset();
    const at::Tensor readings = read_test<M>(team, net, job);
    h.test_accuracy = accuracy(readings, job.data.test.labels);
    if (!job.save.empty()) ts::nn::save(net, job.save);
    if (!speaks) return;

    if (job.serial) {
      const history serial = train_serial(job.data, job.how, initial);
      fmt::print("test accuracy: {:.2f} %   (serial: {:.2f} %)\n", 100 * h.test_accuracy, 100 * serial.test_accuracy);
      fmt::print("largest difference from serial: {:.3g}\n", largest_difference(serial, h));
    } else {
      fmt::print("test accuracy: {:.2f} %\n", 100 * h.test_accuracy);
    }
    if (!job.figure.empty()) {
      write_figure(job.figure, h.loss_per_epoch, misreads(job.data.test, readings),
                   fmt::format("Handwritten digits over {} x {} workers", Rows, Columns));
      fmt::print("picture: {}\n", job.figure);
    }
    std::fflush(stdout);
  });
}

}  // namespace digits
