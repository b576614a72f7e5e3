#pragma once

#include <tessera/nn/file/kept_optimizer.hpp>
#include <tessera/nn/file/optimizer_rule.hpp>
#include <tessera/nn/refusals.hpp>

#include <algorithm>

namespace tessera::nn::engine {

/// The tensors of a state, by name; of a rule's own state where a leaf has none.
inline std::vector<std::pair<std::string, at::Tensor*>> tensors_of(const std::vector<optimizer_field>& fields) {
  std::vector<std::pair<std::string, at::Tensor*>> all;
  for (const optimizer_field& f : fields)
    if (const auto* t = std::get_if<at::Tensor*>(&f.at)) all.emplace_back(f.name, *t);
  return all;
}
inline std::int64_t* step_of(const std::vector<optimizer_field>& fields) {
  for (const optimizer_field& f : fields)
    if (const auto* n = std::get_if<std::int64_t*>(&f.at)) return *n;
  return nullptr;
}

TESSERA_INLINE kept_optimizer::kept_optimizer(std::string name, torch::optim::Optimizer& of)
    : checkpoint_part(std::move(name)), of_(&of), rule_(rule_for(of)) {
  if (rule_ == nullptr) throw error(refusal{code::optimizer_not_kept}, this->name());
  const auto none = rule_->make();
  for (const auto& t : tensors_of(rule_->state(*none))) slots_.push_back(t.first);
}

TESSERA_INLINE std::string kept_optimizer::kind() const { return rule_->kind; }

TESSERA_INLINE std::string kept_optimizer::key_of(const stepped_leaf& leaf, std::size_t slot) const {
  return key(leaf.of.key + "/" + slots_[slot]);
}

TESSERA_INLINE void kept_optimizer::prepare(const known_leaves& leaves) {
  leaves_.clear();
  std::size_t group = 0;
  for (const auto& g : of_->param_groups()) {
    for (const at::Tensor& leaf : g.params()) {
      const auto known = leaves.find(leaf.unsafeGetTensorImpl());
      if (known == leaves.end())
        throw error(refusal{code::optimizer_of_other_leaves},
                    fmt::format("{}: {} of group {}", name(), tessera::detail::described_tensor(leaf), group));
      for (const kept_tensor& one : known->second) leaves_.push_back({one, leaf, group});
    }
    ++group;
  }
}

// A worker without a part of a tensor may have no state of it; one with a part has what the others have.
TESSERA_INLINE void kept_optimizer::gather(const team_handle& team) {
  std::vector<std::uint64_t> mine;
  for (const stepped_leaf& leaf : leaves_) {
    const auto state = of_->state().find(leaf.leaf.unsafeGetTensorImpl());
    std::uint64_t has = leaf.of.local.numel() > 0 ? 1 : 0, step = 0;
    if (state != of_->state().end()) {
      has |= 2;
      const auto fields = rule_->state(*state->second);
      std::uint64_t bit = 4;
      for (const auto& t : tensors_of(fields)) has |= std::exchange(bit, bit << 1) * (t.second->defined() ? 1 : 0);
      if (const std::int64_t* n = step_of(fields)) step = static_cast<std::uint64_t>(*n);
    }
    mine.insert(mine.end(), {has, step});
  }
  const std::vector<std::uint64_t> all = team->collect(mine, "comparing states of an optimizer");
  const auto rank = [&](std::size_t worker) { return team->mesh().rank(team->mesh().at(static_cast<int>(worker))); };
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const auto at = [&](std::size_t worker) { return &all[worker * mine.size() + 2 * i]; };
    std::size_t first = 0;  // that has a state, or a part
    const std::size_t workers = all.size() / std::max<std::size_t>(mine.size(), 1);
    while (first + 1 < workers && at(first)[0] < 2) ++first;
    for (std::size_t w = 0; w < workers; ++w) {
      const bool alike = at(w)[0] / 2 == at(first)[0] / 2 && at(w)[1] == at(first)[1];
      if (!alike && at(w)[0] != 0)
        throw error(refusal{code::workers_disagree, rank(first), rank(w)}, "the state of " + key(leaves_[i].of.key));
    }
    stepped_leaf& leaf = leaves_[i];
    leaf.known = (at(first)[0] & 2) != 0;
    leaf.has = static_cast<unsigned>(at(first)[0] >> 2);
    leaf.step = static_cast<std::int64_t>(at(first)[1]);
  }
  std::map<std::string, const stepped_leaf*> by_key;
  for (const stepped_leaf& leaf : leaves_)
    if (const auto [other, fresh] = by_key.emplace(leaf.of.key, &leaf);
        !fresh && (other->second->has != leaf.has || other->second->step != leaf.step))
      throw error(refusal{code::serial_view_wrong}, key(leaf.of.key) + ": its parts were stepped apart");
}

TESSERA_INLINE std::vector<kept_tensor> kept_optimizer::tensors(const team_handle&) {
  std::vector<kept_tensor> all;
  for (const stepped_leaf& leaf : leaves_) {
    const auto state = of_->state().find(leaf.leaf.unsafeGetTensorImpl());
    const bool here = state != of_->state().end();
    const auto slots = here ? tensors_of(rule_->state(*state->second)) : decltype(tensors_of({})){};
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if ((leaf.has >> s & 1u) == 0) continue;
      all.push_back(leaf.of);
      all.back().key = key_of(leaf, s);
      // Without a state the leaf is empty here.
      all.back().local = leaf.of.part_of(here ? slots[s].second->detach() : leaf.leaf.detach());
    }
  }
  return all;
}

TESSERA_INLINE small_values kept_optimizer::values() const {
  small_values all;
  std::size_t group = 0;
  for (auto& g : of_->param_groups()) {
    for (const optimizer_field& f : rule_->options(g.options())) {
      auto& value = all[fmt::format("groups/{}/{}", group, f.name)];
      if (const auto* real = std::get_if<double*>(&f.at)) value = **real;
      else if (const auto* flag = std::get_if<bool*>(&f.at)) value = std::int64_t{**flag};
    }
    ++group;
  }
  for (const stepped_leaf& leaf : leaves_) {
    all["group of/" + leaf.of.key] = static_cast<std::int64_t>(leaf.group);
    if (leaf.known) all["steps/" + leaf.of.key] = leaf.step;
  }
  return all;
}

TESSERA_INLINE std::vector<kept_tensor> kept_optimizer::wanted(const filed_entry& from, const checkpoint_index& index,
                                                               const team_handle&, const known_leaves& leaves) {
  prepare(leaves);
  std::vector<kept_tensor> all;
  std::size_t values_used = 0;
  for (stepped_leaf& leaf : leaves_) {
    const auto step = from.values.find("steps/" + leaf.of.key);
    leaf.known = step != from.values.end();
    if (leaf.known && !std::holds_alternative<std::int64_t>(step->second)) refuse("has no steps of " + leaf.of.key);
    leaf.step = leaf.known ? std::get<std::int64_t>(step->second) : 0;
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (index.tensors.count(key_of(leaf, s)) == 0) continue;
      if (!leaf.known) refuse("has no steps of " + leaf.of.key);
      leaf.has |= 1u << s;
      all.push_back(leaf.of);
      all.back().key = key_of(leaf, s);
    }
  }
  for (std::size_t i = 1; i < leaves_.size(); ++i)
    if (const stepped_leaf &a = leaves_[i - 1], &b = leaves_[i];
        a.leaf.is_same(b.leaf) && (a.known != b.known || a.has != b.has || a.step != b.step))
      refuse("has " + a.of.key + " and " + b.of.key + " that were stepped apart");
  for (const auto& [name, own] : values()) {
    const auto found = from.values.find(name);
    if (found == from.values.end()) refuse("has no " + name);
    if (found->second.index() != own.index()) refuse("has another kind of " + name);
    if (name.starts_with("group of/") && found->second != own) refuse("has another " + name);
    ++values_used;
  }
  if (values_used != from.values.size()) refuse("has other leaves or groups");
  return all;
}

TESSERA_INLINE void kept_optimizer::begin_loading(const filed_entry&) {
  for (const stepped_leaf& leaf : leaves_) {
    void* const at = leaf.leaf.unsafeGetTensorImpl();
    if (!leaf.known) {
      of_->state().erase(at);
      continue;
    }
    auto& state = of_->state()[at];
    if (!state) state = rule_->make();
    std::size_t s = 0;
    for (const auto& [name, t] : tensors_of(rule_->state(*state))) {
      if ((leaf.has >> s++ & 1u) == 0) t->reset();
      else if (!t->defined() || t->sizes() != leaf.leaf.sizes())
        *t = at::empty_like(leaf.leaf.detach(), at::MemoryFormat::Contiguous);
    }
  }
}

TESSERA_INLINE void kept_optimizer::end_loading(const filed_entry& from) {
  for (const stepped_leaf& leaf : leaves_)
    if (const auto state = of_->state().find(leaf.leaf.unsafeGetTensorImpl()); state != of_->state().end())
      if (std::int64_t* n = step_of(rule_->state(*state->second))) *n = leaf.step;
  std::size_t group = 0;
  for (auto& g : of_->param_groups()) {
    for (const optimizer_field& f : rule_->options(g.options())) {
      const auto& value = from.values.at(fmt::format("groups/{}/{}", group, f.name));
      if (const auto* real = std::get_if<double*>(&f.at)) **real = std::get<double>(value);
      else if (const auto* flag = std::get_if<bool*>(&f.at)) **flag = std::get<std::int64_t>(value) != 0;
    }
    ++group;
  }
}

}  // namespace tessera::nn::engine
