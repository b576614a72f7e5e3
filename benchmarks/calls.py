#!/usr/bin/env python3
"""What a call costs. Exchanges of the library, between threads and over MPI, against the best that is written by hand for MPI; and what tensors
add to them. The processes run in turns, and a ratio is the median over the rounds, above 1 where the library is quicker; "at best" is that of
the quickest rounds, for machines that are busy. All cells go to standard error as a table, and to standard output as JSON lines.

Over MPI the library's outputs are fresh at every call, as those of tensors, and those by hand are reused. Two more columns say what the library takes
over a program whose processes read one another's memory between two meetings and send nothing ("floor", below 1 where the library is quicker; the
worse one of both with outputs reused and of both with fresh ones), and what messages into outputs allocated at every call take over it ("fresh"):
judged where malloc asks the system for such memory each time, which for 1 MiB it does not.

MPI spins between two workers where that is better for it than yielding, and yields between four, which share two cores. FOLDER holds the
programs (build/bench/benchmarks/calls). --once runs each a single time, on the smallest size, and judges nothing.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--once", action="store_true")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("folder", nargs="?", type=pathlib.Path, default=root / "build/bench/benchmarks/calls")
options = parser.parse_args()
rounds = 1 if options.once else options.rounds
more = ["--once"] if options.once else []
missed = False


def lines_of(command, **environment):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    ran = subprocess.run([*command, *more], stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def report(name, ratio, bar, ok, **rest):
    global missed
    ok = ok or options.once
    missed = missed or not ok
    print(json.dumps({"name": name, "ratio": round(ratio, 3), "bar": bar, "ok": ok, **rest}), flush=True)


exchanges = str(options.folder / "exchanges")
floor = "shared window"
ours = {"in-process": "tessera", "mpi": "tessera, fresh outputs"}


def one_round(workers):
    """What this round took: {(verb, bytes): {(transport, method): microseconds}}, and the other lines by name."""
    cells, others = {}, {}
    mpirun = ["mpirun", "-np", str(workers), exchanges]
    runs = [lines_of(mpirun, OMPI_MCA_mpi_yield_when_idle=yields) for yields in ("01" if workers == 2 else "1")]
    runs.append(lines_of([exchanges, "--workers", str(workers)]))
    for line in sum(runs, []):
        if "verb" not in line:
            others[line["name"]] = line
            continue
        methods = cells.setdefault((line["verb"], line["bytes"]), {})
        key = (line["transport"], line["method"])
        methods[key] = min(line["microseconds"], methods.get(key, math.inf))
    return cells, others


def size_of(count):
    return f"{count >> 20} MiB" if count >> 20 else f"{count >> 10} KiB"


def measured(workers):
    """The cells of all rounds, each with its ratios: what MPI takes at its best over what the library takes."""
    taken = []
    for i in range(rounds):
        if sys.stderr.isatty():
            print(f"\r{workers} workers: round {i + 1} of {rounds}", end="\r", file=sys.stderr, flush=True)
        taken.append(one_round(workers))
    for line in taken[-1][1].values():
        print(json.dumps(line), flush=True)
    cells = []
    for verb, count in taken[0][0]:
        each = [cells_of_round[verb, count] for cells_of_round, _ in taken]
        by_hand = [{m: t for (transport, m), t in one.items() if transport == "mpi" and not m.startswith(("tessera", "fresh", floor))} for one in each]
        middle = {m: statistics.median(one[m] for one in by_hand) for m in by_hand[0]}
        best = min(middle, key=middle.get)
        cell = {"verb": verb, "bytes": count, "workers": workers, "best": best, "mpi": middle[best], "methods": middle}
        for transport in ("in-process", "mpi"):
            taken_by_us = [one[transport, ours[transport]] for one in each]
            cell[f"tessera {transport}"] = statistics.median(taken_by_us)
            cell[f"ratio {transport}"] = statistics.median(min(theirs.values()) / mine for theirs, mine in zip(by_hand, taken_by_us))
            cell[f"at best {transport}"] = min(min(theirs.values()) for theirs in by_hand) / min(taken_by_us)
        over_mpi = [one["mpi", ours["mpi"]] for one in each]
        for outputs in ("", ", fresh outputs"):
            cell[f"over floor{outputs}"] = statistics.median(one["mpi", "tessera" + outputs] / one["mpi", floor + outputs] for one in each)
        cell["over the worse floor"] = max(cell["over floor"], cell["over floor, fresh outputs"])
        fresh = [min(t for (_, m), t in one.items() if m.startswith("fresh")) for one in each]
        cell["fresh on both sides"] = statistics.median(theirs / mine for theirs, mine in zip(fresh, over_mpi))
        of_mpi = [min((t for m, t in theirs.items() if not m.startswith(("packed", "types"))), default=None) for theirs in by_hand]
        if None not in of_mpi:
            cell["over MPI's own"] = statistics.median(theirs / one["mpi", ours["mpi"]] for theirs, one in zip(of_mpi, each))
        adding = ("in-process", "adding by the same threads")
        if adding in each[0]:
            cell["over adding"] = statistics.median(one["in-process", "tessera"] / one[adding] for one in each)
        cells.append(cell)
    return cells


cells = measured(2) + measured(4)
print(f"{'':33}{'MPI by hand, us':>16}  {'':34}{'threads, us':>12}{'ratio':>8}{'at best':>8}{'over MPI, us':>14}{'ratio':>8}{'at best':>8}"
      f"{'floor':>8}{'fresh':>8}", file=sys.stderr)
for c in cells:
    print(f"{c['verb']:16}{size_of(c['bytes']):>8}{c['workers']:>3} w   {c['mpi']:15.1f}  {c['best']:34}{c['tessera in-process']:12.1f}"
          f"{c['ratio in-process']:8.2f}{c['at best in-process']:8.2f}{c['tessera mpi']:14.1f}{c['ratio mpi']:8.2f}"
          f"{c['at best mpi']:8.2f}{c['over the worse floor']:8.2f}{c['fresh on both sides']:8.2f}", file=sys.stderr)
    print(json.dumps({"name": f"calls.{c['verb']}.{size_of(c['bytes']).replace(' ', '')}.{c['workers']}", **c}), flush=True)

small, large = 4 << 10, 64 << 20
for transport, sizes, name, mean_bar, worst_bar in (
        ("in-process", lambda n: n <= small, "4KiB", 1.0, 0.6), ("in-process", lambda n: n > small, "1MiB_64MiB", 1.3, 0.9),
        ("mpi", lambda n: n <= small, "4KiB", 0.85, 0.85), ("mpi", lambda n: n > small, "1MiB_64MiB", 1.0, 0.85)):
    ratios = {f"{c['verb']} {size_of(c['bytes'])} {c['workers']} workers": c[f"ratio {transport}"] for c in cells if sizes(c["bytes"])}
    if not ratios:
        continue
    mean, worst = statistics.geometric_mean(ratios.values()), min(ratios, key=ratios.get)
    ok = mean >= mean_bar and ratios[worst] >= worst_bar
    report(f"calls.{transport}.{name}", mean, mean_bar, ok, worst=worst, worst_ratio=round(ratios[worst], 3), worst_bar=worst_bar)
    print(f"{transport} {name}: geometric mean {mean:.2f} (at least {mean_bar}), worst {ratios[worst]:.2f} (at least {worst_bar}): {worst}",
          file=sys.stderr)

# Processes of one node read one another's memory.
reductions = ("all_reduce", "reduce_scatter", "sum_reduce", "broadcast")
for name, verbs, sizes, against, mean_bar, worst_bar in (
        ("boxes.4KiB", ("repartition", "halo"), lambda n: n <= small, "ratio mpi", 1.0, 0.0),
        ("boxes.1MiB", ("repartition", "halo"), lambda n: small < n < large, "ratio mpi", 1.4, 0.0),
        ("boxes.64MiB", ("repartition", "halo"), lambda n: n >= large, "ratio mpi", 1.4, 0.0),
        ("reductions.1MiB_64MiB", reductions, lambda n: n > small, "over MPI's own", 3.0, 1.5),
        ("all_gather.1MiB_64MiB", ("all_gather",), lambda n: n > small, "over MPI's own", 1.1, 1.1)):
    ratios = {f"{c['verb']} {size_of(c['bytes'])} {c['workers']} workers": c[against] for c in cells if c["verb"] in verbs and sizes(c["bytes"])}
    if not ratios:
        continue
    mean, worst = statistics.geometric_mean(ratios.values()), min(ratios, key=ratios.get)
    ok = mean >= mean_bar and ratios[worst] >= worst_bar
    report(f"calls.node.{name}", mean, mean_bar, ok, worst=worst, worst_ratio=round(ratios[worst], 3), worst_bar=worst_bar)
    print(f"one node, {name}: geometric mean {mean:.2f} (at least {mean_bar}), worst {ratios[worst]:.2f} (at least {worst_bar}): {worst}", file=sys.stderr)

for name, verbs, sizes, against, bar, above in (
        ("floor", reductions + ("all_gather",), lambda n: n > small, "over the worse floor", 1.2, False),
        ("fresh_on_both_sides.1MiB", ("repartition", "halo"), lambda n: small < n < large, "fresh on both sides", None, True),
        ("fresh_on_both_sides.64MiB", ("repartition", "halo"), lambda n: n >= large, "fresh on both sides", 5.0, True)):
    ratios = {f"{c['verb']} {size_of(c['bytes'])} {c['workers']} workers": c[against] for c in cells if c["verb"] in verbs and sizes(c["bytes"])}
    if not ratios:
        continue
    mean = statistics.geometric_mean(ratios.values())
    worst = (min if above else max)(ratios, key=ratios.get)
    judged = mean if above else ratios[worst]
    ok = bar is None or (judged >= bar if above else judged <= bar)
    report(f"calls.node.{name}", judged, bar, ok, mean=round(mean, 3), worst=worst, worst_ratio=round(ratios[worst], 3))
    print(f"one node, {name}: geometric mean {mean:.2f}, worst {ratios[worst]:.2f}: {worst} ({'no bar' if bar is None else f'mean at least {bar}' if above else f'at most {bar}'})", file=sys.stderr)

for c in cells:
    if "over adding" in c and c["bytes"] >= 64 << 20:
        report(f"calls.fold_over_adding.{c['workers']}_terms", c["over adding"], 1.2, c["over adding"] <= 1.2)

tensors = options.folder / "tensors"
if tensors.exists():
    taken = [lines_of([str(tensors)]) for _ in range(rounds)]
    for same in zip(*taken):
        middle = statistics.median(line["ratio"] for line in same)
        bar = same[0]["bar"]
        report(same[0]["name"], middle, bar, bar is None or middle <= bar, unit=same[0]["unit"])
        print(f"{same[0]['name']}: {middle:.2f} {same[0]['unit']} (at most {bar})", file=sys.stderr)

sys.exit(missed)
