"""Candidate ranking: the model does not write; known objects are scored by how likely it is to continue with each.

A small model ranks known objects far better than it writes them. What it would say of any subject is subtracted from
what it says of this one (domain-conditional PMI; Holtzman et al. 2021), and scores may be taken per token.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from lmkbc.ask.plan import Asking
from lmkbc.ask.prompts import one_line
from lmkbc.edition import Edition
from lmkbc.errors import refuse
from lmkbc.generate.prior import ClosedSet, ranked
from lmkbc.groups import grouped
from lmkbc.models.base import LanguageModel, Prompt
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.select.ranking import Floats
from lmkbc.types import CandidateSet, Example, Query, State

PORTION = 32
"""Queries that are answered and kept at a time."""

Usual = dict[str, Floats]
"""Log-probabilities of a relation's objects with other subjects, (columns,) by subject, -inf where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRanking:
    """Settings for the ranking of known objects, as a recipe's plain data.

    objects: how many of the relation's train objects, the most frequent first. rows: of how many train rows an object
    is to be scored at least, since one that a single subject has is seldom another's. calibration: what is subtracted
    from the log-probabilities (PMI): "background", their mean over `subjects` of train, "neutral", those of a subject
    of which only the type is given, or "nothing". by_length: log-probabilities per token, so that long names have a
    chance.
    """

    objects: int = 60
    rows: int = 2
    calibration: Literal["nothing", "background", "neutral"] = "background"
    subjects: int = 8
    by_length: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        """ValueError for a value that makes no sense."""
        counts = {"objects": self.objects, "rows": self.rows, "subjects": self.subjects}
        refuse(*((count < 1, f"{name} is {count}: give at least 1") for name, count in counts.items()))


class _Scored(NamedTuple):
    """A query, the columns of its closed set that are scored, and their log-probabilities, -inf where unknown.

    failed: whether they could not be asked for, so that they are to be asked for again.
    """

    query: Query
    columns: list[int]
    logs: Floats
    failed: bool


class RankingGenerator:
    """Proposes the known objects of a relation, and none, with a share each; the shares of a query sum to 1.

    A query that train answers is not its own evidence: what its row alone names is not proposed, what it names is
    counted without it, and no prompt shows it, not those of other subjects either. A query without any object to
    score has no draw; one whose scores, or those of the other subjects, are not to be had is missing.
    """

    def __init__(
        self,
        scorer: LanguageModel,
        asking: Asking,
        edition: Edition,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        how: CandidateRanking,
        source: str,
    ) -> None:
        self._scorer, self._asking, self._relations, self._how, self._source = scorer, asking, relations, how, source
        self._rows = grouped((example.query.relation, example) for example in train)
        self._edition = edition

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield a set per distinct query, best candidate first, relation by relation."""
        by_relation = grouped((query.relation, query) for query in dict.fromkeys(queries))
        for relation, members in by_relation.items():
            closed = ClosedSet.of(self._edition, self._relations[relation], self._rows[relation])
            listed = {query: self._listed(closed, query) for query in members}
            yield from (CandidateSet(query, draws=()) for query, columns in listed.items() if not columns)
            scorable = [(query, columns) for query, columns in listed.items() if columns]
            if not scorable:
                continue
            others = self._others(relation)
            usual: dict[tuple[Prompt, ...], Usual | None] = {}
            for portion in (scorable[start : start + PORTION] for start in range(0, len(scorable), PORTION)):
                prompts = [self._asking.prompt(query) for query, _ in portion]
                for scored in self._scored(closed, portion, prompts):
                    references = tuple(self._asking.prompt(other, unseen=scored.query) for other in others)
                    if references not in usual:
                        usual[references] = self._usual(relation, closed, others, references)
                    taken = usual[references]
                    if taken is None or not np.isfinite(scored.logs).any():
                        yield CandidateSet(scored.query, draws=(State.MISSING,))
                        continue
                    shares = np.zeros(len(closed.candidates))
                    shares[scored.columns] = _shares(scored.logs - _means(taken, scored))
                    yield ranked(scored.query, closed.candidates, np.round(shares, 6), self._source)

    def _listed(self, closed: ClosedSet, query: Query) -> list[int]:
        """Return the columns to score for a query: "none" and the most frequent objects of other rows, if any."""
        others = np.array([row.query != query for row in self._rows[query.relation]], dtype=bool)
        counts = np.rint(closed.prior(others) * others.sum())
        ordered = np.argsort(-counts, kind="stable").tolist()
        usual = [column for column in ordered if column and counts[column] >= self._how.rows][: self._how.objects]
        return [0, *usual] if usual else []

    def _scored(
        self, closed: ClosedSet, listed: Sequence[tuple[Query, list[int]]], prompts: Sequence[Prompt]
    ) -> Iterator[_Scored]:
        options = [[self._text(closed, column, query) for column in columns] for query, columns in listed]
        rows = self._scorer.option_scores(prompts, options)
        for (query, columns), texts, row in zip(listed, options, rows, strict=True):
            logs = np.full(len(columns), -np.inf) if row is None else np.array(row)
            lengths = self._scorer.lengths(texts) if self._how.by_length else np.ones(len(columns))
            yield _Scored(query, columns, logs / lengths, row is None)

    def _text(self, closed: ClosedSet, column: int, query: Query) -> str:
        return one_line(closed.labels[column]) if column else self._asking.plan(query).style.null

    def _others(self, relation: str) -> list[Query]:
        """Return the subjects whose log-probabilities a query's own are compared with."""
        match self._how.calibration:
            case "nothing":
                return []
            case "neutral":
                return [Query(f"the {self._relations[relation].subject_type.noun}", relation)]
            case "background":
                rows = self._rows[relation]
                drawn = random.Random(repr((self._how.seed, relation)))
                return [row.query for row in drawn.sample(rows, min(self._how.subjects, len(rows)))]

    def _usual(
        self, relation: str, closed: ClosedSet, others: Sequence[Query], prompts: Sequence[Prompt]
    ) -> Usual | None:
        """Return each object's log-probability for other subjects; None where a call failed."""
        columns = self._listed(closed, Query("", relation))
        by_subject: Usual = {}
        for scored in self._scored(closed, [(other, columns) for other in others], prompts):
            if scored.failed:
                return None
            logs = by_subject[folded_key(scored.query.subject)] = np.full(len(closed.candidates), -np.inf)
            logs[scored.columns] = scored.logs
        return by_subject


def _means(usual: Usual, scored: _Scored) -> Floats:
    """Return what to subtract from log-probabilities: their means over other subjects; 0 where none is known."""
    others = [logs for subject, logs in usual.items() if subject != folded_key(scored.query.subject)]
    if not others:
        return np.zeros(len(scored.columns))
    table = np.array(others)[:, scored.columns]
    known = np.isfinite(table)
    means = np.divide(
        np.where(known, table, 0.0).sum(axis=0),
        known.sum(axis=0),
        where=known.any(axis=0),
        out=np.full(len(scored.columns), np.nan),
    )
    filled: Floats = np.where(np.isnan(means), np.nanmean(means) if np.isfinite(means).any() else 0.0, means)
    return filled


def _shares(logs: Floats) -> Floats:
    """Return a softmax over the finite log-probabilities; 0 for the rest."""
    known = np.isfinite(logs)
    if not known.any():
        return np.zeros(len(logs))
    shares: Floats = np.where(known, np.exp(np.where(known, logs, 0.0) - logs[known].max()), 0.0)
    total: Floats = shares / shares.sum()
    return total
