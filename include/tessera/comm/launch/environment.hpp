#pragma once

#include <tessera/comm/base/error.hpp>
#include <tessera/comm/launch/slurm_hosts.hpp>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

namespace engine {

/// How the workers of a program were started.
enum class launcher { none, mpi, torchrun, slurm };

/// The program's own choices, which override a launcher's variables.
struct launch_choice {
  int devices = 0;  ///< how many of them this process sees
  std::optional<int> device{};
  std::optional<int> port{};
};

/// A launcher's facts about this process, and the meeting point of processes without MPI.
struct launch_environment {
  engine::launcher by = engine::launcher::none;
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  int device = -1;            ///< of those that it sees; −1 where there is none
  std::string address;        ///< of the first process, where something says it
  std::optional<int> port{};  ///< there, where something says it
};

}  // namespace engine

/// Reads a launcher's variables through `get(name)`, which gives nullptr for an unset one. It is a pure function of
/// these variables and of the program's own choices. Without a launcher the program runs alone.
///
/// MPI's come first (Open MPI, then PMI), then torchrun's, then those of a SLURM job step. In a batch script SLURM sets
/// the numbers of the job as well, which are no step's. The local rank is the launcher's, else rank mod devices. The
/// device is the chosen one, else local rank mod devices. The address is MASTER_ADDR, else the first host of SLURM's
/// list. The port is the chosen one, else MASTER_PORT, else 20000 + (SLURM's job mod 20000), which differs from job to
/// job, else unknown. A variable that is no number, or a rank outside of the world, is refused.
template <class Get>
engine::launch_environment read_environment(Get&& get, const engine::launch_choice& chosen = {}) {
  const auto text = [&](const char* name) {
    const char* value = name == nullptr ? nullptr : get(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  // The number that a variable says or, as SLURM's "2(x3)", begins with.
  const auto number = [&](const char* name, int otherwise, bool begins = false) {
    const std::string_view given = text(name);
    if (given.empty()) return otherwise;
    int n = 0;
    const auto [end, wrong] = std::from_chars(given.data(), given.data() + given.size(), n);
    if (wrong != std::errc{} || n < 0 || (!begins && end != given.data() + given.size()))
      throw error(refusal{code::launcher_not_understood}, std::string(name) + "=" + std::string(given));
    return n;
  };
  const auto first = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (!text(name).empty()) return name;
    return static_cast<const char*>(nullptr);
  };
  const bool in_step = first({"SLURM_STEP_ID", "SLURM_STEPID", "SLURM_STEP_NUM_TASKS"}) != nullptr;
  struct names {
    engine::launcher by;
    const char* rank;
    const char* world;
    const char* local_rank;
    const char* local_world;
    const char* needs;
  };
  const names known[]{
      {engine::launcher::mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
      {engine::launcher::mpi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
      {engine::launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"},
      {engine::launcher::slurm, in_step ? "SLURM_PROCID" : nullptr, first({"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}),
       "SLURM_LOCALID", first({"SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"}), nullptr},
  };
  engine::launch_environment e;
  const char* local_rank = nullptr;
  for (const names& n : known) {
    if (text(n.rank).empty() || text(n.world).empty() || (n.needs != nullptr && text(n.needs).empty())) continue;
    e.by = n.by;
    e.rank = number(n.rank, 0);
    e.world = number(n.world, 1);
    e.local_world = number(n.local_world, e.world, true);
    local_rank = first({n.local_rank, "LOCAL_RANK", "SLURM_LOCALID"});
    if (e.rank >= e.world)
      throw error(refusal{code::launcher_not_understood},
                  fmt::format("{}={}, {}={}", n.rank, e.rank, n.world, e.world));
    break;
  }
  e.local_rank = local_rank != nullptr ? number(local_rank, 0) : chosen.devices > 0 ? e.rank % chosen.devices : 0;
  if (chosen.devices > 0) e.device = chosen.device.value_or(e.local_rank % chosen.devices);
  e.address = text("MASTER_ADDR");
  if (e.address.empty() && e.by != engine::launcher::none)
    e.address = engine::first_host(text(first({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"})));
  constexpr int ports = 20000;
  if (chosen.port) e.port = chosen.port;
  else if (!text("MASTER_PORT").empty()) e.port = number("MASTER_PORT", 0);
  else if (!text("SLURM_JOB_ID").empty()) e.port = ports + number("SLURM_JOB_ID", 0) % ports;
  return e;
}

engine::launch_environment read_environment(const engine::launch_choice& chosen = {});

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/comm/launch/environment_impl.hpp>
#endif
