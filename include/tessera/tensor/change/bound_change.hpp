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
               const call_context& context)
      : team_(team),
        from_(std::move(from)),
        to_(std::move(to)),
        workers_(team.crew_of(from_->layout(), to_->layout())),
        element_(e),
        options_(detail::options_of(team, detail::scalar_type_of(e))),
        why_(context.why),
        name_(context.name) {
    const layout& a = from_->layout();
    const layout& b = to_->layout();
    check(first_of(from_->why(), to_->why(), check_change(a, b)), team);
    moves_ = movement(a, b);
    gradient_ = first_of(check_gradient(a, e), check_gradient(b, e));
    const change plan = change_between(a, b);
    steps_.assign(plan.steps.begin(), plan.steps.end());
    for (const phase& p : detail::phases_of_steps(steps_.data(), plan.steps.count)) {
      box_vector sizes;
      for (const intervals& held : held_by(p.to(), team.rank())) sizes.push(size_of(held));
      phases_.push_back({p, sizes, nullptr});
    }
    if (plan.steps.count == 1 && narrows(plan.steps[0])) narrow_to(plan.steps[0]);
  }
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
  at::Tensor run(const at::Tensor& x, const call_context& context) {
    if (stays()) return kept(x);
    owed_exchanges::here().begin_all();
    at::Tensor y = x;
    for (bound_phase& p : phases_) y = run(p, y, room_for(p), context);
    return y;
  }
  /// The same where something is exchanged, in a padded box: what arrives is written where it is read.
  at::Tensor run(const at::Tensor& x, const call_context& context, const padded_box& around) {
    owed_exchanges::here().begin_all();
    at::Tensor y = x;
    for (std::size_t i = 0; i + 1 < phases_.size(); ++i) y = run(phases_[i], y, room_for(phases_[i]), context);
    const at::Tensor room = around.room(phases_.back().sizes, options_);
    run(phases_.back(), y, around.inside(room), context);
    return room;
  }

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

  static at::Tensor stored(const at::Tensor& x) {
    return x.is_conj() || x.is_neg() ? detail::as_stored(x.detach()) : x;
  }
  at::Tensor room_for(const bound_phase& p) const {
    return detail::empty_box(at::IntArrayRef(p.sizes.begin(), p.sizes.end()), options_);
  }

  at::Tensor run(bound_phase& p, const at::Tensor& x, const at::Tensor& y, const call_context& context) {
    const at::Tensor sent = stored(x);
    in_flight call = begin(p, *bound(p, context), sent, y, context);
    end(p, call);
    return y;
  }

  const std::shared_ptr<bound_exchange>& bound(bound_phase& p, const call_context& context) {
    if (p.exchange && !p.exchange->retired) return p.exchange;
    call_context now = context;  // one phase begins in another order than the next
    if (now.order != 0) now.order += static_cast<std::uint64_t>(&p - phases_.data());
    p.exchange = team_.bound(p.phase, element_, now);
    return p.exchange;
  }
  in_flight begin(const bound_phase& p, bound_exchange& exchange, const at::Tensor& x, const at::Tensor& y,
                  const call_context& context, bool has_own = false) {
    if (team_.watch.exchange_started != nullptr) team_.watch.exchange_started(team_.watch.self, p.phase, element_);
    return exchange.start(region_of(x, element_), region_of(y, element_, true), context, has_own);
  }
  void end(const bound_phase& p, in_flight& call) {
    const received got = call.finish();
    team_.total.bytes += got.bytes;
    team_.total.messages += got.messages;
    if (team_.watch.exchange_finished != nullptr)
      team_.watch.exchange_finished(team_.watch.self, p.phase, element_, got);
  }

  // The part of this worker's box that stays.
  at::Tensor kept(const at::Tensor& x) const {
    at::Tensor y = at::alias(x);
    for (int d = 0; d < ends_.count; ++d)
      if (ends_[d] - begins_[d] < y.size(d)) y = y.narrow(d, begins_[d], ends_[d] - begins_[d]);
    return y;
  }

  void narrow_to(const step& s) {
    narrowed_ = true;
    const holding had = held_by(s.from, team_.rank());
    const holding has = held_by(s.to, team_.rank());
    for (int d = 0; d < has.count; ++d) {
      const index_t n = size_of(has[d]);
      begins_.push(n == 0 ? 0 : position(had[d], has[d][0].lo));
      ends_.push(begins_[d] + n);
    }
  }

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
inline std::shared_ptr<bound_change> bound_change_of(team_state& team, const shared_layout_handle& from,
                                                     const shared_layout_handle& to, element e,
                                                     const call_context& context) {
  return team.kept<change_cache>().find(from, to, e, context,
                                        [&] { return std::make_shared<bound_change>(team, from, to, e, context); });
}

}  // namespace detail

namespace engine {

inline std::shared_ptr<bound_change> bound_change::adjoint() {
  std::shared_ptr<bound_change> known = adjoint_.lock();
  if (known) return known;
  call_context back;
  back.why = purpose::backward;
  back.name = name_;
  known = detail::bound_change_of(team_, team_.intern(cotangent(to_->layout())),
                                  team_.intern(cotangent(from_->layout())), element_, back);
  adjoint_ = known;
  return known;
}

}  // namespace engine

}  // namespace tessera
