#pragma once

#include <tessera/comm/memory/pages.hpp>
#include <tessera/comm/memory/size_class.hpp>
#include <tessera/meta/namespaces.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>

namespace tessera {

namespace engine {

class block_cache;

}  // namespace engine

namespace detail {

struct chunk;
struct shelf;

/// The header before each block.
struct alignas(64) block_header {
  chunk* in = nullptr;
  block_header* next = nullptr;  // of the free ones
};

/// Pages cut into blocks of one size: many small ones, or one large one.
struct alignas(64) chunk {
  block_cache* cache = nullptr;
  shelf* home = nullptr;  // of the thread that took it last
  size_class pages;       // what it holds, apart from the page for headers
  size_class blocks;
  std::size_t capacity = 0;
  std::size_t cut = 0;  // blocks that have ever been handed out: pages behind them are untouched
  std::size_t used = 0;
  block_header* free = nullptr;
  std::uint64_t since = 0;  // when it became idle
  chunk* next = nullptr;
  chunk* previous = nullptr;

  static constexpr size_class largest_small = size_class::of(32 << 10);
  /// Whether blocks of a size share a chunk.
  static constexpr bool is_shared(size_class blocks) { return blocks.number <= largest_small.number; }
  static constexpr std::size_t bytes_for(size_class pages) { return pages.bytes() + page_source::page; }
  std::size_t bytes() const { return bytes_for(pages); }
  std::size_t stride() const { return sizeof(block_header) + blocks.bytes(); }
  bool full() const { return used == capacity; }

  void cut_into(size_class size, shelf& on) {
    blocks = size;
    home = &on;
    capacity = is_shared(size) ? (bytes() - sizeof(chunk)) / stride() : 1;
    cut = used = 0;
    free = nullptr;
  }
  block_header* pop() {
    ++used;
    if (block_header* const b = free) {
      free = b->next;
      return b;
    }
    return new (reinterpret_cast<std::byte*>(this + 1) + cut++ * stride()) block_header{this};
  }
  void push(block_header* b) {
    --used;
    b->next = free;
    free = b;
  }
};
static_assert(sizeof(chunk) + sizeof(block_header) <= page_source::page);

/// Chunks, the one that came last in front.
struct chunk_list {
  chunk* first = nullptr;
  chunk* last = nullptr;

  void push(chunk& c) {
    c.previous = nullptr;
    c.next = first;
    (first == nullptr ? last : first->previous) = &c;
    first = &c;
  }
  chunk* remove(chunk& c) {
    (c.previous == nullptr ? first : c.previous->next) = c.next;
    (c.next == nullptr ? last : c.next->previous) = c.previous;
    return &c;
  }
};

/// A thread's shelf: chunks of small blocks that have room, and idle chunks by size.
///
/// A core finds in its caches what its own thread wrote last, and writes slowly into what lies in those of another
/// core. So a chunk that is idle waits for the thread that had it.
struct alignas(64) shelf {
  static constexpr size_class pages = size_class::of(256 << 10);  // of chunks of small blocks
  static constexpr int alike = 4;                                 // classes: less than twice what is asked for

  mutable std::mutex mutex;
  std::array<chunk_list, chunk::largest_small.number + 1> open{};
  std::array<chunk_list, size_class::count> idle{};
  std::uint64_t hits = 0;
  std::uint64_t moved = 0;

  chunk_list& of(size_class size) { return open[static_cast<std::size_t>(size.number)]; }
  std::span<chunk_list> idle_like(size_class size) {
    const auto first = static_cast<std::size_t>(size.number);
    return std::span(idle).subspan(first, std::min<std::size_t>(alike, idle.size() - first));
  }

  /// The chunk that became idle last, of those that will do.
  chunk* claim_idle(size_class size) {
    for (chunk_list& chunks : idle_like(size))
      if (chunks.first != nullptr) return chunks.remove(*chunks.first);
    return nullptr;
  }
};

}  // namespace detail

}  // namespace tessera
