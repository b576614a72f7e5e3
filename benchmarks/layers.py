#!/usr/bin/env python3
"""What splitting a layer costs. Forward and backward on two workers, threads and MPI, against two layers of LibTorch of half the size that run at
once, one on each: a ratio is the median over the rounds, above 1 where the library is quicker. All go to standard error as a table, and to
standard output as JSON lines.

FOLDER holds the program (build/bench/benchmarks/layers). Boxes have some megabytes, as in networks that are trained; --small takes some of one, where an
exchange costs as much as the work. On tiny boxes a layer is held against the whole of LibTorch's, and what it takes more is what a call costs.
--once runs one call of each layer a single time, small, and judges nothing.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--once", action="store_true")
parser.add_argument("--small", action="store_true")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("folder", nargs="?", type=pathlib.Path, default=root / "build/bench/benchmarks/layers")
options = parser.parse_args()
program = str(options.folder / "layers")
least, least_mean, most_more = 0.9, 0.97, 15  # microseconds, of one layer
layers_of = {"mlp": 3}
missed = False


def taken(command):
    """{(transport, layer): (microseconds, LibTorch's)} of one run. MPI spins between two workers, as its own would."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "0"}
    ran = subprocess.run([*command, *(["--once"] if options.once else [])], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return {(line["transport"], line["layer"]): (line["tessera"], line["serial"]) for line in lines}


def rounds_of(*size):
    """Threads and processes in turns."""
    rounds = []
    for i in range(1 if options.once else options.rounds):
        if sys.stderr.isatty():
            print(f"{' '.join(size)} round {i + 1} of {options.rounds}".strip(), end="\r", file=sys.stderr, flush=True)
        rounds.append({**taken([program, *size]), **taken(["mpirun", "-np", "2", program, *size])})
    return rounds


def report(name, ok, text, **rest):
    global missed
    ok = ok or options.once
    missed = missed or not ok
    print(json.dumps({"name": f"layers.{name}", **rest, "ok": ok}), flush=True)
    print(text, file=sys.stderr)


rounds = rounds_of(*(["--small"] if options.small or options.once else []))
for transport in dict.fromkeys(transport for transport, _ in rounds[0]):
    ratios = []
    for key in rounds[0]:
        if key[0] != transport:
            continue
        took = statistics.median(one[key][0] for one in rounds)
        ratios.append(statistics.median(serial / ours for ours, serial in (one[key] for one in rounds)))
        report(f"{transport}.{key[1]}", ratios[-1] >= least, f"{transport:12}{key[1]:18}{took:12.1f} us{ratios[-1]:8.2f} (at least {least})",
               ratio=round(ratios[-1], 3), bar=least, microseconds=round(took, 1))
    mean = statistics.geometric_mean(ratios)
    report(f"{transport}.mean", mean >= least_mean, f"{transport:12}{'geometric mean':18}{'':15}{mean:8.2f} (at least {least_mean})", ratio=round(mean, 3), bar=least_mean)

rounds = rounds_of("--tiny")
for key in rounds[0]:
    took = statistics.median(one[key][0] for one in rounds)
    more = statistics.median(ours - serial for ours, serial in (one[key] for one in rounds))
    bar = most_more * layers_of.get(key[1], 1)
    report(f"tiny.{'.'.join(key)}", more <= bar, f"{key[0]:12}{'tiny ' + key[1]:22}{took:8.1f} us{more:8.1f} us more (at most {bar})",
           more=round(more, 1), bar=bar, microseconds=round(took, 1))

sys.exit(missed)
