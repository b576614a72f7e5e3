"""What the headers declare at the level of namespaces: what other scripts read of them.

As a program it prints a header with what its lists of macros make, each with the comment above the list, for Doxygen.
"""
import pathlib
import re
import sys
from typing import NamedTuple


class Declaration(NamedTuple):
    namespace: str  # "tessera::nn"
    name: str
    kind: str  # struct, enum, alias, concept, function, variable or forward: a type that is defined elsewhere
    said: tuple  # its own comment, the lines behind ///
    covered: bool  # whether it has one, or stands right below what has one
    listed: bool  # whether a list of macros makes it
    line: int


COMMENT_OR_LITERAL = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\b\d[\w'.]*|'(?:\\.|[^'\\\n])+'""", re.DOTALL)


def without_comments(text):
    """The same lines without comments and with empty literals, so that braces are braces."""

    def replaced(found):
        what = found[0]
        if what[0].isdigit():
            return what
        return ('""' if what[0] in 'R"' else "0" if what[0] == "'" else "") + "\n" * what.count("\n")

    return COMMENT_OR_LITERAL.sub(replaced, text)


def closing(text, at, marks):
    """Where the bracket at a place closes; in parentheses < and > compare, and -> points."""
    depth = inside = 0
    for i in range(at, len(text)):
        if marks == "<>":
            inside += (text[i] in "({") - (text[i] in ")}")
            if inside or text[i - 1:i + 1] == "->":
                continue
        depth += (text[i] == marks[0]) - (text[i] == marks[1])
        if depth == 0:
            return i
    raise ValueError(f"{text[at:at + 60]!r} does not close")


def arguments_of(text):
    depth, found = 0, [""]
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [a.strip() for a in found]


def expanded(line, macros):
    """A line in which calls of these macros are what they stand for, those in them too."""
    called = re.search(rf"\b({'|'.join(macros)})\(", line) if macros else None
    if not called:
        return line
    end = closing(line, called.end() - 1, "()")
    parameters, body = macros[called[1]]
    given = arguments_of(line[called.end():end])
    values = dict(zip(parameters, given[:len(parameters) - ("..." in parameters)]))
    body = re.sub(r"(?<!#)#\s*(\w+)", lambda w: '""' if w[1] in values else w[0], body)  # an argument as a literal
    body = re.sub(r"\b[A-Za-z_]\w*\b", lambda w: values.get(w[0], w[0]), body).replace("##", "")
    return line[:called.start()] + expanded(body, macros) + expanded(line[end + 1:], macros)


DEFINE = re.compile(r"#\s*define (\w+)\(([^)]*)\)(.*)", re.DOTALL)


def read_directive(directive, macros):
    """Adds the macro that a #define defines, or takes away that of an #undef."""
    joined = directive.replace("\\\n", " ")
    if define := DEFINE.match(joined):
        macros[define[1]] = (arguments_of(define[2]), define[3].strip())
    elif undefine := re.match(r"#\s*undef (\w+)", joined):
        macros.pop(undefine[1], None)


def lines_without_directives(text):
    """(line, or None in place of a directive, and the directive) of each line; a directive has all its lines."""
    for whole in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n?", text):
        yield (None, whole) if whole.lstrip().startswith("#") else (whole, "")


def lists_of(root):
    """The macros that hold a list: f(one, ...) f(another, ...)."""
    found = {}
    for text in (path.read_text() for path in sorted(root.rglob("*.hpp"))):
        for _, directive in lines_without_directives(without_comments(text)) if "(f)" in text else ():
            read_directive(directive, found)
    return {name: macro for name, macro in found.items() if macro[0] == ["f"]}


def preprocessed(text, lists):
    """The same lines without directives, calls of macros in place of their names."""
    macros, out = dict(lists), []
    for line, directive in lines_without_directives(without_comments(text)):
        if line is not None:
            out.append(expanded(line, macros) if re.match(r"TESSERA_\w+\(", line) else re.sub(r"\bTESSERA_INLINE\b", "inline", line))
            continue
        read_directive(directive, macros)
        out.append("\n" * directive.count("\n"))
    return "".join(out)


def behind_templates(text):
    """A declaration behind its template parameters and what they require, and whether it has any."""
    templated = False
    while True:
        text = re.sub(r"^(\[\[[^\]]*\]\]|inline\b|static\b|constexpr\b|consteval\b|extern\b(?! *\"))\s*", "", text.lstrip())
        if found := re.match(r"template\s*<", text):
            templated = True
            text = text[closing(text, found.end() - 1, "<>") + 1:].lstrip()
        elif templated and re.match(r"requires\b", text):
            text = behind_requirement(text[len("requires"):].lstrip())
        else:
            return text, templated


def behind_requirement(text):
    while True:
        text = text.lstrip("! ")
        if text.startswith("("):
            text = text[closing(text, 0, "()") + 1:]
        elif found := re.match(r"requires\s*(\()?", text):
            text = text[closing(text, found.end() - 1, "()") + 1:] if found[1] else text[len("requires"):]
            text = text.lstrip()[2:]  # {}
        else:
            text = text[re.match(r"[\w:]+", text).end():]
            while found := re.match(r"\s*(<)|\s*::\w+", text):
                text = text[closing(text, found.end() - 1, "<>") + 1:] if found[1] else text[found.end():]
        text = text.lstrip()
        if text[:2] not in ("&&", "||"):
            return text
        text = text[2:]


def is_initialised(head):
    """Whether a declaration has a value behind =, which may hold braces."""
    text = re.sub(r"operator\s*\S+?(?=\()", "operator", behind_templates(head)[0])
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "=" and depth == 0 and text[i - 1] not in "=<>!" and text[i + 1:i + 2] != "=":
            return True
    return False


def begins_requirement(head):
    """Whether what follows are the braces of a requires (…) {…}."""
    last = head.rfind("requires")
    behind = head[last + len("requires"):].strip()
    return last >= 0 and (not behind or behind[0] == "(" and closing(behind, 0, "()") == len(behind) - 1)


TYPE = re.compile(r"(struct|class|union|enum class|enum struct|enum)\s+(?:\[\[.*?\]\]\s*)?(?:alignas\([^)]*\)\s*)?(\w+)\s*(.*)", re.DOTALL)


def named_in(text):
    """(kind, name) of a declaration, or None where it names nothing anew."""
    text, templated = behind_templates(" ".join(text.split()))
    if re.match(r"static_assert\b|using namespace\b|friend\b|$", text):
        return None
    if found := re.match(r"concept (\w+)", text):
        return "concept", found[1]
    if found := re.match(r"using (\w+)\s*(?:\[\[[^\]]*\]\]\s*)?=|using (?:[\w:]+::)(\w+)$|namespace (\w+) =", text):
        return "alias", found[1] or found[2] or found[3]
    if (found := TYPE.match(text)) and re.match(r"$|\{|;|:(?!:)|final\b", found[3]):
        return ("enum" if found[1].startswith("enum") else "struct") if "{" in found[3] else "forward", found[2]
    if found and re.match(r"<|::", found[3]):
        return None  # another form of a template
    if (found := re.match(r"[^(]*?(::)?\s*\b(operator\s*(?:\(\)|\[\]|[^\w\s(]+|\"\"\s*\w+))\(", text)):
        return None if found[1] else ("function", re.sub(r"\s", "", found[2]))
    depth = 0
    for i, c in enumerate(text):
        before = re.search(r"([\w~]+)\s*$", text[:i])
        if c in "({" and depth > 0 or c in "[":
            depth += 1
        elif c == "(":
            if before and before[1] not in ("decltype", "noexcept", "alignas", "requires", "__attribute__", "explicit"):
                front = text[:before.start()].rstrip()
                if front.endswith("::") or not front or front.endswith("explicit"):
                    return None  # a member that is defined behind its class, or how a type is deduced
                return "function", before[1]
            depth += 1
        elif depth == 0 and c in "={;":
            name = re.search(r"(?<![\w:])(\w+)\s*(?:\[[^\]]*\]\s*)*$", text[:i])
            return ("variable", name[1]) if name and text[:name.start()].strip() else None
        elif c in ")]}":
            depth -= 1
    name = re.search(r"[\w>&*\]]\s+[&*]?(\w+)(?:\[[^\]]*\])*$", text)
    return ("variable", name[1]) if name else None


def statements_of(text):
    """(namespaces, text, where it begins and ends) of all that stands in namespaces; what is in braces is left out."""
    namespaces, at = [], 0
    while True:
        at += re.match(r"[\s;]*", text[at:]).end()
        if at == len(text):
            assert not namespaces, f"namespace {namespaces} does not close"
            return
        if text[at] == "}":
            namespaces.pop()
            at += 1
            continue
        begin, head, depth = at, "", 0
        while at < len(text):
            c = text[at]
            if depth == 0 and c == ";":
                break
            if depth == 0 and c == "{":
                if re.fullmatch(r"(inline )?namespace( [\w:]+)?|extern \"\"", " ".join(head.split())):
                    break
                at = closing(text, at, "{}") + 1
                goes_on = (begins_requirement(head) or TYPE.match(behind_templates(head)[0])
                           or is_initialised(head) or re.match(r"\s*[;,{]", text[at:]) or re.search(r"\bconcept\b", head))
                head += "{}"
                if not goes_on:
                    break
                continue
            depth += (c in "([") - (c in ")]")
            head += c
            at += 1
        if at < len(text) and text[at] == "{":
            name = re.search(r"namespace ([\w:]+)", head)
            namespaces.append(name[1] if name else "" if "extern" in head else "(anonymous)")
            at += 1
        else:
            yield "::".join(n for n in namespaces if n), head, begin, at


def declarations_of(path, lists):
    """What a header declares, in its order; lists are those of `lists_of`."""
    given = path.read_text().splitlines()
    text = preprocessed(path.read_text(), lists)
    covered, last = False, -1  # the statement before this one, and the line in which it ends
    for namespace, head, begin, end in statements_of(text):
        line = first = text.count("\n", 0, begin)
        while first > 0 and given[first - 1].startswith("///"):
            first -= 1
        said = [s[3:].strip() for s in given[first:line]] or [s for s in given[line].partition("///<")[2:] if s]
        covered = bool(said) or covered and line <= last + 1
        last = text.count("\n", 0, end)
        if found := named_in(head):
            listed = given[line].startswith("TESSERA_")
            yield Declaration(namespace, found[1], found[0], tuple(map(str.strip, said)), covered, listed, line + 1)


def all_declarations(include):
    """(path, declaration) of all headers below a folder."""
    lists = lists_of(include)
    for path in sorted(include.rglob("*.hpp")):
        for declaration in declarations_of(path, lists):
            yield pathlib.Path(path), declaration


def with_lists_expanded(path, include):
    """The text of a header in which each line that calls macros is what they make, each with the comment above that line."""
    macros, out, comment = lists_of(include), [], ""
    for line, directive in lines_without_directives(path.read_text()):
        read_directive(without_comments(directive), macros)
        if line and (called := re.match(r"(TESSERA_\w+)\((.*)\)$", line)):
            first = len(out)
            while first > 0 and out[first - 1].startswith("///"):
                first -= 1
            comment, body = "".join(out[first:]) or comment, macros[called[1]][1]
            out[first:] = []
            if macros[called[1]][0] != ["f"]:
                body = line
            while begins := re.match(r"\s*\w+\(", body):
                end = closing(body, begins.end() - 1, "()") + 1
                out += [comment, expanded(re.sub(r"^\s*f\b", called[2], body[:end]), macros) + "\n"]
                body = body[end:]
            continue
        comment = ""
        if line is not None:
            out.append(line)
    return "".join(out)


if __name__ == "__main__":
    header = pathlib.Path(sys.argv[1])
    print(with_lists_expanded(header, next(p for p in header.resolve().parents if p.name == "tessera")))
