"""The steps of a run: from queries to pooled candidates, generate -> link -> group -> pool; then select.

The steps are opened once, and queries pass through them in blocks, so memory depends on the block and not on the number
of queries. `Steps.over` is the expensive part. `PerRelation.select_all` is cheap. Tuning and prediction therefore share
the first and differ in the second.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from lmkbc.errors import counted
from lmkbc.link.linker import Linker
from lmkbc.notes import Live, Notes, Passage, Replies, unheard
from lmkbc.plan import Plan
from lmkbc.progress import Report, silent
from lmkbc.select.other_side import TrainSides
from lmkbc.select.pool import Merging, Pool
from lmkbc.types import CandidateSet, Generator, Query, State

log = logging.getLogger(__name__)

BLOCK = 2048
"""Queries per block: enough for models and searches to share work, few enough for memory."""


@dataclass(frozen=True, slots=True)
class Block:
    """Queries of a run with their pooled candidates, in order.

    passages: passages in prompts. replies: replies of models. usage: generator -> tokens and cost of this run's calls,
    for the single block of a whole run.
    """

    queries: tuple[Query, ...] = ()
    sets: tuple[CandidateSet, ...] = ()
    passages: Mapping[Query, Sequence[Passage]] = field(default_factory=dict)
    replies: Mapping[Query, Sequence[Replies]] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)


def as_one(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield the union of all blocks as one block, once all are there; nothing if there are none."""
    whole = tuple(blocks)
    if whole:
        yield Block(
            tuple(query for block in whole for query in block.queries),
            tuple(found for block in whole for found in block.sets),
            {query: passages for block in whole for query, passages in block.passages.items()},
            {query: replies for block in whole for query, replies in block.replies.items()},
        )


def propose(plan: Plan, queries: Sequence[Query], report: Report = silent) -> Block:
    """Generate, link, clean and pool the candidates of all queries."""
    steps = Steps(plan, report)
    whole = next(as_one(steps.over(queries)), Block())
    steps.ended()
    return replace(whole, usage=steps.usage)


class Steps:
    """The steps from queries to pooled candidates.

    All are opened at once, so that missing files or models are found early. partial: whether a query counts as answered
    by some of its draws if the others were not asked.
    """

    def __init__(self, plan: Plan, report: Report = silent, live: Live = unheard, *, partial: bool = False) -> None:
        self._recipe = recipe = plan.recipe
        self._partial = partial or (plan.is_replayed and plan.run.offline)
        self._report = report
        self._run = run = replace(plan.run, spellings=recipe.clean.spellings, report=report)
        if recipe.learns and len(run.labelled_splits) > 1:
            log.info("%s learns from the labelled rows of %s", recipe.name, " and ".join(run.labelled_splits))
        self._linking, self._grouping = Notes(), Notes()
        if absent := plan.absent:
            self._linking.remark(f"no file of --from holds answers of {', '.join(absent)}: the others decide alone")
        linked = run.edition.target == "id"
        self._links = recipe.link.open(run, self._linking, replayed=plan.is_replayed) if linked else None
        self._types = recipe.clean.open(run)
        self._sources: list[_OpenSource] = []
        for planned in plan.generators:
            notes = Notes(live=live)
            for name, generator in planned.spec.opened(planned.reads(run), notes):
                self._sources.append(_OpenSource(name, planned.spec.name, generator, notes))
        self._grouper = recipe.pool.open(run, self._grouping, replayed=plan.is_replayed)
        self._sides = TrainSides(run.labelled_rows, run.relations) if recipe.pool.train_sides else None

    @property
    def usage(self) -> dict[str, Any]:
        """Return generator -> tokens and cost so far, and the same for the steps "group" and "link"."""
        usage: dict[str, Any] = {}
        for source in reversed({id(source.notes): source for source in reversed(self._sources)}.values()):
            if source.notes.usage:
                usage[source.name] = _summed(usage.get(source.name, {}), source.notes.usage)
        steps = {"group": self._grouping.usage, "link": self._linking.usage}
        return usage | {step: used for step, used in steps.items() if used}

    @property
    def models(self) -> list[str]:
        """Return the models whose answers are used, in the order of the steps."""
        notes = [source.notes for source in self._sources] + [self._linking, self._grouping]
        return list(dict.fromkeys(model for one in notes for model in one.models))

    def over(self, queries: Iterable[Query], total: int | None = None, block: int = BLOCK) -> Iterator[Block]:
        """Yield the candidates of queries, one block at a time.

        queries: a sequence may hold a query twice, which is asked once; in another iterable all must be distinct.
        total: number of queries, if known.
        """
        repeated = frozenset[Query]()
        if isinstance(queries, Sequence):
            total, repeated = _distinct(queries)
        merger = Pool(self._run.edition, self._recipe.pool, self._run.relations)
        pool = Merging(merger, [source.named for source in self._sources])
        known: list[dict[Query, CandidateSet]] = [{} for _ in self._sources]  # results for queries that occur again
        asked, done, passages = set[Query](), 0, dict[Query, Sequence[Passage]]()
        replies: defaultdict[Query, list[Replies]] = defaultdict(list)
        stream = iter(queries)
        some = tuple(islice(stream, block))
        while some:
            following = tuple(islice(stream, block))
            new = [query for query in dict.fromkeys(some) if query not in asked]
            asked |= repeated.intersection(new)
            groups = []
            for source, earlier in zip(self._sources, known, strict=True):
                sets = earlier | self._asked(source, new, done, total)
                earlier.update((query, sets[query]) for query in repeated.intersection(new))
                groups.append([sets[query] for query in some])
                passages |= source.notes.passages
                source.notes.passages.clear()
                for query in filter(source.notes.replies.__contains__, new):
                    replies[query].append(source.notes.replies[query])
                source.notes.replies.clear()
            if self._grouper:
                groups = self._grouper.merged(groups)
            self._report("pool (queries)", done, total)
            done += len(new)
            if pooled := tuple(self._with_train(pool.add(groups, last=not following))):
                yield Block(tuple(candidates.query for candidates in pooled), pooled, passages, replies)
                passages, replies = {}, defaultdict(list)
            self._report("pool (queries)", done, total)
            some = following

    def _with_train(self, pooled: Sequence[CandidateSet]) -> Sequence[CandidateSet]:
        """Return pooled sets with the facts that train states from the other side, if the recipe uses them."""
        return self._sides.read(pooled) if self._sides else pooled

    def ended(self) -> None:
        """Run the checks that need all queries. Raise InputError for files that were not used."""
        for notes in (*(source.notes for source in self._sources), self._linking):
            while notes.at_end:
                notes.at_end.pop(0)()

    def _asked(
        self, source: _OpenSource, queries: Sequence[Query], done: int, total: int | None
    ) -> dict[Query, CandidateSet]:
        """Return the linked and cleaned proposals of a source for distinct queries.

        done: number of queries before these.
        """
        proposed: list[CandidateSet] = []
        notes, start, before = source.notes, time.monotonic(), source.notes.tokens

        def report() -> None:
            speed = (notes.tokens - before) / max(time.monotonic() - start, 1e-3)
            cost = math.fsum(budget.cost or 0.0 for budget in self._run.budgets)
            figures = (
                (notes.answers, counted(notes.answers, "answer")),
                (source.failed, "{} failed"),
                (notes.waiting, "{} waiting"),
                (notes.retried, "{} retried"),
                (speed, "{:.0f} tokens/s"),
                (cost, "cost {:.4f}"),
            )
            shown = ", ".join(["queries", *(form.format(value) for value, form in figures if value)])
            self._report(f"{source.name} ({shown})", done + len(proposed) - source.failed, total)

        notes.on_change = report
        report()
        for candidates in source.generator.generate(queries) if queries else ():
            proposed.append(candidates)
            source.failed += set(candidates.draws) == {State.MISSING}
            report()
        if notes.stopped:
            proposed = [one.of_stopped_run(partial=self._partial) for one in proposed]
        if self._links is not None:
            proposed = self._linked(self._links, proposed, done, total)
        if self._types is not None:
            proposed = [self._types.keep(candidates) for candidates in proposed]
        relations = self._run.relations
        return {one.query: self._recipe.clean.kept(one, relations[one.query.relation]) for one in proposed}

    def _linked(
        self, links: Linker, proposed: Sequence[CandidateSet], done: int, total: int | None
    ) -> list[CandidateSet]:
        linked = []
        self._report("link (queries)", done, total)
        for count, candidates in enumerate(links.link(proposed), start=1):
            linked.append(candidates)
            self._report("link (queries)", done + count, total)
        return linked


def _distinct(queries: Sequence[Query]) -> tuple[int, frozenset[Query]]:
    """Return the number of distinct queries, and those that occur more than once."""
    times = Counter(queries)
    return len(times), frozenset(query for query, count in times.items() if count > 1)


@dataclass(slots=True)
class _OpenSource:
    """A generator of a run. name: its name for messages. named: its name in the recipe, for pools. notes: its notes.

    failed: number of queries so far whose calls all failed. These are no progress.
    """

    name: str
    named: str
    generator: Generator
    notes: Notes
    failed: int = 0


def _summed(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summed usage of generators of one name.

    A value that one of them does not know, such as cost, is left out.
    """
    sums = {key: value + (before.get(key) or 0) for key, value in now.items() if value is not None}
    return {**now, **before, **sums}
