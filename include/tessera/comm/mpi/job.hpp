#pragma once

#include <tessera/comm/launch/exit_guard.hpp>
#include <tessera/comm/mpi/exchange.hpp>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace tessera::detail {

// Ends the job when the message has come: then the launcher kills.
inline void end_job() {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

// A worker failed: of those that met one error together the lowest says it, and all of them stop.
inline void stop_job(mpi_transport& carrier, const std::string& who, const std::exception& e, const error& others) {
  // until another worker says it
  while (!carrier.abandon(others)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  report_failure(who, e);
  end_job();
}

/// The launch that runs. The job itself is one around all others: any launch begins on all workers of the one around it
/// or on none.
inline std::shared_ptr<mpi_transport>& running_launch() {
  static std::shared_ptr<mpi_transport> running;
  return running;
}

// Ends the job's own launch when MPI ends, before anything else. A process that launches once more often than this one
// has lost it.
inline int leave_job(MPI_Comm, int, void*, void*) {
  const auto job = std::exchange(running_launch(), nullptr);
  try {
    job->leave();
  } catch (const error& e) {
    stop_job(*job, fmt::format("worker {}", job->rank()), e, e);
  }
  return MPI_SUCCESS;
}

// Starts MPI, once in a process, and with it the job's own launch: both end with the process, so a program may launch
// again.
inline void start_job(int argc, char** argv) {
  std::shared_ptr<mpi_transport>& job = running_launch();
  static const boost::mpi::environment environment(argc, argv, boost::mpi::threading::funneled, false);
  static bool started = false;
  if (std::exchange(started, true)) return;
  job = std::make_shared<mpi_transport>(boost::mpi::communicator{});
  job->configure({.time_limit = std::chrono::seconds::max()});  // behind its last launch a program does what it likes
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_job, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

}  // namespace tessera::detail
