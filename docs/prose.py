"""Lint the prose of documents and docstrings: sentences of at most 30 words, and no words that a reader has to guess.

    python docs/prose.py [--table] [FILE]...

FILE: a Markdown page or a Python module (default: all pages, and all modules of lmkbc/, relations/ and eval/). Code,
tables, headings and links' targets are left out. --table: words and mean length of sentences per page.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 30
"""Most words of a sentence."""
AVOIDED = {
    "voice": "source",
    "witness": "corroborating source",
    "attested": "corroborated",
    "heat": "temperature",
    "jury": "aggregation",
    "habit": "label prior",
    "spool": "buffer",
    "twin": "copy",
    "heeded": "used",
    "tells": "says, prints or shows",
    "told": "said, printed or shown",
    "whoever": "a name",
    "nobody": "a subject of the sentence",
    "thereof": "of it",
    "hereof": "of it",
    "wherever": "where",
    "forthwith": "at once",
}
"""Word -> what to write in its place."""
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r'(?<=[.!?:;])\s+(?=[A-Z`"*\[(\d]|--\w|[a-z]\w*(?:, [a-z]\w*)*: )')  # at last "limit: most rows"
_WORD = re.compile(r"[^\W_][\w'’.-]*")


@dataclass(frozen=True)
class Offence:
    """A sentence to mend: where it stands (file, and line in a module), what is wrong, and the sentence."""

    where: str
    wrong: str
    sentence: str


def pages() -> list[Path]:
    """Return the documents that people write."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def modules() -> list[Path]:
    """Return the modules whose docstrings are checked."""
    return sorted(path for folder in ("lmkbc", "relations", "eval") for path in (ROOT / folder).rglob("*.py"))


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module, those below constants and fields included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, inspect.cleandoc(text)


def sentences(markdown: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and list items, without markup."""
    text = re.sub(r"<!--.*?-->", "", _FENCE.sub("", markdown), flags=re.DOTALL)
    lines = ["" if re.match(r"\s*(\||#|!\[|    \S)", line) else line for line in text.splitlines()]
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", "\n".join(lines))
    for block in blocks:
        plain = re.sub(r"^\s*(?:[-*]|\d+\.)\s+", "", block)
        plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", plain)
        plain = " ".join(plain.split())
        yield from filter(None, _SENTENCE.split(plain))


def words(sentence: str) -> list[str]:
    """Return the words of a sentence; a piece of code is one."""
    return _WORD.findall(re.sub(r"`[^`]*`", "code", sentence))


def offences(path: Path) -> Iterator[Offence]:
    """Yield what is wrong in a page, or in the docstrings of a module."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    if path.suffix == ".py":
        texts = [(f"{name}:{line}", text) for line, text in docstrings(path)]
    else:
        texts = [(name, path.read_text(encoding="utf-8"))]
    for where, text in texts:
        for sentence in sentences(text):
            found = words(sentence)
            if len(found) > LONGEST:
                yield Offence(where, f"{len(found)} words; {LONGEST} are the most", sentence)
            for word in sorted({one.lower() for one in found} & AVOIDED.keys()):
                yield Offence(where, f"{word!r}: write {AVOIDED[word]}", sentence)


def main(argv: Sequence[str] | None = None) -> int:
    """Print each offence, or the table; return 1 if there is an offence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args(argv)
    files = [path.resolve() for path in given.files] or [*pages(), *modules()]
    found = [offence for path in files for offence in offences(path)]
    if given.table:
        print("page                     words  sentences  words a sentence")
        for path in (path for path in files if path.suffix == ".md"):
            lengths = [len(words(one)) for one in sentences(path.read_text(encoding="utf-8"))]
            print(f"{path.name:24} {sum(lengths):5}  {len(lengths):9}  {sum(lengths) / max(1, len(lengths)):16.1f}")
    for one in found:
        print(f"{one.where}: {one.wrong}: {one.sentence}")
    print(f"{len(found)} sentences to mend")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
