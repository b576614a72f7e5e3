#!/usr/bin/env python3
"""What splitting a layer costs. Forward and backward on two workers, threads and MPI, against two layers of LibTorch of half the size that run at
once, one on each: a ratio is the median over the rounds, above 1 where the library is quicker. All go to standard error as a table, and to
standard output as JSON lines.

FOLDER holds the program (build/bench/benchmarks/layers). Boxes have some megabytes, as in networks that are trained; --small takes some of one, where an
exchange costs as much as the work. --once runs one call of each layer a single time, small, and judges nothing.
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
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("folder", nargs="?", type=pathlib.Path, default=root / "build/bench/benchmarks/layers")
options = parser.parse_args()
program = str(options.folder / "layers")
least, least_mean = 0.9, 0.95


def ratios_of(command):
    """{(transport, layer): (microseconds, ratio)} of one run. MPI spins between two workers, as its own would."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "0"}
    ran = subprocess.run([*command, *(["--once"] if options.once else []), *(["--small"] if options.small or options.once else [])], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return {(line["transport"], line["layer"]): (line["tessera"], line["serial"] / line["tessera"]) for line in lines}


missed = False
rounds = [{**ratios_of([program]), **ratios_of(["mpirun", "-np", "2", program])} for _ in range(1 if options.once else options.rounds)]
for transport in dict.fromkeys(transport for transport, _ in rounds[0]):
    all_ratios = []
    for key in rounds[0]:
        if key[0] != transport:
            continue
        took = statistics.median(one[key][0] for one in rounds)
        ratio = statistics.median(one[key][1] for one in rounds)
        all_ratios.append(ratio)
        ok = options.once or ratio >= least
        missed = missed or not ok
        print(json.dumps({"name": f"layers.{transport}.{key[1]}", "ratio": round(ratio, 3), "bar": least, "ok": ok, "microseconds": round(took, 1)}), flush=True)
        print(f"{transport:12}{key[1]:18}{took:12.1f} us{ratio:8.2f} (at least {least})", file=sys.stderr)
    mean = statistics.geometric_mean(all_ratios)
    ok = options.once or mean >= least_mean
    missed = missed or not ok
    print(json.dumps({"name": f"layers.{transport}.mean", "ratio": round(mean, 3), "bar": least_mean, "ok": ok}), flush=True)
    print(f"{transport:12}{'geometric mean':18}{'':15}{mean:8.2f} (at least {least_mean})", file=sys.stderr)

sys.exit(missed)
