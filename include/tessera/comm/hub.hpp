#pragma once

#include <tessera/comm/board.hpp>

#include <condition_variable>
#include <mutex>

namespace tessera {

/// Where the workers of one process meet: each is a thread, and a receiver copies straight from the sender's box.
///
/// A box is found by its call's fingerprint, equal ones first come first served, so calls may be under way together and end
/// in another order than they began. A worker that waits takes what comes for any of its calls. The hub knows who waits for
/// whom, so workers that disagree, end early or wait in a ring are one error on all of them at once.
class hub {
 public:
  explicit hub(int size) : board_(size), workers_(static_cast<std::size_t>(size)) {}

  int size() const { return board_.size(); }

  /// Offers a call's boxes to their readers.
  void start(int me, exchange_call& call) {
    std::unique_lock lock(mutex_);
    stop_if_failed(lock, me);
    if (at(me).ended) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    if (at(me).gave_up) {
      set_failure(error(refusal{code::call_given_up, me}, told_of(me)));
      stop_if_failed(lock, me);
    }
    ++calls_;
    board_.begin(me, call);
    changed_.notify_all();
  }

  /// Takes every box of a call and waits until its own have been read; meanwhile other calls of this worker go on too.
  void finish(int me, exchange_call& call, std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    stop_if_failed(lock, me);
    while (!board_.ended(call)) {
      if (const detail::board::box_here next = board_.next_box(me, call); next.call != nullptr)
        take(lock, me, next);
      else
        wait(lock, me, call, limit);
      stop_if_failed(lock, me);
    }
    board_.end(me, call);
  }

  /// Takes back what a call offers; whoever reads one of its boxes finishes first. Its worker cannot go on: others may have read
  /// some of them, and the next call would take the rest for its own.
  void withdraw(int me, exchange_call& call) noexcept {
    std::unique_lock lock(mutex_);
    if (!board_.end(me, call)) return;
    at(me).gave_up = true;
    wait_for_readers(lock, me);
  }

  /// A worker's program ended; whoever still waits for it is told.
  void leave(int me) {
    std::lock_guard lock(mutex_);
    at(me).ended = true;
    look_for_deadlock(me);
  }

  /// A worker's program threw: all others stop with the same error as soon as they come here.
  void abandon(int me, const error& why) {
    std::lock_guard lock(mutex_);
    at(me).ended = true;
    set_failure(why);
  }

  bool ended(int me) {
    std::lock_guard lock(mutex_);
    return at(me).ended;
  }
  std::optional<error> failure() {
    std::lock_guard lock(mutex_);
    return failure_;
  }

  /// How many calls were begun: as long as that changes, somebody is alive.
  std::uint64_t calls() {
    std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  struct worker {
    exchange_call* waits_in = nullptr;  // the call that it cannot end now
    int readers = 0;                    // workers that are reading one of its boxes now
    bool ended = false;
    bool gave_up = false;
  };

  worker& at(int w) { return workers_[static_cast<std::size_t>(w)]; }

  // Copies a box while the lock is open.
  void take(std::unique_lock<std::mutex>& lock, int me, const detail::board::box_here& next) {
    exchange_call& call = *next.call;
    const parcel& to = call.receives[next.receive];
    const detail::board::offer from = board_.take(me, next);
    ++at(to.peer).readers;
    lock.unlock();
    detail::deliver(call, *from.where, to.where);
    lock.lock();
    --at(to.peer).readers;
    if (to.peer == me) return;
    --from.of->unread;
    call.got.bytes += to.bytes();
    ++call.got.messages;
    changed_.notify_all();
  }

  void wait(std::unique_lock<std::mutex>& lock, int me, exchange_call& call, std::chrono::seconds limit) {
    const auto until = detail::deadline_after(limit);
    at(me).waits_in = &call;
    look_for_deadlock(me);
    while (!failure_ && !can_go_on(me))
      if (changed_.wait_until(lock, until) == std::cv_status::timeout && !failure_ && !can_go_on(me))
        set_failure(late(me, limit));
    at(me).waits_in = nullptr;
  }

  bool can_go_on(int w) {
    exchange_call* call = at(w).waits_in;
    return call == nullptr || board_.ended(*call) || board_.next_box(w, *call).call != nullptr;
  }

  int first_needed(int w) {
    int first = -1;
    board_.each_need(w, *at(w).waits_in, [&](int peer) { first = first < 0 ? peer : first; });
    return first < 0 ? w : first;
  }

  // Who waits for somebody that waits as well is held up by the same worker: one that computes, or is stuck.
  error late(int me, std::chrono::seconds limit) {
    int stuck = first_needed(me);
    for (int i = 0; i < size() && at(stuck).waits_in != nullptr && first_needed(stuck) != stuck; ++i) stuck = first_needed(stuck);
    return error(refusal{code::time_limit, me, stuck, limit.count()}, told_of(me, stuck));
  }

  // What workers do, by number.
  std::string told_of(int w) {
    return told(w, at(w).waits_in != nullptr ? text_of(at(w).waits_in->does) : at(w).ended ? has_ended : in_no_call);
  }
  std::string told_of(int w, int other) { return told_of(w) + "; " + told_of(other); }

  // The workers that can never go on: each needs one that ended or can never go on. They are the largest such set, found by
  // striking out of all that wait those who need none of it. Called when `newest` begins to wait or ends.
  void look_for_deadlock(int newest) {
    if (failure_) return;
    std::vector<bool> stuck(workers_.size());
    const auto needs_one = [&](int w) {
      bool one = false;
      board_.each_need(w, *at(w).waits_in, [&](int peer) { one = one || stuck[static_cast<std::size_t>(peer)]; });
      return one;
    };
    for (int w = 0; w < size(); ++w) stuck[static_cast<std::size_t>(w)] = at(w).ended || at(w).waits_in != nullptr;
    if (!at(newest).ended && !needs_one(newest)) return;
    for (int w = 0; w < size(); ++w) stuck[static_cast<std::size_t>(w)] = at(w).ended || !can_go_on(w);
    for (bool struck = true; struck;) {
      struck = false;
      for (int w = 0; w < size(); ++w)
        if (stuck[static_cast<std::size_t>(w)] && !at(w).ended && !needs_one(w)) {
          stuck[static_cast<std::size_t>(w)] = false;
          struck = true;
        }
    }
    std::optional<error> why;
    const auto judge = [&](code found, int w, int peer) {
      if (!why) why = error(refusal{found, w, peer}, told_of(w, peer));
    };
    const auto each_stuck = [&](auto&& visit) {
      for (int w = 0; w < size(); ++w)
        if (stuck[static_cast<std::size_t>(w)] && !at(w).ended)
          board_.each_need(w, *at(w).waits_in, [&](int peer) {
            if (stuck[static_cast<std::size_t>(peer)]) visit(w, peer);
          });
    };
    each_stuck([&](int w, int peer) {
      if (at(peer).ended) judge(code::worker_lost, w, peer);
    });
    each_stuck([&](int w, int peer) {
      if (board_.offers_something_else(peer, w, *at(w).waits_in)) judge(code::workers_disagree, w, peer);
    });
    each_stuck([&](int w, int peer) { judge(code::workers_wait_in_a_ring, w, peer); });
    if (why) set_failure(*why);
  }

  void set_failure(const error& why) {
    if (!failure_) failure_ = why;
    changed_.notify_all();
  }
  // A worker that stops frees its boxes.
  void stop_if_failed(std::unique_lock<std::mutex>& lock, int me) {
    if (!failure_) return;
    wait_for_readers(lock, me);
    throw *failure_;
  }
  void wait_for_readers(std::unique_lock<std::mutex>& lock, int me) {
    changed_.wait(lock, [&] { return at(me).readers == 0; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  detail::board board_;
  std::vector<worker> workers_;
  std::uint64_t calls_ = 0;
  std::optional<error> failure_;
};

}  // namespace tessera
