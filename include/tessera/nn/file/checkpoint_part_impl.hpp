#pragma once

#include <tessera/nn/file/checkpoint_part.hpp>

#include <limits>

namespace tessera::nn::engine {

TESSERA_INLINE kept_tensor kept_everywhere(const team_handle& team, std::string key, const at::Tensor& t) {
  kept_tensor kept{std::move(key), {}, tessera::detail::element_of_scalar(t.scalar_type()), t.detach(), {}, {}};
  kept.lies = one_number(team->mesh());
  for (const index_t n : t.sizes()) {
    dimension uncut;
    uncut.extent = n;
    kept.lies.dims.push(uncut);
    kept.serial_sizes.push_back(n);
  }
  return kept;
}

TESSERA_INLINE void kept_module::add_leaves(known_leaves& leaves) const {
  for (const auto& p : module_->named_parameters())
    leaves[p.value().unsafeGetTensorImpl()] = {kept_everywhere(team_, key(p.key()), p.value())};
}

// Workers have buffers of their own unless they are averaged, so the first one's count.
TESSERA_INLINE std::vector<kept_tensor> kept_module::tensors(const team_handle&) {
  std::vector<kept_tensor> all;
  for (const auto& p : module_->named_parameters()) all.push_back(kept_everywhere(team_, key(p.key()), p.value()));
  for (const auto& b : module_->named_buffers()) {
    all.push_back(kept_everywhere(team_, key(b.key()), b.value()));
    all.back().alike = false;
  }
  return all;
}

TESSERA_INLINE std::vector<kept_tensor> kept_values(const state_value& v, const std::string& before) {
  std::vector<kept_tensor> all;
  if (v.members.empty()) {
    all.push_back(kept_tensor::of(before + v.name, detach(v.lies)));
    all.back().alike = v.alike;
    return all;
  }
  index_t from = 0;
  for (const tensor<dyn>& one : members_of(v)) {
    const named_leaf& member = v.members[all.size()];
    all.push_back({before + member.name, one.layout(), one.type(), one.local(), {}, {}});
    all.back().holds = one.where();
    all.back().flat_from = from;
    for (const index_t n : member.leaf.sizes()) all.back().serial_sizes.push_back(n);
    from += one.local().numel();
  }
  return all;
}

/// LibTorch shows the steps of a schedule to those that derive from it.
struct shown_schedule : torch::optim::LRScheduler {
  static unsigned& steps_of(torch::optim::LRScheduler& of) { return of.*(&shown_schedule::step_count_); }
};

TESSERA_INLINE small_values kept_schedule::values() const {
  return {{"steps", static_cast<std::int64_t>(shown_schedule::steps_of(*of_))}};
}

TESSERA_INLINE std::vector<kept_tensor> kept_schedule::wanted(const filed_entry& from, const checkpoint_index&,
                                                              const team_handle&, const known_leaves&) {
  const auto found = from.values.find("steps");
  const auto* steps = found == from.values.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  if (steps == nullptr || *steps < 0 || *steps > std::numeric_limits<unsigned>::max()) refuse("has no number of steps");
  return {};
}

TESSERA_INLINE void kept_schedule::end_loading(const filed_entry& from) {
  shown_schedule::steps_of(*of_) = static_cast<unsigned>(std::get<std::int64_t>(from.values.at("steps")));
}

}  // namespace tessera::nn::engine
