"""Compiles one case of a file of mistakes and judges what the compiler says: check.py --compiler g++ FILE CASE|control [OPTION...]."""

import argparse
import os
import re
import subprocess
import sys

MOST_LINES, MOST_CHARACTERS = 15, 2500


def cases_of(source):
    """The texts that each case expects and its lines in the file, by the name of its macro."""
    with open(source, encoding="utf-8") as file:
        lines = list(file)
    found = {}
    for number, line in enumerate(lines, 1):
        if not re.search(r"//\s*expect", line):
            continue
        match = re.match(r"#(?:el)?if defined\((\w+)\) *// *expect(?: in (\d) modules)?:\s*(\S.*?)\s*$", line)
        if not match:
            sys.exit(f"{source}: write '#if defined(NAME)  // expect: TEXT && TEXT' instead of\n{line}")
        if match[1] in found:
            sys.exit(f"{source}: {match[1]} stands twice")
        behind = next(i for i, after in enumerate(lines[number:]) if re.match("#(elif|else|endif)", after))
        found[match[1]] = match[3].split(" && "), range(number + 1, number + 1 + behind), int(match[2] or 1)
    return found


def faults_of(said, expected, source, lines, modules):
    """What is wrong with the compiler's words for a case that was refused, which stands in these lines of the source.

    Compilers name the line of each module that a mistake is in, and what calls it: the bars are for one.
    """
    mine = [line for line in said.splitlines() if not line.startswith(("In file included from", "                 from"))]
    mine = [line for line in mine if not re.match(r"\d+ errors? generated", line)]  # clang counts
    errors = sum(" error: " in line for line in mine)
    characters = sum(len(line) + 1 for line in mine)
    plain = said.replace("> >", ">>")  # as g++ writes it
    faults = [f"does not say '{text}'" for text in expected if text not in plain]
    if not any(int(line) in lines for line in re.findall(rf"^{re.escape(source)}:(\d+):", said, re.M)):
        faults.append(f"names none of the lines {lines[0]} to {lines[-1]}")
    if errors != 1:
        faults.append(f"gives {errors} errors, not 1")
    if len(mine) > MOST_LINES * modules:
        faults.append(f"takes {len(mine)} lines, more than {MOST_LINES * modules}")
    if characters > MOST_CHARACTERS * modules:
        faults.append(f"takes {characters} characters, more than {MOST_CHARACTERS * modules}")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--precompiled", help="a header to include first, which was compiled with the same options")
    parser.add_argument("source")
    parser.add_argument("case")
    options, system = parser.parse_known_args()

    cases = cases_of(options.source)
    control = options.case == "control"
    if control and not cases:
        sys.exit(f"{options.source}: no case with '// expect: TEXT'")
    command = [options.compiler, "-std=c++20", "-fsyntax-only", "-Iinclude", *system]
    if options.precompiled:
        command += ["-include", options.precompiled]
    command.append("-DCONTROL" if control else f"-D{options.case}")
    command.append(options.source)
    plain = os.environ | {"LC_ALL": "C"}
    ran = subprocess.run(command, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = ran.stdout.replace(f"{os.getcwd()}/", "")  # a precompiled header remembers whole paths
    if control:
        faults = ["does not compile"] if ran.returncode else []
    elif ran.returncode == 0:
        faults = ["compiles, but must not"]
    else:
        expected, lines, modules = cases[options.case]
        faults = faults_of(said, expected, options.source, lines, modules)
    if faults:
        sys.exit(f"{options.source}, {options.case}: {'; '.join(faults)}:\n{said}")


main()
