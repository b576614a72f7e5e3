#pragma once

#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/tensor/box/content_hash.hpp>

#include <fmt/core.h>

#include <algorithm>

namespace tessera::nn {

namespace engine {

/// The parameters of a module that have gradients, in its order.
inline std::vector<engine::named_leaf> trained_leaves(const torch::nn::Module& module) {
  std::vector<engine::named_leaf> all;
  for (const auto& one : module.named_parameters())
    if (one.value().defined() && one.value().requires_grad()) all.push_back({one.key(), one.value()});
  return all;
}

/// Parameters and buffers of a module, in its order.
inline std::vector<engine::named_leaf> state_tensors(const torch::nn::Module& module) {
  std::vector<engine::named_leaf> all;
  for (const auto& one : module.named_parameters())
    if (one.value().defined()) all.push_back({one.key(), one.value()});
  for (const auto& one : module.named_buffers())
    if (one.value().defined()) all.push_back({one.key(), one.value()});
  return all;
}

inline std::string described(const engine::named_leaf& one) {
  return fmt::format("{} {}", one.name, c10::str(one.leaf.scalar_type(), one.leaf.sizes()));
}

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

/// What all workers get of what lies on the first.
inline at::Tensor from_first(const team_handle& team, const at::Tensor& mine) {
  const layout there = engine::flat_layout(team->mesh(), mine.numel(), placement::on);
  const layout everywhere = engine::flat_layout(team->mesh(), mine.numel(), placement::invariant);
  const bool first = team->mesh().number(team->at()) == 0;
  return engine::change_layout(team, there, everywhere, first ? mine : mine.narrow(0, 0, 0));
}

/// Throws on every worker unless all have the same number for each tensor, and names the first of which they differ.
template <class Number>
void agree_on_each(const team_handle& team, const std::vector<engine::named_leaf>& tensors, const char* subject,
                   const Number& number) {
  const auto differ = [&](const std::string& in) {
    team->crew_of(team->mesh()).among().disagree(error(refusal{code::modules_differ}, in));
  };
  for (const std::uint64_t count : team->collect(tensors.size(), subject))
    if (count != tensors.size()) differ(fmt::format("{} and {} parameters and buffers", tensors.size(), count));
  std::vector<std::uint64_t> mine;
  for (const engine::named_leaf& one : tensors) mine.push_back(number(one));
  const std::vector<std::uint64_t> all = team->collect(mine, subject);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::size_t which = i % mine.size(); all[i] != all[which]) differ(tensors[which].name);
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
  const std::vector<engine::named_leaf> all = engine::state_tensors(module);
  engine::agree_on_each(team, all, "comparing modules",
                        [](const engine::named_leaf& one) { return text(engine::described(one).c_str()).hash; });
  if (options.begins == first_values::brought) bring_values();
  else
    engine::agree_on_each(team, all, "comparing values of modules",
                          [](const engine::named_leaf& one) { return tessera::detail::content_hash(one.leaf); });
  engine::bundled_gradients::rule how;
  how.averages = options.averages;
  how.limits = {.capacity = options.bundle_bytes, .alignment = 1};  // what is exchanged has no gaps
  how.behind = [this] {
    const std::size_t then = gradients_->leaves().size(), there = engine::trained_leaves(module_).size();
    if (there != then) throw error(refusal{code::parameters_changed, then, there}, team_->label());
    if (options_.buffers != buffer_rule::own) follow_buffers();
  };
  gradients_ = std::make_shared<engine::bundled_gradients>(team, engine::trained_leaves(module), how, at);
  gradients_->listen();
}
TESSERA_INLINE data_parallel::~data_parallel() = default;

TESSERA_INLINE void data_parallel::bring_values() {
  const at::NoGradGuard no_graph;
  for (const engine::named_leaf& one : engine::state_tensors(module_))  // one by one: a model may fill half the memory
    one.leaf.copy_(engine::from_first(team_, one.leaf.detach().reshape({-1})).view(one.leaf.sizes()));
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

TESSERA_INLINE data_parallel::backward_window::backward_window(data_parallel& of, bool last,
                                                               std::optional<double> weight)
    : of_(of) {
  if (of.window_open_) throw error(refusal{code::two_windows}, of.team_->label());
  if (weight && !(*weight >= 0)) throw error(refusal{code::weight_below_zero}, fmt::format("{}", *weight));
  of.window_open_ = true;
  of.gradients_->next_passes(last, weight.value_or(1), weight.has_value());
}
TESSERA_INLINE data_parallel::backward_window::~backward_window() {
  of_.window_open_ = false;
  of_.gradients_->next_passes(true, 1, false);
}

TESSERA_INLINE std::vector<index_t> data_parallel::bundle_bytes() const {
  std::vector<index_t> all;
  for (const engine::gradient_bundle& one : gradients_->bundles()) all.push_back(one.bytes());
  return all;
}

}  // namespace tessera::nn
