"""Recorded answers in place of a model: they are read as its recipe says; missing ones are requested, or fail.

The field `source` or `model` of a row, else the manifest beside the file, else its name, identifies the model of the
answers. A recipe with one model takes all answers, whatever their model. A file from a run of several models holds
answers of each.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from lmkbc.errors import InputError
from lmkbc.files.places import RecordedFile
from lmkbc.generate.recorded import Recorded
from lmkbc.generate.recorded_rows import by_model, each_row, models_of
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.session.run import Run
from lmkbc.types import CandidateSet, Generator, Query, State, grouped

log = logging.getLogger(__name__)
Shares = list[tuple[RecordedFile, ...] | None]


def shares(specs: Sequence[GeneratorSpec], run: Run) -> Shares:
    """Return the files that replace the model of each generator; None if it asks no model or reads all files itself.

    Of generators that read files, where none asks a model, --model names the one whose answers are read.

    Rows of a source that the recipe does not have are left out, with a warning. Raise InputError for a file whose model
    is ambiguous or unknown, and if the files hold nothing else.
    """
    replayed = {place: spec for place, spec in enumerate(specs) if spec.is_replayed}
    if not run.files or any(spec.reads_files for spec in specs):
        asked = any(part.asks_model or part.models for spec in specs for part in spec.whole())
        return [_of_model(run) if run.files and run.model and not asked else None] * len(specs)
    if not replayed:
        raise InputError("no generator of this recipe asks a model that the answers of --from could stand for")
    held = [(path, _models(path, replayed, run)) for path in dict.fromkeys(run.files)]
    if not any(models for _, models in held):
        raise InputError(f"--from holds no answers of {_names(replayed)}, which are the sources of this recipe")
    return [
        tuple(RecordedFile(path, models[place]) for path, models in held if place in models)
        if place in replayed
        else None
        for place in range(len(specs))
    ]


def _of_model(run: Run) -> tuple[RecordedFile, ...]:
    """Return the recorded answers of --model, of all files. Raise InputError if none of them is its."""
    held = {key if isinstance(key, str) else key[1]: files for key, files in by_model(run.files, run.edition).items()}
    if run.model not in held:
        raise InputError(f"--model {run.model}: the answers of --from are of {', '.join(sorted(held)) or 'no model'}")
    return tuple(held[run.model])


def _models(path: Path, specs: Mapping[int, GeneratorSpec], run: Run) -> dict[int, frozenset[str] | None]:
    """Return the indices of the generators with answers in a file, and the models of their rows; None for all rows.

    A name that fits several generators is that of the one which the file's name holds.
    """
    if len(specs) == 1:
        return dict.fromkeys(specs)
    if own := [place for place, spec in specs.items() if spec.claims(path)]:
        return dict.fromkeys(own)
    called = grouped((row.called, row) for row in each_row(path, run.edition) if row.called)
    in_name = {place for place, spec in specs.items() if spec.name and spec.name.casefold() in path.name.casefold()}
    if not called:
        models = models_of(RecordedFile(path), run.edition)
        in_name = {place for name in models for place in _takers(name, specs)} or in_name
    takers: dict[str, list[int]] = {}
    for name, rows in called.items():
        relations = {row.Relation for row in rows}
        fit = [place for place in _takers(name, specs) if not relations.isdisjoint(specs[place].asked(run))]
        takers[name] = fit if len(fit) < 2 else [place for place in fit if place in in_name] or fit
    if unused := sorted(name for name, rows in called.items() if not takers[name] and all(row.source for row in rows)):
        log.warning("%s: the recipe asks nothing as %s: these rows are left out", path, ", ".join(unused))
        takers = {name: places for name, places in takers.items() if name not in unused}
    found = {place for places in takers.values() for place in places} or (set() if unused else in_name)
    if len(found) == 1 and not unused:
        return dict.fromkeys(found)
    if (not found and not unused) or any(len(places) != 1 for places in takers.values()):
        raise InputError(
            f"{path}: of the models that the recipe asks ({_names(specs)}), it is not clear whose answers these are: "
            "name one of them in the rows' field model, or in the file's name"
        )
    return {place: frozenset(name for name, places in takers.items() if place in places) for place in found}


def _names(specs: Mapping[int, GeneratorSpec]) -> str:
    return ", ".join(spec.called[0] for spec in specs.values())


def _takers(name: str, specs: Mapping[int, GeneratorSpec]) -> list[int]:
    """Return the indices of the generators with a row's name, else of those whose name is a word of it.

    If there are none, return those whose name begins a word of it, as "qwen" begins Qwen3.5-9B-AWQ.
    """
    names = {place: {one.casefold() for one in spec.called} for place, spec in specs.items()}
    found = [place for place, own in names.items() if name.casefold() in own]
    found = found or [place for place, spec in specs.items() if names_model(name, spec)]
    as_word = {
        place: rf"(?<![a-z]){re.escape(spec.name.casefold())}(?![a-z])" for place, spec in specs.items() if spec.name
    }
    return found or [place for place, pattern in as_word.items() if re.search(pattern, name.casefold())]


def names_model(name: str, spec: GeneratorSpec) -> bool:
    """Return whether a row's name is that of a generator or its model, or contains it as a word."""
    words = {name.casefold(), *re.split(r"[^a-z0-9.-]+|--", name.casefold().replace("_", " "))}
    own = {one.casefold() for one in spec.called}
    return bool(words & {*own, *(one.rpartition("/")[2] for one in own)})


class Replay:
    """Generator over recorded answers. ask: opens the generator for missing answers; None if no model is given.

    A query's answer is missing if no reply to it was recorded, or all calls failed. If no file holds answers of the
    model, and none is asked, the sets have no draws.
    """

    def __init__(self, recorded: Recorded | None, ask: Callable[[], Generator] | None) -> None:
        self._recorded, self._ask = recorded, ask

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield a set per distinct query: first the recorded ones, then the others."""
        lacking: list[CandidateSet] = []
        for found in self._sets(queries):
            if set(found.draws) <= {State.MISSING}:
                lacking.append(found)
            else:
                yield found
        if self._ask and lacking:
            yield from self._ask().generate([found.query for found in lacking])
        else:
            yield from lacking

    def _sets(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        if self._recorded:
            yield from self._recorded.generate(queries)
        else:
            yield from (CandidateSet(query, draws=()) for query in dict.fromkeys(queries))
