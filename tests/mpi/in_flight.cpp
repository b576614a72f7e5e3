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
