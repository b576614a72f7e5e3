#!/usr/bin/env python3
"""Runs the main job as people do and reads what it prints: digits.py PROGRAM DATA [MPIRUN]."""
import pathlib
import re
import subprocess
import sys
import tempfile

program, data = sys.argv[1:3]
mpirun = sys.argv[3] if len(sys.argv) > 3 else None
failed = False


def say(right, what):
    global failed
    print(f"{'ok' if right else 'WRONG'}: {what}", flush=True)
    failed = failed or not right


def run(*options, ranks=0):
    launch = [mpirun, "-np", str(ranks)] if ranks else []
    return subprocess.run([*launch, program, *options], capture_output=True, text=True, timeout=100, cwd=folder)


def judged(ran, what, least):
    found = re.search(r"test accuracy: ([0-9.]+) % +\(serial: ([0-9.]+) %\)\nlargest difference from serial: (\S+)", ran.stdout)
    right = ran.returncode == 0 and found is not None
    if right:
        mine, serial, difference = map(float, found.groups())
        right = mine >= least and mine == serial and difference <= 1e-12
        what += f": {mine} %, serial {serial} %, difference {difference}"
    say(right, what)


def refused(ran, words, what):
    said = ran.stdout + ran.stderr
    say(ran.returncode not in (0, 134, 139) and all(w in said for w in words) and not list(pathlib.Path(folder).glob("*.part")), what)


with tempfile.TemporaryDirectory() as folder:
    judged(run(), "2 x 2 threads, 30 epochs", 97)
    say((pathlib.Path(folder) / "digits.svg").read_text().rstrip().endswith("</svg>"), "the picture is whole")
    for mesh in ("1x1", "1x2", "1x4", "3x1", "2x3"):
        judged(run("--mesh", mesh, "--epochs", "4", "--figure", ""), f"{mesh} threads, 4 epochs", 0)
    judged(run("--epochs", "2", "--checked", "--figure", ""), "checked mode, 2 epochs", 0)
    if mpirun:
        judged(run("--epochs", "4", ranks=4), "2 x 2 processes, 4 epochs", 0)
        judged(run("--mesh", "3x1", "--epochs", "4", ranks=3), "3 x 1 processes, 4 epochs", 0)
        refused(run("--epochs", "1", ranks=3), ["[tessera.launch.world]"], "a mesh of four over three processes")
    refused(run("--mesh", "5x5"), ["5x5", "2x2", "3x1"], "a mesh that is not in the list, with the list")

    saved = run("--epochs", "2", "--save", "weights", "--figure", "")
    judged(saved, "saving weights", 0)
    judged(run("--mesh", "3x1", "--epochs", "1", "--load", "weights", "--figure", ""), "loading them on another mesh", 0)
    whole = (pathlib.Path(folder) / "weights").read_bytes()
    for name, text, code in (("short", whole[:-9], "[tessera.file.truncated]"), ("altered", whole[:-1] + b"?", "[tessera.file.altered]"),
                             ("foreign", b"no weights at all", "[tessera.file."), ("keys", whole.replace(b"0.bias", b"3.bias", 1), "[tessera.file.")):
        (pathlib.Path(folder) / name).write_bytes(text)
        refused(run("--load", name, "--epochs", "1"), [code], f"weights file: {name}")
    refused(run("--load", "nowhere", "--epochs", "1"), ["[tessera.file.missing]"], "weights file: missing")

    images = pathlib.Path(data).read_bytes()
    for name, text in (("short.csv", images[:1000]), ("altered.csv", images.replace(b"0", b"1", 1) if b"0" in images else images + b"1")):
        (pathlib.Path(folder) / name).write_bytes(text)
        refused(run("--data", name), ["[digits.data."], f"data file: {name}")
    refused(run("--data", "nowhere.csv"), ["[digits.data.missing]"], "data file: missing")
sys.exit(failed)
