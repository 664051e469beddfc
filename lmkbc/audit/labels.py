"""Labels of a sample: a JSONL file with one fact per line, filled in by the page or by any editor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from lmkbc.audit.sample import FEWEST, Sample, SampledFact
from lmkbc.errors import InputError
from lmkbc.files.jsonl import decoded, numbered

LABELS = "labels.jsonl"
"""The file of labels that is written beside the page."""
MOST = 1_000_000
"""Facts of a sample, at most."""
RIGHT, WRONG, UNKNOWN = "y", "n", "u"
"""Values of a label. A fact without a label has null."""


class SampleName(msgspec.Struct, frozen=True):
    """Identity of a sample: enough to draw it again. base: checksum of the base's facts. sample: number of facts."""

    base: str
    sample: Annotated[int, msgspec.Meta(ge=FEWEST, le=MOST)]
    seed: int


class LabelRow(SampleName, frozen=True):
    """Line of a labels file. fact: index among all facts. The fields after the label are for the reader only."""

    fact: int
    label: str | None
    relation: str = ""
    subject: str = ""
    subject_id: str | None = None
    object: str = ""
    object_id: str | None = None
    confidence: float = 0.0

    @property
    def name(self) -> SampleName:
        """Return the identity of the fact's sample."""
        return SampleName(self.base, self.sample, self.seed)


def rows_of(sample: Sample, facts: Sequence[SampledFact]) -> list[LabelRow]:
    """Return the lines of a sample, without labels."""
    about = sample.base, sample.size, sample.seed
    return [
        LabelRow(
            *about, place, None, one.relation, one.subject, one.subject_id, one.object, one.object_id, one.confidence
        )
        for place, one, *_ in facts
    ]


class LabelsFile:
    """A file of labels. name: identity of its sample. InputError, with the line, for lines of different samples."""

    def __init__(self, path: Path) -> None:
        decoder = msgspec.json.Decoder(LabelRow)
        self.path, self._rows = path, dict[int, tuple[int, LabelRow]]()
        for number, line in numbered(path):
            (row,) = decoded(path, line, decoder, number)
            first, other = next(iter(self._rows.values()), (number, row))
            if row.name != other.name:
                raise InputError(f"{path}, line {number}: of another sample than line {first}; part the two")
            if row.label not in (None, RIGHT, WRONG, UNKNOWN):
                raise InputError(f'{path}, line {number}, field label: {row.label!r}; write "y", "n", "u" or null')
            if row.fact in self._rows:
                raise InputError(f"{path}, line {number}: repeats line {self._rows[row.fact][0]}; remove one")
            self._rows[row.fact] = number, row
        if not self._rows:
            raise InputError(f"{path} is empty: give a file of 'lmkbc audit --sample' with labels filled in")
        self.name = next(iter(self._rows.values()))[1].name

    def check_base(self, base: str, path: Path) -> None:
        """Raise InputError if the labels belong to another base."""
        if self.name.base != base:
            raise InputError(
                f"{self.path} has labels of another base than {path}, or of an earlier state of it: give "
                "the base that its sample was drawn from"
            )

    def of(self, sample: Sample) -> dict[int, str | None]:
        """Return the label of each fact in the file. InputError for a fact that is not in the sample."""
        for place, (number, _) in self._rows.items():
            if place not in sample.drawn:
                raise InputError(f"{self.path}, line {number}: fact {place} is not of this sample; restore the line")
        return {place: row.label for place, (_, row) in self._rows.items()}
