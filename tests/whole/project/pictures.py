#!/usr/bin/env python3
"""Holds the pictures of docs/pictures against what the programs draw now: pictures.py PLAN INSPECT [--write]."""
import pathlib
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[3]
plan, inspect = sys.argv[1:3]
shown = {"turn": "plan", "halo": "inspect", "halo_exchange": "inspect", "network": "inspect", "branches": "inspect"}
stale = False
with tempfile.TemporaryDirectory() as folder:
    drawn = {"plan": pathlib.Path(folder) / "plan", "inspect": pathlib.Path(folder)}
    subprocess.run([plan, "--svg", str(drawn["plan"]), "--only", "turn", str(root / "examples/plans/moves.json")], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run([inspect, folder], check=True, stdout=subprocess.DEVNULL)
    page = (root / "docs/inspect.md").read_text()
    for name, program in shown.items():
        wanted, kept = (drawn[program] / f"{name}.svg").read_text(), root / f"docs/pictures/{name}.svg"
        if f"(pictures/{name}.svg)" not in page:
            print(f"docs/inspect.md does not show {kept.name}")
            stale = True
        if kept.exists() and kept.read_text() == wanted:
            continue
        if "--write" in sys.argv:
            kept.write_text(wanted)
        else:
            print(f"docs/pictures/{kept.name} is not what is drawn now; run tests/whole/project/pictures.py {plan} {inspect} --write")
            stale = True
    pages = "".join(p.read_text() for p in (root / "docs").glob("*.md"))
    for other in {p.stem for p in (root / "docs/pictures").glob("*.svg")} - set(shown):
        # What a trained network gives differs from machine to machine in its last digits: scripts/demo draws it.
        if not (root / f"examples/{other}").is_dir() and not (root / f"examples/{other}.cpp").exists():
            print(f"docs/pictures/{other}.svg is drawn by nothing")
            stale = True
        if f"(pictures/{other}.svg)" not in pages:
            print(f"no page shows docs/pictures/{other}.svg")
            stale = True
sys.exit(stale)
