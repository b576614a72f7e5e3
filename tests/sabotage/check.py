#!/usr/bin/env python3
"""Breaks `cut` and `owner` in a copy of the headers and sees the proofs fail: check.py COMPILER.

A proof that passes with a wrong rule proves nothing, so every wrong rule here must stop the compiler at the proof.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parents[2]
compiler = sys.argv[1]
true_cut = "return i * (n / p) + detail::smaller(i, n % p);"
true_owner = "return x < r * (q + 1) ? x / (q + 1) : r + (x - r * (q + 1)) / q;"
wrong = {
    "a middle part one item too long": (true_cut, "return i * (n / p) + detail::smaller(i, n % p) + (i == p / 2 ? 1 : 0);"),
    "the last part forgotten": (true_cut, "return i * (n / p);"),
    "the remainder at the end": (true_cut, "return i * (n / p) + detail::larger(0, i - (p - n % p));"),
    "an owner beside the true one": (true_owner, "return x < r * (q + 1) ? x / (q + 1) : r + (x - r * q) / q;"),
    "an owner that is wrong for one item": (true_owner, "return x == 76 ? 0 : x < r * (q + 1) ? x / (q + 1) : r + (x - r * (q + 1)) / q;"),
}


def compiles(headers):
    ran = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{headers}", str(root / "tests/sabotage/proof.cpp")],
                         capture_output=True, text=True)
    return ran.returncode == 0, ran.stderr


failed = False
with tempfile.TemporaryDirectory() as folder:
    headers = pathlib.Path(folder) / "include"
    shutil.copytree(root / "include", headers)
    cut = headers / "tessera/plan/cut.hpp"
    text = cut.read_text()
    good, said = compiles(headers)
    if not good:
        sys.exit(f"the true rule must compile:\n{said}")
    for name, (old, new) in wrong.items():
        assert text.count(old) == 1, f"cut.hpp has changed; say again how to break it: {name}"
        cut.write_text(text.replace(old, new))
        good, said = compiles(headers)
        caught = not good and "tessera.plan.proof" in said
        print(f"{'caught' if caught else 'MISSED'}: {name}")
        failed = failed or not caught
sys.exit(failed)
