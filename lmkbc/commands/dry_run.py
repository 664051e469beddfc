"""`--dry-run`: shows the estimate of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Meta

from lmkbc.commands.terminal import note, progress, show_json, show_table, tame
from lmkbc.errors import OptionError, counted
from lmkbc.session.options import OUTPUT

if TYPE_CHECKING:
    from lmkbc.models.base import PlannedRequest
    from lmkbc.run.estimate import Estimate, Foreseen

COUNTS = ("requests", "further", "stored", "prompt_tokens", "answer_tokens")

Show = Annotated[
    int | None,
    Meta(ge=1, description="With --dry-run: print all that would be sent about the first N queries.", extra=OUTPUT),
]


def check_show(show: int | None, *, dry_run: bool) -> None:
    """Raise OptionError for --show without --dry-run."""
    if show and not dry_run:
        raise OptionError("show", "prints what a run would send: add --dry-run")


def taken_by(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a command that a function takes."""
    return {name: given[name] for name in signature(function).parameters if name in given}


def show_estimate(make: Callable[..., Estimate], given: Mapping[str, Any], *, json: bool = False) -> None:
    """Show a line per generator and their sum on stdout, and notes about the counts.

    make: function that returns the estimate. given: the options of the run; those of what is kept do not matter here.
    """
    with progress() as report:
        estimate = make(**taken_by(make, given), progress=report)
    if json:
        show_json(_as_json(estimate))
        return
    rows = [[one.name, *(getattr(one.asked, name, None) for name in COUNTS), one.cost] for one in estimate.generators]
    rows.append(["*** Sum ***", *map(estimate.total, COUNTS), estimate.cost])
    limit = "at most" if estimate.is_bound else "about"
    columns = ["generator", "requests", "may follow", "stored answers"]
    columns += [f"{what} {limit}" for what in ("prompt tokens", "answer tokens", "cost")]
    show_table(columns, rows)
    for sentence in _remarks(estimate):
        note(sentence)


def show_prompts(asked: Iterable[Foreseen], *, json: bool = False) -> None:
    """Show all requests about some queries as they would be sent, on stdout."""
    rows = [
        {"generator": name, "SubjectEntity": query.subject, "Relation": query.relation} | _request(planned)
        for name, query, requests in asked
        for planned in requests
    ]
    if json:
        show_json(rows)
        return
    for row in rows:
        number = row["times"] * row["n"]
        often = f"up to {number} answers" if row["times"] > 1 else counted(number, "answer")
        how = "".join(f", {name} {value!r}" for name, value in row["sampling"].items())
        about = ": ".join(row[name] for name in ("generator", "SubjectEntity", "Relation", "part"))
        typer.echo(tame(f"=== {about}, {often}{how}"))
        turns = row["prompt"]
        text = turns if isinstance(turns, str) else "\n\n".join(f"[{one['role']}]\n{one['content']}" for one in turns)
        typer.echo(tame(f"{text}\n"))
    if not rows:
        note("the system sends no text to a language model")


def _request(planned: PlannedRequest) -> dict[str, Any]:
    prompt, sampling = planned.request.prompt, planned.request.sampling
    names = ("temperature", "top_p", "max_tokens", "stop", "seed")
    given = {name: getattr(sampling, name) for name in names if getattr(sampling, name) is not None}
    if prompt.form == "completion" and planned.request.stops:
        given.setdefault("stop", planned.request.stops)
    return {
        "part": planned.name,
        "times": planned.times,
        "n": len(planned.request.draws),
        "sampling": given,
        "prompt": prompt.text if prompt.form == "completion" else prompt.messages(),
    }


def _remarks(estimate: Estimate) -> Iterator[str]:
    yield f"{counted(estimate.queries, 'query')}; nothing was asked, and nothing written"
    if guessed := estimate.total("estimated"):
        yield (
            f"prompt tokens of {guessed} requests are a bound, one for 2.5 bytes and 8 a turn: only the server has the "
            "model's tokenizer; each sample is a request of its own, unless a run or 'lmkbc systems check' has "
            "found that the server gives several at once"
        )
    if further := estimate.total("further"):
        yield (
            f"at most {further} requests may follow, since they depend on answers, such as verification: tokens and "
            "cost count all of them, with answers of full length"
        )
    if names := [one.name for one in estimate.generators if not one.bounded]:
        yield f"{', '.join(names)}: the recipe limits no answer (sampling.max_tokens), so this is no upper bound"
    if estimate.links:
        yield "requests of the steps link and group are not counted, since they depend on names that answers hold"
    if guessed and estimate.cost is None:
        yield "the cost of servers is not known: give --prices PROMPT,ANSWER per million tokens"
    if estimate.seconds is not None and estimate.timed is not None:
        rate = f"the rate of {counted(estimate.rated, 'request')} of {estimate.timed.parent}"
        yield f"about {_length(estimate.seconds)} for what is certain, at {rate}"
    elif estimate.total("requests"):
        yield (
            "the duration is not known: neither submissions/ nor --out holds an earlier run of this system that asked "
            "anything"
        )


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
            "bounded": one.bounded,
        }
        for one in estimate.generators
    ]
    return {
        "queries": estimate.queries,
        **{name: estimate.total(name) for name in names},
        "cost": estimate.cost,
        "seconds": estimate.seconds,
        "timed": None if estimate.timed is None else str(estimate.timed),
        "rated": estimate.rated,
        "generators": generators,
    }
