"""Reports on linking: counts per relation and strategy, an explanation for one text, links for a predictions file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from lmkbc.edition import Edition
from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.atomic import write_bytes
from lmkbc.files.columns import refuse_answers
from lmkbc.files.fact_rows import stream
from lmkbc.files.jsonl import numbered, row_blocks
from lmkbc.link.hits import Hit, Link
from lmkbc.link.linker import Linker
from lmkbc.link.wordings import sendable
from lmkbc.names import subject_key
from lmkbc.progress import Report, silent, tracked
from lmkbc.relation import Relation
from lmkbc.types import Candidate, CandidateSet, Query, grouped


class PredictionRow(msgspec.Struct, gc=False, omit_defaults=True):
    """Line of a predictions file. The texts to link are in ObjectEntities, or, if it is absent, in ObjectEntitiesID."""

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    ObjectEntities: list[str] | None = None
    ObjectEntitiesID: list[str] | None = None


class LinkCount(NamedTuple):
    """Counts of one relation, evidence and strategy. Ambiguous links are among the linked ones."""

    relation: str
    evidence: str
    strategy: str
    linked: int
    unlinked: int
    ambiguous: int


COUNTED = ("relation", "evidence", "strategy")
SCHEMA = dict.fromkeys(COUNTED, pl.String) | dict.fromkeys(("linked", "ambiguous"), pl.Boolean)


@dataclass(slots=True)
class LinkReport:
    """Counts links, and keeps the failed ones with their reason."""

    _made: list[tuple[str, str, str, bool, bool]] = field(default_factory=list)
    unlinked: list[tuple[Query, Link]] = field(default_factory=list)

    def add(self, query: Query, links: Iterable[Link]) -> None:
        """Count the links of one query. An empty candidate is not counted."""
        for link in links:
            if link.evidence == "nothing":
                continue
            linked = link.id is not None
            self._made.append((query.relation, link.evidence, link.strategy, linked, linked and link.ambiguous))
            if not linked:
                self.unlinked.append((query, link))

    def tallies(self) -> list[LinkCount]:
        """Return counts per relation, evidence and strategy, sorted."""
        return [LinkCount(*row) for row in self._counted(["relation", "evidence", "strategy"])]

    def per_relation(self) -> dict[str, tuple[int, int, int]]:
        """Return relation -> linked, unlinked, ambiguous."""
        return {name: tuple(counts) for name, *counts in self._counted(["relation"])}

    def _counted(self, columns: list[str]) -> list[tuple[Any, ...]]:
        made = pl.DataFrame(self._made, schema=SCHEMA, orient="row")
        linked, ambiguous = pl.col("linked"), pl.col("ambiguous")
        counts = made.group_by(columns).agg(linked.sum(), (~linked).sum().alias("unlinked"), ambiguous.sum())
        return counts.sort(columns).rows()


def read_rows(source: Path, relations: Mapping[str, Relation], edition: Edition) -> list[PredictionRow]:
    """Read the rows of a predictions file, with the edition's names of its relations.

    InputError names the wrong line and field.
    """
    try:
        rows = [
            row for some, _ in row_blocks(source, msgspec.json.Decoder(PredictionRow), source=stream) for row in some
        ]
        for position, row in enumerate(rows):
            row.Relation = edition.spelt(row.Relation) or row.Relation
            if wrong := _what_is_wrong(row, relations):
                line = next(islice(numbered(source, stream), position, None))[0]
                raise InputError(f"{source}, line {line}, field {wrong}")
    except InputError:
        refuse_answers(source, "ObjectEntities")
        raise
    return rows


def identify(rows: Iterable[PredictionRow], queries: Iterable[Query]) -> None:
    """Give rows without a SubjectEntityID that of their query, unless queries of one name have several."""
    ids = grouped(((subject_key(one.subject), one.relation), one.subject_id) for one in queries)
    for row in rows:
        own = {*ids.get((subject_key(row.SubjectEntity), row.Relation), ())}
        row.SubjectEntityID = row.SubjectEntityID or (own.pop() if len(own) == 1 else None)


def link_rows(rows: Sequence[PredictionRow], target: Path, linker: Linker, progress: Report = silent) -> LinkReport:
    """Write rows to a file with the ids that were found, each once, in ObjectEntitiesID.

    Unlinked texts are left out of the ids. The returned report lists them.
    """
    report, lines = LinkReport(), []
    counted_rows = tracked(rows, "link (queries)", progress)
    for row, (group, links) in zip(counted_rows, linker.links(_sets(rows)), strict=True):
        report.add(group.query, links)
        row.ObjectEntitiesID = list(dict.fromkeys(link.id for link in links if link.id))
        lines.append(msgspec.json.encode(row) + b"\n")
    write_bytes(target, b"".join(lines), new=True)
    return report


def _what_is_wrong(row: PredictionRow, relations: Mapping[str, Relation]) -> str | None:
    """Return what is wrong with a decoded row: its field, the problem, and what to do; None if all is right."""
    if row.Relation not in relations:
        return f"Relation: unknown {row.Relation!r}; {did_you_mean(row.Relation, relations)}"
    if not row.SubjectEntity.strip():
        return "SubjectEntity: empty; name the subject"
    if row.ObjectEntities is None and row.ObjectEntitiesID is None:
        return "ObjectEntities: absent, as is ObjectEntitiesID; give the texts to link, [] for none"
    return None


def _sets(rows: Iterable[PredictionRow]) -> Iterator[CandidateSet]:
    for row in rows:
        texts = row.ObjectEntities if row.ObjectEntities is not None else row.ObjectEntitiesID or []
        query = Query(row.SubjectEntity, row.Relation, row.SubjectEntityID)
        yield CandidateSet(query, tuple(Candidate(text) for text in texts))


class Offer(NamedTuple):
    """An entity that a source of evidence offers for a text. fits: whether it has the object type, None if unknown."""

    evidence: str
    hit: Hit
    fits: bool | None
    chosen: bool


def explain(linker: Linker, text: str, relation: str, subject: str = "") -> tuple[Link, list[Offer]]:
    """Return the link of a text, and all hits of each source, in the order of evidence."""
    query = Query(subject, relation)
    ((_, (link,)),) = linker.links([CandidateSet(query, (Candidate(text),))])
    offers = [
        Offer(evidence, hit, linker.fits(query, hit), chosen=hit.id == link.id)
        for evidence, hits in linker.consulted(query, sendable(text))
        for hit in hits
    ]
    if link.evidence == "re-search":
        offers += [
            Offer(f"search {link.searched!r}", hit, linker.fits(query, hit), hit.id == link.id) for hit in link.hits
        ]
    return link, offers
