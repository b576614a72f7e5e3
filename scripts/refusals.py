"""The lists of refusals in the headers: what the other scripts read of them."""
import re


def refusals_of(root):
    """By floor, the header as it is included, and (name, code, names of what is told, sentence) of each refusal in it."""
    found = {}
    for path in sorted(root.glob("include/tessera/**/refusals.hpp")):
        text = re.sub(r'"\s*\n\s*"', "", path.read_text())  # a literal in several lines is one
        rows = re.findall(r'reason (\w+)\{\s*"([^"]+)",\s*"([^"]*)",\s*"([^"]+)"\};', text)
        assert len(rows) == text.count("inline constexpr reason"), f"a row of {path.relative_to(root)} could not be read"
        found[path.relative_to(root / "include/tessera").parts[0]] = path.relative_to(root / "include").as_posix(), rows
    return found
