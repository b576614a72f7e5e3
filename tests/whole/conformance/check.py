"""Holds the runner against cases whose verdict is known, wrong ones among them: check.py PROGRAM [OPTION...]."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

program, *options = sys.argv[1:]
files = [pathlib.Path(__file__).parent / name for name in ("cases.json", "training.json")]


def run(*of):
    return subprocess.run([program, *of, *options], capture_output=True, text=True, timeout=110)


ran = run(*files)
*lines, totals = [json.loads(line) for line in ran.stdout.splitlines()]
found = {line["id"]: line for line in lines}
faults = []
for case in (case for file in files for case in json.loads(file.read_text())["cases"]):
    line = found.pop(case["id"], None)
    if line is None:
        faults.append(f"{case['id']}: no line")
        continue
    # On devices memory is what their allocator is asked for, which frees late.
    wanted = case.get("wanted_on_devices", case["wanted"]) if "--on-devices" in options else case["wanted"]
    if line["result"] != wanted or case.get("wanted_why", "") not in line["why"]:
        faults.append(f"{case['id']}: {line['result']}, '{line['why']}'")
faults += [f"{name}: a line too much" for name in found]
for result in ("pass", "fail", "unbuilt"):
    if totals[result] != sum(line["result"] == result for line in lines):
        faults.append(f"the total of '{result}' is {totals[result]}")
if ran.returncode != 1:
    faults.append(f"status {ran.returncode} where cases failed, not 1")

broken = {  # files that are none, and what must be named
    '{"conventions": {}': "parse",
    "[]": "conventions",
    '{"conventions": {}, "tolerances": {}, "vocabulary": {}, "cases": []}': "'extra'",
    '{"conventions": {}, "tolerances": {}, "vocabulary": {}, "cases": [{"id": "a"}], "extra": []}': "'subject'",
    '{"conventions": {}, "tolerances": {}, "vocabulary": {}, "cases": {}, "extra": []}': "'cases'",
    '{"conventions": {}, "tolerances": {}, "vocabulary": {}, "cases": [{"id": 3}], "extra": []}': "'id'",
    '{"conventions": {}, "tolerances": {}, "vocabulary": {}, "cases": [{"id": "a", "subject": "b", "kind": "c", "ranks": "d"}],'
    ' "extra": []}': "'ranks'",
}
for text, named in broken.items():
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        file.write(text)
    ran = run(file.name)
    os.unlink(file.name)
    if ran.returncode != 2 or named not in ran.stderr:
        faults.append(f"{text}: status {ran.returncode}, {ran.stderr}")
print("\n".join(faults))
sys.exit(bool(faults))
