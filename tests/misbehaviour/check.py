#!/usr/bin/env python3
"""Workers that misbehave end in an error that says so, within seconds, threads and processes alike: check.py MPIRUN PROGRAM."""
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
    ("slow", 3, []),
    ("slow between", 3, []),
    ("slow in turns", 3, []),
    ("leaves", 3, ["[tessera.agree.lost]", "worker 1: its program ended"]),
    ("last leaves", 3, ["[tessera.agree.lost]", "worker 2: its program ended"]),
    ("catches", 3, ["[tessera.agree.lost]", "worker 1: its program ended"]),
    ("exits", 3, ["[tessera.agree.lost]", "it called exit"]),
    ("outlives", 3, ["[tessera.agree.lost]", "has ended"]),
    ("disagrees", 3, ["[tessera.agree.fingerprint]", "worker 0: comparing numbers: 1; worker 1: comparing numbers: 2"]),
    ("other", 3, ["[tessera.agree.", "worker 1: broadcast of 3 double", ": comparing numbers"]),
    ("saves", 3, ["[tessera.agree.fingerprint]", "worker 1: gathering a state dict", ": comparing numbers"]),
    ("purposes", 3, ["[tessera.agree.fingerprint]", "worker 1: backward of all_gather of 3 double", ": all_gather of 3 double"]),
    ("ring", 3, ["[tessera.agree.deadlock]", ": repartition of 3 double"]),
    ("launches", 3, ["[tessera.agree.fingerprint]", "worker 1: launching", ": comparing numbers"]),
    ("relaunches late", 3, []),
    ("relaunches", 3, ["[tessera.agree.lost]", "worker 1: launching; worker ", ": its program ended"]),
    ("relaunches beside the stuck", 3, ["[tessera.agree.time]", "worker 1: launching; worker ", ": in no call"]),
    ("sends too much", 3, ["[tessera.agree.fingerprint]", "worker 1, other worker 0)", "worker 1: sending"]),
    ("sends to nobody", 3, ["[tessera.agree.lost]", "worker 1, lost worker 7)", "worker 1: sending"]),
    ("exits beside", 3, ["[tessera.agree.lost]", "waits for it; see its own message, or give all workers the same operations [it called exit]"]),
    ("shares its team", 3, ["[tessera.launch.thread]"]),
    ("stuck", 3, ["[tessera.agree.time]", "waits for 1", "worker 1: in no call"]),
    ("stuck at the end", 3, ["[tessera.agree.time]", "waits for 1", "worker 1: in no call"]),
    ("stuck behind another", 3, ["[tessera.agree.time]", "waits for 2", "worker 2: in no call"]),
]
failed = False
for how, ranks, said in cases:
    for name, command in (("threads", [program, how]), (f"{ranks} processes", [mpirun, "-np", str(ranks), program, how])):
        if name == "threads" and (ranks == 2 or how.startswith(("launches", "relaunches", "sends"))) or name == "0 processes":
            continue  # threads are as many as the mesh has workers, may launch others, and copy boxes in place
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            print(f"HANGS: {how}, {name}")
            failed = True
            continue
        ours = [line for line in ran.stderr.splitlines() if line.startswith("tessera: ")]
        told = any(all(part in line for part in said) for line in ours)
        right = ran.returncode != 0 and told and len(ours) == 1 if said else ran.returncode == 0 and not ours
        print(f"{'ok' if right else 'WRONG'}: {how}, {name}: status {ran.returncode}, {len(ours)} messages")
        if not right:
            print(ran.stderr)
        failed = failed or not right
sys.exit(failed)
