#pragma once

#include <tessera/comm/environment.hpp>
#include <tessera/comm/in_process.hpp>
#include <tessera/comm/team.hpp>
#ifdef TESSERA_HAS_MPI
#include <tessera/comm/mpi.hpp>
#endif

#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

namespace tessera {

/// How to start the workers of a program.
struct launch_options {
  std::string transport = "auto";          ///< auto, in-process or mpi
  std::chrono::seconds time_limit{600};    ///< how long a worker waits for another one before it gives up
  bool checked = false;                    ///< compare what workers do and hold at every operation
};

namespace detail {

#ifdef TESSERA_HAS_MPI
inline constexpr bool has_mpi = true;
#else
inline constexpr bool has_mpi = false;
#endif

inline void complain(std::string_view who, const std::exception& what) {
  const std::string line = fmt::format("tessera: {}: {}\n", who, what.what());
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

template <class Prepare, class Program>
void run_worker(const std::shared_ptr<transport>& carrier, const launch_options& options, Prepare& prepare, Program& program) {
  carrier->time_limit = options.time_limit;
  prepare(*carrier);
  program(carrier);
}

// Threads of this process. The first worker that fails says why; the others stop with it.
template <class Prepare, class Program>
int run_threads(const launch_options& options, const mesh_value& mesh, Prepare& prepare, Program& program) {
  const auto meeting = std::make_shared<hub>(mesh.size());
  std::mutex mutex;
  bool failed = false;
  const auto fail = [&](int rank, const std::exception& e) {
    std::lock_guard lock(mutex);
    if (!failed) complain(label_of(mesh, rank), e);
    failed = true;
  };
  const auto worker = [&](int rank) {
    try {
      run_worker(std::make_shared<in_process>(meeting, rank), options, prepare, program);
      meeting->leave(rank);
    } catch (const error& e) {
      fail(rank, e);  // who met it says so; the others only stop
      meeting->abandon(rank, e.why());
    } catch (const std::exception& e) {
      fail(rank, e);
      meeting->abandon(rank, refusal{code::worker_lost, rank, rank});
    } catch (...) {
      fail(rank, std::runtime_error("threw something that is no std::exception"));
      meeting->abandon(rank, refusal{code::worker_lost, rank, rank});
    }
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < mesh.size(); ++r) threads.emplace_back(worker, r);
  for (auto& t : threads) t.join();
  return failed ? 1 : 0;
}

#ifdef TESSERA_HAS_MPI
inline void end_job(std::string_view who, const std::exception& why) {
  complain(who, why);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // the message comes first, then the launcher kills
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// While it lives, a call of std::exit ends the job: the other processes would wait for this one.
class exit_guard {
 public:
  exit_guard(std::string who, int rank) {
    now() = {std::move(who), rank};
    [[maybe_unused]] static const int once = std::atexit([] {
      if (!now().who.empty()) end_job(now().who, error(refusal{code::worker_lost, now().rank, now().rank}));
    });
  }
  exit_guard(const exit_guard&) = delete;
  exit_guard& operator=(const exit_guard&) = delete;
  ~exit_guard() { now() = {}; }

 private:
  struct worker {
    std::string who;
    int rank = 0;
  };
  static worker& now() {
    static worker running;
    return running;
  }
};

// Processes that a launcher started. A worker that fails says so and ends the job.
template <class Prepare, class Program>
int run_mpi(int argc, char** argv, const launch_options& options, const mesh_value& mesh, Prepare& prepare, Program& program) {
  // MPI starts once in a process and ends with it, so a program may launch again.
  static const boost::mpi::environment environment(argc, argv, boost::mpi::threading::funneled, false);
  const auto carrier = std::make_shared<mpi_transport>(boost::mpi::communicator{});
  if (carrier->size() != mesh.size()) {
    if (carrier->rank() == 0) complain("launch", error(refusal{code::mesh_larger_than_world, mesh.size(), carrier->size()}));
    carrier->leave();
    return 1;
  }
  const std::string who = label_of(mesh, carrier->rank());
  try {
    const exit_guard guard(who, carrier->rank());
    run_worker(carrier, options, prepare, program);
    carrier->leave();
  } catch (const std::exception& e) {
    end_job(who, e);
  } catch (...) {
    end_job(who, std::runtime_error("threw something that is no std::exception"));
  }
  return 0;
}
#endif

}  // namespace detail

/// Runs `program(transport)` on every worker of a mesh and returns the exit status of the whole.
///
/// Under an MPI launcher each process is a worker, otherwise each is a thread; `options.transport` forces one. `prepare` runs
/// in every worker before its program. The mesh is the world: any other number of processes is refused.
template <class Prepare, class Program>
int run_workers(int argc, char** argv, const launch_options& options, const mesh_value& mesh, Prepare&& prepare,
                Program&& program) {
  if (options.transport != "auto" && options.transport != "in-process" && options.transport != "mpi") {
    std::fprintf(stderr, "tessera: transport '%s' is unknown; say auto, in-process or mpi\n", options.transport.c_str());
    return 2;
  }
  const launcher by = read_environment().by;
  const bool served = by == launcher::none || (detail::has_mpi && by == launcher::mpi);
  if (options.transport == "auto" && !served) {
    std::fprintf(stderr, "tessera: this program was started by %s, which it cannot use; start it alone, or say in-process\n",
                 by == launcher::mpi ? "an MPI launcher but built without MPI" : "torchrun");
    return 2;
  }
#ifdef TESSERA_HAS_MPI
  if (options.transport == "mpi" || (options.transport == "auto" && by == launcher::mpi))
    return detail::run_mpi(argc, argv, options, mesh, prepare, program);
#else
  static_cast<void>(argc);
  static_cast<void>(argv);
  if (options.transport == "mpi") {
    std::fprintf(stderr, "tessera: this program was built without MPI; say in-process\n");
    return 2;
  }
#endif
  return detail::run_threads(options, mesh, prepare, program);
}

/// The same for a mesh that is a type: `program(team)`.
template <Mesh M, class Prepare, class Program>
int run_workers(int argc, char** argv, const launch_options& options, Prepare&& prepare, Program&& program) {
  return run_workers(argc, argv, options, M::value, prepare, [&](const std::shared_ptr<transport>& carrier) {
    team<M> workers(carrier);
    workers.state()->checked = options.checked;
    program(workers);
  });
}

}  // namespace tessera
