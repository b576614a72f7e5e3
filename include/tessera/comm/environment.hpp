#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace tessera {

/// How the workers of a program were started.
enum class launcher { none, mpi, torchrun };

/// What a launcher says about this process.
struct launch_environment {
  launcher by = launcher::none;
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  std::string address;  ///< torchrun: where the first process listens
};

/// Reads the launcher's variables through `get(name)`, which gives nullptr for one that is not set.
///
/// Open MPI, MPICH and PMI, a SLURM job step, torchrun; without any of them the program runs alone.
template <class Get>
launch_environment read_environment(Get&& get) {
  const auto number = [&](const char* name, int otherwise) {
    const char* value = get(name);
    return value == nullptr ? otherwise : std::atoi(value);
  };
  launch_environment e;
  struct names {
    launcher by;
    const char* rank;
    const char* world;
    const char* local_rank;
    const char* local_world;
  };
  constexpr names known[]{
      {launcher::mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {launcher::mpi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
      {launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
      {launcher::mpi, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
  };
  for (const names& n : known) {
    if (get(n.rank) == nullptr || get(n.world) == nullptr) continue;
    if (n.by == launcher::torchrun && get("MASTER_ADDR") == nullptr) continue;
    e.by = n.by;
    e.rank = number(n.rank, 0);
    e.world = number(n.world, 1);
    e.local_rank = number(n.local_rank, 0);
    e.local_world = number(n.local_world, e.world);
    if (const char* at = get("MASTER_ADDR")) e.address = at;
    return e;
  }
  return e;
}

inline launch_environment read_environment() {
  return read_environment([](const char* name) { return std::getenv(name); });
}

}  // namespace tessera
