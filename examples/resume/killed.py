#!/usr/bin/env python3
"""Trains with examples/resume, kills the run at a random step, goes on over another mesh, and compares the losses.

The same training is run once without a stop, and once in plain LibTorch on one worker. Over processes (--mpirun) one of
the ranks is killed, over threads the process of all. What each run wrote stays in the folder.
"""
import argparse
import csv
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time


class Program:
    """The example, and how it is started: over threads, or over MPI's processes."""

    def __init__(self, path, options=(), mpirun=None, quiet=False, patience=600):
        self.path, self.options, self.mpirun, self.quiet, self.patience = str(path), list(options), mpirun, quiet, patience

    def start(self, mesh, folder):
        ranks = 1 if mesh == "serial" else workers_in(mesh)
        launch = [self.mpirun, "-np", str(ranks)] if self.mpirun and ranks > 1 else []
        return subprocess.Popen([*launch, self.path, "--mesh", mesh, "--folder", str(folder), *self.options], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE if self.quiet else None)

    def run(self, mesh, folder):
        """What a run prints; an error where it fails."""
        process = self.start(mesh, folder)
        try:
            said, complained = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if process.returncode != 0:
            sys.exit(f"resume --mesh {mesh} ended with {process.returncode}\n{said}{complained or ''}")
        return said

    def kill(self, mesh, folder, step, chance):
        """Kills a run by SIGKILL when it has written the loss of a step; the steps whose losses it wrote."""
        process = self.start(mesh, folder)
        while process.poll() is None and len(losses_of(folder)) <= step:
            time.sleep(0.002)
        if process.poll() is not None:
            said, complained = process.communicate()
            sys.exit(f"resume --mesh {mesh} ended with {process.returncode} before step {step}\n{said}{complained or ''}")
        os.kill(chance.choice(self.workers_of(process)), signal.SIGKILL)
        process.communicate(timeout=60)  # no other rank may wait for the one that is gone
        if process.returncode == 0:
            sys.exit(f"resume --mesh {mesh} was killed and ended with 0")
        return len(losses_of(folder))

    def workers_of(self, process):
        """The processes of a run's workers."""
        if not self.mpirun:
            return [process.pid]
        parents = {}
        for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:  # it ended meanwhile
                pass

        def below(pid):
            return pid == process.pid or (pid in parents and below(parents[pid]))

        def is_program(pid):
            try:
                return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0] == self.path
            except OSError:
                return False

        return [pid for pid in parents if pid != process.pid and below(pid) and is_program(pid)]


def workers_in(mesh):
    """The workers of "2x3"."""
    product = 1
    for extent in mesh.split("x"):
        product *= int(extent)
    return product


def losses_of(folder):
    """The losses of a run by step; of a run that writes still, those whose rows are whole."""
    table = pathlib.Path(folder) / "metrics.csv"
    text = table.read_text() if table.exists() else ""
    rows = list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))
    losses = {int(row["step"]): float(row["loss"]) for row in rows}
    if len(losses) != len(rows):
        sys.exit(f"{table} has a step twice")
    return losses


def judged(said):
    """The validation loss that a run prints."""
    return float(re.search(r"averaged weights: (\S+)", said)[1])


def far(some, others):
    """The largest difference of two runs' losses, step by step."""
    return max(abs(some[step] - others[step]) for step in some.keys() & others.keys())


def figure(path, serial, lost, whole, begins, meshes):
    """Draws the losses beside the serial ones, and below how far they are from those."""
    left, right, steps = 60, 890, len(serial)
    most = max(serial.values())
    apart = {step: whole[step] - serial[step] for step in whole}
    widest = max(map(abs, apart.values())) or 1

    def x(step):
        return left + (right - left) * step / max(steps - 1, 1)

    def y(loss):
        return 330 - 270 * loss / most

    def below(difference):
        return 420 - 45 * difference / widest

    def line(values, to, style):
        points = " ".join(f"{x(step):.1f},{to(values[step]):.1f}" for step in sorted(values))
        return f"<polyline points='{points}' fill='none' {style}/>"

    def word(at, height, text, style=""):
        return f"<text x='{at}' y='{height}' {style}>{text}</text>"

    first = {step: loss for step, loss in whole.items() if step <= begins}
    rest = {step: loss for step, loss in whole.items() if step >= begins}
    again = {step: loss for step, loss in lost.items() if step >= begins - 1}
    blue, red = "#2f6fb0", "#c0392b"
    shown = ["<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 920 520' width='920' height='520'>",
             "<style>text{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:12px;fill:#3b4252}.grid{stroke:#e3e6ec}</style>",
             "<rect width='920' height='520' rx='8' fill='#fff'/>",
             word(left, 34, f"Killed over {meshes[0]} workers, resumed over {meshes[1]}", "font-weight='bold' style='font-size:17px'")]
    for value in range(int(most) + 1):
        shown.append(f"<path class='grid' d='M{left} {y(value):.1f}H{right}'/>" + word(left - 8, f"{y(value) + 4:.1f}", value, "text-anchor='end'"))
    for value in (-widest, 0, widest):
        shown.append(f"<path class='grid' d='M{left} {below(value):.1f}H{right}'/>" + word(left - 8, f"{below(value) + 4:.1f}", f"{value:.2g}", "text-anchor='end'"))
    killed = max(lost)
    for step, text, anchor, height in ((begins, f"checkpoint of step {begins}", "end", 80), (killed, f"SIGKILL behind step {killed + 1}", "start", 80)):
        shown.append(f"<path d='M{x(step):.1f} 60V465' stroke='#9aa3b2' stroke-dasharray='3 3'/>" +
                     word(f"{x(step) + (6 if anchor == 'start' else -6):.1f}", height, text, f"text-anchor='{anchor}'"))
    shown += [line(serial, y, "stroke='#d9dde5' stroke-width='7' stroke-linejoin='round'"), line(again, y, f"stroke='{blue}' stroke-width='1.5' stroke-dasharray='2 2'"),
              line(first, y, f"stroke='{blue}' stroke-width='1.5'"), line(rest, y, f"stroke='{red}' stroke-width='1.5'"),
              line({step: apart[step] for step in first}, below, f"stroke='{blue}'"), line({step: apart[step] for step in rest}, below, f"stroke='{red}'"),
              word(left, 492, f"above: cross entropy in nats a byte of {steps} steps; below: its difference from the serial run"),
              "<path d='M560 106H600' stroke='#d9dde5' stroke-width='7'/>" + word(608, 110, "serial, in plain LibTorch"),
              f"<path d='M560 126H600' stroke='{blue}' stroke-width='1.5'/>" + word(608, 130, f"{meshes[0]}, dashed what was lost"),
              f"<path d='M560 146H600' stroke='{red}' stroke-width='1.5'/>" + word(608, 150, f"{meshes[1]}, from the checkpoint on"), "</svg>"]
    part = pathlib.Path(f"{path}.part")
    part.write_text("\n".join(shown) + "\n")
    part.replace(path)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", help="examples/resume, as it was built")
    arguments.add_argument("--begin", default="2x2", help="the mesh of the run that is killed (default: %(default)s)")
    arguments.add_argument("--end", default="1x3", help="the mesh of the run that goes on (default: %(default)s)")
    arguments.add_argument("--steps", type=int, default=200, help="steps of training (default: %(default)s)")
    arguments.add_argument("--every", type=int, default=20, help="steps between checkpoints (default: %(default)s)")
    arguments.add_argument("--double", action="store_true", help="compute in double, not in bfloat16 with float masters")
    arguments.add_argument("--text", help="a file, or a folder whose files are read (default: the licences of the system)")
    arguments.add_argument("--mpirun", help="start workers as processes by this program (default: threads)")
    arguments.add_argument("--chance", type=int, help="seed of the step at which the run is killed (default: the clock)")
    arguments.add_argument("--folder", default="resume", help="where the runs go, each into a new folder (default: %(default)s)")
    arguments.add_argument("--figure", default="resume.svg", help="where the losses are drawn (default: %(default)s)")
    asked = arguments.parse_args()
    if not 2 <= 2 * asked.every < asked.steps:
        arguments.error("--steps must be more than twice --every")
    options = ["--steps", str(asked.steps), "--every", str(asked.every)]
    options += ["--double"] * asked.double + (["--text", asked.text] if asked.text else [])
    program = Program(pathlib.Path(asked.program).resolve(), options, asked.mpirun)
    root = pathlib.Path(asked.folder)
    tries = (root / f"run_{number}" for number in range(1, 10**6))
    folder = next(path for path in tries if not path.exists())
    chance = random.Random(asked.chance)

    by_one = judged(program.run("serial", folder / "serial"))
    unstopped = judged(program.run(asked.begin, folder / "whole"))
    step = chance.randrange(asked.every + 1, asked.steps - asked.every)
    done = program.kill(asked.begin, folder / "killed", step, chance)
    lost = losses_of(folder / "killed")
    said = program.run(asked.end, folder / "killed")
    begins = int(re.search(r"goes on from step (\d+)", said)[1])
    serial, whole, resumed = (losses_of(folder / run) for run in ("serial", "whole", "killed"))
    print(f"killed over {asked.begin} workers behind step {done}, resumed over {asked.end} from step {begins}, {asked.steps} steps in all\n"
          f"largest difference of a step's loss: {far(resumed, whole):.2g} from the run that was not stopped, {far(resumed, serial):.2g} from the serial one\n"
          f"validation loss: {judged(said):.4f}   (not stopped: {unstopped:.4f}, serial: {by_one:.4f})")
    figure(asked.figure, serial, lost, resumed, begins, (asked.begin, asked.end))
    print(f"picture: {asked.figure}\nmetrics and checkpoints: {folder}")


if __name__ == "__main__":
    main()
