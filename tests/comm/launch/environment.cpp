#include "tests/support/catch.hpp"

#include <tessera/comm/launch/environment.hpp>
#ifdef TESSERA_HAS_MPI
#include <tessera/comm/from_cartesian.hpp>
#endif

#include <map>

namespace tessera::testing {

using namespace engine;

namespace {

using variables = std::map<std::string, std::string>;

launch_environment read(const variables& set, const launch_choice& chosen = {}) {
  return read_environment(
      [&](const char* name) -> const char* {
        const auto found = set.find(name);
        return found == set.end() ? nullptr : found->second.c_str();
      },
      chosen);
}
std::string refused(const variables& set) {
  try {
    read(set);
  } catch (const error& e) {
    return e.is(code::launcher_not_understood) ? e.where() : e.what();
  }
  return "";
}
const variables job_step{{"SLURM_JOB_ID", "41234"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NODELIST", "gpu[03-04,7],b"},
                         {"SLURM_PROCID", "5"},
                         {"SLURM_STEP_NUM_TASKS", "8"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                         {"SLURM_NTASKS", "32"}};
variables with(variables v, const variables& more) {
  for (const auto& [name, value] : more) v[name] = value;
  return v;
}

}  // namespace

TEST_CASE("without a launcher a program runs alone", "[runtime]") {
  // A batch script, not a job step: the numbers of tasks are the job's.
  const launch_environment e = read({{"PATH", "/bin"},
                                     {"SLURM_JOB_ID", "7"},
                                     {"SLURM_PROCID", "0"},
                                     {"SLURM_NTASKS", "8"},
                                     {"SLURM_NODELIST", "a[1-2]"}});
  CHECK(e.by == launcher::none);
  CHECK(e.world == 1);
  CHECK(e.address == "");
  CHECK(e.device == -1);
  CHECK(e.port == 20007);
  CHECK(!read({{"PATH", "/bin"}}).port);
  CHECK(!read({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "here"}}).port);
  CHECK(read({{"MASTER_PORT", "0"}}).port == 0);
  CHECK(read({{"SLURM_NTASKS", "8"}}).by == launcher::none);
}

TEST_CASE("launchers are told apart by their variables", "[runtime]") {
  const launch_environment open_mpi = read(with(job_step, {{"OMPI_COMM_WORLD_RANK", "3"},
                                                           {"OMPI_COMM_WORLD_SIZE", "8"},
                                                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}));
  CHECK(open_mpi.by == launcher::mpi);
  CHECK(open_mpi.rank == 3);
  CHECK(open_mpi.world == 8);
  CHECK(open_mpi.local_rank == 0);
  CHECK(open_mpi.local_world == 2);
  const launch_environment pmi = read(with(job_step, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}));
  CHECK(pmi.by == launcher::mpi);
  CHECK(pmi.local_rank == 1);                                              // SLURM's, where MPI says none
  CHECK(read({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).by == launcher::none);  // torchrun says where to meet
  const launch_environment torchrun = read(
      with(job_step,
           {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "here"}, {"MASTER_PORT", "29"}}));
  CHECK(torchrun.by == launcher::torchrun);
  CHECK(torchrun.address == "here");
  CHECK(torchrun.port == 29);
}

TEST_CASE("a job step of SLURM says rank, world, host and port", "[runtime]") {
  const launch_environment e = read(job_step);
  CHECK(e.by == launcher::slurm);
  CHECK(e.rank == 5);
  CHECK(e.world == 8);
  CHECK(e.local_rank == 1);
  CHECK(e.local_world == 4);
  CHECK(e.address == "gpu03");
  CHECK(e.port == 20000 + 1234);
  CHECK(read(with(job_step, {{"MASTER_ADDR", "other"}})).address == "other");
  CHECK(read(with(job_step, {{"SLURM_STEP_NUM_TASKS", ""}})).world == 32);  // an old one's
}

TEST_CASE("a device is chosen, or the local rank among those that are seen", "[runtime]") {
  CHECK(read(job_step, {.devices = 4}).device == 1);
  CHECK(read(job_step, {.devices = 1}).device == 0);  // each process sees its own
  CHECK(read(job_step, {.devices = 4, .device = 3}).device == 3);
  CHECK(read(job_step, {.devices = 4, .port = 77}).port == 77);
  const variables no_local_rank{{"PMI_RANK", "6"}, {"PMI_SIZE", "8"}};
  CHECK(read(no_local_rank, {.devices = 4}).local_rank == 2);
  CHECK(read(no_local_rank, {.devices = 4}).device == 2);
  CHECK(read(no_local_rank).local_rank == 0);
  CHECK(read({}, {.devices = 2}).device == 0);
}

TEST_CASE("variables that say no rank of a world are refused, and name themselves", "[refusal]") {
  CHECK(refused(with(job_step, {{"SLURM_PROCID", "five"}})) == "SLURM_PROCID=five");
  CHECK(refused(with(job_step, {{"SLURM_PROCID", "8"}})) == "SLURM_PROCID=8, SLURM_STEP_NUM_TASKS=8");
  CHECK(refused(with(job_step, {{"SLURM_LOCALID", "-1"}})) == "SLURM_LOCALID=-1");
  CHECK(refused(with(job_step, {{"MASTER_PORT", "80 "}})) == "MASTER_PORT=80 ");
  CHECK(refused({{"PMI_RANK", "0"}, {"PMI_SIZE", "99999999999"}}) == "PMI_SIZE=99999999999");
}

TEST_CASE("the first host of a list as SLURM writes it", "[runtime]") {
  CHECK(first_host("a[03-04,7],b") == "a03");
  CHECK(first_host("b,a[03-04]") == "b");
  CHECK(first_host("rack[1-2]node[01-03]") == "rack1node01");
  CHECK(first_host("n[7]x") == "n7x");
  CHECK(first_host("n[07,9]-ib,m") == "n07-ib");
  CHECK(first_host("") == "");
  CHECK(first_host("a[3") == "a3");
}

#ifdef TESSERA_HAS_MPI
TEST_CASE("a Cartesian communicator is refused where MPI does not run", "[refusal]") {
  std::string told;
  try {
    from_cartesian(MPI_COMM_NULL, {"rows"});
  } catch (const error& e) {
    told = e.code();
  }
  CHECK(told == "tessera.mpi.running");
}
#endif

}  // namespace tessera::testing
