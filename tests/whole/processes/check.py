#!/usr/bin/env python3
"""Processes that torchrun's variables start train as one does, and end together whatever becomes of one of them: check.py PROGRAM."""
import concurrent.futures
import contextlib
import os
import socket
import subprocess
import sys
import time

program = sys.argv[1]
OURS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
LAUNCHERS = ("OMPI_", "PMI_", "PMIX_", "SLURM_", "TORCHELASTIC_")
alone = {k: v for k, v in os.environ.items() if k not in OURS and not k.startswith(LAUNCHERS)}
lost = "[tessera.agree.lost]"
cases = [  # how, processes, which of them, what must be said
    ("trains", 1, None, []),
    ("trains", 2, None, []),
    ("trains", 4, None, []),
    ("trains by name", 1, None, []),
    ("trains by name", 2, None, []),
    ("trains on devices through hosts", 2, None, []),
    ("trains on devices through hosts", 4, None, []),
    ("trains on devices over NCCL", 2, None, []),
    ("trains on devices over NCCL", 4, None, []),
    ("counts", 1, None, []),
    ("counts", 3, None, []),
    ("trains", 3, None, ["[tessera.launch.world]"]),
    ("is killed", 2, None, [lost, "worker 0: comparing numbers; worker 1: its process ended"]),
    ("is killed", 4, None, [lost, "; worker 1: its process ended"]),
    ("throws", 4, None, ["out of paper"]),
    ("exits", 4, None, [lost, "it called exit"]),
    ("leaves", 4, None, [lost, "worker 1: its program ended"]),
    ("is stuck", 2, None, ["[tessera.agree.time]", "waits for 1", "worker 1: in no call"]),
    ("waits in vain", 2, [0], ["[tessera.agree.time]", "waits for 1"]),
    ("waits in vain", 2, [1], ["[tessera.agree.time]", "waits for 0", "Connection refused"]),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def variables(rank, world, port, **more):
    said = {"RANK": rank, "WORLD_SIZE": world, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return alone | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"} | {k: str(v) for k, v in (said | more).items()}


@contextlib.contextmanager
def agent(port):
    """What serves the store where torchrun's agent does."""
    serves = subprocess.Popen([program, "serves"], env=variables(0, 1, port), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    serves.stdout.readline()
    try:
        yield
    finally:
        serves.stdin.close()
        serves.wait(timeout=20)


def judged(how, world, which=None, said=(), port=None, **more):
    """Whether processes end as they should, those left over when one has failed being killed as a launcher does; and what to say of it."""
    port = port or free_port()
    ranks = range(world) if which is None else which
    began = time.monotonic()
    jobs = [subprocess.Popen([program, how], env=variables(r, world, port, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for r in ranks]
    ends = began + (10 if said else 60)
    while time.monotonic() < ends and any(job.poll() is None for job in jobs):
        time.sleep(0.05)
    stay = [job for job in jobs if job.poll() is None]
    for job in stay:
        job.kill()
    told = [job.communicate() for job in jobs]
    messages = [line for _, err in told for line in err.splitlines() if line.startswith("tessera: ")]
    if said:
        right = len(messages) == 1 and all(part in messages[0] for part in said) and all(job.returncode != 0 for job in jobs)
        right = right and len(stay) == (how == "is stuck")
    else:
        right = not messages and not stay and all(job.returncode == 0 for job in jobs)
        kind = {"trains on devices through hosts": "staged over tcp", "trains on devices over NCCL": "nccl over tcp"}.get(
            how, f"{'tcp' if world > 1 or 'name' in how else 'in-process'} over ")
        right = right and told[0][0].startswith(kind)
    text = f"{'ok' if right else 'WRONG'}: {how}, {world} processes{' of an agent' if more else ''}: {time.monotonic() - began:.1f} s, {len(messages)} messages"
    return right, text if right else "\n".join([text, f"  status {[job.returncode for job in jobs]}", *(part for pair in told for part in pair)])


def attempts():
    """An agent's workers, and those that it starts anew."""
    port = free_port()
    with agent(port):
        return [judged("trains", world, port=port, TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RUN_ID="job", TORCHELASTIC_RESTART_COUNT=n)
                for n, world in enumerate([2, 4, 2])]


with concurrent.futures.ThreadPoolExecutor(2) as pool:  # some wait
    under_agent = pool.submit(attempts)
    results = [*pool.map(lambda case: judged(*case), cases), *under_agent.result()]
results.append(judged("trains", 2, [0], ["[tessera.launch.meeting]", "no port"], MASTER_PORT=""))
for _, text in results:
    print(text)
sys.exit(not all(right for right, _ in results))
