#pragma once

#include <tessera/comm/exchange/owed_exchanges.hpp>
#include <tessera/tensor/change/bound_change.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace tessera::engine {

/// A run of a bound change that exchanges something, between its start and its end. Each of its exchanges begins when
/// the one before has arrived and the worker asks what has, or waits for anything.
class running_change final : private owing {
 public:
  running_change(bound_change& of, const at::Tensor& x, const call_context& context)
      : of_(of), context_(context), x_(bound_change::stored(x)), parts_(of.phases_.size()) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].exchange = of_.bound(of_.phases_[i], context);
      parts_[i].y = of_.room_for(of_.phases_[i]);
    }
    start(false);
  }
  /// Of one exchange, into a tensor that holds already what this worker takes from itself alone.
  running_change(bound_change& of, const at::Tensor& y, const at::Tensor& x, const call_context& context)
      : of_(of), context_(context), x_(bound_change::stored(x)), parts_(1) {
    parts_[0].exchange = of_.bound(of_.phases_[0], context);
    parts_[0].y = y;
    start(true);
  }
  running_change(const running_change&) = delete;
  running_change& operator=(const running_change&) = delete;
  ~running_change() {
    if (parts_.size() > 1) owed_exchanges::here().remove(*this);  // where another one threw it may be there still
    while (!parts_.empty()) parts_.pop_back();                    // each reads what the one before gave
  }

  /// Whether the result is there; waits for nobody.
  bool arrived() {
    owed_exchanges::here().go_on();
    return !owes() && parts_.back().call->arrived();
  }
  at::Tensor finish() {
    owed_exchanges::here().begin_all();
    for (std::size_t i = 0; i < parts_.size(); ++i) end(i);
    return parts_.back().y;
  }

 private:
  struct part {
    std::shared_ptr<bound_exchange> exchange;
    at::Tensor y;
    std::optional<in_flight> call;  // last: withdrawn before its memory goes
  };

  // Waits only where something that was started before has still to begin the same exchange.
  void start(bool has_own) {
    owed_exchanges& here = owed_exchanges::here();
    if (here.owes(*parts_[0].exchange)) here.begin_all();
    begin(has_own);
    if (owes()) here.add(*this);
  }
  void begin(bool has_own = false) {
    part& p = parts_[begun_];
    const at::Tensor& x = begun_ == 0 ? x_ : parts_[begun_ - 1].y;
    p.call.emplace(of_.begin(of_.phases_[begun_], *p.exchange, x, p.y, context_, has_own));
    ++begun_;
  }
  void end(std::size_t i) {
    if (!parts_[i].call) return;
    of_.end(of_.phases_[i], *parts_[i].call);
    parts_[i].call.reset();
    (i == 0 ? x_ : parts_[i - 1].y).reset();
  }

  bool owes() const override { return begun_ < parts_.size(); }
  bool owes(const bound_exchange& one) const override {
    for (std::size_t i = begun_; i < parts_.size(); ++i)
      if (parts_[i].exchange.get() == &one) return true;
    return false;
  }
  void go_on(const std::vector<owing*>& before) override {
    while (owes() && !owed_exchanges::owe(before, *parts_[begun_].exchange) && parts_[begun_ - 1].call->arrived())
      begin();
  }
  void begin_all() override {
    while (owes()) {
      end(begun_ - 1);
      begin();
    }
  }

  bound_change& of_;
  call_context context_;
  at::Tensor x_;
  std::vector<part> parts_;
  std::size_t begun_ = 0;
};

}  // namespace tessera::engine
