#pragma once

#include <tessera/comm/box/matching_boxes.hpp>

#include <algorithm>
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
/// Only the worker itself writes here, so nobody waits for a lock and a cache line travels once each way. Fields that
/// others never read lie on separate lines.
struct alignas(64) shown_call {
  std::atomic<std::uint64_t> begun{0};  ///< the call's number and one: what follows may be read
  std::vector<taken_line> lines;        ///< what was taken from each worker, by index: likewise
  std::byte* data = nullptr;
  index_t strides[max_dimensions]{};
  alignas(64) bool busy = false;
  std::vector<std::byte> copy;  ///< what is shown, if the tensor itself is not

  strided where() const { return {data, strides}; }
  std::atomic<std::uint64_t>& taken(std::size_t from) {
    return lines[from / taken_line::size].from[from % taken_line::size];
  }
};

/// The calls of one worker: each that is under way has a slot of its own. Slots are as many as were ever taken at
/// once, up to the next power of two.
class shown_calls {
 public:
  explicit shown_calls(std::size_t workers) : workers_(workers) { grow(); }

  /// The slot of a new call, of those that are free for it. The worker itself asks.
  template <class Free>
  shown_call& fresh(std::uint64_t call, Free&& is_free) {
    if (shown_call* slot = find(call, is_free)) return *slot;
    grow();
    return *find(call, is_free);
  }

  /// How many calls were begun. The worker itself asks.
  std::uint64_t count() const {
    std::uint64_t n = 0;
    for (const shown_call& c : calls_) n = std::max(n, c.begun.load(std::memory_order_relaxed));
    return n;
  }

  /// Where a call that was begun and has not ended is shown. Others ask.
  shown_call& of(std::uint64_t call) const { return *slot_of(call); }

  bool begun(std::uint64_t call) const {
    return find(call, [call](const shown_call& c) { return c.begun.load(std::memory_order_acquire) > call; }) !=
           nullptr;
  }
  /// A call that was begun and is shown no more has ended.
  bool taken(std::uint64_t call, std::size_t from) const {
    if (!begun(call)) return false;
    shown_call* slot = slot_of(call);
    return slot == nullptr || slot->taken(from).load(std::memory_order_acquire) > call;
  }

 private:
  using slots = std::vector<shown_call*>;

  // Calls of a steady program are found at once, one after the other in turn.
  template <class Is>
  shown_call* find(std::uint64_t call, Is&& is) const {
    const slots& all = *slots_.load(std::memory_order_acquire);
    for (std::uint64_t i = 0; i < all.size(); ++i)
      if (shown_call* c = all[(call + i) & (all.size() - 1)]; is(*c)) return c;
    return nullptr;
  }
  shown_call* slot_of(std::uint64_t call) const {
    return find(call, [call](const shown_call& c) { return c.begun.load(std::memory_order_acquire) == call + 1; });
  }

  void grow() {
    slots next = lists_.empty() ? slots{} : lists_.back();
    for (std::size_t n = std::max<std::size_t>(1, next.size()); n > 0; --n) {
      next.push_back(&calls_.emplace_back());
      next.back()->lines = std::vector<taken_line>(workers_ / taken_line::size + 1);
    }
    slots_.store(&lists_.emplace_back(std::move(next)), std::memory_order_release);
  }

  std::size_t workers_;
  std::atomic<const slots*> slots_{nullptr};
  std::deque<slots> lists_;  // earlier ones stay: somebody may look at them
  std::deque<shown_call> calls_;
};

/// A worker of an exchange among threads: its calls, and whom they need.
struct exchange_member {
  int rank;
  shown_calls calls;
  std::vector<int> sources;  ///< indices of those whose boxes it takes; the rendezvous guards it, and what follows
  std::vector<int> readers;
  bool fold = false;
  exchange_member(int of, std::size_t workers) : rank(of), calls(workers) {}
};

/// An exchange as the threads of a process share it.
struct shared_exchange {
  std::deque<exchange_member> members;  ///< by index among its workers

  /// Whether all readers have taken what a worker showed in a call. The worker itself asks.
  bool is_read(std::size_t index, std::uint64_t call) const {
    const auto took = [&](int reader) { return members[static_cast<std::size_t>(reader)].calls.taken(call, index); };
    return std::all_of(members[index].readers.begin(), members[index].readers.end(), took);
  }
};

}  // namespace tessera::detail
