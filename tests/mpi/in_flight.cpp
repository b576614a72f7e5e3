#include "tests/support/tensors.hpp"

#include <tessera/comm/mpi_exchange.hpp>

#include "tests/support/flights.hpp"
#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::testing;

// What tests/comm/in_flight.cpp asks of threads, asked of processes.

namespace {

/// Judges on every process what wrong() found on any, over a transport with `most_tags` for exchanges; `size` of them at a time, or all.
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

}  // namespace

TEST_CASE("calls under way together over MPI keep their boxes apart") {
  const auto wrong = [](transport& c) {
    return every_order(c) + every_beginning(c) + same_exchange_again(c) + sums_crosswise(c) + leaves_own(c) + in_turns(c) + many_of_one(c) +
           forgotten_together(c);
  };
  node_heap& heap = node_heap::of_process();
  heap.open();
  judge(wrong);
  judge(wrong, {.most_tags = 1 << 20, .smallest_piece = 16});
  judge(wrong, {.most_tags = 1 << 20, .heap = &heap, .smallest_read = 1});
  judge(wrong, {.most_tags = 1 << 20, .smallest_piece = 16, .heap = &heap, .per_node = 2, .smallest_read = 8});
}

TEST_CASE("exchanges that are more than MPI has tags come and go beside one that stays") {
  judge([](transport& c) { return beside_many(c, 20); }, {.most_tags = 7});
}

TEST_CASE("exchanges that lie bound and are more than MPI has tags are refused on all workers") {
  judge([](transport& c) { return c.size() > 1 ? more_than_room(c) : ""; }, {.most_tags = 7});  // a worker alone needs no tag
}

TEST_CASE("two agreements that have one tag over MPI do not meet without a word") {
  judge([](transport& c) { return another_agreement(c, mpi_transport::agreement_tags); }, {.most_tags = 7}, 2);
}

TEST_CASE("no tag that is free on all workers is an error on all") {
  judge([](transport& c) { return no_room_together(c); }, {.most_tags = 7}, 3);
}
