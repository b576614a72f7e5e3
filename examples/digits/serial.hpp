#pragma once

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data.hpp"
#include "order.hpp"

namespace digits {

/// How long and how fast to learn, and from which shuffle.
struct hyper {
  int epochs = 30;
  std::int64_t batch = 64;
  double learning_rate = 0.04;
  double momentum = 0.9;
  std::uint64_t seed = 7;
};

/// What a training run leaves behind.
struct history {
  std::vector<double> loss_per_epoch;         ///< mean over the samples of the epoch, each taken as its batch is met
  double test_accuracy = 0;                   ///< share of the test images read correctly, 0 to 1
  std::map<std::string, at::Tensor> weights;  ///< by serial name, after the last epoch
};

/// A parameter's name in a serial `torch::nn::Sequential`, and its shape.
struct parameter {
  std::string_view name;
  std::vector<std::int64_t> shape;
};

/// The network's parameters in the order of its layers: conv relu pool conv relu pool flatten linear relu linear.
inline const std::array<parameter, 8>& parameters() {
  static const std::array<parameter, 8> all{{{"0.weight", {8, 1, 3, 3}},
                                             {"0.bias", {8}},
                                             {"3.weight", {16, 8, 3, 3}},
                                             {"3.bias", {16}},
                                             {"7.weight", {64, 64}},
                                             {"7.bias", {64}},
                                             {"9.weight", {10, 64}},
                                             {"9.bias", {10}}}};
  return all;
}

/// The network in plain LibTorch: centred images N x 1 x 8 x 8 in, scores N x 10 out.
inline at::Tensor scores(const std::map<std::string, at::Tensor>& weights, const at::Tensor& centred) {
  const auto conv = [&](const char* layer, const at::Tensor& x) {
    const auto name = std::string(layer);
    return at::max_pool2d(at::conv2d(x, weights.at(name + ".weight"), weights.at(name + ".bias"), 1, 1).relu(), 2);
  };
  const at::Tensor features = conv("3", conv("0", centred)).flatten(1);
  const at::Tensor hidden = at::linear(features, weights.at("7.weight"), weights.at("7.bias")).relu();
  return at::linear(hidden, weights.at("9.weight"), weights.at("9.bias"));
}

/// The digit that each image (ink from 0 to 1) is read as: N, int64.
inline at::Tensor readings(const std::map<std::string, at::Tensor>& weights, const at::Tensor& images) {
  const at::NoGradGuard no_gradients;
  return scores(weights, centred(images)).argmax(1);
}

/// The share of readings that agree with the labels, 0 to 1.
inline double accuracy(const at::Tensor& readings, const at::Tensor& labels) {
  return readings.eq(labels).to(at::kDouble).mean().item<double>();
}

namespace detail {

/// Copies of the initial weights as trainable leaves, after checking that they are the network's.
inline std::map<std::string, at::Tensor> leaves(const std::map<std::string, at::Tensor>& initial) {
  std::map<std::string, at::Tensor> weights;
  for (const auto& [key, shape] : parameters()) {
    const auto name = std::string(key);
    const auto found = initial.find(name);
    if (found == initial.end() || !found->second.defined() || found->second.sizes() != at::IntArrayRef(shape))
      throw std::invalid_argument(
          fmt::format("[digits.weights.shape] \"{}\" is absent or not of the network's shape", name));
    weights[name] = found->second.detach().to(at::kDouble).clone(at::MemoryFormat::Contiguous).requires_grad_();
  }
  return weights;
}

}  // namespace detail

/// Trains the network on one worker, by SGD with momentum over shuffled batches, the last and smaller one included.
///
/// The images are centred here; epochs count from 1, also for `order`.
/// `report(epoch, loss, seconds)` follows every epoch: its number from 1, its mean loss and the time it took.
/// @throws std::invalid_argument when an initial weight is absent or of another shape, or a batch would be empty
inline history train_serial(const split& data, const hyper& how, std::map<std::string, at::Tensor> initial,
                            std::function<void(int epoch, double loss, double seconds)> report = {}) {
  if (how.batch < 1) throw std::invalid_argument("[digits.hyper.batch] a batch holds at least one image");
  history past;
  past.weights = detail::leaves(initial);
  std::vector<at::Tensor> trained;
  for (const auto& [name, shape] : parameters()) trained.push_back(past.weights.at(std::string(name)));
  torch::optim::SGD optimizer(trained, torch::optim::SGDOptions(how.learning_rate).momentum(how.momentum));

  const at::Tensor inputs = centred(data.train.images);
  const std::int64_t count = data.train.labels.size(0);
  for (int epoch = 1; epoch <= how.epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const at::Tensor samples = at::tensor(order(how.seed, epoch, count), at::kLong);
    double total = 0;
    for (std::int64_t first = 0; first < count; first += how.batch) {
      const at::Tensor batch = samples.slice(0, first, std::min(first + how.batch, count));
      const at::Tensor labels = data.train.labels.index_select(0, batch);
      const at::Tensor loss = at::cross_entropy_loss(scores(past.weights, inputs.index_select(0, batch)), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>() * static_cast<double>(batch.size(0));
    }
    past.loss_per_epoch.push_back(total / static_cast<double>(count));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (report) report(epoch, past.loss_per_epoch.back(), took.count());
  }
  past.test_accuracy = accuracy(readings(past.weights, data.test.images), data.test.labels);
  for (auto& [name, weight] : past.weights) weight = weight.detach();
  return past;
}

}  // namespace digits
