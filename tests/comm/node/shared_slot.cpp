#include "tests/support/catch.hpp"

#include <tessera/comm/node/shared_slot.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

using namespace tessera;
using namespace tessera::engine;
using tessera::detail::peer_slot;
using tessera::detail::shared_slot;
using tessera::detail::shown_tensor;

namespace {

constexpr std::size_t workers = 9;  // more than a line has room for

/// A matrix of doubles, by columns, in a heap.
struct matrix {
  shared_heap& heap;
  std::unique_ptr<void, void (*)(void*)> memory{heap.copies().allocate(6 * sizeof(double)), &block_cache::deallocate};

  explicit matrix(shared_heap& in, double first) : heap(in) { std::iota(begin(), begin() + 6, first); }
  double* begin() { return static_cast<double*>(memory.get()); }
  region where() {
    region r{reinterpret_cast<std::byte*>(begin()), element::float64, {}, {}};
    for (const index_t n : {2, 3}) r.extents.push(n);
    for (const index_t s : {1, 2}) r.strides.push(s);
    return r;
  }
};

/// Row 1, column 2 of what a peer shows of a call; −1 if it shows none.
double read(const peer_slot& of, std::uint64_t call) {
  const shown_tensor* const shown = of.find(call);
  if (shown == nullptr) return -1;
  const strided at = of.where(*shown, shown->begun);
  return reinterpret_cast<const double*>(at.data)[at.strides[0] + 2 * at.strides[1]];
}

const auto never = [](const shared_slot::entry&) { return false; };
const auto unused = [](const shared_slot::entry& p) { return !p.used; };

void copy_all(const region& from, const region& to) {
  copy_rows({from.extents, {from.strides.begin(), to.strides.begin()}}, sizeof(double), from.data, to.data);
}

}  // namespace

TEST_CASE("a slot shows as many calls as are under way, and each worker's count of what was taken", "[runtime]") {
  shared_heap heap;
  heap.open(std::size_t{1} << 24);
  const std::uint64_t number = shared_slot::offer(heap, workers);
  REQUIRE(number != 0);
  const peer_slot seen(heap.at(0), number, workers);
  CHECK((seen.find(0) == nullptr && !seen.took(8, 0)));  // offered, and not bound yet
  shared_slot mine(heap, number, workers);
  matrix a(heap, 10), b(heap, 20), c(heap, 30);
  mine.show(mine.fresh(unused), 0, a.where());
  mine.show(mine.fresh(unused), 1, b.where());
  mine.show(mine.fresh(never), 2, c.where());
  CHECK((read(seen, 0) == 15 && read(seen, 1) == 25 && read(seen, 2) == 35 && read(seen, 3) == -1));
  CHECK(mine.entries().size() == 3);
  shared_slot::entry& again = mine.fresh([](const shared_slot::entry& p) { return p.call == 1; });
  mine.show(again, 3, a.where());
  CHECK((mine.entries().size() == 3 && read(seen, 1) == -1 && read(seen, 3) == 15));
  mine.hide(again);
  CHECK((read(seen, 3) == -1 && read(seen, 2) == 35));
  for (const std::size_t from : {std::size_t{0}, std::size_t{6}, std::size_t{7}, std::size_t{8}})
    mine.say_taken(from, from + 1);
  for (const std::size_t from : {std::size_t{0}, std::size_t{6}, std::size_t{7}, std::size_t{8}})
    CHECK((seen.took(from, from) && !seen.took(from, from + 1)));
  CHECK(!seen.took(1, 0));
}

TEST_CASE("a reader sees that a copy is shown instead of the tensor that it read", "[runtime]") {
  shared_heap heap;
  heap.open(std::size_t{1} << 24);
  const std::uint64_t number = shared_slot::offer(heap, workers);
  shared_slot mine(heap, number, workers);
  const peer_slot seen(heap.at(0), number, workers);
  matrix a(heap, 10);
  shared_slot::entry& p = mine.fresh(unused);
  mine.show(p, 4, a.where());
  const shown_tensor* const shown = seen.find(4);
  REQUIRE(shown != nullptr);
  const std::uint64_t before = shown->begun;
  mine.show_copy(p, 4, a.where(), [&](const region& to) { copy_all(a.where(), to); });
  std::fill_n(a.begin(), 6, -7);
  CHECK((shown->begun != before && seen.find(4) == shown && read(seen, 4) == 15));
}

TEST_CASE("who looks at a slot that is gone finds another number in its place, and that all was taken", "[runtime]") {
  shared_heap heap;
  heap.open(std::size_t{1} << 24);
  matrix a(heap, 10);
  const std::uint64_t first = shared_slot::offer(heap, workers);
  const peer_slot old(heap.at(0), first, workers);
  {
    shared_slot mine(heap, first, workers);
    mine.show(mine.fresh(never), 0, a.where());  // on lines of its own
    mine.say_taken(2, 1);
    CHECK(read(old, 0) == 15);
  }
  CHECK((read(old, 0) == -1 && old.took(2, 0) && old.took(2, 1)));
  const std::uint64_t second = shared_slot::offer(heap, workers);
  shared_slot mine(heap, second, workers);
  mine.show(mine.fresh(unused), 0, a.where());
  const peer_slot now(heap.at(0), second, workers);
  CHECK((second != first && second >> 24 == first >> 24));  // the same lines
  CHECK((read(old, 0) == -1 && read(now, 0) == 15 && old.took(2, 1) && !now.took(2, 0)));
}

TEST_CASE("a heap that is full offers no slot", "[runtime]") {
  shared_heap heap;
  heap.open(std::size_t{1} << 20);
  std::vector<std::uint64_t> all;
  while (all.size() < 10'000 && (all.empty() || all.back() != 0)) all.push_back(shared_slot::offer(heap, workers));
  CHECK((all.size() > 100 && all.back() == 0));
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}
