"""Candidate ranking: known objects are scored by the probability that the model continues with them.

A small model ranks known objects far better than it writes them. The mean log-probability for other subjects is
subtracted (domain-conditional PMI; Holtzman et al. 2021).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lmkbc.ask.builder import PromptBuilder
from lmkbc.ask.slots import one_line
from lmkbc.edition import Edition
from lmkbc.errors import refuse
from lmkbc.generate.baselines import ClosedSet, ranked
from lmkbc.models.base import LanguageModel, Prompt
from lmkbc.names import folded_key
from lmkbc.relation import Relation
from lmkbc.select.ranking import Floats, Mask
from lmkbc.types import CandidateSet, Example, Query, State, grouped

PORTION = 32
"""Queries that are answered and stored at a time."""

REFERENCES = 8
"""Train subjects over which the background is the mean."""

References = dict[str, Floats]
"""Subject -> log-probabilities of a relation's objects for it, (columns,), -inf if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRanking:
    """Settings for the ranking of known objects, as in a recipe.

    max: most objects of a relation, the most frequent labelled ones first.
    rows: least number of labelled rows of an object, since an object of a single subject is seldom right for another.
    calibration: what is subtracted from log-probabilities (PMI): "nothing", or those of other subjects. For
    "background" it is the mean over some train subjects. For "neutral" the subject names only the type.
    """

    max: int = 60
    rows: int = 2
    calibration: Literal["nothing", "background", "neutral"] = "background"

    REMOVED: ClassVar[Mapping[str, str]] = {"objects": "write it as max"}

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        counts = {"max": self.max, "rows": self.rows}
        refuse(*((count < 1, f"{name} is {count}: give at least 1") for name, count in counts.items()))


class RankingGenerator:
    """Proposes the known objects of a relation, and NIL, with shares that sum to 1 per query.

    For a query in train, objects of its row alone are not proposed, and its row does not count for others. No prompt
    shows the row, including prompts of the reference subjects. A query without objects to score has no draw. If scores
    of the query or of the reference subjects are missing, the query is missing.
    """

    def __init__(
        self,
        scorer: LanguageModel,
        asking: PromptBuilder,
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
            texts, others = self._texts(closed, relation), self._others(relation)
            known: dict[tuple[Prompt, ...], References | None] = {}
            for portion in (scorable[start : start + PORTION] for start in range(0, len(scorable), PORTION)):
                prompts = [self._asking.prompt(query) for query, _ in portion]
                rows = self._scorer.score(prompts, [[texts[column] for column in columns] for _, columns in portion])
                for (query, columns), row in zip(portion, rows, strict=True):
                    references = tuple(self._asking.prompt(other, unseen=query) for other in others)
                    if references not in known:
                        known[references] = self._reference_scores(relation, closed, texts, others, references)
                    taken = known[references]
                    if row is None or taken is None or not np.isfinite(row).any():
                        yield CandidateSet(query, draws=(State.MISSING,))
                        continue
                    shares = np.zeros(len(closed.candidates))
                    shares[columns] = _shares(np.array(row) - _means(taken, query, columns))
                    yield ranked(query, closed.candidates, np.round(shares, 6), self._source)

    def _listed(self, closed: ClosedSet, query: Query) -> list[int]:
        """Return the columns to score for a query: NIL and the most frequent objects of other rows; [] if none."""
        others = np.array([row.query != query for row in self._rows[query.relation]], dtype=bool)
        counts = _counts(closed, others)
        ordered = np.argsort(-counts, kind="stable").tolist()
        frequent = [column for column in ordered if column and counts[column] >= self._how.rows][: self._how.max]
        return [0, *frequent] if frequent else []

    def _texts(self, closed: ClosedSet, relation: str) -> list[str]:
        """Return the text to score for each candidate: its shortest beginning that no other candidate has.

        The rest is nearly certain after the beginning, and takes most of the time.
        """
        query = self._neutral(relation)
        texts = [self._asking.plan(query).style.null, *map(one_line, closed.labels[1:])]
        counts = _counts(closed, np.ones(len(closed.hits), dtype=bool))
        columns = [0, *(column for column in range(1, len(texts)) if counts[column] >= self._how.rows)]
        begun = self._scorer.beginnings(self._asking.prompt(query), [texts[column] for column in columns])
        for column, text in zip(columns, begun, strict=True):
            texts[column] = text
        return texts

    def _neutral(self, relation: str) -> Query:
        """Return the query whose subject names only the type."""
        return Query(f"the {self._relations[relation].subject_type.noun}", relation)

    def _others(self, relation: str) -> list[Query]:
        """Return the reference subjects, whose log-probabilities are subtracted from a query's."""
        match self._how.calibration:
            case "nothing":
                return []
            case "neutral":
                return [self._neutral(relation)]
            case "background":
                rows = self._rows[relation]
                drawn = random.Random(repr((0, relation)))
                return [row.query for row in drawn.sample(rows, min(REFERENCES, len(rows)))]

    def _reference_scores(
        self,
        relation: str,
        closed: ClosedSet,
        texts: Sequence[str],
        others: Sequence[Query],
        prompts: Sequence[Prompt],
    ) -> References | None:
        """Return each object's log-probability for the reference subjects; None if a call failed."""
        columns = self._listed(closed, Query("", relation))
        by_subject: References = {}
        rows = self._scorer.score(prompts, [[texts[column] for column in columns]] * len(others))
        for other, row in zip(others, rows, strict=True):
            if row is None:
                return None
            logs = by_subject[folded_key(other.subject)] = np.full(len(closed.candidates), -np.inf)
            logs[columns] = row
        return by_subject


def _counts(closed: ClosedSet, rows: Mask) -> Floats:
    """Return the number of some rows, (n,), for which each candidate is right, (c + 1,)."""
    return np.asarray(np.rint(closed.prior(rows) * rows.sum()))


def _means(references: References, query: Query, columns: Sequence[int]) -> Floats:
    """Return the mean log-probabilities over the reference subjects, to be subtracted; 0 if none is known."""
    others = [logs for subject, logs in references.items() if subject != folded_key(query.subject)]
    if not others:
        return np.zeros(len(columns))
    table = np.array(others)[:, columns]
    known = np.isfinite(table)
    means = np.divide(
        np.where(known, table, 0.0).sum(axis=0),
        known.sum(axis=0),
        where=known.any(axis=0),
        out=np.full(len(columns), np.nan),
    )
    return np.where(np.isnan(means), np.nanmean(means) if np.isfinite(means).any() else 0.0, means)


def _shares(logs: Floats) -> Floats:
    """Return a softmax over the finite log-probabilities; 0 for the rest."""
    known = np.isfinite(logs)
    if not known.any():
        return np.zeros(len(logs))
    shares: Floats = np.where(known, np.exp(np.where(known, logs, 0.0) - logs[known].max()), 0.0)
    return np.asarray(shares / shares.sum())
