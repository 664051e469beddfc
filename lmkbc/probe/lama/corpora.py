"""LAMA's corpora besides T-REx: Google-RE with templates; ConceptNet and SQuAD as sentences with a mask."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, check_known
from lmkbc.files.jsonl import read_jsonl
from lmkbc.probe.lama.dataset import SENTENCE, SENTENCE_MASK, RelationFacts

_LOG = logging.getLogger(__name__)
GOOGLE_RE: Mapping[str, str] = {
    "place_of_birth": "{subject} was born in {mask} .",
    "date_of_birth": "{subject} (born {mask}).",
    "place_of_death": "{subject} died in {mask} .",
}
"""Relation -> cloze of LAMA's script."""
SENTENCES = {"conceptnet": "ConceptNet", "squad": "Squad"}
"""Corpus of sentences -> its directory, which holds test.jsonl."""
CORPORA = ("trex", "google-re", *SENTENCES)
LONGEST = 100
"""Words of the longest sentence that LAMA's script uses."""


class _Judgment(msgspec.Struct):
    judgment: str


class _Row(msgspec.Struct):
    obj_label: str
    sub_label: str = ""
    masked_sentences: list[str] = []
    judgments: list[_Judgment] = []

    @property
    def denied(self) -> bool:
        """Return whether most annotators deny the fact. LAMA's script leaves such facts out."""
        votes = Counter(one.judgment == "yes" for one in self.judgments)
        return votes[False] > votes[True]


def read_corpus(path: Path, corpus: str, relations: Collection[str] | None = None) -> list[RelationFacts]:
    """Read a corpus from the directory of LAMA's data; each fact once. relations: of Google-RE; None for all.

    InputError for a relation that does not exist. A corpus of sentences is one relation, as in LAMA's averages.
    Sentences without exactly one mask, or too long ones, are left out and counted in the log.
    """
    if corpus == "google-re":
        for name in relations or ():
            check_known(name, GOOGLE_RE, f"Google-RE has no relation {name!r}")
        return [
            RelationFacts(name, cloze, "", _subjects(path / "Google_RE" / f"{name}_test.jsonl"))
            for name, cloze in GOOGLE_RE.items()
            if relations is None or name in relations
        ]
    if relations is not None:
        raise InputError(f"{corpus} is not parted into relations: leave --properties out")
    return [RelationFacts(SENTENCES[corpus], SENTENCE, "", _sentences(path / SENTENCES[corpus] / "test.jsonl"))]


def _subjects(file: Path) -> tuple[tuple[str, str], ...]:
    rows = (row for row in read_jsonl(file, _Row) if not row.denied)
    return tuple(dict.fromkeys((row.sub_label, row.obj_label) for row in rows))


def _sentences(file: Path) -> tuple[tuple[str, str], ...]:
    every = [(" ".join(row.masked_sentences), row.obj_label) for row in read_jsonl(file, _Row)]
    kept = [pair for pair in every if pair[0].count(SENTENCE_MASK) == 1 and len(pair[0].split()) <= LONGEST]
    if len(kept) < len(every):
        _LOG.info("%s: %d sentences without one mask, or too long, left out", file, len(every) - len(kept))
    return tuple(dict.fromkeys(kept))
