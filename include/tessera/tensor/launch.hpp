#pragma once

#include <tessera/tensor/memory/caching_allocator.hpp>

namespace tessera {

/// Runs `program(team)` on every worker of a mesh and returns the exit status of the whole.
///
/// Under a launcher of several processes each is a worker, otherwise each is a thread of this process. Every worker
/// gets the same share of the cores, at least one and at most OMP_NUM_THREADS, and runs its backward in its own thread.
/// Memory that tensors give back is kept for the next ones until the launch ends.
int launch(int argc, char** argv, const launch_options& options, const mesh_value& mesh,
           const std::function<void(const team_handle&)>& program);

/// The same over one axis of this name, with as many workers as there are: the processes that a launcher started. Where
/// none did, so many threads as `--threads N` of the command line says, else `options.threads`.
int launch(int argc, char** argv, const launch_options& options, const char* axis,
           const std::function<void(const team_handle&)>& program);
int launch(int argc, char** argv, const char* axis, const std::function<void(const team_handle&)>& program);

/// The same for a mesh that is a type.
template <Mesh M, class Program>
int launch(int argc, char** argv, const launch_options& options, Program&& program) {
  return launch(argc, argv, options, M::value, [&](const team_handle& state) {
    team<M> typed(state);
    program(typed);
  });
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

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/launch_impl.hpp>
#endif
