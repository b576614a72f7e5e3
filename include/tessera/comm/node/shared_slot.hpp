#pragma once

#include <tessera/comm/box/matching_boxes.hpp>
#include <tessera/comm/memory/shared_heap.hpp>

#include <atomic>
#include <deque>
#include <memory>
#include <new>
#include <utility>

namespace tessera::detail {

/// Where a tensor lies in the heap of its worker.
struct heap_location {
  std::uint64_t offset = 0;
  index_t strides[max_dimensions]{};
};

/// A call as a worker shows it. Readers of a tensor of four dimensions look at one cache line.
struct alignas(64) shown_tensor {
  std::atomic<std::uint64_t> slot{0};  ///< the number of the slot that it stands on
  /// twice the call's number and two: the tensor may be read; one more: its copy instead
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> next{0};  ///< where in the heap another call is shown
  heap_location tensor;
  heap_location copy;
};

/// How many calls a worker took from each of seven others.
struct alignas(64) taken_calls {
  static constexpr std::size_t size = 7;
  std::atomic<std::uint64_t> slot{0};
  std::atomic<std::uint64_t> from[size]{};
};

/// The state that a worker shows of its calls of an exchange, and how many calls of the others it took. The worker
/// alone writes it; the others read.
///
/// The slot's number gives its place and its generation there: a reader of a slot that is gone finds another number.
class shared_slot {
 public:
  struct entry {
    shown_tensor* shown;
    std::unique_ptr<void, void (*)(void*)> memory{nullptr, &block_cache::deallocate};  ///< of a copy
    std::uint64_t call = 0;
    bool used = false;  ///< by a call that was begun,
    bool busy = false;  ///< and has not ended
    bool copied = false;
  };

  /// Makes one ready, of which the others are told the number; 0 if the heap is full.
  static std::uint64_t offer(shared_heap& heap, std::size_t workers) {
    const std::size_t lines = lines_for(workers);
    std::byte* const at = heap.lines().allocate(lines + lines_of_entry);
    if (at == nullptr) return 0;
    const std::uint64_t number =
        heap.offset_of(at) / line << count_bits | heap.lines().allocations() % (std::uint64_t{1} << count_bits);
    for (std::size_t i = 0; i < lines; ++i) new (at + i * line) taken_calls;
    new (at + lines * line) shown_tensor;
    for (std::size_t i = 0; i < lines; ++i) taken_at(at, i).slot.store(number, std::memory_order_release);
    shown_at(at, lines).slot.store(number, std::memory_order_release);
    return number;
  }

  shared_slot(shared_heap& heap, std::uint64_t number, std::size_t workers)
      : heap_(heap), number_(number), lines_(lines_for(workers)), begin_(heap.at(offset_of(number))) {
    entries_.push_back({&shown_at(begin_, lines_)});
  }
  shared_slot(const shared_slot&) = delete;
  shared_slot& operator=(const shared_slot&) = delete;
  ~shared_slot() {
    for (std::size_t i = 0; i < lines_; ++i) taken_at(begin_, i).slot.store(0, std::memory_order_release);
    for (const entry& p : entries_) p.shown->slot.store(0, std::memory_order_release);
    heap_.lines().deallocate(begin_, lines_ + lines_of_entry);
    for (std::size_t i = 1; i < entries_.size(); ++i)
      heap_.lines().deallocate(reinterpret_cast<std::byte*>(entries_[i].shown), lines_of_entry);
  }

  /// An entry for a call, of those that is_free(entry) says; those of a steady program are found at once.
  template <class Free>
  entry& fresh(Free&& is_free) {
    for (entry& p : entries_)
      if (is_free(p)) return p;
    std::byte* const at = heap_.lines().allocate(lines_of_entry);
    if (at == nullptr) throw std::bad_alloc();
    auto* const shown = new (at) shown_tensor;
    shown->slot.store(number_, std::memory_order_relaxed);
    entries_.back().shown->next.store(heap_.offset_of(at), std::memory_order_release);
    return entries_.emplace_back(entry{shown});
  }
  std::deque<entry>& entries() { return entries_; }

  /// Shows the tensor of a call, which lies in the heap.
  void show(entry& p, std::uint64_t call, const region& tensor) {
    write(p.shown->tensor, tensor);
    p.copied = false;
    begin(p, call);
  }
  /// Shows a copy of what others read of it, instead of what was shown; fill(where) copies.
  template <class Fill>
  void show_copy(entry& p, std::uint64_t call, const region& tensor, Fill&& fill) {
    if (!p.memory) p.memory.reset(heap_.copies().allocate(static_cast<std::size_t>(tensor.bytes())));
    const region copy = tensor.packed_at(static_cast<std::byte*>(p.memory.get()));
    fill(copy);
    write(p.shown->copy, copy);
    p.copied = true;
    begin(p, call);
    std::atomic_thread_fence(std::memory_order_release);  // what is written to the tensor now comes behind it
  }
  /// Nobody who has not read the call does so any more.
  void hide(entry& p) {
    p.shown->begun.store(0, std::memory_order_release);
    p.used = false;
    std::atomic_thread_fence(std::memory_order_release);
  }

  /// So many calls of a worker were taken, in their order.
  void say_taken(std::size_t from, std::uint64_t calls) {
    taken_at(begin_, from / taken_calls::size).from[from % taken_calls::size].store(calls, std::memory_order_release);
  }

 private:
  friend class peer_slot;

  static constexpr std::size_t line = line_allocator::line_bytes;
  static constexpr std::size_t lines_of_entry = sizeof(shown_tensor) / line;
  static constexpr int count_bits = 24;

  static std::size_t lines_for(std::size_t workers) { return (workers + taken_calls::size - 1) / taken_calls::size; }
  static std::uint64_t offset_of(std::uint64_t number) { return (number >> count_bits) * line; }
  static taken_calls& taken_at(std::byte* at, std::size_t i) {
    return *std::launder(reinterpret_cast<taken_calls*>(at + i * line));
  }
  static shown_tensor& shown_at(std::byte* at, std::size_t i) {
    return *std::launder(reinterpret_cast<shown_tensor*>(at + i * line));
  }

  void write(heap_location& where, const region& tensor) {
    where.offset = heap_.offset_of(tensor.data);
    std::copy(tensor.strides.begin(), tensor.strides.end(), where.strides);
  }
  static void begin(entry& p, std::uint64_t call) {
    p.call = call;
    p.used = true;
    p.shown->begun.store(2 * call + 2 + (p.copied ? 1 : 0), std::memory_order_release);
  }

  shared_heap& heap_;
  std::uint64_t number_;
  std::size_t lines_;
  std::byte* begin_;
  std::deque<entry> entries_;
};

/// The slot of another worker.
class peer_slot {
 public:
  peer_slot(std::byte* heap, std::uint64_t number, std::size_t workers)
      : heap_(heap),
        number_(number),
        begin_(heap + shared_slot::offset_of(number)),
        lines_(shared_slot::lines_for(workers)) {}

  /// Where a call is shown; nullptr before it is.
  const shown_tensor* find(std::uint64_t call) const {
    for (std::byte* at = begin_ + lines_ * shared_slot::line; at != heap_;) {
      const shown_tensor& shown = shared_slot::shown_at(at, 0);
      const std::uint64_t begun = shown.begun.load(std::memory_order_acquire);
      if (shown.slot.load(std::memory_order_relaxed) != number_) return nullptr;
      if (begun / 2 == call + 1) return &shown;
      at = heap_ + shown.next.load(std::memory_order_acquire);
    }
    return nullptr;
  }
  /// The shown memory, as `begun` says: the tensor, or its copy.
  strided where(const shown_tensor& shown, std::uint64_t begun) const {
    const heap_location& at = begun % 2 == 0 ? shown.tensor : shown.copy;
    return {heap_ + at.offset, at.strides};
  }

  /// Whether the worker has taken a call of the one with this index, or is done with all that it will ever take.
  bool took(std::size_t from, std::uint64_t call) const {
    const taken_calls& t = shared_slot::taken_at(begin_, from / taken_calls::size);
    return t.from[from % taken_calls::size].load(std::memory_order_acquire) > call ||
           t.slot.load(std::memory_order_acquire) != number_;
  }

 private:
  std::byte* heap_;
  std::uint64_t number_;
  std::byte* begin_;
  std::size_t lines_;
};

}  // namespace tessera::detail
