#pragma once

#include <tessera/tensor/change/running_change.hpp>

namespace tessera::engine {

TESSERA_INLINE running_change::running_change(bound_change& of, const at::Tensor& x, const call_context& context)
    : of_(of), context_(context), x_(bound_change::stored(x)), parts_(of.phases_.size()) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].exchange = of_.bound(of_.phases_[i], context);
    parts_[i].y = of_.room_for(of_.phases_[i]);
  }
  start(false);
}

TESSERA_INLINE running_change::running_change(bound_change& of, const at::Tensor& y, const at::Tensor& x,
                                              const call_context& context)
    : of_(of), context_(context), x_(bound_change::stored(x)), parts_(1) {
  parts_[0].exchange = of_.bound(of_.phases_[0], context);
  parts_[0].y = y;
  start(true);
}

TESSERA_INLINE running_change::~running_change() {
  if (parts_.size() > 1) owed_exchanges::here().remove(*this);  // where another one threw it may be there still
  while (!parts_.empty()) parts_.pop_back();                    // each reads what the one before gave
}

TESSERA_INLINE bool running_change::arrived() {
  owed_exchanges::here().go_on();
  return !owes() && parts_.back().call->arrived();
}

TESSERA_INLINE at::Tensor running_change::finish() {
  owed_exchanges::here().begin_all();
  for (std::size_t i = 0; i < parts_.size(); ++i) end(i);
  return parts_.back().y;
}

// Waits only where something that was started before has still to begin the same exchange.
TESSERA_INLINE void running_change::start(bool has_own) {
  owed_exchanges& here = owed_exchanges::here();
  if (here.owes(*parts_[0].exchange)) here.begin_all();
  begin(has_own);
  if (owes()) here.add(*this);
}
TESSERA_INLINE void running_change::begin(bool has_own) {
  part& p = parts_[begun_];
  const at::Tensor& x = begun_ == 0 ? x_ : parts_[begun_ - 1].y;
  p.call.emplace(of_.begin(of_.phases_[begun_], *p.exchange, x, p.y, context_, has_own));
  ++begun_;
}
TESSERA_INLINE void running_change::end(std::size_t i) {
  if (!parts_[i].call) return;
  of_.end(of_.phases_[i], *parts_[i].call);
  parts_[i].call.reset();
  (i == 0 ? x_ : parts_[i - 1].y).reset();
}

TESSERA_INLINE bool running_change::owes() const { return begun_ < parts_.size(); }
TESSERA_INLINE bool running_change::owes(const bound_exchange& one) const {
  for (std::size_t i = begun_; i < parts_.size(); ++i)
    if (parts_[i].exchange.get() == &one) return true;
  return false;
}
TESSERA_INLINE void running_change::go_on(const std::vector<owing*>& before) {
  while (owes() && !owed_exchanges::owe(before, *parts_[begun_].exchange) && parts_[begun_ - 1].call->arrived())
    begin();
}
TESSERA_INLINE void running_change::begin_all() {
  while (owes()) {
    end(begun_ - 1);
    begin();
  }
}

}  // namespace tessera::engine
