#pragma once

#include <tessera/comm/launch/environment.hpp>
#include <tessera/topology/mesh_value.hpp>

#include <string_view>

namespace tessera {

/// What connects the workers of a launch: the memory of their process, MPI, or connections of their own.
enum class connection { memory, mpi, tcp };

/// What a program has to connect processes with.
struct connections {
  bool mpi = false;         ///< it was built with it
  bool rendezvous = false;  ///< somewhere to meet without it
};

/// What connects workers that were started so, where the program asks for `transport`: a pure function of these.
/// Refused where it is nothing.
inline connection connection_of(const launch_environment& started, std::string_view transport, const connections& has) {
  if (transport == "in-process") return connection::memory;
  if (transport == "mpi") return connection::mpi;
  const bool alone = started.by == launcher::none || started.world == 1;
  if (transport == "auto") {
    if (has.mpi && (started.by == launcher::mpi || (started.by == launcher::slurm && !alone))) return connection::mpi;
    if (alone) return connection::memory;
  }
  if (!has.rendezvous) throw error(refusal{code::launcher_without_mpi, started.world});
  if (started.by == launcher::none || started.address.empty())
    throw error(refusal{code::nowhere_to_meet, started.world});
  return connection::tcp;
}

/// Refuses a mesh that has fewer or more workers than were started.
constexpr refusal check_world(const mesh_value& mesh, int started) {
  return mesh.size() == started ? refusal{} : refusal{code::mesh_larger_than_world, mesh.size(), started};
}

}  // namespace tessera
