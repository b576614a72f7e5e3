#!/usr/bin/env python3
"""Holds the program that answers plan files against an oracle that looks at every element.

usage: check.py PROGRAM [FILE...] [--cases N] [--seed S]
The examples of the repository, the files named here or in TESSERA_PLAN_FILES (with : between them), mistakes, and twice N random
cases: those of seed 1 and those of a seed that is printed.
"""
import argparse
import copy
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import generate
import mistakes
import oracle

folder = pathlib.Path(__file__).resolve().parent
root = folder.parents[2]
failed = False


def say(right, what):
    global failed
    print(f"{'ok' if right else 'WRONG'}: {what}", flush=True)
    failed = failed or not right


def run(*arguments):
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def answers(cases):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"cases": cases}, file)
        file.flush()
        ran = run(file.name)
    if ran.returncode != 0:
        raise SystemExit(f"status {ran.returncode}: {ran.stderr}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def judged(case, answer):
    return [f"answers {answer['id']}"] if answer["id"] != case["id"] else oracle.faults(case, answer)


def shrunk(case):
    """The smallest case that fails as well, one thing less at a time."""
    while True:
        tries = list(generate.smaller(case))
        for smaller, answer in zip(tries, answers(tries)):
            try:
                if "refused" not in answer and judged(smaller, answer):
                    case = smaller
                    break
            except (KeyError, IndexError, ValueError, ZeroDivisionError):
                pass
        else:
            return case


def cases_in(file):
    read = json.loads(pathlib.Path(file).read_text())
    return read["cases"] if isinstance(read, dict) and "cases" in read else read if isinstance(read, list) else [read]


def check_file(file):
    cases = cases_in(file)
    ran = run(file)
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    wrong = {}
    for case, answer in zip(cases, lines):
        refused = case.get("expected", {}).get("refused")
        found = [] if refused and answer.get("refused") == refused else judged(case, answer)
        if found:
            wrong[case["id"]] = found
    say(ran.returncode == 0 and len(lines) == len(cases) and not wrong,
        f"{pathlib.Path(file).name}: {len(cases)} cases {wrong or ''}{ran.stderr}")


def check_random(count, seed):
    dice = random.Random(seed)
    cases = [generate.case(dice, f"r{i}") for i in range(count)]
    kinds, wrong = {}, None
    for case, answer in zip(cases, answers(cases)):
        found = judged(case, answer)
        kinds[answer.get("kind")] = kinds.get(answer.get("kind"), 0) + 1
        if found and wrong is None:
            wrong = case
    if wrong is not None:
        small = wrong if "refused" in answers([wrong])[0] else shrunk(wrong)
        answer = answers([small])[0]
        print(f"{json.dumps(small)}\n{json.dumps(answer)}\n{judged(small, answer)}")
    say(wrong is None and len(kinds) >= 6, f"{count} random cases of seed {seed}: {kinds}")


def check_oracle():
    """An oracle that finds nothing proves nothing, so it must see each of these."""
    case = cases_in(root / "examples/plans/moves.json")[0]
    right = answers([case])[0]

    def spoiled(what, change):
        answer = copy.deepcopy(right)
        change(answer)
        say(bool(oracle.faults(case, answer)), f"the oracle sees {what}")

    say(not oracle.faults(case, right) and len(right["messages"]) > 2, "the oracle takes the answer itself")
    spoiled("a message that is missing", lambda a: a["messages"].pop())
    spoiled("a message that comes twice", lambda a: a["messages"].append(a["messages"][0]))
    spoiled("another sender", lambda a: a["messages"][0].__setitem__(0, (a["messages"][0][0] + 1) % case["world"]))
    spoiled("a box that is too long", lambda a: a["messages"][0][2][0].__setitem__(1, a["messages"][0][2][0][1] + 1))
    spoiled("a box that is too short", lambda a: a["messages"][0][2][0].__setitem__(0, a["messages"][0][2][0][0] + 1))
    spoiled("a worker that sends to itself", lambda a: a["messages"].append([0, 0, a["messages"][0][2]]))
    spoiled("other bytes", lambda a: a["bytes_received"].__setitem__(0, 1))
    spoiled("another total", lambda a: a.__setitem__("bytes_total", a["bytes_total"] + 1))
    spoiled("another bound", lambda a: a.__setitem__("lower_bound", a["lower_bound"] + 1))


def check_refusals():
    cases = list(mistakes.refused())
    for (what, code, _), answer in zip(cases, answers([case for _, _, case in cases])):
        why = answer.get("why", "")
        say(answer.get("refused") == code and f"[{code}]" in why and "[r" in why, f"refused: {what}: {why}")
    say("messages" in answers([mistakes.TURN])[0], "the case that all of these differ from is not refused")


def check_files():
    with tempfile.TemporaryDirectory() as temporary:
        file = pathlib.Path(temporary) / "bad.json"
        for what, text, words in mistakes.bad_files():
            file.write_text(text)
            ran = run(file)
            said = ran.returncode == 2 and not ran.stdout and all(word in ran.stderr for word in ("bad.json", *words))
            say(said, f"status 2: {what}: {ran.stderr.strip()}")
    ran = run(folder / "missing.json")
    say(ran.returncode == 2 and "missing.json" in ran.stderr, "status 2: a file that is not there")
    say(run().returncode == 2 and run("--nonsense").returncode == 2 and run("--help").returncode == 0, "status of options")
    folds = root / "examples/plans/folds.json"
    several = run(folds, folder / "missing.json", folds)
    say(several.returncode == 2 and len(several.stdout.splitlines()) == 4, "a bad file does not keep others from being answered")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_intermixed_args()
    program = str(pathlib.Path(options.program).resolve())
    more = [f for f in os.environ.get("TESSERA_PLAN_FILES", "").split(":") if f]
    for file in [*sorted((root / "examples/plans").glob("*.json")), *options.files, *more]:
        check_file(file)
    check_oracle()
    check_refusals()
    check_files()
    check_random(options.cases, 1)
    check_random(options.cases, options.seed if options.seed is not None else random.SystemRandom().randrange(10**9))
    sys.exit(failed)
