#pragma once

#include <tessera/tensor/change/change.hpp>

#include <cstdint>
#include <utility>

namespace tessera::detail {

/// A leaf of autograd's graph in another layout of which each worker has its box already: one view, made and recorded
/// once for all calls.
///
/// The view's node runs as the leaf's own does, as soon as all its gradients have come. Those of several calls in one
/// backward are added first and exchanged once.
class cached_view {
 public:
  at::Tensor of(const team_handle& team, const shared_layout_handle& from, const shared_layout_handle& to,
                const at::Tensor& leaf, call_site at = call_site::here()) {
    if (serves(*team, leaf)) {
      // LibTorch refuses a view that is older than what was written to its leaf: it would give it another node.
      torch::autograd::impl::get_view_autograd_meta(view_)->set_attr_version(
          static_cast<std::uint32_t>(leaf._version()));
      return view_;
    }
    view_.reset();
    const call_context now = team->doing();
    change_call call(team, bound_change_of(*team, from, to, element_of_scalar(leaf.scalar_type()), now), leaf, at);
    const bool lasts = call.change->stays() && !call.change->changes_nothing() && call.tracked && leaf.is_leaf() &&
                       team->checks != checks::always;
    if (!lasts) return run(std::move(call), leaf);
    leaf_ = leaf;
    change_ = call.change;
    at_ = now.at;
    view_ = unrecorded(call, leaf);
    record(view_, leaf, make_node<change_backward>(std::move(call)));
    return view_;
  }

 private:
  // Whether a call would make the same now.
  bool serves(const team_state& team, const at::Tensor& leaf) const {
    const call_site& now = team.doing().at;
    return view_.defined() && leaf.is_same(leaf_) && leaf.requires_grad() && view_.is_alias_of(leaf) &&
           team.checks != checks::always && change_->serves(team.doing()) && now.file == at_.file &&
           now.line == at_.line;
  }

  at::Tensor view_;
  at::Tensor leaf_;
  std::shared_ptr<bound_change> change_;
  call_site at_{};
};

}  // namespace tessera::detail
