#pragma once

#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/nn/refusals.hpp>

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

}  // namespace engine

TESSERA_INLINE data_parallel::data_parallel(const team_handle& team, torch::nn::Module& module,
                                            const data_parallel_options& options, call_site at)
    : team_(team), module_(module), options_(options), at_(at) {
  const engine::scoped_context now(*team, {.why = purpose::state, .name = "making a module data parallel", .at = at});
  engine::begin_alike(team, engine::state_tensors(module), options.begins);
  engine::gradient_rule how;
  how.averages = options.averages;
  how.limits = {.capacity = options.bundle_bytes, .alignment = 1};  // what is exchanged has no gaps
  how.behind = [this] {
    const std::size_t then = gradients_->leaves().size(), there = engine::trained_leaves(module_).size();
    if (there != then) throw error(refusal{code::parameters_changed, then, there}, team_->label());
    if (options_.buffers != buffer_rule::own) follow_buffers();
  };
  gradients_ = std::make_shared<engine::bundled_gradients>(team, engine::trained_leaves(module), how, at);
  gradients_->listen(code::gradients_bundled_twice);
}
TESSERA_INLINE data_parallel::~data_parallel() = default;

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
  if (values_.empty()) {
    values_ = gradients_->values();
    engine::add_standing(team_, module_, values_);
  }
  return values_;
}

TESSERA_INLINE std::vector<index_t> data_parallel::bundle_bytes() const { return gradients_->bundle_bytes(); }

}  // namespace tessera::nn
