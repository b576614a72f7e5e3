"""Every script explains itself with --help, and refuses an option that it does not know before it does anything."""
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[3]
forwards = {"conformance", "demo", "plan"}  # the program that they build refuses the option
faults = []
for script in sorted(root.joinpath("scripts").iterdir()):
    if script.name == "common" or script.suffix == ".py" or script.is_dir():  # what others source or import
        continue

    def run(option):
        return subprocess.run([script, option], capture_output=True, text=True, timeout=30)

    asked = run("--help")
    if asked.returncode != 0 or "usage" not in asked.stdout:
        faults.append(f"{script.name} --help: status {asked.returncode}, {asked.stdout + asked.stderr}")
    if script.name not in forwards:
        wrong = run("--no-such-option")
        if wrong.returncode != 2 or wrong.stdout:
            faults.append(f"{script.name} --no-such-option: status {wrong.returncode}, {wrong.stdout + wrong.stderr}")
print("\n".join(faults))
sys.exit(bool(faults))
