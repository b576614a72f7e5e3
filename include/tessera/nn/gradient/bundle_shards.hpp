#pragma once

#include <tessera/nn/gradient/backward_window.hpp>
#include <tessera/nn/gradient/module_values.hpp>
#include <tessera/nn/gradient/sharded_gradients.hpp>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::nn {

/// How the state of an optimizer is divided over workers.
struct bundle_shards_options {
  int stage = 1;  ///< 1: gradients are reduced once a window; 2: in each backward of it
  first_values begins = first_values::brought;
  bool averages = true;                      ///< gradients are means over workers, else sums
  bool masters = true;                       ///< what an optimizer steps of half types is kept in float
  index_t bundle_bytes = index_t{25} << 20;  ///< of parameters that travel together
  std::vector<std::string> over{};  ///< the axes whose workers divide, others have copies of shards; none says all
  /// By what parameters an optimizer's group tells itself from others, as a number from 0 on.
  std::function<int(const std::string& name, const at::Tensor& parameter)> group{};
};

/// ZeRO of stages 1 and 2 for any leaves, as a LibTorch module's parameters: workers have all of these, and each steps
/// an equal share of them.
///
///   ts::nn::bundle_shards shards(team, *module);
///   torch::optim::AdamW optimizer(shards.parameters());
///   loss.backward(); optimizer.step(); shards.gather();
///
/// Parameters lie end to end in bundles, and each bundle is cut in intervals that differ by one element at most. A
/// backward leaves sums of gradients in the worker's intervals; `gather` brings the stepped ones to all. The optimizer
/// is any that steps each element by itself. All workers make it and call it in one order. (S. Rajbhandari et al.,
/// ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, SC 2020.)
class bundle_shards {
 public:
  using named_tensors = std::vector<std::pair<std::string, at::Tensor>>;

  explicit bundle_shards(const team_handle& team, const torch::nn::Module& module,
                         const bundle_shards_options& options = {}, call_site at = call_site::here());
  /// Leaves by name, in the order in which forward takes them.
  explicit bundle_shards(const team_handle& team, const named_tensors& leaves,
                         const bundle_shards_options& options = {}, call_site at = call_site::here());
  template <Mesh M, class Leaves>
  explicit bundle_shards(const team<M>& team, const Leaves& leaves, const bundle_shards_options& options = {},
                         call_site at = call_site::here())
      : bundle_shards(team.state(), leaves, options, at) {}
  ~bundle_shards();
  bundle_shards(const bundle_shards&) = delete;
  bundle_shards& operator=(const bundle_shards&) = delete;

  /// What an optimizer steps on this worker: of one group, or of all.
  std::vector<at::Tensor> parameters(std::optional<int> group = std::nullopt) const;

  /// Backwards until the window's end belong to one step, as those of `data_parallel::window`.
  backward_window window(bool last, std::optional<double> weight = std::nullopt) {
    return backward_window(gradients_, last, weight);
  }

  /// Brings what was stepped to all workers: one exchange a bundle. Behind each step, before the next forward.
  void gather(call_site at = call_site::here()) { gradients_->gather(at); }

  /// How many exchanges of gradients a step has, and the bytes of each; the parameters' have as many.
  std::vector<index_t> bundle_bytes() const { return gradients_->bundle_bytes(); }

  const team_handle& team() const { return team_; }
  const std::shared_ptr<engine::sharded_gradients>& gradients() const { return gradients_; }
  const std::vector<engine::named_leaf>& leaves() const { return gradients_->leaves(); }
  const std::vector<engine::bundle_shard>& shards() const { return gradients_->shards(); }
  /// What is stepped, and what else of a module every worker has.
  const std::vector<engine::state_value>& values() const { return values_; }

 private:
  void divide(std::vector<engine::named_leaf> leaves, const bundle_shards_options& options, call_site at);

  team_handle team_;
  std::shared_ptr<engine::sharded_gradients> gradients_;
  std::vector<engine::state_value> values_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/bundle_shards_impl.hpp>
#endif
