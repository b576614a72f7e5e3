#pragma once
// Ranks agree on a condition before they judge it.

#include <boost/mpi/collectives/all_reduce.hpp>
#include <boost/mpi/communicator.hpp>
#include <functional>

/// True when `here` holds on every rank, so that no rank leaves a test while others wait for it in a collective.
inline bool everywhere(const boost::mpi::communicator& ranks, bool here) {
  return boost::mpi::all_reduce(ranks, here, std::logical_and<bool>());
}
