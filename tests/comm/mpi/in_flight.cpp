#include "tests/support/tensors.hpp"

#include <tessera/comm/mpi/exchange.hpp>

#include "tests/support/everywhere.hpp"
#include "tests/support/flights.hpp"

#include <thread>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What tests/comm/exchange/in_flight.cpp asks of threads, asked of processes.

namespace {

/// Judges on every process what wrong() found on any, over a transport with `most_tags` for exchanges; `size` of them
/// at a time, or all.
template <class Wrong>
void judge(Wrong&& wrong, mpi_options options = {.most_tags = 1 << 20}, int size = 0) {
  options.most_tags += mpi_transport::agreement_tags;
  const boost::mpi::communicator ranks;
  const boost::mpi::communicator some = size == 0 ? ranks : ranks.split(ranks.rank() / size);
  std::string found;
  if (size == 0 || some.size() == size) found = wrong(*std::make_shared<mpi_transport>(some, options));
  const bool right = everywhere(ranks, found.empty());
  INFO(found);
  CHECK(right);
}

region numbers_of(const at::Tensor& x) { return tessera::engine::region_of(x, element::float64); }

// The first worker's calls have ended, and its tensor is another, before the last one begins the first of them.
std::string three_ahead(transport& c) {
  const boost::mpi::communicator ranks;
  std::string wrong;
  const bool sends = c.rank() == 0, takes = c.rank() == c.size() - 1 && !sends;
  const auto e = bind_exchange(c, sent(c.size(), 100, 0, c.size() - 1), element::float64);
  const at::Tensor x = at::zeros({e->input_extents()[0]}, at::kDouble),
                   y = at::zeros({e->output_extents()[0]}, at::kDouble);
  const auto call = [&] { e->start(numbers_of(x), numbers_of(y)).finish(); };
  for (int i = 0; i < 3 && sends; ++i) {
    x.fill_(i);
    call();
    x.fill_(-1);
  }
  ranks.barrier();
  for (int i = 0; i < 3 && takes; ++i) {
    call();
    if (!at::equal(y, at::full_like(y, i))) wrong += fmt::format("call {} brought {}; ", i, y[0].item<double>());
  }
  return wrong;
}

// A Move to all and a Fold of all, of a tensor that is another as soon as a call has ended.
std::string late_at_times(transport& c) {
  std::string wrong;
  dice d{static_cast<std::uint64_t>(c.rank())};
  for (const index_t n : {index_t{7}, index_t{1000}})
    for (const step& s : {testing::gathered(c.size(), n), summed(c.size(), n)}) {
      const auto e = bind_exchange(c, s, element::float64);
      const at::Tensor x = at::zeros({e->input_extents()[0]}, at::kDouble),
                       y = at::zeros({e->output_extents()[0]}, at::kDouble);
      for (int i = 0; i < 400; ++i) {
        if (d.once_in(20)) std::this_thread::sleep_for(std::chrono::microseconds(d.roll(0, 100)));
        x.fill_(i);
        e->start(numbers_of(x), numbers_of(y)).finish();
        x.fill_(-1);
        const double wanted = s.kind == map::fold ? i * c.size() : i;
        if (wrong.empty() && !at::equal(y, at::full_like(y, wanted)))
          wrong += fmt::format("call {} of {} numbers brought {}; ", i, n, y.max().item<double>());
      }
    }
  return wrong;
}

// Two sums of four rounds under way on the first worker, begun while others end; whoever gives terms comes late.
std::string late_rounds(transport& c) {
  std::string wrong;
  dice d{static_cast<std::uint64_t>(c.rank())};
  flight ends(c, summed_on(c.size(), 8, 0), 1), begins(ends, 1);
  flight *first = &ends, *second = &begins;
  const auto start = [&](flight& f, int salt) {
    if (c.rank() != 0) std::this_thread::sleep_for(std::chrono::microseconds(d.roll(0, 200)));
    f.fill(salt);
    f.start();
  };
  start(*first, 1);
  for (int salt = 2; salt < 500; ++salt) {
    start(*second, salt);
    first->finish();
    wrong += first->right();
    std::swap(first, second);
  }
  first->finish();
  return wrong + first->right();
}

}  // namespace

TEST_CASE("calls under way together over MPI keep their boxes apart", "[runtime]") {
  const auto wrong = [](transport& c) { return under_way_together(c); };
  shared_heap& heap = shared_heap::of_process();
  heap.open();
  judge(wrong);
  judge(wrong, {.most_tags = 1 << 20, .smallest_piece = 16});
  judge(wrong, {.most_tags = 1 << 20, .heap = &heap});
  judge(wrong, {.most_tags = 1 << 20, .smallest_piece = 16, .heap = &heap, .per_node = 2});
}

TEST_CASE(
    "calls of small tensors end up to three ahead of their readers, who find what was sent though it is written over",
    "[runtime]") {
  const caching_allocator::service memory(launch_options{});
  judge(three_ahead, {.most_tags = 1 << 20, .heap = &shared_heap::of_process()});
  judge(three_ahead);
}

TEST_CASE("readers that come late at times find what was sent though it is written over", "[runtime]") {
  const caching_allocator::service memory(launch_options{});
  judge(late_at_times, {.most_tags = 1 << 20, .heap = &shared_heap::of_process()});
  judge(late_at_times, {.most_tags = 1 << 20, .heap = &shared_heap::of_process(), .per_node = 2});
}

TEST_CASE("a sum of rounds that ends leaves the one that goes on its boxes", "[runtime]") {
  const caching_allocator::service memory(launch_options{});
  judge(late_rounds, {.most_tags = 1 << 20, .smallest_piece = 16, .heap = &shared_heap::of_process()});
  judge(late_rounds, {.most_tags = 1 << 20, .smallest_piece = 16, .heap = &shared_heap::of_process(), .per_node = 2});
}

TEST_CASE("exchanges that are more than MPI has tags come and go beside one that stays", "[runtime]") {
  judge([](transport& c) { return beside_many(c, 20); }, {.most_tags = 7});
}

TEST_CASE("exchanges that lie bound and are more than MPI has tags are refused on all workers", "[refusal]") {
  // a worker alone needs no tag
  judge([](transport& c) { return c.size() > 1 ? more_than_room(c) : ""; }, {.most_tags = 7});
}

TEST_CASE("two agreements that have one tag over MPI do not meet without a word", "[refusal]") {
  judge([](transport& c) { return another_agreement(c, mpi_transport::agreement_tags); }, {.most_tags = 7}, 2);
}

TEST_CASE("no tag that is free on all workers is an error on all", "[refusal]") {
  judge([](transport& c) { return no_room_together(c); }, {.most_tags = 7}, 3);
}
