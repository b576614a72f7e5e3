#!/usr/bin/env python3
"""Kills examples/resume at a random step and lets it go on over another mesh: resume.py PROGRAM TEXT [MPIRUN].

In double the losses are those of a run that was not stopped, and of plain LibTorch, but for the order of sums. In
bfloat16 they are as far from it as another mesh alone is.
"""
import pathlib
import random
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples/resume"))
import killed  # noqa: E402

program, text = sys.argv[1:3]
mpirun = sys.argv[3] if len(sys.argv) > 3 else None
steps, every = 16, 5
failed = False
chance = random.Random()


def say(right, what):
    global failed
    print(f"{'ok' if right else 'WRONG'}: {what}", flush=True)
    failed = failed or not right


def resumed(example, name, begin, end, whole):
    """Kills a run over one mesh and resumes it over another; its losses, and that of the averaged weights."""
    folder = pathlib.Path(root) / name
    done = example.kill(begin, folder, chance.randrange(every, steps - 6), chance)
    said = example.run(end, folder)
    begins = int(re.search(r"goes on from step (\d+)", said)[1])
    losses = killed.losses_of(folder)
    say(begins in (every, 2 * every) and begins <= done, f"{name}: killed over {begin} behind step {done}, resumed over {end} from step {begins}")
    say(sorted(losses) == list(range(steps)), f"{name}: each step has one loss")
    say(all(losses[step] == whole[step] for step in range(begins)), f"{name}: the steps before have the same losses to the bit")
    return losses, killed.judged(said)


with tempfile.TemporaryDirectory() as root:
    options = ["--steps", str(steps), "--every", str(every), "--text", text]
    exact = killed.Program(program, [*options, "--double"], mpirun, quiet=True, patience=120)
    mixed = killed.Program(program, options, mpirun, quiet=True, patience=120)
    runs, judged = {}, {}
    for name, example, mesh in (("serial", exact, "serial"), ("double", exact, "2x2"), ("bfloat16", mixed, "2x2"), ("elsewhere", mixed, "1x3")):
        judged[name] = killed.judged(example.run(mesh, pathlib.Path(root) / name))
        runs[name] = killed.losses_of(pathlib.Path(root) / name)
    say(runs["serial"][steps - 1] < runs["serial"][0] - 0.5, f"it learns: {runs['serial'][0]:.3f} to {runs['serial'][steps - 1]:.3f}")

    losses, by_average = resumed(exact, "in double", "2x2", "1x3", runs["double"])
    for other in ("double", "serial"):
        apart = killed.far(losses, runs[other])
        say(apart <= 1e-12 and abs(by_average - judged[other]) <= 1e-12, f"in double: {apart:.2g} from {other}, averages too")

    losses, by_average = resumed(mixed, "in bfloat16", "2x2", "1x3", runs["bfloat16"])
    apart, by_mesh = killed.far(losses, runs["bfloat16"]), killed.far(runs["elsewhere"], runs["bfloat16"])
    say(0 < by_mesh < 0.01, f"in bfloat16 another mesh is {by_mesh:.2g} away")
    say(apart <= 3 * by_mesh, f"in bfloat16: {apart:.2g} from the run that was not stopped")
    say(abs(by_average - judged["bfloat16"]) < 0.01, "in bfloat16: the loss of averaged weights is that of the run that was not stopped")
sys.exit(failed)
