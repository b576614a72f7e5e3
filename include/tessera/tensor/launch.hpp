#pragma once

#include <tessera/tensor/memory.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>

#include <algorithm>
#include <stdexcept>

namespace tessera {

namespace detail {

/// LibTorch's settings of the thread that launches: what workers change is restored, so no launch depends on an earlier one.
class torch_settings {
 public:
  torch_settings() = default;
  torch_settings(const torch_settings&) = delete;
  torch_settings& operator=(const torch_settings&) = delete;
  ~torch_settings() {
    at::set_num_threads(threads_);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(multithreaded_);
  }

  /// Gives this worker its share of the cores, the smallest that any has, and its backward to its own thread.
  void share(team_state& team) const {
    const bool here = team.carrier().traits().shares_memory;
    const int beside = here ? team.carrier().size() : std::max(1, read_environment().local_world);
    const int mine = std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / beside, 1, threads_);
    const std::vector<std::uint64_t> all = team.collect(static_cast<std::uint64_t>(mine), "sharing cores");
    at::set_num_threads(static_cast<int>(*std::min_element(all.begin(), all.end())));
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  }

 private:
  int threads_ = at::get_num_threads();
  bool multithreaded_ = c10::AutogradState::get_tls_state().get_multithreading_enabled();
};

/// Runs the program; what LibTorch throws says what is wrong, without the addresses that it was thrown from.
template <class Program, class Team>
void run_plainly(Program& program, Team& workers, team_state& team, const torch_settings& settings) {
  try {
    settings.share(team);
    program(workers);
  } catch (const c10::Error& e) {
    throw std::runtime_error(e.what_without_backtrace());
  }
}

}  // namespace detail

/// Runs `program(team)` on every worker of a mesh and returns the exit status of the whole.
///
/// Under an MPI launcher each process is a worker, otherwise each is a thread of this process. Every worker gets the same share of
/// the cores, at least one and at most OMP_NUM_THREADS, and runs its backward in its own thread. Memory that tensors give back is kept
/// for the next ones until the launch ends.
template <Mesh M, class Program>
int launch(int argc, char** argv, const launch_options& options, Program&& program) {
  const detail::torch_settings settings;
  const caching_allocator::service memory(options);
  return run_workers<M>(argc, argv, options, [&](team<M>& workers) { detail::run_plainly(program, workers, *workers.state(), settings); });
}
template <Mesh M, class Program>
int launch(int argc, char** argv, Program&& program) {
  return launch<M>(argc, argv, launch_options{}, std::forward<Program>(program));
}

template <class M, class... Given>
  requires(!Mesh<M> && sizeof...(Given) < 3)
int launch(int, char**, Given&&...) {
  using verdict = detail::argument_verdict<kind::call, 0, kind::mesh, M>;
  verdict::template refuse<verdict>();
  return 1;
}

/// The same for a mesh that is known at run time: `program(team_handle)`.
template <class Program>
int launch(int argc, char** argv, const launch_options& options, const mesh_value& mesh, Program&& program) {
  const detail::torch_settings settings;
  const caching_allocator::service memory(options);
  return run_workers(argc, argv, options, mesh, [&](const std::shared_ptr<transport>& carrier) {
    const auto workers = std::make_shared<team_state>(carrier, mesh);
    detail::run_plainly(program, workers, *workers, settings);
  });
}

}  // namespace tessera
