#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>
#include <tessera/comm/exchange/owed_exchanges.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace tessera::engine {

/// One call of an exchange; transports add what they keep of it meanwhile.
struct exchange_call {
  region in;
  region out;
  call_context does;  ///< for whoever asks
  /// the output holds already what this worker takes from itself alone: that is left as it is
  bool has_own = false;
  std::uint64_t sequence = 0;  ///< how many calls of this exchange the worker began before

  exchange_call() = default;
  exchange_call(const exchange_call&) = delete;
  exchange_call& operator=(const exchange_call&) = delete;
  virtual ~exchange_call() = default;
};

class in_flight;

/// A phase bound to its workers: whatever a call needs is found, so that a call derives nothing.
///
/// A call is named by the exchange and its number. Any number may be under way, of one exchange or of several, and they
/// end in any order. `finish` returns when this worker's boxes have arrived and its own may be changed.
class bound_exchange : public std::enable_shared_from_this<bound_exchange> {
 public:
  bound_exchange(const bound_exchange&) = delete;
  bound_exchange& operator=(const bound_exchange&) = delete;
  virtual ~bound_exchange() = default;

  const exchange_plan& plan() const { return plan_; }
  const box_vector& input_extents() const { return plan_.in; }
  const box_vector& output_extents() const { return plan_.out; }

  /// Begins a call: boxes of `in` are on their way, `out` must not be read before `finish`. Both outlive what is
  /// returned. Where `out` has what no other worker adds to, that is neither copied nor filled.
  in_flight start(const region& in, const region& out, const call_context& context = {}, bool has_own = false);

  bool retired = false;         ///< all its workers forgot it: who calls it next binds it anew
  std::uint64_t last_used = 0;  ///< by this worker's count of calls

 protected:
  bound_exchange(exchange_plan plan, std::shared_ptr<const void> carrier)
      : carrier_(std::move(carrier)), plan_(std::move(plan)) {}

  virtual std::unique_ptr<exchange_call> make_call() = 0;
  /// Puts this worker's boxes on their way.
  virtual void begin(exchange_call& call) = 0;
  /// Takes what has come; whether all has, so that the output may be read.
  virtual bool arrived(exchange_call& call) = 0;
  /// Waits until all has come and all readers have read.
  virtual void complete(exchange_call& call) = 0;
  /// Gives up a call that will not be finished: nobody reads or writes its boxes afterwards.
  virtual void withdraw(std::unique_ptr<exchange_call> call) noexcept = 0;

 private:
  friend class in_flight;

  std::shared_ptr<const void> carrier_;  // outlives what follows
  exchange_plan plan_;
  std::vector<std::unique_ptr<exchange_call>> idle_;
  std::uint64_t begun_ = 0;
};

/// A call between start and finish, which ends once. One that is dropped unfinished, because something threw, is
/// withdrawn: nobody reads its input or writes its output afterwards.
class in_flight {
 public:
  in_flight(in_flight&&) noexcept = default;
  in_flight& operator=(in_flight&&) = delete;
  ~in_flight() {
    if (call_) of_->withdraw(std::move(call_));
  }

  /// Whether the output may be read; takes what has come, and waits for nobody.
  bool arrived() {
    throw_if_finished();
    return of_->arrived(*call_);
  }

  /// Ends the call: all boxes have arrived and all readers have read. Returns what was received.
  received finish() {
    throw_if_finished();
    owed_exchanges::here().begin_all();
    of_->complete(*call_);
    of_->idle_.push_back(std::move(call_));
    return of_->plan_.brings;
  }

 private:
  friend class bound_exchange;
  in_flight() = default;

  void throw_if_finished() const {
    if (!call_) throw error(refusal{code::call_finished});
  }

  std::shared_ptr<bound_exchange> of_;
  std::unique_ptr<exchange_call> call_;
};

inline in_flight bound_exchange::start(const region& in, const region& out, const call_context& context, bool has_own) {
  in_flight f;  // so that a call that does not begin is withdrawn
  f.of_ = shared_from_this();
  if (idle_.empty()) {
    f.call_ = make_call();
  } else {
    f.call_ = std::move(idle_.back());
    idle_.pop_back();
  }
  exchange_call& call = *f.call_;
  call.in = in;
  call.out = out;
  call.does = context;
  call.has_own = has_own;
  if (!plan_.agrees() && call.does.moves == nullptr) {
    call.does.moves = &plan_.moves;
    call.does.element = plan_.element;
  }
  call.sequence = begun_++;
  thread_local std::uint64_t calls = 0;
  last_used = ++calls;
  begin(call);
  return f;
}

}  // namespace tessera::engine
