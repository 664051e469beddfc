"""Where a recipe says that its authors' words are published: files, their formats, and which words stand in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal
from urllib.parse import quote, unquote, urlsplit

from lmkbc.ask.examples import OWN_WORDS
from lmkbc.errors import did_you_mean, refuse

RAW = "https://raw.githubusercontent.com"
"""Address of files in GitHub repositories, by commit, so that their content never changes."""

LOOPBACK = "127.0.0.1"
Slots = Mapping[str, str | tuple[str, ...]]
"""Expression of the code, or part of a text -> its replacement."""


_PLAIN = re.compile(r"(?!\.{0,2}\Z)[^\\%\x00-\x1f]+")
"""A folder or a file in a path: no step up, and nothing that a server could read as another sign."""


def _is_safe(url: str) -> bool:
    """Return whether an address is encrypted, or of this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme, parts.hostname) == ("http", LOOPBACK))


SETTINGS = ("block", "task", "ask", "follow_up", "clozes", "precondition", "forms", "lines", "text")
"""What words in a file may be set as, beside a slot; see `NamedWords`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedWords:
    """Named words in a file: lines of Python source, or a key of YAML.

    name: the key, or a text in the line of source from which lines are counted, as in "def ask(".
    lines: first and last line of each expression. (1, 1) is the line after the named one.
    relation: the relation, "*" for all others.
    setting: template of the frame: its "block", "task", "ask", or "follow_up" (with {ask} for the ask). For a masked
    model, it is the "clozes", the cloze of the "precondition", or the "forms" of a subject by answer. It may also be a
    whole text. The setting "lines" has a header, an example and a query; "text" is one text with {examples} for the
    examples. "{phrase}" is a slot, which the words fill in other words of their relation.
    parts: names of the recipe's tables; () for those of the file. With "TABLE/STEP", the words are the "task" or "ask"
    of one of its steps.
    frame: further settings.
    slots: further slots, besides the file's.
    """

    name: str
    relation: str
    lines: tuple[tuple[int, int], ...] = ()
    setting: str = "block"
    parts: tuple[str, ...] = ()
    frame: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[str, str] = field(default_factory=dict)

    REMOVED: ClassVar[Mapping[str, str]] = {
        "step": "write parts = ['TABLE/STEP']",
        "part": "write parts = ['TABLE']",
        "slot": "write setting = '{SLOT}'",
    }

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown setting."""
        if not self.is_slot and self.setting not in SETTINGS:
            raise ValueError(f"setting is {self.setting!r}: {did_you_mean(self.setting, SETTINGS)}")

    @property
    def is_slot(self) -> bool:
        """Return whether the words fill a slot in others."""
        return self.setting[:1] == "{"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordFile:
    """File of published words.

    format: "templates" has each relation's question or cloze, as a JSON object or as CSV of relation and template. The
    format "prompt" is a whole prompt with examples, and the subject in its last paragraph. The format "python" is
    source, which is not run. The format "yaml" is a table of texts. The format "examples" is JSONL in an edition's
    format, with the examples of all prompts.
    path: in the source's repository, or a whole address that begins with https://.
    commit: if not the source's.
    sha256: digest of the file.
    relation: the relation of a "prompt".
    words: lines of the source, or keys.
    slots: the code's expression in a text, such as "row['subject']", or text of YAML, such as "{year}" -> its
    replacement. For "%s", it is a list, each item of which replaces the next "%s". Of examples, it is the "question",
    "reasoning" or "answer" -> the file's field with the example's own words.
    parts: names of the recipe's tables that it is for; () for all.
    mended: errors that the authors corrected after the pinned state, each with its correction.
    """

    format: Literal["templates", "prompt", "python", "yaml", "examples"]
    path: str
    commit: str = ""
    sha256: str = ""
    relation: str = ""
    words: tuple[NamedWords, ...] = ()
    slots: Slots = field(default_factory=dict)
    parts: tuple[str, ...] = ()
    mended: tuple[tuple[str, str], ...] = ()

    REMOVED: ClassVar[Mapping[str, str]] = {"url": "write it as path", "fields": "write it as slots"}

    def __post_init__(self) -> None:
        """Raise ValueError for an untrusted address, and for settings that do not fit the format."""
        refuse(
            (
                self.is_address and not _is_safe(self.path),
                f"path is {self.path!r}: give an address that begins with https://",
            ),
            (
                not self.is_address and not all(map(_PLAIN.fullmatch, unquote(self.path).split("/"))),
                f"path is {self.path!r}: give the file's place in its repository, as in data/prompts.json",
            ),
            (
                (self.format == "prompt") != bool(self.relation),
                "relation says what a whole prompt is about: give it with format 'prompt', and only there",
            ),
            (
                (self.format in ("python", "yaml")) != bool(self.words),
                "words says which lines or keys are read: give it with format 'python' or 'yaml', and only there",
            ),
            (
                unknown := sorted(self.slots.keys() - OWN_WORDS if self.format == "examples" else ()),
                f"slots names {unknown}: give those of {', '.join(OWN_WORDS)}",
            ),
        )

    @property
    def is_address(self) -> bool:
        """Return whether the path is a whole address."""
        return "://" in self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class WordingSource:
    """Published files of a system's words.

    licence, credit: stored beside the words.
    repository, commit: GitHub repository as owner/name, and 40 hexadecimal digits, of all files with a path.
    frame: settings of every frame; {template} stands for the text of the file.
    """

    licence: str
    credit: str
    files: tuple[WordFile, ...]
    repository: str = ""
    commit: str = ""
    frame: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a path without a valid repository or commit."""
        for file in self.files:
            commit = file.commit or self.commit
            refuse(
                (
                    not file.is_address
                    and not re.fullmatch(r"\w[\w.-]*/(?!\.{1,2}\Z)[\w.-]+", self.repository, re.ASCII),
                    f"repository is {self.repository!r}: give owner/name, in which {file.path!r} lies",
                ),
                (
                    not file.is_address and not re.fullmatch("[0-9a-f]{40}", commit),
                    f"commit of {file.path!r} is {commit!r}: give its 40 hexadecimal digits",
                ),
            )

    def address(self, file: WordFile) -> str:
        """Return the URL of a file."""
        return (
            file.path if file.is_address else f"{RAW}/{self.repository}/{file.commit or self.commit}/{quote(file.path)}"
        )
