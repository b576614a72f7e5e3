#pragma once

#include <tessera/topology/mesh_value.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace tessera::detail {

struct alignas(64) taken_line {
  static constexpr std::size_t size = 8;
  std::atomic<std::uint64_t> from[size]{};
};

/// What a worker shows of one call to its readers, and what its own reading of the call came to.
///
/// Only the worker itself writes here, so nobody waits for a lock, and a line of cache goes once each way.
struct alignas(64) shown_call {
  std::atomic<std::uint64_t> begun{0};  ///< the call's number and one: what follows may be read
  std::byte* data = nullptr;
  index_t strides[max_dimensions]{};
  bool busy = false;
  std::vector<taken_line> lines;  ///< what was taken from each worker, by place: likewise

  std::atomic<std::uint64_t>& taken(std::size_t from) { return lines[from / taken_line::size].from[from % taken_line::size]; }
};

/// The calls of one worker: those under way have places of their own, in a ring that grows when all are taken.
class shown_calls {
 public:
  explicit shown_calls(std::size_t workers) : workers_(workers) { grow(0); }

  /// Where a call is or will be shown. Others ask.
  shown_call& of(std::uint64_t call) const {
    const ring& r = *ring_.load(std::memory_order_acquire);
    return *r.calls[call % r.calls.size()];
  }
  /// The place of a new call. The worker itself asks.
  shown_call& fresh(std::uint64_t call) {
    if (of(call).busy) grow(call);
    return of(call);
  }

  bool begun(std::uint64_t call) const {
    return says(call, [](shown_call& shown) -> auto& { return shown.begun; });
  }
  bool taken(std::uint64_t call, std::size_t from) const {
    return says(call, [from](shown_call& shown) -> auto& { return shown.taken(from); });
  }

 private:
  struct ring {
    std::vector<shown_call*> calls;
  };

  // In the ring before, the place of a later call may be where this one was looked for: what is said there holds if the ring, looked at
  // afterwards, is the same.
  template <class Number>
  bool says(std::uint64_t call, Number&& number) const {
    const ring* last = nullptr;
    for (const ring* r = ring_.load(std::memory_order_acquire); r != last; r = ring_.load(std::memory_order_acquire)) {
      if (number(*r->calls[call % r->calls.size()]).load(std::memory_order_acquire) <= call) return false;
      last = r;
    }
    return true;
  }

  // A place that shows nothing yet counts as every call before: they have ended.
  void grow(std::uint64_t call) {
    const ring* old = rings_.empty() ? nullptr : &rings_.back();
    const std::size_t size = old == nullptr ? 1 : 2 * old->calls.size();
    ring next{std::vector<shown_call*>(size, nullptr)};
    if (old != nullptr)
      for (shown_call* shown : old->calls)
        if (shown->busy) next.calls[(shown->begun.load(std::memory_order_relaxed) - 1) % size] = shown;
    for (shown_call*& place : next.calls) {
      if (place != nullptr) continue;
      place = &places_.emplace_back();
      place->begun.store(call, std::memory_order_relaxed);
      place->lines = std::vector<taken_line>(workers_ / taken_line::size + 1);
      for (std::size_t w = 0; w < workers_; ++w) place->taken(w).store(call, std::memory_order_relaxed);
    }
    ring_.store(&rings_.emplace_back(std::move(next)), std::memory_order_release);
  }

  std::size_t workers_;
  std::atomic<const ring*> ring_{nullptr};
  std::deque<ring> rings_;         // earlier ones stay: somebody may look at them
  std::deque<shown_call> places_;
};

/// A worker of an exchange among threads: its calls, and whom they need.
struct exchange_member {
  int rank;
  shown_calls calls;
  std::vector<int> sources;  ///< places of those whose boxes it takes; the hub guards it, and what follows
  std::vector<int> readers;
  bool fold = false;

  exchange_member(int of, std::size_t workers) : rank(of), calls(workers) {}
};

/// An exchange as the threads of a process share it.
struct shared_exchange {
  std::deque<exchange_member> members;  ///< by place among its workers
};

}  // namespace tessera::detail
