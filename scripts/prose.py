"""Sentences of comments and of pages: a sentence has at most LONGEST words, in which formulas and code do not count."""
import re

LONGEST = 25
COMMENT = re.compile(r'^(?P<code>.*?)(?<![:"/])(?P<mark>//(?:/<?)?)(?: (?P<text>.*)|)$')
ITEM = re.compile(r"\s*[|@\\-]|\s{2,}|\s*[\w`]+(?: \w+)? {2,}\S")  # what begins a line of its own in a comment
MARKER = re.compile(r"\[\w+\]|clang-format \w+")  # of a region that a page quotes, of the formatter
WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*'?")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|cf|et al|vs)\.")
END = re.compile(r"(?<=[.?!])\s+(?=[^a-z\s])|(?<=[.?!][\")*])\s+(?=[^a-z\s])|(?<=[.?!]\*\*)\s+")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def words_of(sentence):
    plain = re.sub(r"`[^`]*`", " ", LINK.sub(r"\1", sentence))
    return [word for word in plain.split() if WORD.fullmatch(word.strip(".,;:()[]\"'?!*_"))]


def sentences_of(lines):
    text = ABBREVIATION.sub(lambda found: found[0].replace(".", "\0"), " ".join(line.strip() for line in lines))
    return [sentence.replace("\0", ".") for sentence in END.split(text) if sentence.strip()]


def comments_of(text):
    """(line, lines) of each paragraph of comments in C++."""
    column = None  # of the comment above
    paragraph = []
    for number, line in enumerate(text.splitlines(), 1):
        found = COMMENT.match(line)
        if found and found["code"].count('"') % 2:
            found = None  # within a string
        own = found and not found["code"].strip()
        said = (found["text"] or "") if found else ""
        if MARKER.fullmatch(said):
            said = ""
        if not (own and column == len(found["code"])) or not said.strip() or ITEM.match(said):
            if paragraph:
                yield first, paragraph
            paragraph = []
        column = len(found["code"]) if found else None
        if said.strip():
            if not paragraph:
                first = number
            paragraph.append(said)
    if paragraph:
        yield first, paragraph


def paragraphs_of(text):
    """(line, lines) of each paragraph, item and cell of a page, without its blocks of code, and its headings."""
    text = re.sub(r"<!-- table of refusals -->.*?<!-- end of table -->|```.*?```|<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text,
                  flags=re.DOTALL)
    paragraph = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        apart = line.startswith(("#", "|", ">"))
        if paragraph and (apart or not line.strip() or re.match(r"\s*(?:[-*]|\d+\.) ", line)):
            yield first, paragraph
            paragraph = []
        if line.startswith("|"):
            yield from ((number, [cell]) for cell in line.strip("| ").split(" | "))
        elif line.strip() and not apart:
            if not paragraph:
                first = number
            paragraph.append(re.sub(r"^\s*(?:[-*]|\d+\.) ", "", line))


def long_sentences(path):
    """(line, number of words, sentence) of those with more than LONGEST words, of a page or of a file of C++."""
    paragraphs = paragraphs_of if path.suffix == ".md" else comments_of
    for line, lines in paragraphs(path.read_text()):
        for sentence in sentences_of(lines):
            if (count := len(words_of(sentence))) > LONGEST and " · " not in sentence:
                yield line, count, sentence
