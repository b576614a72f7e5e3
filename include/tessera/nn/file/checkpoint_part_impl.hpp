#pragma once

#include <tessera/nn/file/checkpoint_part.hpp>
#include <tessera/nn/gradient/sharded_gradients.hpp>

#include <tessera/plan/parts.hpp>

#include <algorithm>
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

TESSERA_INLINE std::vector<kept_tensor> kept_members(const bundle_shard& of, const std::vector<named_leaf>& leaves,
                                                     const std::string& before) {
  std::vector<kept_tensor> all;
  const tessera::engine::parts parts{of.lies, 0};
  for (std::size_t m = 0; m < of.members.size(); ++m) {
    const named_leaf& member = leaves[of.members[m]];
    const index_t size = member.leaf.numel(), begin = of.begins[m];
    const auto inside = [&](index_t element) { return std::clamp<index_t>(element - begin, 0, size); };
    std::vector<index_t> bounds{0};
    for (int k = 0; k < of.lies.part_count(0); ++k) bounds.push_back(inside(parts.held(k)[0].hi));
    kept_tensor one{
        before + member.name, of.lies, tessera::detail::element_of_scalar(of.block.scalar_type()), {}, {}, {}};
    one.bounds = std::make_shared<const std::vector<index_t>>(std::move(bounds));
    one.lies.dims[0].extent = size;
    if (of.lies.part_count(0) > 1) one.lies.dims[0].bounds = one.bounds->data();
    const index_t from = std::clamp<index_t>(begin, of.mine.lo, of.mine.hi) - of.mine.lo;
    const index_t to = std::clamp<index_t>(begin + size, of.mine.lo, of.mine.hi) - of.mine.lo;
    one.flat_from = from;
    one.local = of.block.detach().narrow(0, from, to - from);
    for (const index_t n : member.leaf.sizes()) one.serial_sizes.push_back(n);
    all.push_back(std::move(one));
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
