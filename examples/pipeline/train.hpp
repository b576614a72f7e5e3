#pragma once

#include <tessera/inspect/svg_schedule.hpp>
#include <tessera/nn/file/atomic_file.hpp>
#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>
#include <tessera/nn/watch/progress_line.hpp>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include <filesystem>

#include "../gpt/text.hpp"
#include "serial.hpp"

namespace staged {

/// What a run of the program is to do.
struct task {
  gpt::text data;
  int steps = 60;
  int micro_batches = 8;
  ts::pipeline::order by = ts::pipeline::order::one_f_one_b;
  double rate = 3e-3;
  double clip = 1;  ///< the largest norm of a step's gradients
  std::uint64_t seed = 7;
  std::filesystem::path folder = "pipeline";
  std::filesystem::path figure = "pipeline.svg";
};

inline gpt::batch batch_of(const task& job, int step) {
  return gpt::batch_of(job.data.train, rows, length, job.seed, static_cast<std::uint64_t>(step));
}

/// Initial weights: tables of small numbers, all else as layers begin.
template <class Network>
nn::state_dict begin(const Network& net) {
  nn::state_dict initial = nn::state_of(net);
  for (const char* key : {"table.weight", "order.weight"}) initial.at(key) *= 0.02;
  nn::assign(net, initial);
  return initial;
}

/// Draws the schedule beside the last batch as it was measured, and prints it.
template <class Schedule>
void show(const Schedule& s, const std::vector<std::vector<ts::pipeline::timed_operation>>& measured, const task& job) {
  fmt::print("{}measured: {:.3g} ms a batch, {:.1f} % of the stages' time waiting\n", ts::picture(s),
             1e3 * ts::pipeline::span_of(measured), 100 * ts::pipeline::bubble_of(measured));
  if (!job.figure.empty()) ts::write_whole(job.figure, ts::svg_of(s, measured));
}

// [train]
/// Trains to a step, anew or from the newest checkpoint of the folder, and saves another. Returns the losses of its
/// steps.
template <class Cut>
std::vector<double> train(const ts::team<typename Cut::grid>& team, const task& job, int until, bool goes_on) {
  typename Cut::network net{team, ts::seed{job.seed}};
  begin(net);
  const ts::pipeline::schedule turns{job.by, {.stages = Cut::stages, .micro_batches = job.micro_batches}};
  nn::pipeline_parallel pipeline(net, "stage", turns,
                                 {.rows = ts::pipeline::micro_batch_sizes::uneven, .whole_inputs = {1}});
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(job.rate));
  const auto where = ts::distribute<typename Cut::places>(team, at::arange(length, at::kLong));

  int step = 0;
  nn::checkpoint all{{"net", net}, {"optimizer", optimizer}, {"step", step}};
  if (goes_on) all.load(job.folder);
  if (team.first())
    fmt::print("\nfrom step {} over {} stages of {} workers\n", step, Cut::stages, team.size() / Cut::stages);
  std::vector<double> losses;
  {
    nn::progress_line line(team, "step", until);
    line.begin_at(step, std::int64_t{step} * rows);
    while (step < until) {
      const gpt::batch b = batch_of(job, step);
      optimizer.zero_grad();
      const auto out =
          pipeline.forward_backward({ts::distribute<typename Cut::tokens>(team, b.inputs).dynamic(), where.dynamic(),
                                     ts::distribute<typename Cut::labels>(team, b.labels).dynamic()});
      nn::clip_grad_norm(net, job.clip);  // of the gradients of all stages
      optimizer.step();
      losses.push_back(ts::full_tensor(out[1]).template item<double>());
      ++step;
      line.update(step, fmt::format("loss {:.4f}", losses.back()), std::int64_t{step} * rows);
    }
  }
  all.save(job.folder);
  const auto measured = pipeline.timeline();
  if (team.first()) show(turns, measured, job);
  return losses;
}
// [end]

/// The same training in plain LibTorch in one process, of the same initial weights and batches.
inline std::vector<double> train_serially(const nn::state_dict& initial, const task& job) {
  weights w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : initial) leaves.push_back(w[key] = t.clone().set_requires_grad(true));
  torch::optim::AdamW optimizer(leaves, torch::optim::AdamWOptions(job.rate));
  std::vector<double> losses;
  nn::progress_line line("serial step", job.steps);
  for (int step = 0; step < job.steps; ++step) {
    const gpt::batch b = batch_of(job, step);
    optimizer.zero_grad();
    const at::Tensor loss = serial_loss(w, b.inputs, b.labels);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(leaves, job.clip);
    optimizer.step();
    losses.push_back(loss.item<double>());
    line.update(step + 1, fmt::format("loss {:.4f}", losses.back()));
  }
  return losses;
}

}  // namespace staged
