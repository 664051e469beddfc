"""Protocol of benchmarks of a model's knowledge. A benchmark is a dataclass with its options.

A field with a description is an option of the command. `run` does the work, also when called from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from lmkbc.errors import LmkbcError, check_known, counted
from lmkbc.generate.access import open_model
from lmkbc.models.base import WITHHELD, LanguageModel, Outcome, Prompt, Quantise, Request, Sampling, single
from lmkbc.models.reference import ModelReference
from lmkbc.models.thoughts import answer_of
from lmkbc.notes import Notes
from lmkbc.progress import Report, silent
from lmkbc.report.figures import Plot
from lmkbc.session.run import ModelRun
from lmkbc.settings import listed

TableNames = Annotated[str | None, Meta(description="Print only these tables, comma-separated.")]
"""The option `--table` of a benchmark."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table to show. name: its name for `--table`.

    title: its contents, and the table of the paper that it reproduces.

    picture: function that draws the paper's figure of it.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    name: str
    title: str | None = None
    picture: Callable[[], Plot] | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """Results of a benchmark: values for JSON, and tables."""

    values: Any
    sheets: Sequence[Sheet] = ()


@dataclass(frozen=True, kw_only=True)
class BenchmarkRun(ModelRun):
    """Resources of a benchmark's run: servers of models, a function for notes, and a progress bar."""

    note: Callable[[str], object] = str
    progress: Callable[[], AbstractContextManager[Report]] = lambda: nullcontext(silent)


@runtime_checkable
class Benchmark(Protocol):
    """A benchmark with its options."""

    def run(self, run: BenchmarkRun) -> Findings:
        """Ask a model, or score answers. InputError for wrong options."""


def percent(*shares: float | None) -> list[float | None]:
    """Return shares in percent."""
    return [None if share is None else 100 * share for share in shares]


def wanted_tables(given: str | None, tables: Collection[str], default: Collection[str]) -> list[str]:
    """Return the names of the tables to make, in the order of `tables`. given: value of the option `--table`.

    InputError for an unknown name. Call it before a model is opened.
    """
    names = listed(given)
    for name in names or ():
        check_known(name, tables, f"--table names {name!r}, which is no table of this benchmark")
    return [name for name in tables if name in (default if names is None else names)]


def opened(model: str, run: BenchmarkRun, quantise: Quantise = "none") -> LanguageModel:
    """Open a local causal model, or a server's model if its URL is given."""
    backend = "server" if run.servers.get("base_url") else "local"
    return open_model(ModelReference(model=model, backend=backend, quantise=quantise), run, Notes())


def texts(
    model: LanguageModel, prompts: Sequence[Prompt], sampling: Sampling, run: BenchmarkRun, what: str = "queries"
) -> list[str]:
    """Return the answer to each prompt; "" for one that counts as wrong. Notes give the number of these, and why.

    LmkbcError if answers of a server are missing, since these are failures and not wrong answers. what: unit of the
    progress.
    """
    found = [""] * len(prompts)
    missing = silent_on = 0
    outcome = Outcome()
    with run.progress() as report:
        report(what, 0, len(prompts))  # a model may take minutes to its first answer
        dialogues = {place: single(Request(prompt, (0,), sampling)) for place, prompt in enumerate(prompts)}
        for done, (place, (reply,)) in enumerate(model.complete(dialogues, outcome), start=1):
            if reply is None or reply.failed:
                missing += 1
            else:
                withheld = reply.finish in WITHHELD
                silent_on += withheld or not reply.is_answer
                found[place] = "" if withheld else answer_of(reply.text) or ""
            report(what, done, len(prompts))
    served = run.servers.get("base_url") is not None
    if missing and served:
        raise LmkbcError(
            f"{missing} of {len(prompts)} prompts have no answer ({outcome.lost or 'no answer'}): "
            f"run the same command again to go on from {model.place}"
        )
    if missing:
        run.note(f"{counted(missing, 'prompt is', 'prompts are')} longer than the model's window: counted as wrong")
    for remark in outcome.remarks if served else ():
        run.note(f"{model.name}: {remark}")
    if silent_on:
        many = counted(silent_on, "prompt was", "prompts were")
        run.note(f"{model.name}: {many} refused, or answered with nothing: counted as wrong")
    return found


Floats = NDArray[np.float64]
RESAMPLES = 2000
LEVEL = 0.95


def half_width(strata: Sequence[Sequence[tuple[float, float]]], statistic: Callable[[Floats], Floats]) -> float | None:
    """Return half the width of the interval; None if a stratum has only one row, which gives no variance.

    strata: rows of two values, resampled within each stratum. statistic: function from the strata's mean rows,
    (resamples, strata, 2), to the scores, (resamples,). From a stratum of n rows, n - 1 are drawn. Otherwise the
    variance of small strata would be too low (McCarthy and Snowden 1985).
    """
    if not strata or min(map(len, strata)) < 2:
        return None
    draw = np.random.default_rng(0)
    means = np.empty((RESAMPLES, len(strata), 2))
    for place, rows in enumerate(strata):
        values, counts = np.unique(np.array(rows, dtype=np.float64), axis=0, return_counts=True)
        drawn = len(rows) - 1
        means[:, place] = draw.multinomial(drawn, counts / len(rows), RESAMPLES) @ values / drawn
    low, high = np.quantile(statistic(means), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(high - low) / 2
