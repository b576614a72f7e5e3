#include "tests/support/catch.hpp"

#include <tessera/comm/memory/shared_heap.hpp>

#include <fcntl.h>

#include <array>
#include <barrier>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

using namespace tessera;
using namespace tessera::engine;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

/// Pages of which as many are there as somebody said; it knows what it gave.
struct counted_pages final : page_source {
  private_pages real;
  std::map<std::byte*, std::size_t> given;
  std::size_t total = 0;
  std::size_t most = ~std::size_t{0};

  std::byte* allocate(std::size_t bytes) override {
    if (total + bytes > most) return nullptr;
    total += bytes;
    std::byte* const pages = real.allocate(bytes);
    given[pages] = bytes;
    return pages;
  }
  void deallocate(std::byte* pages, std::size_t bytes) override {
    if (given.at(pages) != bytes) throw std::logic_error("another number of pages comes back");
    given.erase(pages);
    total -= bytes;
    real.deallocate(pages, bytes);
  }
};

template <class F>
std::string code_of(F&& f) {
  try {
    f();
  } catch (const error& e) {
    return e.code();
  }
  return "none";
}

/// A block and the byte that fills it.
struct filled {
  unsigned char* at;
  std::size_t bytes;
  unsigned char with;

  filled(block_cache& cache, std::size_t n, std::size_t number)
      : at(static_cast<unsigned char*>(cache.allocate(n))), bytes(n), with(static_cast<unsigned char>(number)) {
    std::memset(at, with, n);
  }
  bool intact() const {
    for (std::size_t i = 0; i < bytes; ++i)
      if (at[i] != with) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("sizes of blocks go up in quarters, and each is its own class", "[law]") {
  std::size_t before = 0;
  for (int i = 0; i < size_class::count; ++i) {
    const std::size_t bytes = size_class{i}.bytes();
    CHECK(size_class::of(bytes).number == i);
    CHECK(size_class::of(before + 1).number == i);
    CHECK(bytes % 64 == 0);
    if (i >= 4) CHECK(bytes - before <= before / 4);
    before = bytes;
  }
  CHECK(before == size_class::largest);
}

TEST_CASE("blocks in use are apart, aligned, and go back to the source", "[runtime]") {
  counted_pages pages;
  {
    block_cache cache(pages);
    CHECK(cache.allocate(0) == nullptr);
    block_cache::deallocate(nullptr);
    std::vector<filled> held;
    std::size_t number = 0;
    for (int round = 0; round < 3; ++round) {
      for (std::size_t n = 1; n < 3 * MiB; n += n / 3 + 1)
        for (int copy = 0; copy < 5; ++copy) held.emplace_back(cache, n, number++);
      bool well = true;
      for (const filled& b : held) well = well && b.intact() && reinterpret_cast<std::uintptr_t>(b.at) % 64 == 0;
      CHECK(well);
      std::vector<filled> left;  // every other one goes
      for (std::size_t i = 0; i < held.size(); ++i)
        if (i % 2 == 0) block_cache::deallocate(held[i].at);
        else left.push_back(held[i]);
      held = left;
    }
    CHECK(cache.use().held == pages.total);
    CHECK(cache.use().in_use <= pages.total);
    for (const filled& b : held) block_cache::deallocate(b.at);
    CHECK(cache.use().in_use == 0);
    CHECK(cache.use().held > 0);
    cache.trim();
    CHECK(cache.use().held == 0);
    block_cache::deallocate(cache.allocate(5));
  }
  CHECK(pages.given.empty());
}

TEST_CASE("what is asked for again is there, and a little larger will do", "[runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  void* const first = cache.allocate(10 * MiB);
  block_cache::deallocate(first);
  CHECK(cache.allocate(10 * MiB) == first);
  block_cache::deallocate(first);
  CHECK(cache.allocate(6 * MiB) == first);
  CHECK(cache.use().in_use == 6 * MiB);
  CHECK(cache.use().peak == 10 * MiB);
  block_cache::deallocate(first);
  void* const small = cache.allocate(5 * MiB);
  CHECK(small != first);  // it would be twice as large
  CHECK(cache.use().hits == 2);
  CHECK(cache.use().misses == 2);
  block_cache::deallocate(small);
  cache.restart_peak();
  CHECK(cache.use().peak == 0);
}

TEST_CASE("small blocks of one size share pages, and those of another size take them over", "[runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  const auto take_and_give = [&](std::size_t bytes) {
    std::vector<filled> all;
    for (std::size_t i = 0; i < 3000; ++i) all.emplace_back(cache, bytes, i);
    CHECK(std::all_of(all.begin(), all.end(), [](const filled& b) { return b.intact(); }));
    for (const filled& b : all) block_cache::deallocate(b.at);
  };
  take_and_give(1000);
  const std::size_t once = pages.total;
  CHECK(once < 4 * MiB);
  for (std::size_t bytes = 64; bytes <= KiB; bytes *= 2) take_and_give(bytes);
  CHECK(pages.total <= once + 5 * 300 * KiB);  // a chunk of each size stays on the shelf
}

TEST_CASE("what lies free stays in proportion to what was in use", "[runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  std::size_t most = 0;
  std::size_t all = 0;
  for (std::size_t n = MiB; n <= 128 * MiB; n += n / 4) {  // each too large for what is there, one at a time
    block_cache::deallocate(cache.allocate(n));
    most = std::max(most, pages.total);
    all += n;
  }
  CHECK(all > 4 * 128 * MiB);
  CHECK(cache.use().peak <= 128 * MiB);
  CHECK(most <= 2 * 129 * MiB + 64 * MiB);
}

TEST_CASE("threads that take and give back in turns each have their own memory again", "[runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  for (const std::size_t bytes : {100 * KiB, MiB, 10 * MiB}) {
    std::barrier together(2);
    std::array<std::set<void*>, 2> had;
    const auto work = [&](std::size_t me) {
      for (std::size_t turn = 0; turn < 20; ++turn) {
        if (turn % 2 == me) {
          void* const block = cache.allocate(bytes);
          had[me].insert(block);
          block_cache::deallocate(block);
        }
        together.arrive_and_wait();
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    CHECK(had[0].size() == 1);
    CHECK(had[1].size() == 1);
    CHECK(had[0] != had[1]);
  }
  CHECK(cache.use().moved == 0);
}

TEST_CASE(
    "a block goes back to the thread that took it, whoever frees it, and a thread takes another's where there is no "
    "room for more",
    "[runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  const auto elsewhere = [](auto&& f) { std::thread(f).join(); };
  void* const first = cache.allocate(100 * MiB);
  elsewhere([&] { block_cache::deallocate(first); });
  CHECK(cache.allocate(100 * MiB) == first);
  block_cache::deallocate(first);
  elsewhere([&] { block_cache::deallocate(cache.allocate(100 * MiB)); });
  CHECK(cache.use().misses == 2);
  CHECK(cache.use().moved == 0);
  elsewhere([&] {  // what is held is twice the peak: a third one would be too much
    void* const moved = cache.allocate(100 * MiB);
    CHECK(moved == first);  // which was idle longest
    block_cache::deallocate(moved);
  });
  CHECK(cache.use().misses == 2);
  CHECK(cache.use().moved == 1);
  cache.limit(150 * MiB);
  block_cache::deallocate(cache.allocate(100 * MiB));
  CHECK(cache.use().misses == 2);
  CHECK(pages.total <= 150 * MiB);
}

TEST_CASE("a cap is kept, free blocks go first, and a source without pages is told", "[refusal][runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  cache.limit(21 * MiB);
  block_cache::deallocate(cache.allocate(12 * MiB));
  void* const other = cache.allocate(18 * MiB);  // the 12 MiB had to go
  CHECK(pages.total <= 21 * MiB);
  CHECK(code_of([&] { cache.allocate(4 * MiB); }) == "tessera.memory.cap");
  CHECK(code_of([&] { cache.allocate(~std::size_t{0} >> 1); }) == "tessera.memory.full");
  CHECK(cache.use().in_use == size_class::of(18 * MiB).bytes());
  cache.limit(64 * MiB);
  void* const more = cache.allocate(4 * MiB);
  block_cache::deallocate(other);
  block_cache::deallocate(more);
  pages.most = 30 * MiB;
  void* const last = cache.allocate(24 * MiB);  // after everything else went back
  CHECK(code_of([&] { cache.allocate(24 * MiB); }) == "tessera.memory.full");
  block_cache::deallocate(last);
  cache.limit(1);
  CHECK(pages.total == 0);
}

TEST_CASE("what lies in a heap is seen through its file, and nothing of what was given back", "[runtime]") {
  shared_heap heap;
  CHECK(!heap.is_open());
  heap.open(4 * MiB);
  REQUIRE(heap.is_open());
  const shared_heap::card card = heap.address();
  const int file =
      ::open(("/proc/" + std::to_string(card.process) + "/fd/" + std::to_string(card.file)).c_str(), O_RDONLY);
  const auto* const seen = static_cast<const char*>(mmap(nullptr, card.bytes, PROT_READ, MAP_SHARED, file, 0));
  ::close(file);
  REQUIRE(static_cast<const void*>(seen) != MAP_FAILED);
  CHECK(std::memcmp(seen, &card.mark, sizeof card.mark) == 0);
  std::byte* const first = heap.allocate(MiB);
  std::byte* const second = heap.allocate(MiB);
  std::byte* const third = heap.allocate(MiB);
  CHECK(heap.allocate(MiB) == nullptr);  // the first page is the mark's
  CHECK(heap.holds(third));
  CHECK(!heap.holds(reinterpret_cast<const std::byte*>(&heap)));
  std::memset(second, 7, MiB);
  CHECK(seen[heap.offset_of(second) + MiB - 1] == 7);
  heap.deallocate(second, MiB);
  CHECK(seen[heap.offset_of(second) + MiB - 1] == 0);
  heap.deallocate(first, MiB);
  heap.deallocate(third, MiB);  // three that are one again
  std::byte* const all = heap.allocate(4 * MiB - page_source::page);
  CHECK(all == first);
  heap.deallocate(all, 4 * MiB - page_source::page);
  munmap(const_cast<char*>(seen), card.bytes);
}

TEST_CASE("a heap that the system has no room for says what refused", "[refusal]") {
  shared_heap heap;
  heap.open(std::size_t{1} << 50);
  CHECK(!heap.is_open());
  CHECK(heap.why().find(": ") != std::string::npos);
  heap.open(MiB);
  CHECK(heap.is_open());
  CHECK(heap.why().empty());
}

TEST_CASE("threads give back one another's blocks", "[runtime]") {
  counted_pages pages;
  block_cache cache(pages);
  std::mutex mutex;
  std::vector<filled> table;  // whoever comes puts blocks on it and takes others away
  std::atomic<bool> well{true};
  const auto work = [&](std::size_t me) {
    std::size_t roll = me;
    for (int i = 0; i < 3000; ++i) {
      roll = roll * 6364136223846793005u + 1442695040888963407u;
      const std::size_t bytes = (roll >> 40) % 50 == 0 ? 100 * KiB : 1 + (roll >> 40) % 2000;
      const filled mine(cache, bytes, me + static_cast<std::size_t>(i));
      std::vector<filled> others;
      {
        std::lock_guard lock(mutex);
        table.push_back(mine);
        for (int k = 0; k < 2 && table.size() > 40; ++k) {
          std::swap(table[(roll >> 20) % table.size()], table.back());
          others.push_back(table.back());
          table.pop_back();
        }
      }
      for (const filled& b : others) {
        if (!b.intact()) well = false;
        block_cache::deallocate(b.at);
      }
      if (i % 500 == 0) cache.trim();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) threads.emplace_back(work, t);
  for (auto& t : threads) t.join();
  for (const filled& b : table) block_cache::deallocate(b.at);
  CHECK(well);
  const memory_use now = cache.use();
  CHECK(now.in_use == 0);
  CHECK(now.hits + now.misses == 4 * 3000);
  cache.trim();
  CHECK(pages.given.empty());
}
