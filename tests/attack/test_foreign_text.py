"""Text of other people: no text leaves its comment in an export."""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

import pytest
from bases import Base
from command import Command

from lmkbc.types import Candidate, CandidateSet, Query, Source

PIECES = ["*/", "|", "*|", "*", "/", "||", "/*", "\n", "\r", "\t", " ", "\x85", "\u2028", "\x0b", "Q1", "P31", '"', "é"]
STATEMENT = re.compile(r"Q\d+\tP47\tQ1016 /\* unchecked, for review: (.*) \*/")


def test_texts_that_leave_their_comment(tmp_path: Path, command: Command, seed: int) -> None:
    draw = random.Random(seed)

    def text() -> str:
        return "x" + "".join(draw.choices(PIECES, k=draw.randint(1, 9))) + draw.choice("x*/|")

    def answer(query: Query) -> CandidateSet:
        return CandidateSet(query, (Candidate(text(), 0.9, (Source(text(), text()),), "Q1016"),))

    base = Base(tmp_path, [])
    with base.file.open("w", newline="") as file:
        csv.writer(file).writerows([("name", "id"), *((text(), f"Q{n}") for n in range(1, 41))])
    with pytest.MonkeyPatch.context() as patch:
        base.build(patch, answer, ("country-borders",))
    (tmp_path / "known.csv").write_text("subject,property,object\nQ1,P31,Q5\n")
    words = ["export", base.out, "--format", "quickstatements", "--known", "known.csv", "--out", "review"]
    status, _, told = command(*words)
    assert status == 0, told
    written = "".join(path.read_bytes().decode() for path in sorted((tmp_path / "review").glob("review-*.txt")))
    lines = written.splitlines()
    assert len(lines) == len(written.split("\n")) - 1 == 40
    for line in lines:
        found = STATEMENT.fullmatch(line)
        assert found, line
        assert not re.search(r"\*/|[|\t]", found[1]), line
