#pragma once

#include <tessera/nn/gradient/gradient_bundle.hpp>
#include <tessera/tensor/change/lineage.hpp>

#include <algorithm>
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

TESSERA_INLINE void gradient_bundle::open() {
  const at::NoGradGuard no_graph;
  const at::TensorOptions options = members_.front().leaf.options().requires_grad(false);
  const bool had =
      std::any_of(members_.begin(), members_.end(), [](const member& one) { return one.leaf.grad().defined(); });
  before_ = had ? at::zeros({elements_}, options) : at::Tensor();
  memory_ = at::zeros({elements_}, options);
  for (const member& one : members_) {
    at::Tensor& gradient = one.leaf.mutable_grad();
    if (gradient.defined()) range(before_, one).copy_(gradient);
    gradient = range(memory_, one);
  }
}

TESSERA_INLINE void gradient_bundle::wait() {
  for (const member& one : members_) one.leaf.mutable_grad() = one.waiting;
}

TESSERA_INLINE void gradient_bundle::go_on() {
  const at::NoGradGuard no_graph;
  for (const member& one : members_) {
    at::Tensor& gradient = one.leaf.mutable_grad();
    const at::Tensor mine = range(memory_, one);
    if (!gradient.is_same(one.waiting)) {
      if (gradient.defined()) mine.copy_(gradient);
      else mine.zero_();
    }
    gradient = mine;
  }
}

TESSERA_INLINE void gradient_bundle::begin(call_site at) {
  const at::NoGradGuard no_graph;
  const tensor<dyn> terms =
      tessera::detail::tensor_of(team_, terms_, memory_, tessera::detail::next_lineage(*team_, terms_.mesh));
  sum_.emplace(start(sums_, terms, at));
}

TESSERA_INLINE void gradient_bundle::finish(double factor) {
  const at::NoGradGuard no_graph;
  at::Tensor sum = tessera::finish(std::move(*sum_)).local();
  sum_.reset();
  if (sum.is_alias_of(memory_)) sum = sum.clone();  // one worker: what moved nothing is a view
  if (factor != 1) sum.mul_(factor);
  if (before_.defined()) sum.add_(std::exchange(before_, {}));
  memory_ = sum;
  for (const member& one : members_) one.leaf.mutable_grad() = range(memory_, one);
}

}  // namespace tessera::nn::engine
