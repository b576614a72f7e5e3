#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/comm/launch/rendezvous.hpp>
#include <tessera/comm/launch/transport_choice.hpp>
#include <tessera/comm/team.hpp>
#include <tessera/meta/sanitizers.hpp>

#include <functional>
#include <limits>
#include <optional>

namespace tessera {

namespace engine {

/// A cap on memory, in bytes, that is none.
inline constexpr std::size_t no_memory_cap = std::numeric_limits<std::size_t>::max();

/// The program that each worker of a launch runs.
using worker_program = std::function<void(const std::shared_ptr<transport>&)>;

/// Gives a program another transport, on top of the one that its launch has: `over_nccl`, `through_host`.
using transport_layer = std::function<worker_program(worker_program)>;

}  // namespace engine

/// How to start the workers of a program.
///
/// A launch of tensors puts an allocator of its own in place of LibTorch's CPU allocator until it ends, unless
/// `caches_memory` is off.
struct launch_options {
  transport_choice transport = transport_choice::automatic;
  int threads = 1;  ///< the workers of a launch by an axis's name, where no launcher started processes
  std::chrono::seconds time_limit{600};  ///< how long a worker waits for another one before it gives up
  /// how often workers compare what they do and hold: never, sampled (by each line's 1st, 2nd, 4th, 8th … call) or
  /// always
  tessera::checks checks = checks::sampled;
  bool checked = false;  ///< short for `checks::always`
  /// outputs whose windows read a halo are computed behind the others, which do not wait for it, if they are no larger
  /// a share
  double edges_apart = engine::most_edges;
  bool binds_workers = true;  ///< keep each worker that is a thread to its own part of the cores
  /// keep the memory that tensors give back for the next ones; the address sanitizer sees the use of freed memory only
  /// where it is freed
  bool caches_memory = !detail::watches_addresses;
  /// the most that this process holds for them, in bytes, where it is kept
  std::size_t memory_cap = engine::no_memory_cap;
  /// processes of one node read one another's tensors, where memory is kept; TESSERA_SHARES_MEMORY=0 says no
  bool shares_memory = true;
  int processes_per_node = 0;  ///< so many count as a node in this, instead of all that run on the machine
  engine::rendezvous meet{};   ///< where processes meet that have no MPI; of a launch of tensors it is LibTorch's store
  engine::transport_layer over{};  ///< what carries tensors that lie on devices, on top of what carries the host's
};

namespace engine {

/// Whether a launch with these options starts processes that are to read one another's memory.
bool shares_memory(const launch_options& options);

}  // namespace engine

/// Runs `program(transport)` on every worker of a mesh and returns the exit status of the whole.
///
/// Under a launcher of several processes each is a worker, otherwise each is a thread; `options.transport` forces one.
/// The mesh is the world: any other number of processes is refused. A worker that is stuck ends all of them after the
/// time limit: threads with their process.
int run_workers(int argc, char** argv, const launch_options& options, const mesh_value& mesh,
                const engine::worker_program& program);

namespace engine {

/// A mesh for the processes that a launcher started; none where it started none, and workers are threads.
using mesh_choice = std::function<mesh_value(std::optional<int> processes)>;

/// The same on a mesh that is chosen when the number of processes is known.
int start_workers(int argc, char** argv, const launch_options& options, const mesh_choice& mesh,
                  const worker_program& program);

}  // namespace engine

/// The same for a mesh that is a type: `program(team)`.
template <Mesh M, class Program>
int run_workers(int argc, char** argv, const launch_options& options, Program&& program) {
  return run_workers(argc, argv, options, M::value, [&](const std::shared_ptr<engine::transport>& carrier) {
    team<M> typed(carrier);
    program(typed);
  });
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/comm/workers_impl.hpp>
#endif
