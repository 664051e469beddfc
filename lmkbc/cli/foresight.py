"""`--dry-run`: what a run would ask, on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from lmkbc.cli.screen import note, show_json
from lmkbc.cli.tables import show_table
from lmkbc.cli.terminal import progress
from lmkbc.errors import counted

if TYPE_CHECKING:
    from lmkbc.run.estimate import Forecast

COUNTS = ("requests", "stored", "prompt_tokens", "answer_tokens")


def show_forecast(foresee: Callable[..., Forecast], *, json: bool = False) -> None:
    """A line per generator and their sum on stdout, and what there is to know beside the counts.

    foresee: takes what is told of its progress.
    """
    with progress() as report:
        forecast = foresee(progress=report)
    if json:
        show_json(_as_json(forecast))
        return
    rows: list[list[Any]] = []
    for part in forecast.parts:
        counts = [getattr(part.asked, name) if part.asked else None for name in COUNTS]
        rows.append([part.name, *counts, part.cost])
    rows.append(["*** Sum ***", *map(forecast.total, COUNTS), forecast.cost])
    columns = ["generator", "requests", "stored answers", "prompt tokens", "answer tokens at most", "cost at most"]
    show_table(columns, rows)
    for sentence in _remarks(forecast):
        note(sentence)


def _remarks(forecast: Forecast) -> Iterator[str]:
    yield f"{counted(forecast.queries, 'query')}; nothing was asked, and nothing written"
    if estimated := forecast.total("estimated"):
        yield (
            f"tokens of {estimated} requests are an estimate, four characters each: the server alone has the model's "
            "tokenizer"
        )
    if names := [part.name for part in forecast.parts if part.further]:
        yield f"{', '.join(names)}: what is asked further on their answers is not counted, since they are not there yet"
    if estimated and forecast.cost is None:
        yield "what servers cost is not known: give --prices PROMPT,ANSWER of a million tokens"
    if forecast.seconds is not None and forecast.timed is not None:
        yield f"about {_length(forecast.seconds)}, at the rate of the run in {forecast.timed.parent}"
    elif forecast.total("requests"):
        yield "how long it takes is not known: no earlier run of this system has asked anything"


def _length(seconds: float) -> str:
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def _as_json(forecast: Forecast) -> dict[str, Any]:
    names = (*COUNTS, "estimated")
    generators = [
        {
            "name": part.name,
            "asked": {name: getattr(part.asked, name) for name in names} if part.asked else None,
            "cost": part.cost,
            "further": part.further,
        }
        for part in forecast.parts
    ]
    return {
        "queries": forecast.queries,
        **{name: forecast.total(name) for name in names},
        "cost": forecast.cost,
        "seconds": forecast.seconds,
        "timed": None if forecast.timed is None else str(forecast.timed),
        "generators": generators,
    }
