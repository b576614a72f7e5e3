#pragma once

#include <tessera/comm/launch/transport_choice.hpp>
#include <tessera/comm/tcp/exchange.hpp>
#include <tessera/comm/thread/cpu_affinity.hpp>
#include <tessera/comm/thread/threads.hpp>
#include <tessera/comm/workers.hpp>
#ifdef TESSERA_HAS_MPI
#include <tessera/comm/mpi/job.hpp>
#endif

#include <cstdlib>
#include <exception>
#include <utility>

namespace tessera {

namespace detail {

#ifdef TESSERA_HAS_MPI
inline constexpr bool has_mpi = true;
#else
inline constexpr bool has_mpi = false;
#endif

// An error that the program caught ends the worker all the same: the others met it too.
// Where it calls again all the same, went_on is told.
inline void run_worker(const std::shared_ptr<transport>& carrier, const launch_options& options,
                       const worker_program& program, std::function<void(const error&)> went_on = {}) {
  struct until_ended {
    transport& carrier;
    ~until_ended() { carrier.went_on = nullptr; }
  } const here{*carrier};
  carrier->went_on = std::move(went_on);
  carrier->configure({.time_limit = options.time_limit,
                      .checks = options.checked ? checks::always : options.checks,
                      .edges_apart = options.edges_apart});
  try {
    if (options.over) options.over(program)(carrier);
    else program(carrier);
  } catch (const refused_value& e) {  // of the core, which words nothing
    throw error(e.why);
  }
  if (const std::optional<error> met = carrier->failure()) throw *met;
  if (carrier->fault) throw *carrier->fault;
}

// Threads of this process. The first worker that fails says why; the others stop with it.
inline int run_threads(const launch_options& options, const mesh_value& mesh, const worker_program& program) {
  const auto meeting = std::make_shared<thread_rendezvous>(mesh.size());
  std::mutex mutex;
  bool failed = false;
  const auto fail = [&](int rank, const std::exception& e) {
    std::lock_guard lock(mutex);
    if (!failed) report_failure(label_of(mesh, rank), e);
    failed = true;
  };
  const std::vector<int> cores = options.binds_workers ? usable_cores() : std::vector<int>{};
  const auto worker = [&](int rank) {
    bind_to_part(cores, rank, mesh.size());
    const exit_guard guard(label_of(mesh, rank), rank, end_process);
    try {
      const auto carrier = std::make_shared<in_process>(meeting, rank);
      run_worker(carrier, options, program, [&](const error& e) { fail(rank, e); });
      carrier->leave();
    } catch (const error& e) {
      fail(rank, e);  // who met it says so; the others only stop
      meeting->abandon(rank, e);
    } catch (const std::exception& e) {
      fail(rank, e);
      meeting->abandon(rank, error(refusal{code::worker_lost, rank, rank}));
    } catch (...) {
      fail(rank, std::runtime_error("threw something that is no std::exception"));
      meeting->abandon(rank, error(refusal{code::worker_lost, rank, rank}));
    }
  };
  worker_threads threads(options.time_limit, meeting);
  if (threads.run(worker)) return failed ? 1 : 0;
  report_failure("launch", error(refusal{code::threads_missing, mesh.size(), threads.made()}));
  return 1;
}

/// The launch over connections that runs in this process.
inline std::shared_ptr<tcp_transport>& connected_launch() {
  static std::shared_ptr<tcp_transport> running;
  return running;
}

// A worker failed: of those that met one error together the lowest says it, and all of them stop.
inline void stop_connected(tcp_transport& carrier, const std::string& who, const std::exception& e,
                           const error& others) {
  bool says = carrier.abandon(others);
  while (!says && !carrier.is_reported()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    says = carrier.abandon(others);
  }
  if (says) report_failure(who, e);
  carrier.hang_up();
}

// A worker called exit, which it has said: the others stop without a word.
inline void end_connected() {
  tcp_transport& carrier = *connected_launch();
  carrier.abandon(error(refusal{code::worker_lost, carrier.rank(), carrier.rank()}));
  carrier.hang_up();
  end_process();
}

// Processes that meet without MPI. The first worker that fails says why; the others stop with it.
inline int run_tcp(const launch_options& options, const launch_environment& started, const mesh_value& mesh,
                   const worker_program& program) {
  if (const refusal why = check_world(mesh, started.world); !why.ok()) {
    if (started.rank == 0) report_failure("launch", error(why));
    return 1;
  }
  const std::string who = label_of(mesh, started.rank);
  std::shared_ptr<tcp_transport> carrier;
  try {
    carrier = std::make_shared<tcp_transport>(started, options.meet, options.time_limit);
  } catch (const error& e) {
    report_failure(who, e);
    return 1;
  }
  const auto outer = std::exchange(connected_launch(), carrier);
  int status = 1;
  const error lost(refusal{code::worker_lost, started.rank, started.rank});
  try {
    const exit_guard guard(who, started.rank, end_connected);
    run_worker(carrier, options, program, [&](const error& e) {
      if (!carrier->abandon(e)) return;
      report_failure(who, e);
      carrier->hang_up();
      end_process();
    });
    carrier->leave();
    status = 0;
  } catch (const error& e) {
    stop_connected(*carrier, who, e, e);
  } catch (const std::exception& e) {
    stop_connected(*carrier, who, e, lost);
  } catch (...) {
    stop_connected(*carrier, who, std::runtime_error("threw something that is no std::exception"), lost);
  }
  connected_launch() = outer;
  return status;
}

#ifdef TESSERA_HAS_MPI
// Waits until all workers of a launch begin another one.
inline void begin_together(const std::shared_ptr<mpi_transport>& around, const std::string& who,
                           std::chrono::seconds limit) {
  const transport_settings before = around->settings();
  around->configure({.time_limit = limit, .checks = before.checks, .edges_apart = before.edges_apart});
  mesh_value everybody;
  everybody.axes.push({text{"worker"}, around->size(), 1});
  try {
    team_state(around, everybody, "launching");
  } catch (const error& e) {
    stop_job(*around, who, e, e);
  }
  around->configure(before);
}

// Processes that a launcher started. The first worker that fails says why and ends the job; the others stop with it.
inline int run_mpi(const launch_options& options, const mesh_value& mesh, const worker_program& program) {
  std::shared_ptr<mpi_transport>& running = running_launch();
  begin_together(running, label_of(mesh, running->rank()), options.time_limit);
  if (const refusal why = check_world(mesh, running->size()); !why.ok()) {
    if (running->rank() == 0) report_failure("launch", error(why));
    return 1;
  }
  shared_heap* const heap = shares_memory(options) ? &shared_heap::of_process() : nullptr;
  const auto carrier = std::make_shared<mpi_transport>(
      boost::mpi::communicator{}, mpi_options{.heap = heap, .per_node = options.processes_per_node});
  if (!carrier->shares_nothing().empty())
    std::fprintf(stderr, "tessera: launch: processes of this node share no memory and send messages [%s]\n",
                 carrier->shares_nothing().c_str());
  const auto outer = std::exchange(running, carrier);
  const std::string who = label_of(mesh, carrier->rank());
  const error lost(refusal{code::worker_lost, carrier->rank(), carrier->rank()});
  try {
    const exit_guard guard(who, carrier->rank(), end_job);
    run_worker(carrier, options, program, [&](const error& e) {
      if (!carrier->abandon(e)) return;
      report_failure(who, e);
      end_job();
    });
    carrier->leave();
  } catch (const error& e) {
    stop_job(*carrier, who, e, e);
  } catch (const std::exception& e) {
    stop_job(*carrier, who, e, lost);
  } catch (...) {
    stop_job(*carrier, who, std::runtime_error("threw something that is no std::exception"), lost);
  }
  running = outer;
  return 0;
}
#endif

}  // namespace detail

namespace engine {

TESSERA_INLINE bool shares_memory(const launch_options& options) {
  const char* const given = std::getenv("TESSERA_SHARES_MEMORY");
  if (!options.shares_memory || !detail::has_mpi || options.transport == transport_choice::in_process ||
      options.transport == transport_choice::tcp || (given != nullptr && std::string_view(given) == "0"))
    return false;
  try {
    const launch_environment started = read_environment();
    return started.by != launcher::none && started.by != launcher::torchrun && started.world > 1;
  } catch (const error&) {  // which the launch tells
    return false;
  }
}

}  // namespace engine

TESSERA_INLINE int run_workers(int argc, char** argv, const launch_options& options, const mesh_value& mesh,
                               const engine::worker_program& program) {
  return engine::start_workers(argc, argv, options, [&](std::optional<int>) { return mesh; }, program);
}

TESSERA_INLINE int engine::start_workers(int argc, char** argv, const launch_options& options, const mesh_choice& mesh,
                                         const worker_program& program) {
  engine::launch_environment started;
  transport_choice by = transport_choice::in_process;
  const auto refused = [&](const error& why) {
    if (started.rank == 0) detail::report_failure("launch", why);
    return 2;
  };
  try {
    if (options.transport != transport_choice::in_process) started = read_environment();
    by = engine::transport_of(started, options.transport,
                              {.mpi = detail::has_mpi, .rendezvous = options.meet != nullptr});
  } catch (const error& e) {
    return refused(e);
  }
#ifdef TESSERA_HAS_MPI
  if (by == transport_choice::mpi) {
    detail::start_job(argc, argv);  // which ends together, so that one of them can say what is wrong with all
    if (const int seen = detail::running_launch()->size();
        started.by != engine::launcher::none && seen != started.world)
      return refused(error(refusal{code::other_mpi, started.world, seen}));
  }
#else
  static_cast<void>(argc);
  static_cast<void>(argv);
  if (by == transport_choice::mpi) {
    std::fprintf(stderr, "tessera: this program was built without MPI; say in-process\n");
    return 2;
  }
#endif
  if (options.time_limit.count() <= 0)
    return refused(error(refusal{code::limit_not_positive, options.time_limit.count()}));
  mesh_value chosen;
  try {
    std::optional<int> processes;
    if (started.by != launcher::none) processes = started.world;
#ifdef TESSERA_HAS_MPI
    if (by == transport_choice::mpi) processes = detail::running_launch()->size();
#endif
    chosen = mesh(processes);
  } catch (const error& e) {
    return refused(e);
  }
  if (by == transport_choice::tcp) return detail::run_tcp(options, started, chosen, program);
#ifdef TESSERA_HAS_MPI
  if (by == transport_choice::mpi) return detail::run_mpi(options, chosen, program);
#endif
  return detail::run_threads(options, chosen, program);
}

}  // namespace tessera
