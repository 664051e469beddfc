"""A stratified random sample of facts, and its labels.

Strata are by relation, confidence and origin, sized by Neyman allocation. The same base, size and seed give the same
sample, so a labels file stores only these three. It is filled in by any editor, or on a page without a network.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from lmkbc.errors import InputError, OptionError
from lmkbc.kb.audit.labels_file import FEWEST, LABELS, LabelRow
from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.report.page import render
from lmkbc.report.rows import FAILED, LONGEST_REPLY, LONGEST_TEXT, MOST_REPLIES, cut
from lmkbc.select.calibration import confidence_text
from lmkbc.types import grouped

BINS = 10
"""Bins of confidence, of equal width."""
EXPECTED = 4.0
"""Fewest facts that a stratum contributes in expectation; smaller strata are pooled."""
LEAST_DRAWN = 2
"""Facts that are drawn from each stratum at least: a single fact gives no estimate of variance."""
LEAST_SD = 0.2
"""Least standard deviation of a stratum, since a confidence near 1 may be wrong."""
OTHERS = 8
"""Most other facts of a subject that a person is shown."""


class Drawn(NamedTuple):
    """A fact with its random number. place: index among all facts of the base. row: row of its subject."""

    chance: float
    place: int
    row: int
    confidence: float


class BinKey(NamedTuple):
    """Relation, number of a bin of confidence, from 0, and whether labelled rows state its facts."""

    relation: str
    bin: int
    stated: bool = False


@dataclass(slots=True)
class ConfidenceBin:
    """Facts of a bin: their number, the sum of their confidences, and the facts with the highest random numbers."""

    size: int = 0
    total: float = 0.0
    first: list[Drawn] = field(default_factory=list)

    @property
    def weight(self) -> float:
        """Return size times standard deviation (implied by the mean confidence): the bin's weight in the allocation."""
        mean = self.total / self.size
        return self.size * max(math.sqrt(mean * (1 - mean)), LEAST_SD)


class SampleCell(NamedTuple):
    """Facts of a relation in a stratum. confidence: their mean confidence. stated: whether labelled rows state them."""

    relation: str
    stratum: int
    size: int
    confidence: float
    stated: bool = False


class SamplePlan(NamedTuple):
    """Division of a sample among bins. counts: facts to draw per stratum. cell_of: bin -> index of its cell."""

    strata: Sequence[Sequence[BinKey]]
    counts: Sequence[int]
    cells: tuple[SampleCell, ...]
    cell_of: Mapping[BinKey, int]


@dataclass(frozen=True, slots=True)
class Sample:
    """Drawn facts in random order, by their index in the base. cell_of: index of a fact -> index of its cell."""

    base: str
    size: int
    seed: int
    cells: tuple[SampleCell, ...]
    drawn: Mapping[int, Drawn]
    cell_of: Mapping[int, int]


def key_of(fact: FactRow) -> BinKey:
    """Return the bin of a fact."""
    return BinKey(fact.relation, min(int(fact.confidence * BINS), BINS - 1), fact.stated_by is not None)


def draw(knowledge: Knowledge, size: int, seed: int) -> Sample:
    """Draw a sample of facts in one pass over the base.

    OptionError if `size` is too small, InputError without facts.
    """
    if size < FEWEST:
        raise OptionError("sample", f"is {size}: give {FEWEST} facts or more")
    bins = _bins(knowledge, size, seed)
    if not bins:
        raise InputError(f"{knowledge.path} holds no fact, so there is nothing to audit: build with other subjects")
    plan = planned(bins, size)
    drawn = [
        (chosen, plan.cell_of[key])
        for stratum, count in zip(plan.strata, plan.counts, strict=True)
        for chosen, key in heapq.nlargest(count, ((chosen, key) for key in stratum for chosen in bins[key].first))
    ]
    drawn.sort(reverse=True)
    facts, cell_of = {chosen.place: chosen for chosen, _ in drawn}, {chosen.place: cell for chosen, cell in drawn}
    return Sample(knowledge.checksum, size, seed, plan.cells, facts, cell_of)


def _bins(knowledge: Knowledge, most: int, seed: int) -> dict[BinKey, ConfidenceBin]:
    chance, bins = Random(seed).random, defaultdict[BinKey, ConfidenceBin](ConfidenceBin)
    for place, fact in enumerate(knowledge.facts()):
        bin_ = bins[key_of(fact)]
        bin_.size += 1
        bin_.total += fact.confidence
        drawn = Drawn(chance(), place, fact.subject_row, fact.confidence)
        if len(bin_.first) < most:
            heapq.heappush(bin_.first, drawn)
        elif drawn > bin_.first[0]:
            heapq.heapreplace(bin_.first, drawn)
    return {key: bins[key] for key in sorted(bins)}


def planned(bins: Mapping[BinKey, ConfidenceBin], size: int) -> SamplePlan:
    """Return strata of non-empty bins, and how a sample of a given size is divided among them."""
    strata = _strata(bins, size)
    sizes = [sum(bins[key].size for key in stratum) for stratum in strata]
    weights = [sum(bins[key].weight for key in stratum) for stratum in strata]
    return SamplePlan(strata, allocated(sizes, weights, size), *_cells(bins, strata))


def _strata(bins: Mapping[BinKey, ConfidenceBin], size: int) -> list[list[BinKey]]:
    """Pool small bins: with the next bin of their relation, else with small bins of other relations.

    Facts that labelled rows state are never pooled with others, so that the precision of each is known.
    """
    share = size / sum(bin_.weight for bin_ in bins.values())
    strata = list[list[BinKey]]()
    for stated in (False, True):
        small = list[BinKey]()
        of_origin = [key for key in bins if key.stated is stated]
        for keys in grouped((key.relation, key) for key in of_origin).values():
            pooled = [*_pooled(keys, bins, share)]
            strata += pooled[:-1]
            small += pooled[-1]
        strata += _pooled(sorted(small, key=lambda key: (key.bin, key.relation)), bins, share)
    return [stratum for stratum in strata if stratum]


def _pooled(keys: Sequence[BinKey], bins: Mapping[BinKey, ConfidenceBin], share: float) -> Iterator[list[BinKey]]:
    """Yield runs of bins that are large enough. A rest joins the last run, or is a run itself if it is the only one."""
    runs, run, expected = list[list[BinKey]](), list[BinKey](), 0.0
    for key in keys:
        run.append(key)
        expected += share * bins[key].weight
        if expected >= EXPECTED:
            runs.append(run)
            run, expected = [], 0.0
    if runs:
        runs[-1] += run
        run = []
    yield from (*runs, run)


def allocated(sizes: Sequence[int], weights: Sequence[float], count: int) -> list[int]:
    """Return how many facts to draw from each stratum: the best whole numbers for the weights (Wright 2012)."""
    drawn = [min(LEAST_DRAWN, size) for size in sizes]
    open_ = [(-weight / math.sqrt(n * (n + 1)), at) for at, (weight, n) in enumerate(zip(weights, drawn, strict=True))]
    heapq.heapify(open_)
    for _ in range(min(count, sum(sizes)) - sum(drawn)):
        while drawn[open_[0][1]] == sizes[open_[0][1]]:
            heapq.heappop(open_)
        at = open_[0][1]
        drawn[at] += 1
        heapq.heapreplace(open_, (-weights[at] / math.sqrt(drawn[at] * (drawn[at] + 1)), at))
    return drawn


def _cells(
    bins: Mapping[BinKey, ConfidenceBin], strata: Sequence[Sequence[BinKey]]
) -> tuple[tuple[SampleCell, ...], dict[BinKey, int]]:
    """Return the cells of all strata, and the index of each bin's cell."""
    cells, cell_of = list[SampleCell](), dict[BinKey, int]()
    for number, stratum in enumerate(strata):
        for relation in dict.fromkeys(key.relation for key in stratum):
            keys = [key for key in stratum if key.relation == relation]
            cell_of |= dict.fromkeys(keys, len(cells))
            size = sum(bins[key].size for key in keys)
            mean = sum(bins[key].total for key in keys) / size
            cells.append(SampleCell(relation, number, size, mean, keys[0].stated))
    return tuple(cells), cell_of


class SampledFact(NamedTuple):
    """A fact of a sample. others: the other facts of its subject with highest confidence.

    further: number of the rest.
    """

    place: int
    fact: FactRow
    others: Sequence[FactRow]
    further: int


def facts_of(knowledge: Knowledge, sample: Sample) -> list[SampledFact]:
    """Return the facts of a sample in its order, with other facts of their subjects, in one pass over the base."""
    facts, counts = dict[int, FactRow](), defaultdict[int, int](int)
    rows = {chosen.row for chosen in sample.drawn.values()}
    surest = defaultdict[int, list[tuple[float, int, FactRow]]](list)
    for place, fact in enumerate(knowledge.facts()):
        if place in sample.drawn:
            facts[place] = fact
        if fact.subject_row in rows:
            counts[fact.subject_row] += 1
            heap, entry = surest[fact.subject_row], (fact.confidence, -place, fact)
            (heapq.heappush if len(heap) <= OTHERS else heapq.heappushpop)(heap, entry)
    made = []
    for place, (_, _, row, _) in sample.drawn.items():
        others = [fact for _, at, fact in sorted(surest[row], reverse=True) if -at != place][:OTHERS]
        made.append(SampledFact(place, facts[place], others, counts[row] - 1 - len(others)))
    return made


def rows_of(sample: Sample, facts: Sequence[SampledFact]) -> list[LabelRow]:
    """Return the lines of a sample, without labels."""
    about = sample.base, sample.size, sample.seed
    return [
        LabelRow(
            *about,
            place,
            None,
            fact.relation,
            fact.subject,
            fact.subject_id,
            fact.object,
            fact.object_id,
            fact.literal,
            fact.confidence,
        )
        for place, fact, *_ in facts
    ]


WIKIDATA, SEARCH = "https://www.wikidata.org/wiki/", "https://duckduckgo.com/?q="
MOST_SOURCES = 20
"""Most sources of a fact that are shown."""


def page(
    name: str,
    sample: Sample,
    facts: Sequence[SampledFact],
    rows: Sequence[LabelRow],
    replies: Mapping[tuple[int, str], Sequence[tuple[str, str | None]]],
) -> str:
    """Return the page. name: name of the base. rows: lines of the labels file.

    replies: (row of a subject, relation) -> (model, text) of each reply.
    """
    content = {
        "key": f"lmkbc-audit-{sample.base}-{sample.size}-{sample.seed}",
        "file": LABELS,
        "facts": [
            {"line": msgspec.to_builtins(row), **shown(fact), **_written(own)}
            for fact, row in zip(facts, rows, strict=True)
            for own in (replies.get((fact.fact.subject_row, fact.fact.relation), ()),)
        ],
    }
    return render("audit.html", title=f"Audit of {cut(name, LONGEST_TEXT)}", facts=len(facts), content=content)


def shown(sampled: SampledFact) -> dict[str, Any]:
    """Return what the page shows of a fact. Long texts are cut."""
    fact = sampled.fact
    unit = f" {fact.about.unit}" if fact.about.unit else ""
    words = " ".join(cut(text, LONGEST_TEXT) for text in (fact.subject, fact.relation.replace("-", " "), fact.object))
    return {
        "subject": [cut(fact.subject, LONGEST_TEXT), _item(fact.subject_id)],
        "relation": [fact.relation, f"{WIKIDATA}Property:{fact.about.property}" if fact.about.is_of_wikidata() else ""],
        "object": [cut(fact.worded, LONGEST_TEXT) + unit, _item(fact.object_id)],
        "definition": fact.about.definition,
        "search": SEARCH + quote(words, safe="", errors="replace"),
        "confidence": confidence_text(fact.confidence),
        "sources": cut("; ".join(cut(source, LONGEST_TEXT) for source in fact.sources[:MOST_SOURCES]), 4 * LONGEST_TEXT)
        + (f", stated by {' and '.join(fact.stated_by)}" if fact.stated_by else ""),
        "model": cut(fact.model, LONGEST_TEXT),
        "others": [
            f"{other.relation}: {cut(other.object, LONGEST_TEXT)} ({confidence_text(other.confidence)})"
            for other in sampled.others
        ],
        "further": sampled.further,
    }


def _written(replies: Sequence[tuple[str, str | None]]) -> dict[str, Any]:
    """Return the replies that the page shows, each with its model, and the number of the rest. Long texts are cut."""
    some = [
        [cut(model, LONGEST_TEXT), FAILED if text is None else cut(text, LONGEST_REPLY)]
        for model, text in replies[:MOST_REPLIES]
    ]
    return {"replies": some, "unseen": len(replies) - len(some)}


def _item(qid: str | None) -> str:
    return f"{WIKIDATA}{qid}" if qid else ""
