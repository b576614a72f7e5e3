#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/nn/gradient/module_values.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/tensor/box/content_hash.hpp>
#include <tessera/tensor/change/change.hpp>

#include <fmt/core.h>

#include <unordered_set>

namespace tessera::nn::engine {

TESSERA_INLINE unsigned axes_named(const mesh_value& mesh, const std::vector<std::string>& names) {
  unsigned axes = names.empty() ? (1u << mesh.axes.count) - 1 : 0;
  for (const std::string& name : names) {
    const int a = mesh.find(text(name.c_str()));
    if (a < 0) throw error(refusal{code::axis_not_in_mesh, text(name.c_str()), mesh.axes.count});
    axes |= 1u << a;
  }
  return axes;
}

/// A module's own parameters, which it shows to modules alone.
class own_parameters : public torch::nn::Module {
 public:
  static const auto& of(const torch::nn::Module& module) { return module.*(&own_parameters::parameters_); }
};

/// Those of named tensors that are there, each under its first name.
template <class Named>
std::vector<named_leaf> each_once(const Named& tensors) {
  std::vector<named_leaf> all;
  std::unordered_set<const c10::TensorImpl*> known;
  for (const auto& one : tensors)
    if (one.value().defined() && known.insert(one.value().unsafeGetTensorImpl()).second)
      all.push_back({one.key(), one.value()});
  return all;
}

TESSERA_INLINE std::vector<named_leaf> trained_leaves(const torch::nn::Module& module) {
  std::vector<named_leaf> all = each_once(module.named_parameters());
  std::erase_if(all, [](const named_leaf& one) { return !one.leaf.requires_grad(); });
  return all;
}

TESSERA_INLINE std::size_t count_trained(const torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> all;
  module.apply([&](const torch::nn::Module& one) {
    for (const auto& p : own_parameters::of(one))
      if (p.value().defined() && p.value().requires_grad()) all.insert(p.value().unsafeGetTensorImpl());
  });
  return all.size();
}

TESSERA_INLINE std::vector<named_leaf> state_tensors(const torch::nn::Module& module) {
  std::vector<named_leaf> all = each_once(module.named_parameters());
  const std::vector<named_leaf> buffers = each_once(module.named_buffers());
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

TESSERA_INLINE void add_standing(const team_handle& team, const torch::nn::Module& module,
                                 std::vector<state_value>& values) {
  for (const named_leaf& one : each_once(module.named_parameters()))
    if (!one.leaf.requires_grad()) values.push_back({one.name, whole_everywhere(team, one.leaf)});
  for (const named_leaf& one : each_once(module.named_buffers()))
    values.push_back({one.name, whole_everywhere(team, one.leaf), false, false});
}

TESSERA_INLINE at::Tensor from_first(const team_handle& team, const at::Tensor& mine) {
  const layout there = flat_layout(team->mesh(), mine.numel(), placement::on);
  const layout everywhere = flat_layout(team->mesh(), mine.numel(), placement::invariant);
  const bool first = team->mesh().number(team->at()) == 0;
  return change_layout(team, there, everywhere, first ? mine : mine.narrow(0, 0, 0));
}

/// Throws on every worker unless all have the same number for each tensor, and names the first of which they differ.
template <class Number>
void agree_on_each(const team_handle& team, const std::vector<named_leaf>& tensors, const char* subject,
                   const Number& number) {
  const auto differ = [&](const std::string& in) {
    team->crew_of(team->mesh()).among().disagree(error(refusal{code::modules_differ}, in));
  };
  for (const std::uint64_t count : team->collect(tensors.size(), subject))
    if (count != tensors.size()) differ(fmt::format("{} and {} parameters and buffers", tensors.size(), count));
  std::vector<std::uint64_t> mine;
  for (const named_leaf& one : tensors) mine.push_back(number(one));
  const std::vector<std::uint64_t> all = team->collect(mine, subject);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const std::size_t which = i % mine.size(); all[i] != all[which]) differ(tensors[which].name);
}

TESSERA_INLINE void begin_alike(const team_handle& team, const std::vector<named_leaf>& tensors, first_values how) {
  agree_on_each(team, tensors, "comparing modules", [](const named_leaf& one) {
    return text(fmt::format("{} {}", one.name, c10::str(one.leaf.scalar_type(), one.leaf.sizes())).c_str()).hash;
  });
  if (how == first_values::compared)
    return agree_on_each(team, tensors, "comparing values of modules",
                         [](const named_leaf& one) { return tessera::detail::content_hash(one.leaf); });
  const at::NoGradGuard no_graph;
  for (const named_leaf& one : tensors)  // one by one: a model may fill half the memory
    one.leaf.copy_(from_first(team, one.leaf.detach().reshape({-1})).view(one.leaf.sizes()));
}

}  // namespace tessera::nn::engine
