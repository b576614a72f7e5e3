#pragma once

#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/operation/plan/bundles.hpp>

#include <fmt/core.h>

#include <algorithm>

namespace tessera::nn {

namespace engine {

/// Tensors of one element in one, of one dimension.
inline at::Tensor joined(const std::vector<at::Tensor>& parts) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& one : parts) flat.push_back(one.reshape({-1}));
  return at::cat(flat);
}

inline void share_out(const at::Tensor& all, const std::vector<at::Tensor>& to) {
  std::int64_t begin = 0;
  for (const at::Tensor& one : to) {
    one.copy_(all.narrow(0, begin, one.numel()).view(one.sizes()));
    begin += one.numel();
  }
}

template <class Change>
void change_by_elements(const std::vector<at::Tensor>& tensors, const Change& change) {
  std::vector<std::pair<at::ScalarType, std::vector<at::Tensor>>> all;
  for (const at::Tensor& one : tensors) {
    if (one.numel() == 0) continue;
    auto known = std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.first == one.scalar_type(); });
    if (known == all.end()) known = all.insert(all.end(), {one.scalar_type(), {}});
    known->second.push_back(one);
  }
  for (const auto& [element, parts] : all) share_out(change(joined(parts)), parts);
}

/// The team of this worker's copies: those along some axes, of the same coordinates along all others.
inline team_handle line_of(const team_handle& team, const std::vector<std::string>& axes) {
  if (axes.empty()) return team;
  return team->over(tessera::engine::summing_workers(team->mesh(), axes_named(team->mesh(), axes), team->at()));
}

}  // namespace engine

TESSERA_INLINE data_parallel::data_parallel(const team_handle& team, torch::nn::Module& module,
                                            const data_parallel_options& options, call_site at)
    : team_(engine::line_of(team, options.over)), module_(module), options_(options), at_(at) {
  const engine::scoped_context now(*team_, {.why = purpose::state, .name = "making a module data parallel", .at = at});
  if (options.stage == 0) {
    engine::begin_alike(team_, engine::state_tensors(module), options.begins);
    engine::gradient_rule how;
    how.averages = options.averages;
    how.limits = {.capacity = options.bundle_bytes, .alignment = 1};  // what is exchanged has no gaps
    whole_ = std::make_shared<engine::bundled_gradients>(team_, engine::trained_leaves(module), how, at);
    gradients_ = whole_;
    gradients_->listen(code::gradients_bundled_twice);
  } else {  // without masters: what is stepped is what it would be on one worker
    shards_ = std::make_unique<bundle_shards>(team_, module,
                                              bundle_shards_options{.stage = options.stage,
                                                                    .begins = options.begins,
                                                                    .averages = options.averages,
                                                                    .masters = false,
                                                                    .bundle_bytes = options.bundle_bytes,
                                                                    .group = options.group},
                                              at);
    gradients_ = shards_->gradients();
  }
  gradients_->behind([this] {
    const std::size_t then = gradients_->leaves().size(), there = engine::count_trained(module_);
    if (there != then) throw error(refusal{code::parameters_changed, then, there}, team_->label());
    if (options_.buffers != buffer_rule::own) follow_buffers();
  });
}
TESSERA_INLINE data_parallel::~data_parallel() = default;

TESSERA_INLINE std::vector<at::Tensor> data_parallel::parameters(std::optional<int> group) const {
  if (shards_) return shards_->parameters(group);
  std::vector<at::Tensor> all;
  for (const engine::named_leaf& one : gradients_->leaves())
    if (!group || *group == (options_.group ? options_.group(one.name, one.leaf) : 0)) all.push_back(one.leaf);
  return all;
}

TESSERA_INLINE void data_parallel::gather(call_site at) {
  if (shards_) shards_->gather(at);
}

TESSERA_INLINE void data_parallel::follow_buffers() const {
  const at::NoGradGuard no_graph;
  std::vector<at::Tensor> all;
  const bool averaged = options_.buffers == buffer_rule::averaged;
  for (const at::Tensor& one : module_.buffers())
    if (one.defined() && (!averaged || one.is_floating_point() || one.is_complex())) all.push_back(one);
  engine::change_by_elements(all, [&](const at::Tensor& mine) {
    if (!averaged) return engine::from_first(team_, mine);
    const layout terms = engine::flat_layout(team_->mesh(), mine.numel(), placement::partial);
    const layout sums = engine::flat_layout(team_->mesh(), mine.numel(), placement::invariant);
    return engine::change_layout(team_, terms, sums, mine) / team_->size();
  });
}

TESSERA_INLINE const std::vector<engine::state_value>& data_parallel::values() const {
  if (shards_) return shards_->values();
  if (values_.empty()) {
    values_ = whole_->values();
    engine::add_standing(team_, module_, values_);
  }
  return values_;
}

TESSERA_INLINE std::vector<index_t> data_parallel::bundle_bytes() const { return gradients_->bundle_bytes(); }

}  // namespace tessera::nn
