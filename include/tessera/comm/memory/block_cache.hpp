#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/comm/memory/chunk.hpp>
#include <tessera/comm/memory/memory_use.hpp>

#include <algorithm>
#include <atomic>

namespace tessera::engine {

/// Blocks of memory that are kept when they are given back: what is asked for again has its pages already.
///
/// Any thread takes blocks and gives back those of another. Chunks of pages stand on shelves, of which each thread has
/// one (more than 16 threads share them). Blocks of up to 32 KiB are cut from chunks, a larger one has a chunk of its
/// own. A block goes back to the shelf that it came from, so each thread has its own memory again. Free memory is at
/// most the peak that was in use, and 64 MiB. Beyond that a thread takes an idle chunk of another one; then the chunks
/// that were idle longest are freed.
class block_cache {
 public:
  explicit block_cache(page_source& source) : source_(source) {}
  block_cache(const block_cache&) = delete;
  block_cache& operator=(const block_cache&) = delete;
  ~block_cache() { trim(); }

  /// At least so many bytes, aligned to 64; nullptr for none.
  void* allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    if (bytes > size_class::largest) throw none_left(bytes);
    const auto size = size_class::of(bytes);
    detail::shelf& mine = shelf_of_thread();
    const bool small = detail::chunk::is_shared(size);
    detail::block_header* const block = small ? from_open(mine, size, bytes) : cut_chunk(mine, size, size, bytes).pop();
    const std::size_t now = in_use_.fetch_add(size.bytes(), std::memory_order_relaxed) + size.bytes();
    std::size_t peak = peak_.load(std::memory_order_relaxed);
    while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
    }
    return block + 1;
  }

  /// Gives a block back to the cache that it came from.
  static void deallocate(void* bytes) noexcept {
    if (bytes == nullptr) return;
    detail::block_header* const block = static_cast<detail::block_header*>(bytes) - 1;
    detail::chunk& from = *block->in;
    from.cache->keep(from, block);
  }

  /// From now on it holds no more than so many bytes; what cannot be kept below is refused with a code.
  void limit(std::size_t cap) {
    std::lock_guard lock(mutex_);
    cap_ = cap;
    gather_idle();
    release_down_to(cap);
  }

  /// Gives back what nobody uses.
  void trim() {
    std::lock_guard lock(mutex_);
    gather_idle();
    release_down_to(0);
  }

  /// The peak counts from now on.
  void restart_peak() { peak_ = in_use_.load(); }

  memory_use use() const {
    memory_use now{in_use_, peak_};
    {
      std::lock_guard lock(mutex_);
      now.held = held_;
      now.misses = misses_;
    }
    for (const detail::shelf& s : shelves_) {
      std::lock_guard lock(s.mutex);
      now.hits += s.hits;
      now.moved += s.moved;
    }
    return now;
  }

 private:
  static constexpr std::size_t spare = 64 << 20;

  detail::shelf& shelf_of_thread() {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t number = threads++;
    return shelves_[number % shelves_.size()];
  }

  detail::block_header* from_open(detail::shelf& mine, size_class size, std::size_t wanted) {
    detail::chunk_list& open = mine.of(size);
    std::unique_lock lock(mine.mutex);
    if (open.first != nullptr) {
      ++mine.hits;
    } else {
      lock.unlock();
      detail::chunk& fresh = cut_chunk(mine, detail::shelf::pages, size, wanted);
      lock.lock();
      open.push(fresh);
    }
    detail::chunk& from = *open.first;
    detail::block_header* const block = from.pop();
    if (from.full()) open.remove(from);
    return block;
  }

  // A chunk stays where it is while one of its blocks is in use, so its shelf is known without a lock.
  void keep(detail::chunk& from, detail::block_header* block) noexcept {
    in_use_.fetch_sub(from.blocks.bytes(), std::memory_order_relaxed);
    detail::shelf& home = *from.home;
    std::lock_guard lock(home.mutex);
    if (detail::chunk::is_shared(from.blocks)) {
      detail::chunk_list& open = home.of(from.blocks);
      if (from.full()) open.push(from);
      from.push(block);
      if (from.used > 0 || open.first == open.last) return;
      open.remove(from);
    }
    set_aside(from);
  }

  detail::chunk& cut_chunk(detail::shelf& mine, size_class pages, size_class blocks, std::size_t wanted) {
    detail::chunk* c = nullptr;
    {
      std::lock_guard lock(mine.mutex);
      c = mine.claim_idle(pages);
      if (c != nullptr) ++mine.hits;
    }
    if (c == nullptr) c = &new_or_of_another(mine, pages, wanted);
    c->cut_into(blocks, mine);
    return *c;
  }

  // Called under the lock of its shelf.
  void set_aside(detail::chunk& c) {
    c.since = clock_.fetch_add(1, std::memory_order_relaxed);
    c.home->idle[static_cast<std::size_t>(c.pages.number)].push(c);
  }

  detail::chunk& new_or_of_another(detail::shelf& mine, size_class pages, std::size_t wanted) {
    std::lock_guard lock(mutex_);
    const std::size_t bytes = detail::chunk::bytes_for(pages);
    const std::size_t most = std::min(cap_, 2 * std::max(peak_.load(), in_use_.load() + bytes) + spare);
    if (held_ + bytes > most) {
      gather_idle();
      if (detail::chunk* const c = claim_oldest([&](detail::shelf& s) { return s.idle_like(pages); })) {
        std::lock_guard own(mine.mutex);
        ++mine.hits;
        mine.moved += c->home != &mine;
        return *c;
      }
      release_down_to(most - std::min(bytes, most));
    }
    if (bytes > cap_ || held_ > cap_ - bytes)
      throw error(refusal{code::memory_cap_reached, as_number(wanted), as_number(in_use_), as_number(cap_)});
    std::byte* memory = source_.allocate(bytes);
    if (memory == nullptr) {
      gather_idle();
      release_down_to(0);
      memory = source_.allocate(bytes);
    }
    if (memory == nullptr) throw none_left(wanted);
    held_ += bytes;
    ++misses_;
    auto& made = *new (memory) detail::chunk;
    made.cache = this;
    made.pages = pages;
    return made;
  }

  // What follows is called under the lock of the whole.

  // Sets aside the chunks on shelves of which no block is in use.
  void gather_idle() {
    for (detail::shelf& s : shelves_) {
      std::lock_guard lock(s.mutex);
      for (detail::chunk_list& open : s.open)
        for (detail::chunk *c = open.first, *next = nullptr; c != nullptr; c = next) {
          next = c->next;
          if (c->used == 0) set_aside(*open.remove(*c));
        }
    }
  }

  // Takes the chunk that was idle longest off its shelf, of lists(shelf); null if there is none.
  template <class Lists>
  detail::chunk* claim_oldest(Lists&& lists) {
    while (true) {
      detail::shelf* on = nullptr;
      detail::chunk_list* in = nullptr;
      std::uint64_t since = ~std::uint64_t{0};
      for (detail::shelf& s : shelves_) {
        std::lock_guard lock(s.mutex);
        for (detail::chunk_list& idle : lists(s)) {
          if (idle.last == nullptr || idle.last->since >= since) continue;
          on = &s;
          in = &idle;
          since = idle.last->since;
        }
      }
      if (on == nullptr) return nullptr;
      std::lock_guard lock(on->mutex);
      if (in->last != nullptr) return in->remove(*in->last);  // its thread may have taken it meanwhile
    }
  }

  void release_down_to(std::size_t bytes) {
    while (held_ > bytes) {
      detail::chunk* const c = claim_oldest([](detail::shelf& s) { return std::span(s.idle); });
      if (c == nullptr) return;
      held_ -= c->bytes();
      source_.deallocate(reinterpret_cast<std::byte*>(c), c->bytes());
    }
  }

  static index_t as_number(std::size_t bytes) { return static_cast<index_t>(bytes); }
  error none_left(std::size_t wanted) const {
    return error(refusal{code::out_of_memory, as_number(wanted), as_number(in_use_)});
  }

  page_source& source_;
  std::array<detail::shelf, 16> shelves_;
  std::atomic<std::size_t> in_use_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint64_t> clock_{0};  // chunks that ever became idle
  mutable std::mutex mutex_;
  std::size_t held_ = 0;
  std::size_t cap_ = ~std::size_t{0};
  std::uint64_t misses_ = 0;
};

}  // namespace tessera::engine
