#pragma once

#include <tessera/nn/gradient/backward_window.hpp>
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
};

/// Data parallel training of a LibTorch module, as LibTorch's DistributedDataParallel. Every worker has the whole
/// module and its own samples; `loss.backward()` ends with the means of the gradients in `.grad`.
///
///   ts::nn::data_parallel parallel(team, *module);
///
/// The module, its loss and any optimizer stay as they are. Parameters that a graph did not use, on some workers or on
/// all, count zero. All workers make it, call backward and step in one order; the module outlives it. (S. Li et al.,
/// PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.)
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

  const team_handle& team() const { return team_; }
  /// What is stepped, and what else of the module every worker has.
  const std::vector<engine::state_value>& values() const;

  /// How many exchanges a step has, and the bytes of gradients in each.
  std::vector<index_t> bundle_bytes() const;

 private:
  void follow_buffers() const;

  team_handle team_;
  torch::nn::Module& module_;
  data_parallel_options options_;
  call_site at_;
  std::shared_ptr<engine::bundled_gradients> gradients_;
  mutable std::vector<engine::state_value> values_;  ///< once they are asked for
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/data_parallel_impl.hpp>
#endif
