#pragma once

#include <tessera/tensor/change/bound_change.hpp>

namespace tessera {

namespace detail {

TESSERA_INLINE std::shared_ptr<bound_change> bound_change_of(team_state& team, const shared_layout_handle& from,
                                                             const shared_layout_handle& to, element e,
                                                             const call_context& context) {
  return team.kept<change_cache>().find(from, to, e, context,
                                        [&] { return std::make_shared<bound_change>(team, from, to, e, context); });
}

}  // namespace detail

namespace engine {

TESSERA_INLINE bound_change::bound_change(team_state& team, shared_layout_handle from, shared_layout_handle to,
                                          tessera::element e, const call_context& context)
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

TESSERA_INLINE at::Tensor bound_change::run(const at::Tensor& x, const call_context& context) {
  if (stays()) return kept(x);
  owed_exchanges::here().begin_all();
  at::Tensor y = x;
  for (bound_phase& p : phases_) y = run(p, y, room_for(p), context);
  return y;
}

TESSERA_INLINE at::Tensor bound_change::run(const at::Tensor& x, const call_context& context,
                                            const padded_box& around) {
  owed_exchanges::here().begin_all();
  at::Tensor y = x;
  for (std::size_t i = 0; i + 1 < phases_.size(); ++i) y = run(phases_[i], y, room_for(phases_[i]), context);
  const at::Tensor room = around.room(phases_.back().sizes, options_);
  run(phases_.back(), y, around.inside(room), context);
  return room;
}

TESSERA_INLINE at::Tensor bound_change::stored(const at::Tensor& x) {
  return x.is_conj() || x.is_neg() ? detail::as_stored(x.detach()) : x;
}
TESSERA_INLINE at::Tensor bound_change::room_for(const bound_phase& p) const {
  return detail::empty_box(at::IntArrayRef(p.sizes.begin(), p.sizes.end()), options_);
}

TESSERA_INLINE at::Tensor bound_change::run(bound_phase& p, const at::Tensor& x, const at::Tensor& y,
                                            const call_context& context) {
  const at::Tensor sent = stored(x);
  in_flight call = begin(p, *bound(p, context), sent, y, context);
  end(p, call);
  return y;
}

TESSERA_INLINE const std::shared_ptr<bound_exchange>& bound_change::bound(bound_phase& p, const call_context& context) {
  if (p.exchange && !p.exchange->retired) return p.exchange;
  call_context now = context;  // one phase begins in another order than the next
  if (now.order != 0) now.order += static_cast<std::uint64_t>(&p - phases_.data());
  p.exchange = team_.bound(p.phase, element_, now);
  return p.exchange;
}
TESSERA_INLINE in_flight bound_change::begin(const bound_phase& p, bound_exchange& exchange, const at::Tensor& x,
                                             const at::Tensor& y, const call_context& context, bool has_own) {
  if (team_.watch.exchange_started != nullptr) team_.watch.exchange_started(team_.watch.self, p.phase, element_);
  return exchange.start(region_of(x, element_), region_of(y, element_, true), context, has_own);
}
TESSERA_INLINE void bound_change::end(const bound_phase& p, in_flight& call) {
  const received got = call.finish();
  team_.total.bytes += got.bytes;
  team_.total.messages += got.messages;
  if (team_.watch.exchange_finished != nullptr) team_.watch.exchange_finished(team_.watch.self, p.phase, element_, got);
}

// The part of this worker's box that stays.
TESSERA_INLINE at::Tensor bound_change::kept(const at::Tensor& x) const {
  at::Tensor y = at::alias(x);
  for (int d = 0; d < ends_.count; ++d)
    if (ends_[d] - begins_[d] < y.size(d)) y = y.narrow(d, begins_[d], ends_[d] - begins_[d]);
  return y;
}

TESSERA_INLINE void bound_change::narrow_to(const step& s) {
  narrowed_ = true;
  const holding had = held_by(s.from, team_.rank());
  const holding has = held_by(s.to, team_.rank());
  for (int d = 0; d < has.count; ++d) {
    const index_t n = size_of(has[d]);
    begins_.push(n == 0 ? 0 : position(had[d], has[d][0].lo));
    ends_.push(begins_[d] + n);
  }
}

TESSERA_INLINE std::shared_ptr<bound_change> bound_change::adjoint() {
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
