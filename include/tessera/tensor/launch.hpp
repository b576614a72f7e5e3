#pragma once

#include <tessera/comm/workers.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <stdexcept>

namespace tessera {

namespace detail {

// Every worker gets its share of the cores, from one to OMP_NUM_THREADS, and runs its backward in its own thread.
inline void prepare_worker(const transport& carrier) {
  const launch_environment e = read_environment();
  const int beside = carrier.traits().shares_memory ? carrier.size() : std::max(1, e.local_world);
  at::set_num_threads(std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / beside, 1, at::get_num_threads()));
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

/// Runs the program; what LibTorch throws says what is wrong, without the addresses that it was thrown from.
template <class Program, class Team>
void run_plainly(Program& program, Team& workers) {
  try {
    program(workers);
  } catch (const c10::Error& e) {
    throw std::runtime_error(e.what_without_backtrace());
  }
}

}  // namespace detail

/// Runs `program(team)` on every worker of a mesh and returns the exit status of the whole.
///
/// Under an MPI launcher each process is a worker, otherwise each is a thread of this process. Every worker gets its share of
/// the cores, at least one and at most OMP_NUM_THREADS, and runs its backward in its own thread.
template <Mesh M, class Program>
int launch(int argc, char** argv, const launch_options& options, Program&& program) {
  return run_workers<M>(argc, argv, options, detail::prepare_worker, [&](team<M>& workers) { detail::run_plainly(program, workers); });
}
template <Mesh M, class Program>
int launch(int argc, char** argv, Program&& program) {
  return launch<M>(argc, argv, launch_options{}, std::forward<Program>(program));
}

/// The same for a mesh that is known at run time: `program(team_handle)`.
template <class Program>
int launch(int argc, char** argv, const launch_options& options, const mesh_value& mesh, Program&& program) {
  return run_workers(argc, argv, options, mesh, detail::prepare_worker, [&](const std::shared_ptr<transport>& carrier) {
    const auto workers = std::make_shared<team_state>(carrier, mesh);
    workers->checked = options.checked;
    detail::run_plainly(program, workers);
  });
}

}  // namespace tessera
