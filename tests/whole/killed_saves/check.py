#!/usr/bin/env python3
"""A program that saves checkpoints is killed at random moments; each time the newest whole one loads: check.py PROGRAM [MPIRUN...].

With a launcher its two workers are processes, which are killed at once or one after the other; without one they are threads.
`--kills N` says how often.
"""
import argparse
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--kills", type=int, default=50)
parser.add_argument("program")
parser.add_argument("launcher", nargs=argparse.REMAINDER)
arguments = parser.parse_args()
moments = random.Random(32)
environment = os.environ | {"OMP_NUM_THREADS": "1"}


def started(folder, *more):
    command = [*arguments.launcher, arguments.program, str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def fail(why, job):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    said, told = job.communicate()
    sys.exit(f"WRONG: {why}\n{said}{told}")


def loaded(job, at_least):
    """The save that a started program found, and its processes."""
    line = job.stdout.readline().split()
    if not line or line[0] != "loaded" or int(line[1]) < at_least:
        fail(f"{line} where save {at_least} was whole", job)
    return int(line[1]), [int(pid) for pid in line[2:]]


def seconds_of_a_save(folder):
    """How long a save takes on this machine; it kills the program behind the first ones."""
    job = started(folder)
    _, pids = loaded(job, 0)
    began = time.monotonic()
    lines = [job.stdout.readline() for _ in range(4)]
    took = (time.monotonic() - began) / 5  # every third one has no line
    for pid in set(pids):
        os.kill(pid, signal.SIGKILL)
    job.communicate()
    return took, int(lines[-1].split()[1])


def killed(folder, number, whole, seconds):
    """Kills the program once; says which save is whole at least."""
    job = started(folder)
    found, pids = loaded(job, whole)
    time.sleep(moments.uniform(0, 6) * seconds)
    for pid in dict.fromkeys(reversed(pids) if number % 2 else pids):  # threads have one
        with contextlib.suppress(ProcessLookupError):  # the launcher was there first
            os.kill(pid, signal.SIGKILL)
        if number % 3:  # else at once
            time.sleep(moments.uniform(0, 1) * seconds)
    try:
        said, told = job.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        fail("it goes on when it was killed", job)
    if job.returncode == 0 or "[tessera.file." in told or "[tessera.checkpoint." in told:
        sys.exit(f"WRONG: it ended by itself with {job.returncode}\n{said}{told}")
    return max([found, *(int(line.split()[1]) for line in said.splitlines() if line.startswith("whole "))])


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch) / "run"
    began, moved = time.monotonic(), 0
    seconds, whole = seconds_of_a_save(folder)
    for number in range(arguments.kills):
        before, whole = whole, killed(folder, number, whole, seconds)
        moved += whole > before
    job = started(folder, "once")
    whole, _ = loaded(job, whole)
    if job.wait(timeout=20) != 0:
        fail("the last one does not end well", job)
    left = sorted(path.name for path in folder.iterdir() if (path / "index.json").exists())
    print(f"{arguments.kills} kills, {whole} saves, {moved} runs that saved, {1000 * seconds:.0f} ms each, {time.monotonic() - began:.1f} s; there are {' '.join(left)}")
    if moved < arguments.kills / 8 or not left or len(left) > 3:
        sys.exit("WRONG: kills did not fall between saves")
