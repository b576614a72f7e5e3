#pragma once

#include <tessera/comm/pages.hpp>
#include <tessera/comm/size_class.hpp>

#include <array>
#include <cstdint>
#include <mutex>
#include <new>

namespace tessera {

class block_cache;

namespace detail {

struct chunk;
struct shelf;

/// What stands before each block.
struct alignas(64) block_header {
  chunk* in = nullptr;
  block_header* next = nullptr;  // of the free ones
};

/// Pages cut into blocks of one size: many small ones, or one large one.
struct alignas(64) chunk {
  block_cache* cache = nullptr;
  shelf* home = nullptr;  // hands out its blocks; a large block has none
  size_class pages;      // what it holds, apart from the page for headers
  size_class blocks;
  std::size_t capacity = 0;
  std::size_t cut = 0;  // blocks that have ever been handed out: pages behind them are untouched
  std::size_t used = 0;
  block_header* free = nullptr;
  std::uint64_t since = 0;  // when it became idle
  chunk* next = nullptr;
  chunk* previous = nullptr;

  static constexpr std::size_t bytes_for(size_class pages) { return pages.bytes() + page_source::page; }
  std::size_t bytes() const { return bytes_for(pages); }
  std::size_t stride() const { return sizeof(block_header) + blocks.bytes(); }
  bool full() const { return used == capacity; }

  void cut_into(size_class size, shelf* on) {
    blocks = size;
    home = on;
    capacity = on == nullptr ? 1 : (bytes() - sizeof(chunk)) / stride();
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

/// Where a thread finds chunks of small blocks that have room, by size.
struct alignas(64) shelf {
  static constexpr size_class largest = size_class::of(32 << 10);
  static constexpr size_class pages = size_class::of(256 << 10);  // of its chunks

  mutable std::mutex mutex;
  std::array<chunk_list, largest.number + 1> open{};
  std::uint64_t hits = 0;

  chunk_list& of(size_class size) { return open[static_cast<std::size_t>(size.number)]; }
};

}  // namespace detail

}  // namespace tessera
