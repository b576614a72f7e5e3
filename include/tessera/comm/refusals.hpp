#pragma once

#include <tessera/meta/refusal.hpp>

/// The refusals of this floor: the code, the numbers, and a sentence that says what is wrong and what to do.
namespace tessera::code {

inline constexpr reason mesh_larger_than_world{
    "tessera.launch.world", "mesh, world",
    "the mesh does not fit the workers that were started; start as many as it names, or choose another mesh"};
inline constexpr reason launcher_not_understood{"tessera.launch.environment", "",
                                                "the launcher's variables say no rank of a world; start the program "
                                                "with mpirun, srun or torchrun, or unset them to run it alone"};
inline constexpr reason launcher_without_mpi{
    "tessera.launch.processes", "processes",
    "several processes were started, and they have nothing to meet by; build with MPI and start with mpirun -n N "
    "PROGRAM or srun --mpi=pmix, launch with LibTorch's store (tessera/tensor/launch.hpp), give launch_options::meet, "
    "or say in-process"};
inline constexpr reason nowhere_to_meet{
    "tessera.launch.meeting", "processes",
    "the workers are to meet over TCP, and no launcher says who they are and where; start them with torchrun or srun, "
    "or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"};
inline constexpr reason not_connected{
    "tessera.launch.connection", "worker",
    "a worker does not reach the others over TCP; look at MASTER_ADDR and MASTER_PORT, at what stands between the "
    "hosts, and at the messages of the others"};
inline constexpr reason store_missing{"tessera.launch.store", "",
                                      "this LibTorch was built without the store by which processes meet; take one "
                                      "with USE_DISTRIBUTED, start with mpirun, or give launch_options::meet"};
inline constexpr reason other_mpi{
    "tessera.launch.mpi", "processes started, processes of MPI",
    "MPI does not see the processes that were started: the program was built against another MPI than the launcher's, "
    "or the launcher has no PMI for it; use the mpirun of that MPI, or srun --mpi=pmix"};
inline constexpr reason mpi_not_running{"tessera.mpi.running", "",
                                        "MPI does not run here; call this between MPI_Init and MPI_Finalize"};
inline constexpr reason not_cartesian{
    "tessera.mpi.cartesian", "",
    "the communicator has no Cartesian topology; hand in one of MPI_Cart_create, on the processes that are in it"};
inline constexpr reason grids_differ{"tessera.mpi.grid", "axis, mesh, communicator",
                                     "the mesh is another grid than the Cartesian communicator; name as many axes, in "
                                     "the order and of the extents that MPI has, from rank 0 on"};
inline constexpr reason limit_not_positive{"tessera.launch.limit", "seconds",
                                           "the time limit is no time at all; give at least a second"};
inline constexpr reason threads_missing{
    "tessera.launch.threads", "workers, threads",
    "the system gives no thread to every worker; start fewer workers, or raise the system's limits"};
inline constexpr reason workers_not_counted{
    "tessera.launch.workers", "",
    "a launch of threads has one worker or more; give --threads N, or launch_options::threads, a number from 1 on"};
inline constexpr reason other_thread{
    "tessera.launch.thread", "worker",
    "a team belongs to the thread of its worker; call from the thread that runs the program"};
inline constexpr reason memory_cap_reached{"tessera.memory.cap", "bytes, in use, cap",
                                           "the tensors in use leave no room below the cap on memory; make them "
                                           "smaller, free some, or raise launch_options::memory_cap"};
inline constexpr reason out_of_memory{
    "tessera.memory.full", "bytes, in use",
    "the system has no memory for the tensor; make it smaller, free others, or start fewer workers on the machine"};
inline constexpr reason workers_disagree{
    "tessera.agree.fingerprint", "worker, other worker",
    "two workers do different things at the same place; give all of them the same program, types and extents"};
inline constexpr reason extents_disagree{
    "tessera.agree.extent", "dimension, first worker's extent, other worker, its extent",
    "two workers give a dynamic extent different values; give all of them the same"};
inline constexpr reason copies_differ{"tessera.agree.copies", "worker, other worker",
                                      "two workers hold different values where all copies are equal; look at what was "
                                      "assigned or stepped by hand: weights are invariant, not replicate"};
inline constexpr reason worker_lost{
    "tessera.agree.lost", "worker, lost worker",
    "a worker ended while another one waits for it; see its own message, or give all workers the same operations"};
inline constexpr reason workers_wait_in_a_ring{
    "tessera.agree.deadlock", "worker, waits for",
    "every worker waits for another one; give all of them the same operations in the same order"};
inline constexpr reason call_given_up{
    "tessera.agree.given_up", "worker",
    "a worker gave up an exchange between start and finish and went on; end the program, or finish what was started"};
inline constexpr reason exchanges_full{"tessera.agree.exchanges", "most",
                                       "more exchanges are bound at once than MPI has tags; let go of teams and bound "
                                       "exchanges that are done with, or use an MPI with more tags"};
inline constexpr reason order_unknown{"tessera.agree.order", "worker, other worker",
                                      "a worker waits for a call over NCCL that another one began behind others; begin "
                                      "calls in one order on all workers, or all of them before one is waited for"};
inline constexpr reason no_device{"tessera.device.none", "worker",
                                  "the worker's process sees no device; look at CUDA_VISIBLE_DEVICES and the driver, "
                                  "or keep tensors in the host's memory"};
inline constexpr reason device_failed{
    "tessera.device.failed", "status",
    "CUDA or NCCL reports an error; see its words, and the messages of the other workers"};
inline constexpr reason stream_untold{
    "tessera.device.stream", "",
    "this LibTorch does not say what CUDA calls its streams, as 2.11 does; say it in nccl_options::stream"};
inline constexpr reason sum_unknown_to_nccl{
    "tessera.device.sum", "",
    "NCCL does not combine terms of this element so; leave nccl_options::library_sums off, and the library does"};
inline constexpr reason call_finished{
    "tessera.call.finished", "",
    "nothing is under way here: the call was finished before, or moved elsewhere; finish each call once"};
inline constexpr reason time_limit{
    "tessera.agree.time", "worker, waits for, seconds",
    "a worker waited longer than the time limit; look at the worker it waits for, or raise the limit"};

}  // namespace tessera::code
