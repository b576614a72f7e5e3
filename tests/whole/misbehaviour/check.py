#!/usr/bin/env python3
"""Workers that misbehave end in an error that says so, within seconds, threads and processes alike: check.py MPIRUN PROGRAM."""
import concurrent.futures
import itertools
import os
import pathlib
import signal
import subprocess
import sys

mpirun, program = sys.argv[1:3]
cases = [  # how, ranks under mpirun, what must be said
    ("well", 3, []),
    ("well", 2, ["[tessera.launch.world]"]),
    ("for ever", 3, []),
    ("no time", 3, ["[tessera.launch.limit]"]),
    ("no threads", 0, ["[tessera.launch.threads]"]),
    ("throws", 3, ["out of paper"]),
    ("gives up", 3, ["out of paper"]),
    ("goes on", 3, ["[tessera.agree.given_up]"]),
    ("ends silently", 3, ["[tessera.agree.given_up]"]),
    ("gives up the first", 3, ["[tessera.agree.given_up]"]),
    ("slow", 3, []),
    ("slow between", 3, []),
    ("slow in turns", 3, []),
    ("leaves", 3, ["[tessera.agree.lost]", "worker 1: its program ended"]),
    ("last leaves", 3, ["[tessera.agree.lost]", "worker 2: its program ended"]),
    ("leaves what is bound", 3, ["[tessera.agree.lost]", "worker 1: its program ended"]),
    ("catches", 3, ["[tessera.agree.lost]", "worker 1: its program ended"]),
    ("swallows", 3, ["[tessera.agree.fingerprint]", "worker 1: one thing"]),
    ("swallows again", 3, ["[tessera.agree.fingerprint]", "worker 1: one thing"]),
    ("swallows for ever", 3, ["[tessera.agree.fingerprint]", "worker 1: one thing"]),
    ("swallows and computes", 3, ["[tessera.agree.lost]", "worker 2: its program ended"]),
    ("exits", 3, ["[tessera.agree.lost]", "it called exit"]),
    ("outlives", 3, ["[tessera.agree.lost]", "has ended"]),
    ("disagrees", 3, ["[tessera.agree.fingerprint]", "worker 0: comparing numbers: 1; worker 1: comparing numbers: 2"]),
    ("other", 3, ["[tessera.agree.", "worker 1: broadcast of 3 double", ": comparing numbers"]),
    ("saves", 3, ["[tessera.agree.fingerprint]", "worker 1: gathering a state dict", ": comparing numbers"]),
    ("purposes", 3, ["[tessera.agree.fingerprint]", "worker 1: backward of all_gather of 3 double", ": all_gather of 3 double"]),
    ("ring", 3, ["[tessera.agree.deadlock]", ": repartition of 3 double"]),
    ("ring of a sum", 3, ["[tessera.agree.deadlock]", "sum_reduce of 3000 double", "repartition of 3000 double"]),
    ("ring beside a sum", 3, ["[tessera.agree.deadlock]", "repartition of 3000 double"]),
    ("ring of a large sum", 3, ["[tessera.agree.deadlock]", "sum_reduce of 1500000 double", "repartition of 1500000 double"]),
    ("launches", 3, ["[tessera.agree.fingerprint]", "worker 1: launching", ": comparing numbers"]),
    ("relaunches late", 3, []),
    ("relaunches", 3, ["[tessera.agree.lost]", "worker 1: launching; worker ", ": its program ended"]),
    ("relaunches beside the stuck", 3, ["[tessera.agree.time]", "worker 1: launching; worker ", ": in no call"]),
    ("sends too much", 3, ["[tessera.agree.fingerprint]", "worker 1, other worker 0)", "worker 1: sending"]),
    ("sends to nobody", 3, ["[tessera.agree.lost]", "worker 1, lost worker 7)", "worker 1: sending"]),
    ("exits beside", 3, ["[tessera.agree.lost]", "waits for it; see its own message, or give all workers the same operations [it called exit]"]),
    ("shares its team", 3, ["[tessera.launch.thread]"]),
    ("killed", 3, [" noticed that process rank 1"]),
    ("stuck", 3, ["[tessera.agree.time]", "waits for 1", "worker 1: in no call"]),
    ("stuck at the end", 3, ["[tessera.agree.time]", "waits for 1", "worker 1: in no call"]),
    ("stuck behind a late one", 3, ["[tessera.agree.time]", "waits for 1", "worker 1: in no call"]),
    ("stuck behind another", 3, ["[tessera.agree.time]", "waits for 2", "worker 2: in no call"]),
]
# What a launcher's variables say of a process that is alone, and what must be said of it.
started = [
    ("RANK=0 WORLD_SIZE=1 MASTER_ADDR=here", []),
    ("RANK=0 WORLD_SIZE=3 MASTER_ADDR=here", ["[tessera.launch.processes]", "(processes 3)"]),
    ("PMI_RANK=0 PMI_SIZE=3", ["[tessera.launch.mpi]", "(processes started 3, processes of MPI 1)"]),
    ("SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=3", ["[tessera.launch.mpi]", "(processes started 3, processes of MPI 1)"]),
    ("SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=3", []),
    ("PMI_RANK=some PMI_SIZE=3", ["[tessera.launch.environment]", "[PMI_RANK=some]"]),
]

# What a worker does in the course of every verb, and what must be said: nothing where the launcher alone can say it, and no more of threads that end with
# their process.
verbs = ["broadcast", "sum_reduce", "all_reduce", "all_gather", "reduce_scatter", "scatter", "gather", "all_to_all", "repartition", "halo_exchange",
         "halo_accumulate"]
faults = {
    "throws": ["out of paper"],
    "crashes": [" noticed that process rank 1"],
    "starves": ["std::bad_alloc"],
    "quits": ["[tessera.agree.lost]", "it called exit"],
    "spins": ["[tessera.agree.time]", "waits for 1", "worker 1: "],
    "stops": ["[tessera.agree.time]", "waits for 1", "worker 1: "],
}
kills_the_process = ("crashes", "stops")


def judged(how, name, command, said, variables=(), fails=None):
    """Whether a job ends as it should, and what to say of it."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ | dict(variables))
    except subprocess.TimeoutExpired:
        return False, f"HANGS: {how}, {name}"
    fails = bool(said) if fails is None else fails
    ours = [line for line in ran.stderr.splitlines() if line.startswith(("tessera: ", f"{os.path.basename(mpirun)} noticed"))]
    told = any(all(part in line for part in said) for line in ours)
    right = (ran.returncode != 0) == fails and (told and len(ours) == 1 if said else not ours)
    text = f"{'ok' if right else 'WRONG'}: {how}, {name}: status {ran.returncode}, {len(ours)} messages"
    return right, text if right else f"{text}\n{ran.stderr}"


def interrupted(how, name, command):
    """The same of a job that somebody stops at the keyboard, once its second worker is at it."""
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    job.stdout.readline()
    os.killpg(job.pid, signal.SIGINT)
    try:
        _, told = job.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        job.kill()
        return False, f"HANGS: {how}, {name}"
    ours = [line for line in told.splitlines() if line.startswith("tessera: ")]
    return job.returncode != 0 and not ours, f"{'ok' if job.returncode != 0 and not ours else 'WRONG'}: {how}, {name}: status {job.returncode}, {len(ours)} messages"


def runs(path):
    """Whether a process runs the program."""
    try:
        return path.samefile(program)
    except OSError:  # it ended meanwhile, or is nobody's
        return False


jobs = []
for how, ranks, said in cases:  # threads are as many as the mesh has workers, may launch others, and copy boxes in place
    if ranks != 2 and not how.startswith(("launches", "relaunches", "sends", "killed", "swallows for ever")):
        jobs.append((how, "threads", [program, how], said))
    if ranks:
        jobs.append((how, f"{ranks} processes", [mpirun, "-np", str(ranks), program, how], said))
    if "up" in how or "bound" in how or "large" in how or how in ("goes on", "ends silently"):  # where boxes are messages
        jobs.append((how, f"{ranks} processes that share no memory", jobs[-1][2], said, [("TESSERA_SHARES_MEMORY", "0")]))
for i, (verb, when) in enumerate(itertools.product(verbs, (["forward", "before"], ["backward", "before"], ["forward", "begun"], ["backward", "begun"]))):
    ranks = [mpirun, "-np", "3", program]
    jobs.append((f"killed in {verb}, {' '.join(when)}", "3 processes", [*ranks, "killed", verb, *when], [" noticed that process rank 1"]))
    fault = list(faults)[i % len(faults)]
    jobs.append((f"{fault} in {verb}, {' '.join(when)}", "3 processes", [*ranks, fault, verb, *when], faults[fault]))
    if fault not in kills_the_process:
        jobs.append((f"{fault} in {verb}, {' '.join(when)}", "threads", [program, fault, verb, *when], faults[fault]))
jobs.append(("well", "no standard output", ["sh", "-c", 'exec "$@" >&-', "sh", program, "well"], []))
few_addresses = ["sh", "-c", 'ulimit -v 4000000; exec "$@"', "sh", mpirun, "-np", "3", program, "well"]
jobs.append(("well", "few addresses", few_addresses, ["share no memory and send messages [mmap: "], (), False))
for variables, said in started:
    jobs.append(("well", variables, [program, "well"], said, [v.split("=") for v in variables.split()]))
with concurrent.futures.ThreadPoolExecutor(8) as pool:  # most of the time they wait
    stopped = [pool.submit(interrupted, "interrupted", name, [*command, program, "waits", "all_reduce", "forward", "begun"])
               for name, command in (("threads", []), ("3 processes", [mpirun, "-np", "3"]))]
    results = [*pool.map(lambda job: judged(*job), jobs), *(one.result() for one in stopped)]
for _, text in results:
    print(text)
stay = [path for path in pathlib.Path("/proc").glob("[0-9]*/exe") if runs(path)]
for path in stay:
    print(f"WRONG: process {path.parent.name} runs on")
sys.exit(not all(right for right, _ in results) or bool(stay))
