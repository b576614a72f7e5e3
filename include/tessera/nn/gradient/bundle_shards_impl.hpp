#pragma once

#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/refusals.hpp>

namespace tessera::nn {

TESSERA_INLINE bundle_shards::bundle_shards(const team_handle& team, const torch::nn::Module& module,
                                            const bundle_shards_options& options, call_site at)
    : team_(team) {
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "dividing a module", .at = at});
  engine::begin_alike(team, engine::state_tensors(module), options.begins);
  divide(engine::trained_leaves(module), options, at);
  engine::add_standing(team, module, values_);
}

TESSERA_INLINE bundle_shards::bundle_shards(const team_handle& team, const named_tensors& leaves,
                                            const bundle_shards_options& options, call_site at)
    : team_(team) {
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "dividing parameters", .at = at});
  std::vector<engine::named_leaf> all;
  for (const auto& [name, leaf] : leaves)
    if (leaf.defined() && leaf.requires_grad()) all.push_back({name, leaf});
  engine::begin_alike(team, all, options.begins);
  divide(std::move(all), options, at);
}

TESSERA_INLINE bundle_shards::~bundle_shards() = default;

TESSERA_INLINE void bundle_shards::divide(std::vector<engine::named_leaf> leaves, const bundle_shards_options& options,
                                          call_site at) {
  if (options.stage != 1 && options.stage != 2) throw error(refusal{code::no_such_stage, options.stage});
  if (leaves.empty()) throw error(refusal{code::nothing_divided}, team_->label());
  engine::shard_rule how;
  how.gradients.averages = options.averages;
  how.gradients.each = options.stage == 2;
  how.gradients.limits = {.capacity = options.bundle_bytes, .alignment = 1};  // what is exchanged has no gaps
  how.masters = options.masters;
  how.axes = engine::axes_named(team_->mesh(), options.over);
  if (options.group)
    for (const engine::named_leaf& one : leaves) how.groups.push_back(options.group(one.name, one.leaf));
  gradients_ = std::make_shared<engine::sharded_gradients>(team_, std::move(leaves), how, at);
  gradients_->listen(code::divided_twice);
  values_ = gradients_->values();
}

TESSERA_INLINE std::vector<at::Tensor> bundle_shards::parameters(std::optional<int> group) const {
  std::vector<at::Tensor> all;
  for (const engine::bundle_shard& one : shards())
    if (!group || one.group == *group) all.push_back(one.block);
  return all;
}

}  // namespace tessera::nn
