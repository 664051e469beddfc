"""An estimate of a run: what it would ask of language models, and what that would take. Nothing is asked or written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.errors import InputError
from lmkbc.files.packed import DOCUMENT, whole
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.replay import shares
from lmkbc.generate.spec import GeneratorQuestions
from lmkbc.models.dry import CallCounter
from lmkbc.models.reference import ModelReference
from lmkbc.models.store_place import default_place
from lmkbc.notes import Notes, Replies
from lmkbc.pipeline import BLOCK
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run
from lmkbc.types import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorEstimate:
    """The estimate of one generator. cost: of its tokens at most, None without prices.

    asked: None where it asks no language model in words. further: whether more is asked on its answers, such as the
    next step of a chain or whether a fact holds, which cannot be known before they are there.
    """

    name: str
    asked: CallCounter | None
    cost: float | None = None
    further: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of a run. seconds: at the rate of an earlier run, `timed`; None where none asked anything."""

    queries: int
    generators: tuple[GeneratorEstimate, ...]
    seconds: float | None
    timed: Path | None

    def total(self, name: str) -> int:
        """Return the sum of a count over all generators."""
        return sum(getattr(one.asked, name) for one in self.generators if one.asked)

    @property
    def cost(self) -> float | None:
        """Return the sum of what is priced; None where nothing is."""
        costs = [one.cost for one in self.generators if one.cost is not None]
        return math.fsum(costs) if costs else None


class _NoNotes(Notes):
    """Notes that keep nothing, since nothing is asked."""

    def remark(self, sentence: str) -> None:
        """Keep nothing."""

    def replied(self, query: Query, replies: Replies) -> None:
        """Keep nothing, however many queries there are."""


def estimate(
    run: Run, recipe: Recipe, queries: Iterable[Query], timings: Iterable[Path] = (), report: Report = silent
) -> Estimate:
    """Compose what a run would ask about queries, look it up in the store, and count what is lacking.

    timings: `timing.json` of earlier runs of the system; the first that asked anything gives the rate. InputError for
    what a run would lack too.
    """
    default_place(run.servers.get("store"), offline=run.offline)
    counter, whole = CallCounter(), tuple(dict.fromkeys(queries))
    dry = replace(run, spellings=recipe.clean.spellings, offline=True, dry=counter, models={}, budgets=[])
    generators = []
    for spec, files in zip(recipe.generate, shares(recipe.generate, run.files, run.edition), strict=True):
        questions = list(spec.questions(dry if files is None else replace(dry, answers=files), _NoNotes()))
        if not questions:
            generators.append(GeneratorEstimate(name=spec.called[0], asked=None))
        for question in questions:
            _ask(question, whole, report)
            counts = counter.taken()
            further = counts.requests > 0 and follows(question.table)
            cost = _cost(run, question.table, counts)
            generators.append(GeneratorEstimate(name=question.name, asked=counts, cost=cost, further=further))
    seconds, timed = _time(sum(one.asked.requests for one in generators if one.asked), timings)
    return Estimate(queries=len(whole), generators=tuple(generators), seconds=seconds, timed=timed)


def _ask(question: GeneratorQuestions, queries: Sequence[Query], report: Report) -> None:
    stream, done = iter(queries), 0
    report(f"{question.name} (queries)", 0, len(queries))
    while block := tuple(islice(stream, BLOCK)):
        for _ in question.ask(block):
            pass
        done += len(block)
        report(f"{question.name} (queries)", done, len(queries))


def follows(table: object) -> bool:
    """Return whether a generator asks more on its answers: steps, another turn, a repair, recalled context, checks."""
    if not isinstance(table, LanguageModelSpec):
        return False
    again = any(style.steps or style.follow_up or style.repair for style in table.styles)
    return again or table.verify is not None or table.context.provider == "recall"


def _cost(run: Run, table: object, counts: CallCounter) -> float | None:
    """Return what the tokens cost, answers at their longest; None for a model of this machine, and without prices."""
    own = table.prices if isinstance(table, ModelReference) else None
    prices = run.servers.get("prices") or own
    if prices is None or not counts.estimated:
        return None
    return (counts.prompt_tokens * prices[0] + counts.answer_tokens * prices[1]) / 1e6


class _Timing(msgspec.Struct):
    """The fields of the `timing.json` of an earlier run, or of a build, which lists each of its levels."""

    seconds: float = 0.0
    usage: dict[str, dict[str, Any]] | list[dict[str, dict[str, Any]]] = {}


def _time(requests: int, timings: Iterable[Path]) -> tuple[float | None, Path | None]:
    """Return the seconds of so many requests, and the file of the rate; a run from the store alone gives no rate."""
    for path in timings:
        try:
            timing = msgspec.json.decode(whole(path, DOCUMENT), type=_Timing)
        except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue  # no run of ours, or one of before there were timings
        levels = timing.usage if isinstance(timing.usage, list) else [timing.usage]
        counts = [used.get("calls") or used.get("requests") or 0 for level in levels for used in level.values()]
        asked = sum(count for count in counts if isinstance(count, int | float))
        if asked > 0 and timing.seconds > 0:
            return timing.seconds / asked * requests, path
    return None, None
