#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/tensor/change/lineage.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE gradient_bundle::gradient_bundle(const team_handle& team, std::vector<member> members, index_t elements)
    : team_(team),
      members_(std::move(members)),
      elements_(elements),
      terms_(flat_layout(team->mesh(), elements, placement::partial)),
      sums_(flat_layout(team->mesh(), elements, placement::invariant)) {}

// No view: zero_grad(false) detaches gradients in place, which LibTorch refuses of a view.
TESSERA_INLINE at::Tensor gradient_bundle::range(const at::Tensor& of, const member& one) const {
  return at::empty({0}, of.options()).set_(of.storage(), of.storage_offset() + one.begin, one.leaf.sizes());
}

/// Gives the bundle another tensor's memory, and that tensor the bundle's.
TESSERA_INLINE at::Tensor gradient_bundle::exchange_memory(const at::Tensor& with) {
  c10::StorageImpl& mine = *memory_.storage().unsafeGetStorageImpl();
  c10::StorageImpl& other = *with.storage().unsafeGetStorageImpl();
  other.set_data_ptr_noswap(mine.set_data_ptr(std::move(other.mutable_data_ptr())));
  return with;
}

/// Whether somebody else has a gradient of an earlier window, which is to stay what it was.
TESSERA_INLINE bool gradient_bundle::others_have_ranges() const {
  const auto shared = [](const member& one) {
    return one.range.use_count() > (one.leaf.grad().is_same(one.range) ? 2u : 1u);
  };
  return memory_.storage().use_count() > 1 + members_.size() || std::any_of(members_.begin(), members_.end(), shared);
}

TESSERA_INLINE void gradient_bundle::open() {
  const at::NoGradGuard no_graph;
  if (!memory_.defined() || others_have_ranges()) {
    memory_ = at::empty({elements_}, members_.front().leaf.options().requires_grad(false));
    for (member& one : members_) one.range = range(memory_, one);
  }
  const auto has = [](const member& one) { return one.leaf.grad().defined(); };
  if (std::any_of(members_.begin(), members_.end(), has)) {
    for (const member& one : members_)
      if (!has(one)) one.range.zero_();
      else if (!one.leaf.grad().is_same(one.range)) one.range.copy_(one.leaf.grad());
    before_ = exchange_memory(at::empty_like(memory_));
  }
  for (member& one : members_) {
    one.leaf.mutable_grad().reset();
    one.came = false;
  }
}

TESSERA_INLINE void gradient_bundle::arrived(std::size_t which) {
  member& one = members_[which];
  at::Tensor& gradient = one.leaf.mutable_grad();
  one.came = true;
  if (gradient.is_same(one.range)) return;
  const at::NoGradGuard no_graph;
  const bool plain = gradient.is_cpu() && gradient.layout() == at::kStrided && gradient.is_contiguous() &&
                     gradient.scalar_type() == one.range.scalar_type() && !gradient.is_conj() && !gradient.is_neg() &&
                     !gradient._is_zerotensor();
  if (plain)  // of few bytes this costs less than LibTorch's own copy
    std::memcpy(one.range.mutable_data_ptr(), gradient.const_data_ptr(), gradient.nbytes());
  else one.range.copy_(gradient);
  gradient = one.range;
}

TESSERA_INLINE void gradient_bundle::wait() {
  for (const member& one : members_) one.leaf.mutable_grad() = one.waiting;
}

TESSERA_INLINE void gradient_bundle::go_on() {
  const at::NoGradGuard no_graph;
  for (member& one : members_) {
    at::Tensor& gradient = one.leaf.mutable_grad();
    if (gradient.defined() && !gradient.is_same(one.waiting)) one.range.copy_(gradient);
    one.came = gradient.defined() && (one.came || !gradient.is_same(one.waiting));
    gradient = one.came ? one.range : at::Tensor();
  }
}

TESSERA_INLINE void gradient_bundle::begin(call_site at) {
  const at::NoGradGuard no_graph;
  for (const member& one : members_)
    if (!one.came) one.range.zero_();
  const tensor<dyn> terms =
      tessera::detail::tensor_of(team_, terms_, memory_, tessera::detail::next_lineage(*team_, terms_.mesh));
  sum_.emplace(start(sums_, terms, at));
}

TESSERA_INLINE void gradient_bundle::finish(double factor) {
  const at::NoGradGuard no_graph;
  const at::Tensor sum = tessera::finish(std::move(*sum_)).local();
  sum_.reset();
  if (team_->size() > 1) exchange_memory(sum);
  if (factor != 1) memory_.mul_(factor);
  if (before_.defined()) memory_.add_(std::exchange(before_, {}));
  for (const member& one : members_) one.leaf.mutable_grad() = one.range;
}

}  // namespace tessera::nn::engine
