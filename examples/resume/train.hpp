#pragma once

#include <tessera/nn/data/loader.hpp>
#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/nn/watch/metrics_writer.hpp>
#include <tessera/nn/watch/progress_line.hpp>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <filesystem>
#include <numbers>

#include "serial.hpp"
#include "text.hpp"

namespace resume {

/// What a run of the program is to do.
struct task {
  text data;
  int steps = 200;
  int passes = 2;       ///< of a step, each of `rows` samples
  int every = 20;       ///< steps from one checkpoint to the next
  double rate = 6e-3;   ///< the largest learning rate
  double clip = 1;      ///< the largest norm of a step's gradients
  double decay = 0.98;  ///< of the averages of weights
  std::uint64_t seed = 7;
  std::filesystem::path folder = "resume";
};

constexpr ts::index_t judged = 8;  ///< batches of the text that is held back, or as many as there are

// [schedule]
/// The learning rate rises for the first tenth of the steps, then falls along a cosine to a tenth.
class warm_cosine : public torch::optim::LRScheduler {
 public:
  warm_cosine(torch::optim::Optimizer& of, double most, int steps) : LRScheduler(of), most_(most), steps_(steps) {
    step();  // of the first step
  }

 private:
  std::vector<double> get_lrs() override {
    const double done = (step_count_ + 1.0) / steps_;
    const double cosine = 0.55 + 0.45 * std::cos(std::numbers::pi * std::min(1.0, (done - 0.1) / 0.9));
    return {most_ * (done < 0.1 ? done / 0.1 : cosine)};
  }

  double most_;
  int steps_;
};
// [end]

/// Initial weights: tables of small numbers, all else as layers begin.
template <class Network>
nn::state_dict begin(const Network& net) {
  nn::state_dict initial = nn::state_of(net);
  for (const char* key : {"table.weight", "order.weight"}) initial.at(key) *= 0.02;
  nn::assign(net, initial);
  return initial;
}

// [train]
/// Trains to the last step, from the newest checkpoint of the folder if there is one. Returns the loss of the averaged
/// weights on text that is held back.
template <class Cut>
double train(const ts::team<typename Cut::grid>& team, const task& job) {
  using tokens = typename Cut::tokens;
  const auto where = ts::distribute<typename Cut::places>(team, at::arange(length, at::kLong));
  typename Cut::network net{team, ts::seed{job.seed}};
  begin(net);
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(job.rate));
  warm_cosine rate(optimizer, job.rate, job.steps);
  nn::average average(net, {.decay = job.decay, .warms_up = true});
  nn::loader<tokens, tokens> samples(team, pieces(job.data.train),
                                     {.batch = rows, .seed = {job.seed}, .drop_last = true, .ahead = 1});
  const auto loss_of = [&](const tokens& x, const tokens& y) {
    const auto [scores, labels] = net(x, where, y);
    return nn::cross_entropy(scores, labels);
  };

  int step = 0;
  nn::checkpoint all{{"net", net},         {"optimizer", optimizer}, {"rate", rate},
                     {"average", average}, {"samples", samples},     {"step", step}};
  const std::filesystem::path saved = job.folder / "checkpoints";
  try {
    all.load(saved);
    if (team.first()) fmt::print("goes on from step {} over {} workers\n", step, team.size());
  } catch (const ts::error& e) {
    if (!e.is(ts::code::checkpoint_missing)) throw;  // on every worker, or on none
  }

  nn::metrics_writer metrics(team, job.folder, {.flush_after = std::chrono::seconds(0), .begins_at = step});
  nn::progress_line line(team, "step", job.steps);
  line.begin_at(step, std::int64_t{step} * job.passes * rows);
  while (step < job.steps) {
    optimizer.zero_grad();
    double sum = 0;
    for (int pass = 0; pass < job.passes; ++pass) {
      auto batch = samples.next();
      if (!batch) batch = samples.next();  // the next epoch
      const nn::accumulation window(net, pass + 1 == job.passes);
      const auto loss = loss_of(batch->data, batch->target) / static_cast<double>(job.passes);
      loss.backward();
      sum += ts::item(loss);
    }
    const double norm = nn::clip_grad_norm(net, job.clip);
    const double now = optimizer.param_groups()[0].options().get_lr();
    optimizer.step();
    rate.step();
    average.update();
    metrics.write(step, {{"loss", sum}, {"gradient norm", norm}, {"learning rate", now}});
    ++step;
    line.update(step, fmt::format("loss {:.4f}", sum), std::int64_t{step} * job.passes * rows);
    if (step % job.every == 0) {
      metrics.flush();  // rows of steps that the checkpoint has are in the files
      all.save(saved);
    }
  }
  metrics.flush();

  const at::NoGradGuard no_gradients;
  const auto in = average.swapped_in();
  nn::loader<tokens, tokens> others(team, pieces(job.data.held_back),
                                    {.batch = rows, .shuffle = false, .drop_last = true});
  const ts::index_t batches = std::min(judged, others.steps());
  double mean = 0;
  for (ts::index_t i = 0; i < batches; ++i) {
    const auto batch = others.at(0, i);
    mean += ts::item(loss_of(batch.data, batch.target)) / static_cast<double>(batches);
  }
  return mean;
}
// [end]

/// The same training in plain LibTorch on one worker, of the same initial weights and batches, without checkpoints.
template <class Cut>
double train_serial(const ts::team<typename Cut::grid>& team, const task& job) {
  constexpr at::ScalarType computed =
      std::is_same_v<typename Cut::numbers::computed, double> ? at::kDouble : at::kBFloat16;
  weights w, averages;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : begin(typename Cut::network{team, ts::seed{job.seed}})) {
    averages[key] = t.clone();
    leaves.push_back(w[key] = t.clone().set_requires_grad(true));
  }
  torch::optim::AdamW optimizer(leaves, torch::optim::AdamWOptions(job.rate));
  warm_cosine rate(optimizer, job.rate, job.steps);
  nn::loader samples(team, pieces(job.data.train), {.batch = rows, .seed = {job.seed}, .drop_last = true});
  nn::metrics_writer metrics(team, job.folder, {.begins_at = 0});
  nn::progress_line line(team, "serial step", job.steps);
  for (int step = 0; step < job.steps; ++step) {
    optimizer.zero_grad();
    double sum = 0;
    for (int pass = 0; pass < job.passes; ++pass) {
      auto batch = samples.next();
      if (!batch) batch = samples.next();
      const at::Tensor loss = serial_loss(w, batch->data.local(), batch->target.local(), computed) / job.passes;
      loss.backward();
      sum += loss.item<double>();
    }
    const double norm = torch::nn::utils::clip_grad_norm_(leaves, job.clip);
    const double now = optimizer.param_groups()[0].options().get_lr();
    optimizer.step();
    rate.step();
    const at::NoGradGuard no_gradients;
    for (auto& [key, t] : averages) t.lerp_(w.at(key), 1 - std::min(job.decay, (1.0 + step) / (10.0 + step)));
    metrics.write(step, {{"loss", sum}, {"gradient norm", norm}, {"learning rate", now}});
    line.update(step + 1, fmt::format("loss {:.4f}", sum), std::int64_t{step + 1} * job.passes * rows);
  }
  metrics.flush();
  const at::NoGradGuard no_gradients;
  nn::loader others(team, pieces(job.data.held_back), {.batch = rows, .shuffle = false, .drop_last = true});
  const ts::index_t batches = std::min(judged, others.steps());
  double mean = 0;
  for (ts::index_t i = 0; i < batches; ++i) {
    const auto batch = others.at(0, i);
    const at::Tensor loss = serial_loss(averages, batch.data.local(), batch.target.local(), computed);
    mean += loss.item<double>() / static_cast<double>(batches);
  }
  return mean;
}

}  // namespace resume
