"""`--dry-run`: shows the estimate of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from lmkbc.cli.terminal import note, progress, show_json, show_table
from lmkbc.errors import counted

if TYPE_CHECKING:
    from lmkbc.run.estimate import Estimate

COUNTS = ("requests", "stored", "prompt_tokens", "answer_tokens")


def show_estimate(make: Callable[..., Estimate], given: Mapping[str, Any], *, json: bool = False) -> None:
    """Show a line per generator and their sum on stdout, and notes about the counts.

    make: function that returns the estimate. given: the options of the run; those of what is kept do not matter here.
    """
    options = {name: given[name] for name in signature(make).parameters if name in given}
    with progress() as report:
        estimate = make(**options, progress=report)
    if json:
        show_json(_as_json(estimate))
        return
    rows = [[one.name, *(getattr(one.asked, name, None) for name in COUNTS), one.cost] for one in estimate.generators]
    rows.append(["*** Sum ***", *map(estimate.total, COUNTS), estimate.cost])
    columns = ["generator", "requests", "stored answers", "prompt tokens", "answer tokens at most", "cost at most"]
    show_table(columns, rows)
    for sentence in _remarks(estimate):
        note(sentence)


def _remarks(estimate: Estimate) -> Iterator[str]:
    yield f"{counted(estimate.queries, 'query')}; nothing was asked, and nothing written"
    if guessed := estimate.total("estimated"):
        yield (
            f"tokens of {guessed} requests are an estimate, four characters each: the server alone has the model's "
            "tokenizer"
        )
    if names := [one.name for one in estimate.generators if one.further]:
        yield f"{', '.join(names)}: requests that depend on answers are not counted, since there are no answers yet"
    if guessed and estimate.cost is None:
        yield "the cost of servers is not known: give --prices PROMPT,ANSWER per million tokens"
    if estimate.seconds is not None and estimate.timed is not None:
        yield f"about {_length(estimate.seconds)}, at the rate of the run in {estimate.timed.parent}"
    elif estimate.total("requests"):
        yield "the duration is not known: no earlier run of this system has asked anything"


def _length(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.{1 if seconds < 10 * size else 0}f} {unit}"
    return f"{seconds:.0f} seconds"


def _as_json(estimate: Estimate) -> dict[str, Any]:
    names = (*COUNTS, "estimated")
    generators = [
        {
            "name": one.name,
            "asked": {name: getattr(one.asked, name) for name in names} if one.asked else None,
            "cost": one.cost,
            "further": one.further,
        }
        for one in estimate.generators
    ]
    return {
        "queries": estimate.queries,
        **{name: estimate.total(name) for name in names},
        "cost": estimate.cost,
        "seconds": estimate.seconds,
        "timed": None if estimate.timed is None else str(estimate.timed),
        "generators": generators,
    }
