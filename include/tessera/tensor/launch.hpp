#pragma once

#include <tessera/comm/workers.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <utility>

namespace tessera {

/// Runs `program(team)` on every worker of a mesh and returns the exit status of the whole.
///
/// Under an MPI launcher each process is a worker, otherwise each is a thread of this process. Every worker gets its share of
/// the cores, at least one, and runs its backward in its own thread.
template <Mesh M, class Program>
int launch(int argc, char** argv, const launch_options& options, Program&& program) {
  const auto prepare = [](const transport& carrier) {
    const launch_environment e = read_environment();
    const int beside = carrier.traits().shares_memory ? carrier.size() : std::max(1, e.local_world);
    at::set_num_threads(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / beside));
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  };
  return run_workers<M>(argc, argv, options, prepare, std::forward<Program>(program));
}
template <Mesh M, class Program>
int launch(int argc, char** argv, Program&& program) {
  return launch<M>(argc, argv, launch_options{}, std::forward<Program>(program));
}

}  // namespace tessera
