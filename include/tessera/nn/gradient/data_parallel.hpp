#pragma once

#include <tessera/nn/gradient/backward_window.hpp>
#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/gradient/bundled_gradients.hpp>
#include <tessera/nn/gradient/module_values.hpp>

namespace tessera::nn {

/// The treatment of buffers, such as running statistics, behind each step's last backward.
enum class buffer_rule : signed char {
  own,       ///< each worker keeps its own
  averaged,  ///< the mean over workers of those that have fractions; others stay
  brought    ///< the first worker's
};

/// How a module is trained on several workers.
struct data_parallel_options {
  first_values begins = first_values::brought;
  buffer_rule buffers = buffer_rule::own;
  bool averages = true;                      ///< gradients are means over workers, else sums
  index_t bundle_bytes = index_t{25} << 20;  ///< of gradients that travel together
  /// of ZeRO; 0: each worker steps all, 1: an equal share, 2: it keeps no more of gradients between backwards either
  int stage = 0;
  /// the axes whose workers have copies of the module; none says all, and along others modules differ
  std::vector<std::string> over{};
  /// by what parameters an optimizer's group tells itself from others, as a number from 0 on
  std::function<int(const std::string& name, const at::Tensor& parameter)> group{};
};

/// Data parallel training of a LibTorch module, as LibTorch's DistributedDataParallel. Every worker has the whole
/// module and its own samples; `loss.backward()` ends with the means of the gradients in `.grad`.
///
///   ts::nn::data_parallel parallel(team, *module);
///
/// The module, its loss and any optimizer stay as they are. Parameters that a graph did not use, on some workers or on
/// all, count zero. All workers make it, call backward and step in one order; the module outlives it. (S. Li et al.,
/// PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.)
///
/// ZeRO of stage 1, as LibTorch's ZeroRedundancyOptimizer in Python, is an option. Each worker has the optimizer's
/// state of its share of `parameters()` alone, and `gather` brings the stepped ones to all, with the same bits:
///
///   ts::nn::data_parallel parallel(team, *module, {.stage = 1});
///   torch::optim::AdamW optimizer(parallel.parameters());
///   loss.backward(); optimizer.step(); parallel.gather();
class data_parallel {
 public:
  explicit data_parallel(const team_handle& team, torch::nn::Module& module, const data_parallel_options& options = {},
                         call_site at = call_site::here());
  template <Mesh M>
  explicit data_parallel(const team<M>& team, torch::nn::Module& module, const data_parallel_options& options = {},
                         call_site at = call_site::here())
      : data_parallel(team.state(), module, options, at) {}
  ~data_parallel();
  data_parallel(const data_parallel&) = delete;
  data_parallel& operator=(const data_parallel&) = delete;

  /// Backwards until the window's end leave their gradients where they are, unless they are the `last` before a step.
  /// Those bring the sums of all backwards since the step before. A weight, as this worker's number of samples, makes
  /// the gradients means over all samples: Σ wᵢ gᵢ / Σ wᵢ; all workers say one, or none does.
  backward_window window(bool last, std::optional<double> weight = std::nullopt) {
    return backward_window(gradients_, last, weight);
  }

  /// What an optimizer steps on this worker, of one group or of all: the module's own parameters, or this worker's
  /// share of them.
  std::vector<at::Tensor> parameters(std::optional<int> group = std::nullopt) const;

  /// Brings what was stepped to all workers, where each steps a share. Behind each step, before the next forward.
  void gather(call_site at = call_site::here());

  /// What is stepped, and what else of the module every worker has.
  const std::vector<engine::state_value>& values() const;

  /// How many exchanges a step has, and the bytes of gradients in each.
  std::vector<index_t> bundle_bytes() const;

  /// The workers that have copies of the module.
  const team_handle& team() const { return team_; }
  torch::nn::Module& module() const { return module_; }
  /// What divides the optimizer's state; null where each worker has all of it.
  bundle_shards* shards() const { return shards_.get(); }

 private:
  void follow_buffers() const;

  team_handle team_;
  torch::nn::Module& module_;
  data_parallel_options options_;
  call_site at_;
  std::unique_ptr<bundle_shards> shards_;
  std::shared_ptr<engine::bundled_gradients> whole_;  ///< where each worker steps all
  std::shared_ptr<engine::leaf_gradients> gradients_;
  mutable std::vector<engine::state_value> values_;  ///< once they are asked for
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/data_parallel_impl.hpp>
#endif
