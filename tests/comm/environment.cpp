#include "tests/support/catch.hpp"

#include <tessera/comm/environment.hpp>

#include <map>

namespace tessera::testing {
namespace {

launch_environment read(const std::map<std::string, std::string>& variables) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("without a launcher a program runs alone") {
  const launch_environment e = read({{"PATH", "/bin"}, {"SLURM_JOB_ID", "7"}});  // a batch script, not a job step
  CHECK(e.by == launcher::none);
  CHECK(e.world == 1);
}

TEST_CASE("launchers are told apart by their variables") {
  const launch_environment open_mpi = read({{"OMPI_COMM_WORLD_RANK", "3"},
                                            {"OMPI_COMM_WORLD_SIZE", "8"},
                                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(open_mpi.by == launcher::mpi);
  CHECK(open_mpi.rank == 3);
  CHECK(open_mpi.world == 8);
  CHECK(open_mpi.local_rank == 1);
  CHECK(open_mpi.local_world == 2);
  CHECK(read({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).by == launcher::mpi);
  CHECK(read({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).by == launcher::none);  // torchrun says where to meet
  const launch_environment torchrun = read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "here"}});
  CHECK(torchrun.by == launcher::torchrun);
  CHECK(torchrun.address == "here");
  CHECK(read({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}}).rank == 2);
}

}  // namespace tessera::testing
