"""Recorded answers of the entity search in place of the network: exact strings in any case, no fuzzy match."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.reader import whole
from lmkbc.link.evidence import Hit
from lmkbc.link.schema import ShapeError, decode
from lmkbc.names import as_qid

_TABLE = msgspec.json.Decoder(dict[str, str])


class SearchTable:
    """A `Search` over a recorded mapping: text -> QID of the first hit, "" for no hit.

    Its keys are the texts of an earlier run, so they are never listed, matched fuzzily or offered as candidates.
    `searched` holds the distinct case-folded strings that a network would have received.
    """

    knows_classes = False

    def __init__(self, answers: Mapping[str, str]) -> None:
        self._exact = dict(answers)
        self._folded: dict[str, str] = {}
        for text, qid in answers.items():
            self._folded[text.casefold()] = self._folded.get(text.casefold()) or qid
        self.searched: set[str] = set()

    @classmethod
    def read(cls, path: Path) -> SearchTable:
        """Read a JSON object of strings. InputError for the first value that is neither a QID nor "".

        A text that occurs twice must have the same value.
        """
        raw = whole(path)
        try:
            answers = decode(raw, _TABLE)
        except ShapeError as error:
            raise InputError(f"{path}: no search table ({error}); it is one JSON object, text -> QID or ''") from None
        for text, qid in json.loads(raw, object_pairs_hook=list):
            if qid and as_qid(qid) != qid:
                raise InputError(f"{path}, entry {text!r}: {qid!r} is no QID; write one like 'Q42', or '' for no hit")
            if qid != answers[text]:
                raise InputError(f"{path}, entry {text!r}: both {qid!r} and {answers[text]!r}; remove one")
        return cls(answers)

    def search(self, texts: Sequence[str]) -> dict[str, tuple[Hit, ...]]:
        """Return the recorded hit of each text; () if there is none."""
        self.searched.update(text.casefold() for text in texts)
        qids = {text: self._exact.get(text, self._folded.get(text.casefold(), "")) for text in texts}
        return {text: (Hit(qid),) if qid else () for text, qid in qids.items()}

    def entities(self, _: Sequence[str], /) -> dict[str, Hit | None]:
        """Return an empty mapping, since recorded searches say nothing about ids."""
        return {}
