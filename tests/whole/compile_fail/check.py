"""Compiles the mistakes of a file and judges what the compiler says of each: check.py --compiler g++ FILE all|control|CASE [OPTION...]."""

import argparse
import itertools
import os
import re
import subprocess
import sys

MOST_LINES, MOST_CHARACTERS = 15, 2500


class Case:
    """A mistake: the namespace that it gets, the texts that it expects, its lines in the file, and through how many modules it is called."""

    def __init__(self, place, expected, lines, modules):
        self.inside, self.expected, self.lines, self.modules = f"case{place}", expected, lines, modules


def cases_of(source, lines):
    """The mistakes of a file by the names of their macros."""
    found = {}
    for number, line in enumerate(lines, 1):
        if not re.search(r"//\s*expect", line):
            continue
        name = re.match(r"#(?:el)?if defined\((\w+)\)$", lines[number - 2].rstrip())
        comment = [line, *itertools.takewhile(lambda after: after.startswith("// "), lines[number:])]
        match = re.match(r"expect(?: in (\d) modules)?: (\S.*)$", " ".join(part.removeprefix("// ").strip() for part in comment))
        if not name or not match:
            sys.exit(f"{source}: write '// expect: TEXT && TEXT', in as many lines as it needs, below '#if defined(NAME)' instead of\n{line}")
        if name[1] in found:
            sys.exit(f"{source}: {name[1]} stands twice")
        first = number + len(comment)
        behind = next(i for i, after in enumerate(lines[first - 1:]) if re.match("#(elif|else|endif)", after))
        found[name[1]] = Case(len(found), match[2].split(" && "), range(first, first + behind), int(match[1] or 1))
    if not found:
        sys.exit(f"{source}: no case with '// expect: TEXT'")
    return found


def unit_of(source, lines, cases):
    """What the file's cases share, and then these cases, each in a namespace, at the lines that they have in the file."""
    unit, chain = [f'#line 1 "{source}"\n'], False
    for line, after in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        chain = chain or (re.match(r"#if defined", line) and after.startswith("// expect"))
        unit.append("\n" if chain else line)
        if line.startswith("#endif"):
            chain = False
    for case in cases:
        first, last = case.lines.start, case.lines.stop
        unit += [f"namespace {case.inside} {{\n", f'#line {first} "{source}"\n', *lines[first - 1:last - 1], "}\n"]
    return "".join(unit)


def reports_of(said):
    """The lines that a compiler says of each error: where it is, the error, and its notes."""
    reports, ahead = [[]], []
    for line in said.splitlines():
        if re.match("In file included from |                 from |[0-9]+ errors? generated", line):  # clang counts
            continue
        if re.search(r": +(In|At|in 'constexpr'|required|recursively required) ", line):
            ahead.append(line)
            continue
        if " error: " in line:
            reports.append([])
        reports[-1] += [*ahead, line]
        ahead = []
    return reports[1:]


def faults_of(said, errors, case):
    """What is wrong with the compiler's words for a case that it refused.

    Compilers name the line of each module that a mistake is in, and what calls it: the bars are for one.
    """
    characters = sum(len(line) + 1 for line in said)
    plain = "\n".join(said).replace("> >", ">>")  # as g++ writes it
    faults = [f"does not say '{text}'" for text in case.expected if text not in plain]
    if errors != 1:
        faults.append(f"gives {errors} errors, not 1")
    if len(said) > MOST_LINES * case.modules:
        faults.append(f"takes {len(said)} lines, more than {MOST_LINES * case.modules}")
    if characters > MOST_CHARACTERS * case.modules:
        faults.append(f"takes {characters} characters, more than {MOST_CHARACTERS * case.modules}")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--precompiled", help="a header to include first, which was compiled with the same options")
    parser.add_argument("source")
    parser.add_argument("case", help="all of them, control, or one")
    options, system = parser.parse_known_args()
    source = options.source
    with open(source, encoding="utf-8") as file:
        lines = list(file)
    cases = cases_of(source, lines)
    command = [options.compiler, "-std=c++20", "-fsyntax-only", "-Iinclude", *system]
    if options.precompiled:
        command += ["-include", options.precompiled]

    def compiled(*arguments, text=None):
        ran = subprocess.run([*command, *arguments], input=text, env=os.environ | {"LC_ALL": "C"},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return ran.returncode, ran.stdout.replace(f"{os.getcwd()}/", "")  # a precompiled header remembers whole paths

    if options.case == "control":
        failed, said = compiled("-DCONTROL", source)
        sys.exit(f"{source}, control: does not compile:\n{said}" if failed else 0)

    # A compiler says only once what is wrong with a type. A case that it passes over, as another one is wrong in the same way, is
    # compiled again without those that are judged. Where the order matters nevertheless, g++ sees one and clang the other.
    left = cases if options.case == "all" else {options.case: cases[options.case]}
    if "clang" in options.compiler:
        command.append("-ferror-limit=0")
        left = dict(reversed(left.items()))
    faults = []
    while left:
        said = re.sub(r"\bcase\d+::", "", compiled("-x", "c++", "-", text=unit_of(source, lines, left.values()))[1])
        told = {}
        for report in reports_of(said):
            named = {int(line) for line in re.findall(rf"^{re.escape(source)}:(\d+):", "\n".join(report), re.M)}
            where = [name for name, case in left.items() if named.intersection(case.lines)]
            if len(where) == 1:
                told.setdefault(where[0], []).append(report)
            else:
                faults.append(f"{source}: an error that is in the lines of {' and '.join(where) or 'no case'}:\n" + "\n".join(report))
        for name in told or left:
            words = [line for report in told.get(name, []) for line in report]
            wrong = faults_of(words, len(told[name]), left[name]) if told else ["compiles, but must not"]
            if wrong:
                faults.append(f"{source}, {name}: {'; '.join(wrong)}:\n" + "\n".join(words))
        left = {name: case for name, case in left.items() if told and name not in told}
    if faults:
        sys.exit("\n".join(faults))


main()
