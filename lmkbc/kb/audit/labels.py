"""Labels of a sample: a JSONL file with one fact per line, filled in by any editor, or on a page without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.jsonl import decoded, numbered
from lmkbc.kb.audit.sample import FEWEST, Sample, SampledFact
from lmkbc.kb.build.knowledge import FactRow
from lmkbc.report.page import render
from lmkbc.report.rows import LONGEST_TEXT, cut

LABELS = "labels.jsonl"
"""The file of labels that is written beside the page."""
MOST = 1_000_000
"""Facts of a sample, at most."""
RIGHT, WRONG, UNKNOWN = "y", "n", "u"
"""Values of a label. A fact without a label has null."""


class _SampleName(msgspec.Struct, frozen=True):
    """Identity of a sample: enough to draw it again. base: checksum of the base's facts. sample: number of facts."""

    base: str
    sample: Annotated[int, msgspec.Meta(ge=FEWEST, le=MOST)]
    seed: int


class _LabelRow(_SampleName, frozen=True):
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
    def name(self) -> _SampleName:
        """Return the identity of the fact's sample."""
        return _SampleName(self.base, self.sample, self.seed)


def rows_of(sample: Sample, facts: Sequence[SampledFact]) -> list[_LabelRow]:
    """Return the lines of a sample, without labels."""
    about = sample.base, sample.size, sample.seed
    return [
        _LabelRow(
            *about, place, None, one.relation, one.subject, one.subject_id, one.object, one.object_id, one.confidence
        )
        for place, one, *_ in facts
    ]


class LabelsFile:
    """A file of labels. name: identity of its sample. InputError, with the line, for lines of different samples."""

    def __init__(self, path: Path) -> None:
        decoder = msgspec.json.Decoder(_LabelRow)
        self.path, self._rows = path, dict[int, tuple[int, _LabelRow]]()
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


WIKIDATA, SEARCH = "https://www.wikidata.org/wiki/", "https://duckduckgo.com/?q="
MOST_SOURCES = 20
"""Most sources of a fact that are shown."""


def page(
    name: str, sample: Sample, facts: Sequence[SampledFact], rows: Sequence[_LabelRow], about: Mapping[str, str]
) -> str:
    """Return the page. name: name of the base. rows: lines of the labels file. about: definitions of relations."""
    content = {
        "key": f"lmkbc-audit-{sample.base}-{sample.size}-{sample.seed}",
        "file": LABELS,
        "facts": [
            {"line": msgspec.to_builtins(row), **shown(fact, about.get(fact.fact.relation, ""))}
            for fact, row in zip(facts, rows, strict=True)
        ],
    }
    return render("audit.html", title=f"Audit of {cut(name, LONGEST_TEXT)}", facts=len(facts), content=content)


def shown(sampled: SampledFact, definition: str) -> dict[str, Any]:
    """Return what the page shows of a fact. Long texts are cut."""
    fact = sampled.fact
    unit = f" {fact.about.unit}" if fact.about.kind == "number" and fact.about.unit else ""
    words = " ".join(cut(text, LONGEST_TEXT) for text in (fact.subject, fact.relation.replace("-", " "), fact.object))
    return {
        "subject": [cut(fact.subject, LONGEST_TEXT), _item(fact.subject_id)],
        "relation": [fact.relation, f"{WIKIDATA}Property:{fact.about.property}"],
        "object": [cut(fact.object, LONGEST_TEXT) + unit, _item(fact.object_id)],
        "definition": definition,
        "search": SEARCH + quote(words, safe="", errors="replace"),
        "confidence": f"{fact.confidence:.3f}",
        "sources": cut("; ".join(cut(source, LONGEST_TEXT) for source in fact.sources[:MOST_SOURCES]), 4 * LONGEST_TEXT)
        + (f", stated by {' and '.join(fact.stated_by)}" if fact.stated_by else ""),
        "model": cut(fact.model, LONGEST_TEXT),
        "others": [_other(one) for one in sampled.others],
        "further": sampled.further,
    }


def _item(qid: str | None) -> str:
    return f"{WIKIDATA}{qid}" if qid else ""


def _other(fact: FactRow) -> str:
    return f"{fact.relation}: {cut(fact.object, LONGEST_TEXT)} ({fact.confidence:.3f})"
