#pragma once

#include <tessera/comm/transport.hpp>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace tessera {

/// Where the workers of one process meet: each is a thread, and a receiver copies straight from the sender's box.
///
/// The hub knows who waits for whom, so workers that disagree, end early or wait in a ring are one error on all of them at
/// once.
class hub {
 public:
  explicit hub(int size) : workers_(static_cast<std::size_t>(size)), channels_(static_cast<std::size_t>(size) * size) {}

  int size() const { return static_cast<int>(workers_.size()); }

  /// Offers this worker's boxes to their readers.
  void post(int me, const exchange_call& call) {
    std::unique_lock lock(mutex_);
    stop_if_failed(lock, me);
    for (const parcel& p : call.sends) {
      if (p.peer == me) continue;
      channel(me, p.peer).push_back({call.fingerprint, &p.where});
      ++workers_[me].unread;
    }
    changed_.notify_all();
  }

  /// Waits for the next box from a peer, hands it to `read`, and lets the sender go on.
  template <class Read>
  void take(int me, int peer, std::uint64_t fingerprint, std::chrono::seconds limit, Read&& read) {
    offer next;
    {
      std::unique_lock lock(mutex_);
      workers_[me].waits_for = peer;
      wait(lock, me, limit, [&] { return !channel(peer, me).empty(); });
      next = channel(peer, me).front();
      if (next.fingerprint != fingerprint) fail(lock, me, refusal{code::workers_disagree, me, peer});
      channel(peer, me).pop_front();
      ++workers_[peer].readers;
    }
    read(*next.where);
    std::lock_guard lock(mutex_);
    --workers_[peer].readers;
    --workers_[peer].unread;
    changed_.notify_all();
  }

  /// Waits until every box that this worker offered has been read.
  void wait_until_read(int me, std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    workers_[me].waits_for = its_readers;
    wait(lock, me, limit, [&] { return workers_[me].unread == 0; });
  }

  /// A worker's program ended; whoever still waits for it is told.
  void leave(int me) {
    std::lock_guard lock(mutex_);
    workers_[me].ended = true;
    look_for_deadlock();
    changed_.notify_all();
  }

  /// A worker's program threw: all others stop with the same error as soon as they come here.
  void abandon(int me, const refusal& why) {
    std::lock_guard lock(mutex_);
    workers_[me].ended = true;
    set_failure(why);
  }

 private:
  static constexpr int nobody = -1;
  static constexpr int its_readers = -2;

  struct offer {
    std::uint64_t fingerprint = 0;
    const region* where = nullptr;
  };
  struct worker {
    int waits_for = nobody;
    int unread = 0;   // boxes offered and not yet read
    int readers = 0;  // workers that are reading one of them now
    bool ended = false;
  };

  std::deque<offer>& channel(int from, int to) { return channels_[static_cast<std::size_t>(from) * size() + to]; }

  bool can_go_on(int w) {
    const worker& s = workers_[w];
    if (s.waits_for == nobody) return true;
    if (s.waits_for == its_readers) return s.unread == 0;
    return !channel(s.waits_for, w).empty();
  }

  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, int me, std::chrono::seconds limit, Ready&& ready) {
    const auto until = std::chrono::steady_clock::now() + limit;
    stop_if_failed(lock, me);
    if (!ready()) look_for_deadlock();
    while (!ready()) {
      stop_if_failed(lock, me);
      if (changed_.wait_until(lock, until) == std::cv_status::timeout && !ready())
        fail(lock, me, refusal{code::time_limit, me, workers_[me].waits_for, limit.count()});
    }
    stop_if_failed(lock, me);
    workers_[me].waits_for = nobody;
  }

  // Everybody who still runs waits for something that nobody is left to do.
  void look_for_deadlock() {
    if (failure_) return;
    int stuck = nobody;
    for (int w = 0; w < size(); ++w) {
      if (workers_[w].ended) continue;
      if (can_go_on(w)) return;
      stuck = w;
    }
    if (stuck == nobody) return;
    for (int w = 0; w < size(); ++w) {
      if (workers_[w].ended) continue;
      const int peer = workers_[w].waits_for;
      if (peer >= 0 && workers_[peer].ended) {
        set_failure(refusal{code::worker_lost, w, peer});
        return;
      }
      if (peer == its_readers)
        for (int r = 0; r < size(); ++r)
          if (workers_[r].ended && !channel(w, r).empty()) {
            set_failure(refusal{code::worker_lost, w, r});
            return;
          }
    }
    set_failure(refusal{code::workers_wait_in_a_ring, stuck, waited_for(stuck)});
  }

  int waited_for(int w) {
    if (workers_[w].waits_for >= 0) return workers_[w].waits_for;
    for (int r = 0; r < size(); ++r)
      if (!channel(w, r).empty()) return r;
    return w;
  }

  void set_failure(const refusal& why) {
    if (!failure_) failure_ = why;
    changed_.notify_all();
  }
  [[noreturn]] void fail(std::unique_lock<std::mutex>& lock, int me, const refusal& why) {
    set_failure(why);
    stop(lock, me);
  }
  void stop_if_failed(std::unique_lock<std::mutex>& lock, int me) {
    if (failure_) stop(lock, me);
  }
  // A worker that stops frees its boxes, so whoever reads one of them finishes first.
  [[noreturn]] void stop(std::unique_lock<std::mutex>& lock, int me) {
    changed_.wait(lock, [&] { return workers_[me].readers == 0; });
    throw error(*failure_);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<worker> workers_;
  std::vector<std::deque<offer>> channels_;
  std::optional<refusal> failure_;
};

/// The transport of one worker thread.
class in_process final : public transport {
 public:
  in_process(std::shared_ptr<hub> meeting, int rank) : hub_(std::move(meeting)), rank_(rank) {}

  transport_traits traits() const override { return {"in-process", true, false}; }
  int rank() const override { return rank_; }
  int size() const override { return hub_->size(); }

  void start(exchange_call& call) override { hub_->post(rank_, call); }

  void finish(exchange_call& call) override {
    int own = 0;
    for (const parcel& p : call.receives) {
      if (p.peer == rank_) {
        detail::deliver(call, *detail::own_parcel(call, rank_, own++), p.where);
        continue;
      }
      hub_->take(rank_, p.peer, call.fingerprint, time_limit, [&](const region& theirs) { detail::deliver(call, theirs, p.where); });
      call.got.bytes += p.where.bytes();
      ++call.got.messages;
    }
    hub_->wait_until_read(rank_, time_limit);
  }

 private:
  std::shared_ptr<hub> hub_;
  int rank_;
};

}  // namespace tessera
