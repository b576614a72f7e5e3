#!/usr/bin/env python3
"""Breaks a rule in a copy of the headers and sees the proofs fail: check.py COMPILER.

A proof that passes with a wrong rule proves nothing, so every wrong rule here must stop the compiler at its proof.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[3]
compiler = sys.argv[1]
cut, layout = "tessera/plan/cut.hpp", "tessera/topology/layout.hpp"
true_cut = "return i * (n / p) + detail::smaller(i, n % p);"
true_owner = "return x < r * (q + 1) ? x / (q + 1) : r + (x - r * (q + 1)) / q;"
tiles, law = "tessera.plan.proof", "tessera.primitive.law"
wrong = {
    "a middle part one item too long": (cut, true_cut, "return i * (n / p) + detail::smaller(i, n % p) + (i == p / 2 ? 1 : 0);", tiles),
    "the last part forgotten": (cut, true_cut, "return i * (n / p);", tiles),
    "the remainder at the end": (cut, true_cut, "return i * (n / p) + detail::larger(0, i - (p - n % p));", tiles),
    "an owner beside the true one": (cut, true_owner, "return x < r * (q + 1) ? x / (q + 1) : r + (x - r * q) / q;", tiles),
    "an owner that is wrong for one item": (
        cut, true_owner, "return x == 76 ? 0 : x < r * (q + 1) ? x / (q + 1) : r + (x - r * (q + 1)) / q;", tiles),
    "a cotangent that leaves terms terms": (
        layout, "x.placements[a] = {placement::replicate};", "x.placements[a] = {placement::partial};", law),
    "a cotangent that makes copies alike": (
        layout, "x.placements[a] = {placement::partial};", "x.placements[a] = {placement::invariant};", law),
    "a cotangent that leaves what is pending pending": (
        layout, "cover::haloed ? cover::pending : cover::haloed", "cover::haloed ? cover::pending : cover::pending", law),
}


def compiles(headers):
    ran = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{headers}", str(root / "tests/whole/sabotage/proof.cpp")],
                         capture_output=True, text=True)
    return ran.returncode == 0, ran.stderr


failed = False
with tempfile.TemporaryDirectory() as folder:
    headers = pathlib.Path(folder) / "include"
    shutil.copytree(root / "include", headers)
    good, said = compiles(headers)
    if not good:
        sys.exit(f"the true rules must compile:\n{said}")
    for name, (header, old, new, proof) in wrong.items():
        path = headers / header
        text = path.read_text()
        assert text.count(old) == 1, f"{header} has changed; say again how to break it: {name}"
        path.write_text(text.replace(old, new))
        good, said = compiles(headers)
        path.write_text(text)
        caught = not good and f"[{proof}]" in said
        print(f"{'caught' if caught else 'MISSED'}: {name}")
        failed = failed or not caught
sys.exit(failed)
