#include "tests/support/tensors.hpp"

#include "tests/support/flights.hpp"
#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::testing;

// What tests/comm/in_flight.cpp asks of threads, asked of processes.

TEST_CASE("calls under way together over MPI keep their boxes apart") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  std::string wrong = every_order(*carrier) + every_beginning(*carrier) + same_exchange_again(*carrier);
  wrong += many_of_one(*carrier) + forgotten_together(*carrier);
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}

TEST_CASE("exchanges that are more than MPI has tags come and go beside one that stays") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks, mpi_transport::agreement_tags + 7);
  const std::string wrong = beside_many(*carrier, 20);
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}

TEST_CASE("exchanges that lie bound and are more than MPI has tags are refused on all workers") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks, mpi_transport::agreement_tags + 7);
  const std::string wrong = ranks.size() > 1 ? more_than_room(*carrier) : "";  // a worker alone needs no tag
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}

TEST_CASE("two agreements that have one tag over MPI do not meet without a word") {
  const boost::mpi::communicator ranks;
  const boost::mpi::communicator pair = ranks.split(ranks.rank() / 2);
  std::string wrong;
  if (pair.size() == 2) wrong = another_agreement(*std::make_shared<mpi_transport>(pair), mpi_transport::agreement_tags);
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}

TEST_CASE("no tag that is free on all workers is an error on all") {
  const boost::mpi::communicator ranks;
  const boost::mpi::communicator three = ranks.split(ranks.rank() / 3);
  std::string wrong;
  if (three.size() == 3) wrong = no_room_together(*std::make_shared<mpi_transport>(three, mpi_transport::agreement_tags + 7));
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}
