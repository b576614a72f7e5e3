#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>
#include <tessera/comm/exchange/transport.hpp>
#include <tessera/comm/thread/waited_call.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace tessera {

namespace engine {

/// Where the workers of one process meet: each is a thread, and a receiver copies straight from the sender's box.
///
/// Calls need no lock. A lock is taken only to find an exchange, and to judge workers that have waited for a while.
/// They disagree, ended early or wait in a ring: this is one error on all of them.
class thread_rendezvous {
 public:
  explicit thread_rendezvous(int size)
      : size_(size), workers_(std::make_unique<worker[]>(static_cast<std::size_t>(size))) {
    crowded = static_cast<unsigned>(size) > std::max(1u, std::thread::hardware_concurrency());
  }

  int size() const { return size_; }
  bool crowded = false;  ///< workers are more than cores

  /// The exchange of a plan, found by what its workers agreed on; `me` is the index of the worker that asks.
  std::shared_ptr<detail::shared_exchange> meet(const exchange_plan& plan, std::size_t me,
                                                const std::vector<int>& sources, const std::vector<int>& readers) {
    std::lock_guard lock(mutex_);
    fingerprint workers;
    for (const int w : plan.workers) workers << w;
    if (exchanges_.size() >= sweep_at_) {  // so that each exchange is looked at a bounded number of times
      std::erase_if(exchanges_, [](const auto& e) { return e.second.expired(); });
      sweep_at_ = 2 * exchanges_.size() + 64;
    }
    auto& known = exchanges_[{plan.id, workers.value()}];
    std::shared_ptr<detail::shared_exchange> shared = known.lock();
    if (!shared) {
      known = shared = std::make_shared<detail::shared_exchange>();
      for (const int w : plan.workers) shared->members.emplace_back(w, plan.workers.size());
    }
    detail::exchange_member& mine = shared->members[me];
    mine.sources = sources;
    mine.readers = readers;
    mine.fold = plan.fold;
    return shared;
  }

  /// Before a worker begins a call.
  void begin(int me, const call_context& does) {
    worker& w = at(me);
    w.calls.store(w.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!failed_.load(std::memory_order_relaxed) && !w.stopped) return;
    stop_if_failed(me);
    if (w.ended) throw error(refusal{code::worker_lost, me, me}, launch_ended);
    refuse_if_given_up(me, does);
  }
  /// Whether a worker begins no more calls; it asks itself.
  bool stopped(int me) { return at(me).stopped; }
  /// A worker that gave up a call begins none and ends none.
  void refuse_if_given_up(int me, const call_context& does) {
    if (at(me).stopped) fail(me, error(refusal{code::call_given_up, me}, worker_text(me, text_of(does))));
  }

  /// Runs read() on other workers' memory, unless one of them has closed it; false then.
  template <class Owners, class Read>
  bool read_from(int me, const Owners& owners, Read&& read) {
    struct reads {
      std::atomic<bool>& now;
      explicit reads(std::atomic<bool>& flag) : now(flag) { now.store(true); }
      reads(const reads&) = delete;
      ~reads() { now.store(false, std::memory_order_release); }
    } here(at(me).reading);
    const bool open =
        std::none_of(owners.begin(), owners.end(), [&](const auto& o) { return at(o.rank).closed.load(); });
    if (open) read();
    return open;
  }
  /// Nobody reads a worker's boxes any more; whoever is at it finishes first. It cannot go on: others may have read
  /// some of them.
  void close(int me) noexcept {
    at(me).closed.store(true);
    at(me).stopped = true;
    for (int w = 0; w < size_; ++w)
      while (w != me && at(w).reading.load()) std::this_thread::yield();
  }

  /// A worker has waited in a call for a while: it finds those that can never go on, itself among them.
  void wait(int me, detail::waited_call call) {
    std::lock_guard lock(mutex_);
    at(me).waits_in = std::move(call);
    look_for_deadlock(me);
  }
  void go_on(int me) {
    std::lock_guard lock(mutex_);
    at(me).waits_in = {};
  }
  /// A worker waits no longer than this.
  [[noreturn]] void late(int me, std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    // Who waits for somebody that waits as well is held up by the same worker: one that computes, or is stuck.
    int stuck = held_up_by(me);
    for (int i = 0; i < size_ && waits(stuck) && held_up_by(stuck) != stuck; ++i) stuck = held_up_by(stuck);
    const error why(refusal{code::time_limit, me, stuck, limit.count()}, words_of(me, stuck));
    lock.unlock();
    fail(me, why);
  }

  /// A worker's program ended; whoever still waits for it is told.
  void leave(int me) {
    std::lock_guard lock(mutex_);
    end(me);
    look_for_deadlock(me);
  }
  /// A worker's program threw: all others stop with the same error as soon as they come here.
  void abandon(int me, const error& why) {
    std::lock_guard lock(mutex_);
    end(me);
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
  /// Throws what stopped the workers, if anything did; this one's boxes are read no more.
  void stop_if_failed(int me) {
    if (!failed_.load(std::memory_order_acquire)) return;
    close(me);
    throw *failure();
  }

  /// How many calls were begun: as long as that changes, somebody is alive.
  std::uint64_t calls() const {
    std::uint64_t n = 0;
    for (int w = 0; w < size_; ++w) n += workers_[static_cast<std::size_t>(w)].calls.load(std::memory_order_relaxed);
    return n;
  }

 private:
  struct alignas(64) worker {
    std::atomic<bool> reading{false};  // another worker's memory, now
    std::atomic<std::uint64_t> calls{0};
    bool stopped = false;                         // it begins nothing more; its own thread asks
    alignas(64) std::atomic<bool> closed{false};  // its memory
    detail::waited_call waits_in;                 // this and what follows is guarded
    bool ended = false;
  };

  worker& at(int w) { return workers_[static_cast<std::size_t>(w)]; }
  bool waits(int w) { return at(w).waits_in.among != nullptr; }
  void end(int me) {
    at(me).ended = true;
    at(me).stopped = true;
  }

  int first_needed(int w) {
    int first = -1;
    if (waits(w)) at(w).waits_in.each_need([&](int peer) { first = first < 0 ? peer : first; });
    return first < 0 ? w : first;
  }

  // Whom w waits for: who must do something first, or else a reader that has begun and does not come by to take its
  // box.
  int held_up_by(int w) {
    const int needed = first_needed(w);
    const detail::waited_call& call = at(w).waits_in;
    if (needed != w || !waits(w) || call.number < call.ahead) return needed;
    for (const int r : call.among->members[call.index].readers)
      if (const auto& reader = call.among->members[static_cast<std::size_t>(r)];
          !reader.calls.taken(call.number - call.ahead, call.index) && !waits(reader.rank))
        return reader.rank;
    return w;
  }

  // Whether `peer` waits in a call that sends a box to w, while w has not begun it and waits for another box of `peer`.
  bool offers_something_else(int peer, int w) {
    if (!waits(peer) || !waits(w)) return false;
    const detail::waited_call& theirs = at(peer).waits_in;
    const detail::waited_call& mine = at(w).waits_in;
    const auto among = [](const detail::shared_exchange& e, const std::vector<int>& indices, int rank) {
      return std::any_of(indices.begin(), indices.end(),
                         [&](int p) { return e.members[static_cast<std::size_t>(p)].rank == rank; });
    };
    if (!among(*mine.among, mine.among->members[mine.index].sources, peer)) return false;
    for (const int r : theirs.among->members[theirs.index].readers)
      if (const auto& reader = theirs.among->members[static_cast<std::size_t>(r)]; reader.rank == w)
        return !reader.calls.begun(theirs.number);
    return false;
  }

  // What workers do, by number.
  std::string words_of(int w) {
    return worker_text(w, waits(w) ? at(w).waits_in.does : at(w).ended ? has_ended : in_no_call);
  }
  std::string words_of(int w, int other) { return words_of(w) + "; " + words_of(other); }

  // The workers that can never go on: each needs one that ended or can never go on. They are the largest such set,
  // found by striking out of all that wait those who need none of it. Needs of a call are only ever fulfilled, so one
  // that is open when looked at was open before. No worker of the set does anything that would fulfil one.
  void look_for_deadlock(int newest) {
    if (failure_) return;
    std::vector<bool> stuck(static_cast<std::size_t>(size_));
    const auto needs_one = [&](int w) {
      bool one = false;
      at(w).waits_in.each_need([&](int peer) { one = one || stuck[static_cast<std::size_t>(peer)]; });
      return one;
    };
    for (int w = 0; w < size_; ++w) stuck[static_cast<std::size_t>(w)] = at(w).ended || waits(w);
    if (!at(newest).ended && !needs_one(newest)) return;
    for (bool struck = true; struck;) {
      struck = false;
      for (int w = 0; w < size_; ++w)
        if (stuck[static_cast<std::size_t>(w)] && !at(w).ended && !needs_one(w)) {
          stuck[static_cast<std::size_t>(w)] = false;
          struck = true;
        }
    }
    std::optional<error> why;
    const auto judge = [&](const reason& found, int w, int peer) {
      if (!why) why = error(refusal{found, w, peer}, words_of(w, peer));
    };
    const auto each_stuck = [&](auto&& visit) {
      for (int w = 0; w < size_; ++w)
        if (stuck[static_cast<std::size_t>(w)] && !at(w).ended)
          at(w).waits_in.each_need([&](int peer) {
            if (stuck[static_cast<std::size_t>(peer)]) visit(w, peer);
          });
    };
    each_stuck([&](int w, int peer) {
      if (at(peer).ended) judge(code::worker_lost, w, peer);
    });
    each_stuck([&](int w, int peer) {
      if (offers_something_else(peer, w)) judge(code::workers_disagree, w, peer);
    });
    each_stuck([&](int w, int peer) { judge(code::workers_wait_in_a_ring, w, peer); });
    if (why) set_failure(*why);
  }

  void set_failure(const error& why) {
    if (!failure_) failure_ = why;
    failed_.store(true, std::memory_order_release);
  }
  [[noreturn]] void fail(int me, const error& why) {
    {
      std::lock_guard lock(mutex_);
      set_failure(why);
    }
    close(me);
    throw *failure();
  }

  int size_;
  std::unique_ptr<worker[]> workers_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::weak_ptr<detail::shared_exchange>> exchanges_;
  std::size_t sweep_at_ = 64;
  std::optional<error> failure_;
};

}  // namespace engine

}  // namespace tessera
