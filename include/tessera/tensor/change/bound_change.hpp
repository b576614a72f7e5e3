#pragma once

#include <tessera/plan/narrowing.hpp>
#include <tessera/plan/phase.hpp>
#include <tessera/tensor/box/padded_box.hpp>
#include <tessera/tensor/change/change_cache.hpp>

namespace tessera {

namespace engine {

/// A change of layout of one element bound to a team: plan, exchanges and extents are found once, so that a call
/// derives nothing.
class bound_change {
 public:
  bound_change(team_state& team, shared_layout_handle from, shared_layout_handle to, element e,
               const call_context& context);
  bound_change(const bound_change&) = delete;
  bound_change& operator=(const bound_change&) = delete;

  const shared_layout_handle& from() const { return from_; }
  const shared_layout_handle& to() const { return to_; }
  tessera::element element() const { return element_; }
  const movement& moves() const { return moves_; }

  /// Those who call it: the workers that it leads between.
  crew& workers() const { return workers_; }
  visits calls;  ///< of it, by line

  /// Whether it is bound for what the team does now.
  bool serves(const call_context& now) const { return why_ == now.why && name_ == now.name; }

  /// The change from to* to from*, bound for backward.
  std::shared_ptr<bound_change> adjoint();

  /// The refusal of a gradient of it.
  const refusal& gradient() const { return gradient_; }

  bool changes_nothing() const { return phases_.empty(); }
  /// Whether nothing is exchanged: each worker keeps what it has, or a part of it.
  bool stays() const { return phases_.empty() || narrowed_; }

  /// This worker's box of the result, as a view of what it had where that stays; no gradient is recorded.
  at::Tensor run(const at::Tensor& x, const call_context& context);
  /// The same where something is exchanged, in a padded box: what arrives is written where it is read.
  at::Tensor run(const at::Tensor& x, const call_context& context, const padded_box& around);

  /// Binds its exchanges ahead of their first use; all its workers do.
  void bind(const call_context& context) {
    for (bound_phase& p : phases_) bound(p, context);
  }
  /// The first exchange's plan.
  const exchange_plan& plan(const call_context& context) { return bound(phases_[0], context)->plan(); }

 private:
  friend class running_change;

  struct bound_phase {
    tessera::phase phase;
    box_vector sizes;
    std::shared_ptr<bound_exchange> exchange;
  };

  static at::Tensor stored(const at::Tensor& x);
  at::Tensor room_for(const bound_phase& p) const;
  at::Tensor run(bound_phase& p, const at::Tensor& x, const at::Tensor& y, const call_context& context);
  const std::shared_ptr<bound_exchange>& bound(bound_phase& p, const call_context& context);
  in_flight begin(const bound_phase& p, bound_exchange& exchange, const at::Tensor& x, const at::Tensor& y,
                  const call_context& context, bool has_own = false);
  void end(const bound_phase& p, in_flight& call);
  at::Tensor kept(const at::Tensor& x) const;
  void narrow_to(const step& s);

  team_state& team_;
  shared_layout_handle from_;
  shared_layout_handle to_;
  crew& workers_;
  tessera::element element_;
  at::TensorOptions options_;
  purpose why_;
  const char* name_;
  movement moves_;
  refusal gradient_;
  std::vector<step> steps_;
  std::vector<bound_phase> phases_;
  bool narrowed_ = false;
  box_vector begins_;  // of what is kept
  box_vector ends_;
  std::weak_ptr<bound_change> adjoint_;
};

}  // namespace engine

namespace detail {

/// A team's change between two layouts, for what it does now; bound when it is first asked for.
std::shared_ptr<bound_change> bound_change_of(team_state& team, const shared_layout_handle& from,
                                              const shared_layout_handle& to, element e, const call_context& context);

}  // namespace detail

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/change/bound_change_impl.hpp>
#endif
