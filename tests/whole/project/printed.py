"""Holds what a page shows of a program's output against the program: printed.py PAGE NAME PROGRAM [--write].

The page has blocks below `<!-- printed by NAME: REGION -->`; together, in their order, they are all that the program prints.
"""
import pathlib
import re
import subprocess
import sys

page, name, program = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
text = page.read_text()
block = re.compile(rf"(<!-- printed by {re.escape(name)}(?:: \w+)? -->\n```\n)(.*?)(```\n)", re.S)
parts = [re.sub(r"(?m)^\n", "", part) + "\n" for part in printed.strip().split("\n\n")]
found = block.findall(text)
if len(found) != len(parts):
    sys.exit(f"{page} has {len(found)} blocks of what {name} prints in {len(parts)} parts")
if "--write" in sys.argv:
    each = iter(parts)
    page.write_text(block.sub(lambda match: match[1] + next(each) + match[3], text))
elif [shown for _, shown, _ in found] != parts:
    sys.exit(f"{page} shows something else than {name} prints:\n{printed}")
