"""BEAR as a benchmark: the likeliest of a relation's sentences, one per option, for each of three templates."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from lmkbc.errors import counted
from lmkbc.models.base import Message, Prompt
from lmkbc.probe.bear.bear_data import FLOORS, PUBLISHED, PUBLISHED_ERRORS, BearRelation, floors, read_bear
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Floats, Sheet, opened, percent, wanted_tables
from lmkbc.select.ranking import Mask
from lmkbc.settings import listed

TABLES = ("overall", "relation", "domain", "cardinality")
ITEMS = 32
"""Items whose sentences are scored together: where an option comes first, they share its beginning."""

Scorer = Callable[[Sequence[Sequence[str]]], Sequence[Sequence[float] | None]]
"""Function from groups of sentences to the log-probability of each; the sentences of a group begin alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BearBenchmark:
    """BEAR's items: whichever option makes the likeliest sentence is the answer of a causal or a masked model."""

    source: Annotated[
        Path, Meta(description="BEAR.tar.xz, or the directory that it unpacks to.", extra={"argument": True})
    ]
    model: Annotated[str, Meta(description="Causal or masked model: id on the hub, or directory.")]
    properties: Annotated[str | None, Meta(description="Only these relations, comma-separated.")] = None
    limit: Annotated[int | None, Meta(ge=1, description="At most N items per relation, spread over its options.")] = (
        None
    )
    table: Annotated[
        str | None, Meta(description=f"Print only these tables, comma-separated, of {', '.join(TABLES)}.")
    ] = None

    def run(self, run: BenchmarkRun) -> Findings:
        """Score every option of every item as a sentence."""
        tables = wanted_tables(self.table, TABLES, TABLES[:1])
        relations = read_bear(self.source, listed(self.properties))
        places = {relation.name: relation.places(self.limit) for relation in relations}
        score, right = scorer(self.model, run), dict[str, Mask]()
        total = sum(len(places[one.name]) * len(one.options) * len(one.clozes) for one in relations)
        start, done = time.process_time(), 0
        with run.progress() as report:
            for relation in relations:
                gold = np.array([relation.items[place].answer_idx for place in places[relation.name]])
                rows = []
                for cloze in relation.clozes:
                    scores = option_scores(relation, cloze, places[relation.name], score)
                    rows.append((scores.argmax(1) == gold) & np.isfinite(scores.max(1)))
                    report("sentences", done := done + len(gold) * len(relation.options), total)
                right[relation.name] = np.array(rows)
        seconds = time.process_time() - start
        run.note(
            f"{self.model}: {total} sentences of {counted(len(relations), 'relation')} in {seconds:.0f} CPU-seconds, "
            f"{1000 * seconds / total:.1f} ms each where none was kept"
        )
        below = {one.name: np.array([*floors(one, places[one.name]).values()]) for one in relations}
        parts = {name: parted(relations, name) for name in tables}
        found = {
            name: {
                part: accuracy([right[one] for one in own], [below[one] for one in own])
                for part, own in by_part.items()
            }
            for name, by_part in parts.items()
        }
        whole = {"overall": {self.model: found["overall"].pop("all")}} if "overall" in found else {}
        found |= whole
        return Findings(found, [_sheet(name, found[name]) for name in tables])


def scorer(model: str, run: BenchmarkRun) -> Scorer:
    """Return a function that scores sentences: by log-likelihood, or by pseudo-log-likelihood of a masked model."""
    from lmkbc.models.loading import model_kind

    if model_kind(model, offline=run.offline) == "masked":
        from lmkbc.models.masked.backbone import load
        from lmkbc.probe.masked_answers import sentence_scores

        backbone = load(model, offline=run.offline)
        return lambda groups: sentence_scores(backbone, groups)
    causal, nothing = opened(model, run), Prompt((), (Message("user", ""),), "completion")
    return lambda groups: causal.score([nothing] * len(groups), groups)


def option_scores(relation: BearRelation, cloze: str, places: Sequence[int], score: Scorer) -> Floats:
    """Return the score of each option of some items in one template, (items, options); -inf if it is unknown.

    The sentences of a group share what comes first in the template: the subject, or the option.
    """
    by_subject = cloze.index("{subject}") < cloze.index("{mask}")
    rows: list[Floats] = []
    for start in range(0, len(places), ITEMS):
        subjects = [relation.items[place].sub_label for place in places[start : start + ITEMS]]
        table = [[relation.sentence(cloze, subject, option) for option in relation.options] for subject in subjects]
        groups = table if by_subject else [list(column) for column in zip(*table, strict=True)]
        scores = np.array([row or [-np.inf] * len(group) for row, group in zip(score(groups), groups, strict=True)])
        rows.append(scores if by_subject else scores.T)
    return np.concatenate(rows)


def parted(relations: Sequence[BearRelation], table: str) -> dict[str, list[str]]:
    """Return part -> its relations, for a table. A relation of several domains is in each."""
    parts: dict[str, list[str]] = {}
    for relation in relations:
        of = {"domain": relation.domains, "cardinality": (relation.cardinality,), "relation": (relation.name,)}
        for part in of.get(table, ("all",)):
            parts.setdefault(part, []).append(relation.name)
    return parts


def accuracy(right: Sequence[Mask], below: Sequence[Floats]) -> dict[str, Any]:
    """Return the accuracy over all items of some relations: mean over templates, its standard error, and the floors.

    right: a table per relation, (templates, items). below: the same of its floors.
    """
    templates: Floats = np.concatenate(right, axis=1).mean(1)
    error = float(templates.std(ddof=1) / len(templates) ** 0.5) if len(templates) > 1 else None
    own = dict(zip(FLOORS, np.concatenate(below, axis=1).mean(1).tolist(), strict=True))
    items = sum(table.shape[1] for table in right)
    return {"accuracy": float(templates.mean()), "error": error, "templates": templates.tolist(), "items": items, **own}


def _sheet(name: str, parts: dict[str, dict[str, Any]]) -> Sheet:
    rows: list[list[Any]] = [
        [part, *percent(row["accuracy"], row["error"], *(row[floor] for floor in FLOORS)), row["items"]]
        for part, row in parts.items()
    ]
    if name == "overall":
        more = [None] * (len(FLOORS) + 1)
        rows += (
            [f"published: {model}", score, PUBLISHED_ERRORS.get(model), *more] for model, score in PUBLISHED.items()
        )
    heads = ["model" if name == "overall" else name, "accuracy %", "+-", *(f"{floor} %" for floor in FLOORS), "items"]
    return Sheet(heads, rows, name)
