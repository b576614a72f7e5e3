#!/usr/bin/env python3
"""Workers that misbehave end in an error that says so, within seconds, threads and processes alike: check.py MPIRUN PROGRAM."""
import subprocess
import sys

mpirun, program = sys.argv[1:3]
cases = [  # how, ranks under mpirun, what must be said
    ("well", 3, None),
    ("well", 2, "[tessera.launch.world]"),
    ("throws", 3, "out of paper"),
    ("gives up", 3, "out of paper"),
    ("goes on", 3, "[tessera.agree.given_up]"),
    ("slow", 3, None),
    ("leaves", 3, "[tessera.agree.lost]"),
    ("last leaves", 3, "[tessera.agree.lost]"),
    ("exits", 3, "[tessera.agree.lost]"),
    ("disagrees", 3, "[tessera.agree.fingerprint]"),
    ("other", 3, "[tessera.agree."),
]
failed = False
for how, ranks, said in cases:
    for name, command in (("threads", [program, how]), (f"{ranks} processes", [mpirun, "-np", str(ranks), program, how])):
        if name == "threads" and (ranks != 3 or how == "exits"):  # a process that exits takes its threads along
            continue
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            print(f"HANGS: {how}, {name}")
            failed = True
            continue
        ours = [line for line in ran.stderr.splitlines() if line.startswith("tessera: ")]
        if said is None:
            right = ran.returncode == 0 and not ours
        else:
            right = ran.returncode != 0 and any(said in line for line in ours) and (name != "threads" or len(ours) == 1)
        print(f"{'ok' if right else 'WRONG'}: {how}, {name}: status {ran.returncode}, {len(ours)} messages")
        if not right:
            print(ran.stderr)
        failed = failed or not right
sys.exit(failed)
