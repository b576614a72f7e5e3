#pragma once

#include <tessera/comm/launch/environment.hpp>
#include <tessera/topology/mesh_value.hpp>

#include <array>
#include <string_view>
#include <utility>

namespace tessera {

/// The carrier of boxes between the workers of a launch: the memory of their process, MPI, or sockets.
enum class transport_choice : unsigned char { automatic, in_process, mpi, tcp };

/// The choices by their names, as command lines give them.
inline constexpr std::array<std::pair<std::string_view, transport_choice>, 4> transport_names{
    {{"auto", transport_choice::automatic},
     {"in-process", transport_choice::in_process},
     {"mpi", transport_choice::mpi},
     {"tcp", transport_choice::tcp}}};

namespace engine {

/// A program's means to connect processes.
struct connections {
  bool mpi = false;         ///< it was built with it
  bool rendezvous = false;  ///< somewhere to meet without it
};

/// The transport of workers that were started so, for a program's choice. A pure function of these; the result is never
/// automatic. Refused where it is nothing.
inline transport_choice transport_of(const launch_environment& started, transport_choice asked,
                                     const connections& has) {
  if (asked == transport_choice::in_process || asked == transport_choice::mpi) return asked;
  const bool alone = started.by == launcher::none || started.world == 1;
  if (asked == transport_choice::automatic) {
    if (has.mpi && (started.by == launcher::mpi || (started.by == launcher::slurm && !alone)))
      return transport_choice::mpi;
    if (alone) return transport_choice::in_process;
  }
  if (!has.rendezvous) throw error(refusal{code::launcher_without_mpi, started.world});
  if (started.by == launcher::none || started.address.empty())
    throw error(refusal{code::nowhere_to_meet, started.world});
  return transport_choice::tcp;
}

/// Refuses a mesh that has fewer or more workers than were started.
constexpr refusal check_world(const mesh_value& mesh, int started) {
  return mesh.size() == started ? refusal{} : refusal{code::mesh_larger_than_world, mesh.size(), started};
}

}  // namespace engine

}  // namespace tessera
