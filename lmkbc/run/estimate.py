"""What a run would ask of language models, and what that would take: nothing is asked, loaded or written for it."""

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
from lmkbc.generate.access import ServerSettings
from lmkbc.generate.conversation import LanguageModelSpec
from lmkbc.generate.replay import shares
from lmkbc.generate.spec import Question
from lmkbc.models.answers import place_for
from lmkbc.models.dry import Foreseen
from lmkbc.pipeline import BLOCK
from lmkbc.progress import Report, silent
from lmkbc.recipe import Recipe
from lmkbc.run.base import Run
from lmkbc.types import Notes, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseeable:
    """What one generator would ask. cost: of its tokens at most, None without prices.

    asked: None where it asks no language model in words. further: whether more is asked on its answers, such as the
    next step of a chain or whether a fact holds, which cannot be known before they are there.
    """

    name: str
    asked: Foreseen | None
    cost: float | None = None
    further: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run would ask. seconds: by the rate of an earlier run, `timed`; None where there is none that asked."""

    queries: int
    parts: tuple[Foreseeable, ...]
    seconds: float | None
    timed: Path | None

    def total(self, name: str) -> int:
        """The sum of a count over all generators."""
        return sum(getattr(part.asked, name) for part in self.parts if part.asked)

    @property
    def cost(self) -> float | None:
        """The sum of what is priced; None where nothing is."""
        costs = [part.cost for part in self.parts if part.cost is not None]
        return math.fsum(costs) if costs else None


class _Unsaid(Notes):
    """Notes of what is only tried: what was not answered is no news."""

    def remark(self, sentence: str) -> None:
        """Say nothing."""

    def replied(self, query: Query, source: str, texts: Iterable[str | None]) -> None:
        """Keep nothing, however many queries there are."""


def forecast(
    run: Run, recipe: Recipe, queries: Iterable[Query], timings: Iterable[Path] = (), report: Report = silent
) -> Forecast:
    """Compose what a run would ask about queries, look it up in the store, and count what is lacking.

    timings: `timing.json` of earlier runs of the system, the first that asked anything tells the rate. InputError for
    what a run would lack too.
    """
    place_for(run.servers.store, offline=run.offline)
    foreseen, whole = Foreseen(), tuple(dict.fromkeys(queries))
    dry = replace(run, spellings=recipe.clean.spellings, offline=True, dry=foreseen, models={}, budgets=[])
    parts = []
    for spec, files in zip(recipe.generate, shares(recipe.generate, run.files, run.edition), strict=True):
        questions = list(spec.questions(dry if files is None else replace(dry, answers=files), _Unsaid()))
        if not questions:
            parts.append(Foreseeable(name=spec.called[0], asked=None))
        for question in questions:
            _ask(question, whole, report)
            counts = foreseen.taken()
            further = counts.requests > 0 and follows(question.table)
            cost = _cost(run, question.table, counts)
            parts.append(Foreseeable(name=question.name, asked=counts, cost=cost, further=further))
    seconds, timed = _time(sum(part.asked.requests for part in parts if part.asked), timings)
    return Forecast(queries=len(whole), parts=tuple(parts), seconds=seconds, timed=timed)


def _ask(question: Question, queries: Sequence[Query], report: Report) -> None:
    stream, done = iter(queries), 0
    report(f"{question.name} (queries)", 0, len(queries))
    while block := tuple(islice(stream, BLOCK)):
        for _ in question.ask(block):
            pass
        done += len(block)
        report(f"{question.name} (queries)", done, len(queries))


def follows(table: object) -> bool:
    """Whether a generator asks more on its answers: steps, a second turn, a repair, a recalled context, a check."""
    if not isinstance(table, LanguageModelSpec):
        return False
    again = any(style.steps or style.again or style.repair for style in table.styles)
    return again or table.verify is not None or table.context.provider == "recall"


def _cost(run: Run, table: object, counts: Foreseen) -> float | None:
    """What the tokens cost, answers at their longest; None for a model of this machine, and without prices."""
    own = table.prices if isinstance(table, ServerSettings) else None
    prices = run.servers.prices or own
    if prices is None or not counts.estimated:
        return None
    return (counts.prompt_tokens * prices[0] + counts.answer_tokens * prices[1]) / 1e6


class _Timing(msgspec.Struct):
    """What is read of the `timing.json` of an earlier run, or of a build, which tells of each of its levels."""

    seconds: float = 0.0
    usage: dict[str, dict[str, Any]] | list[dict[str, dict[str, Any]]] = {}


def _time(requests: int, timings: Iterable[Path]) -> tuple[float | None, Path | None]:
    """How long so many requests take, and which earlier run tells; a run from the store alone tells nothing."""
    for path in timings:
        try:
            timing = msgspec.json.decode(whole(path, DOCUMENT), type=_Timing)
        except (InputError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue  # no run of ours, or one of before there were timings
        levels = timing.usage if isinstance(timing.usage, list) else [timing.usage]
        told = [used.get("calls") or used.get("requests") or 0 for level in levels for used in level.values()]
        asked = sum(count for count in told if isinstance(count, int | float))
        if asked > 0 and timing.seconds > 0:
            return timing.seconds / asked * requests, path
    return None, None
