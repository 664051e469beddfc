"""Reading of recorded files, with checks of all fields, and the models whose answers they hold.

Every candidate has a score, and every score is in [0, 1]. Scores on another scale are refused, not rescaled. If one
score among probabilities is 5, rescaling would push all others below the thresholds from tuning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import UNDECODABLE, InputError
from lmkbc.files.jsonl import numbered, row_blocks
from lmkbc.files.places import RecordedFile, given_as, name_of
from lmkbc.files.reader import whole
from lmkbc.models.base import Reply
from lmkbc.types import Source, State, grouped

EXISTENCE = "?existence"
"""Suffix of a source's name in a file, for a source that only gives a NIL probability."""

MARKS = ("\u0120", "\u2581")
"""Signs for a blank in vocabularies of byte-level BPE and SentencePiece; no name holds them."""


_NO_NUMBER = re.compile(rb'"(\w+)"\s*:\s*-?(?:NaN|Infinity|inf|nan)\b')


class CandidateRow(msgspec.Struct, gc=False):
    """Candidate in a candidates file."""

    object: str
    score: float
    id: str | None = None
    source: str | None = None
    verification: float | None = None


class RecordedRow(msgspec.Struct, gc=False):
    """Line of a completions or a candidates file. A completion that is null is a failed call.

    completions: one text for each draw. A file may give a single text without a list.

    source: the recipe's name for the model, if it differs.
    parts: number of prompts; each has the same number of draws.
    finish: why each completion ended.
    logprobs: of the completions' tokens.
    scores: of each object that a completion names; null or no list if unknown.
    nil_probabilities: by the step that estimated them.
    verification: object -> verification score.
    pooled: whether scores are over all sources; a candidate's source then lists their names.
    dropped: whether objects were named and none was kept.
    dropped_objects: objects that were named and not kept, each with the rule that it violates.
    """

    SubjectEntity: str
    Relation: str
    SubjectEntityID: str | None = None
    model: str | None = None
    completions: list[str | None] | str | None = None
    candidates: list[CandidateRow] | None = None
    existence_probabilities: dict[str, float] | list[float] | None = None
    source: str | None = None
    parts: int = 1
    finish: list[str] | None = None
    logprobs: list[list[tuple[str, float]] | None] | None = None
    scores: list[float | None] | None = None
    nil_probabilities: dict[str, float] = {}
    verification: dict[str, float] = {}
    pooled: bool = False
    dropped: bool = False
    dropped_objects: list[tuple[str, str]] = []

    @property
    def called(self) -> str | None:
        """Return the name by which a recipe with several models identifies the row."""
        return self.source or self.model

    @property
    def replies(self) -> list[list[Reply | None]]:
        """Return the completions as part -> draw -> reply; they are stored part by part."""
        ends, weights, scores = (
            self.finish or repeat("stop"),
            self.logprobs or repeat(None),
            self.scores or repeat(None),
        )
        draws = [
            None if text is None else Reply(text, end, logprobs=weight, score=score)
            for text, end, weight, score in zip(self.completions or (), ends, weights, scores, strict=False)
        ]
        size = len(draws) // self.parts
        return [draws[start : start + size] for start in range(0, len(draws), size)] if size else []

    @property
    def silence(self) -> State:
        """Return the state of a pooled row without objects: the models named none, or none was kept."""
        return State.DROPPED if self.dropped else State.ABSTAINED

    @property
    def existence(self) -> float | None:
        """Return P(an object exists), from {"YES": p, "NO": q} without other answers, or as the mean over draws."""
        given = self.existence_probabilities
        if not given:
            return None
        if isinstance(given, list):
            return math.fsum(given) / len(given)
        answers = {answer.casefold(): p for answer, p in given.items()}
        yes, no = answers.get("yes", 0.0), answers.get("no", 0.0)
        return yes / (yes + no) if yes + no > 0 else None


def each_row(path: Path, edition: Edition) -> Iterator[RecordedRow]:
    """Yield the rows of a recorded file. Raise InputError with file, line and field."""
    blocks = row_blocks(path, msgspec.json.Decoder(RecordedRow))
    try:
        for index, row in enumerate(chain.from_iterable(rows for rows, _ in blocks)):
            if isinstance(row.completions, str):
                row.completions = [row.completions]
            _check(path, index, row, edition)
            yield row
    except InputError:
        _refuse_no_number(path)
        raise


def _check(path: Path, index: int, row: RecordedRow, edition: Edition) -> None:
    """Give the relation its name in the edition. InputError for a wrong field. index: the row's place in the file."""
    called, row.Relation = row.Relation, edition.spelt(row.Relation)
    if not row.Relation:
        _refuse(path, index, "Relation", edition.lacks(called))
    if (row.completions is None) == (row.candidates is None):
        _refuse(
            path,
            index,
            "completions",
            "a row has either completions, as a list of texts, or candidates, under exactly this name; predictions are "
            f"no answers of a model, but --from {path}:answers=COLUMN reads lists of objects, and 'lmkbc link {path}' "
            "finds the ids of their names",
        )
    told = len(row.completions or ())
    if row.parts < 1 or told % row.parts:
        _refuse(path, index, "parts", f"{row.parts} parts cannot be made of {told} completions")
    for field in ("finish", "logprobs", "scores"):
        if (given := getattr(row, field)) is not None and len(given) != told:
            _refuse(path, index, field, f"{len(given)} values for {told} completions; give one for each")
    for place, candidate in enumerate(row.candidates or ()):
        if candidate.object.startswith(MARKS):
            reason = f"{candidate.object!r} is a token of a model's vocabulary; give the name as text"
            _refuse(path, index, f"candidates[{place}].object", reason)
    for field, value in _shares(row):
        if not 0 <= value <= 1:
            _refuse(path, index, field, f"{value:g} is out of range; give a number in [0, 1]")


class _Sources(msgspec.Struct, gc=False):
    """The sources of a pooled candidate."""

    source: str | None = None


class _Answering(msgspec.Struct, gc=False):
    """Fields of a line about the models that answered."""

    model: str | None = None
    pooled: bool = False
    candidates: list[_Sources] | None = None


class _Beside(msgspec.Struct):
    """Fields of the manifest in the folder of a file: its models, and the files that it is of; None for all."""

    model: str | None = None
    models: list[str] = []
    outputs: dict[str, Any] | None = None


def models_of(file: RecordedFile, edition: Edition) -> list[str]:
    """Return the models whose answers are read: what the rows say, else the manifest beside them, else the file's name.

    Pooled candidates name them as their sources.
    """
    named, sources = (file.models, set[str]()) if file.models else _named_in_rows(file.path)
    pooled = {Source.read(name.removesuffix(EXISTENCE)).model for text in sources for name in text.split("; ")}
    models = named - {""} or pooled or _named_beside(file.path)
    return sorted(models) or [*filter(None, [named_model(file.path, edition)])]


def _named_in_rows(path: Path) -> tuple[set[str], set[str]]:
    """Return the models that the rows of a file name, "" for rows that name none, and sources of pooled candidates."""
    models, sources = set[str](), set[str]()
    for rows, _ in row_blocks(path, msgspec.json.Decoder(_Answering)):
        models.update(row.model or "" for row in rows)
        sources.update(one.source for row in rows if row.pooled for one in row.candidates or () if one.source)
    return models, sources


def _named_beside(path: Path) -> set[str]:
    """Return the models that the manifest beside a file names, if it is of this file."""
    if (manifest := given_as(path).with_name("manifest.json")).is_file():
        with suppress(InputError, *UNDECODABLE):  # a file of something else
            beside = msgspec.json.decode(whole(manifest), type=_Beside)
            if beside.outputs is None or name_of(given_as(path)) in beside.outputs:
                return {*beside.models} or {*filter(None, [beside.model])}
    return set()


def by_model(files: Sequence[Path], edition: Edition) -> dict[str | tuple[Path, str], list[RecordedFile]]:
    """Return the rows of each model, which are one source: a whole file, or those of its rows that name the model.

    Rows without a model are of the one that the manifest beside the file names, or its name, in a folder. A run's
    pooled candidates name sources, and are a source of their own.
    """
    own, known = list[tuple[str, RecordedFile]](), set[str]()
    for path in files:
        named, _ = _named_in_rows(path)
        unnamed = "+".join(sorted(_named_beside(path)))
        parts = {name or unnamed: RecordedFile(path, frozenset({name}) if len(named) > 1 else None) for name in named}
        known |= parts.keys() - {""}
        own += sorted(parts.items()) or [(unnamed, RecordedFile(path))]
    called = ((name or named_model(file.path, edition), file) for name, file in own)
    return grouped((name if name in known else (given_as(file.path).parent, name), file) for name, file in called)


def named_model(path: Path, edition: Edition) -> str:
    """Return the model that a file's name gives: the name without endings and the split; "" if it is only of these."""
    splits = "|".join(map(re.escape, {*edition.splits, "val", "dev"}))
    return re.sub(rf"(?:^|[-_.\s]+)(?:{splits})(?![^-_.\s])", "", stem_of(path), flags=re.I).lstrip("-_. ")


def stem_of(path: Path) -> str:
    """Return a file's name without the endings of recorded files."""
    return name_of(path).removesuffix(".gz").removesuffix(".jsonl").removesuffix(".candidates")


def _shares(row: RecordedRow) -> Iterator[tuple[str, float]]:
    """Yield the fields of a row that must be in [0, 1], with their values."""
    for place, candidate in enumerate(row.candidates or ()):
        yield f"candidates[{place}].score", candidate.score
        if candidate.verification is not None:
            yield f"candidates[{place}].verification", candidate.verification
    yield from (("scores", score) for score in row.scores or () if score is not None)
    for name in ("nil_probabilities", "verification"):
        yield from ((name, share) for share in getattr(row, name).values())
    given = row.existence_probabilities
    for p in (given.values() if isinstance(given, dict) else given) or ():
        yield "existence_probabilities", p


def _refuse(path: Path, index: int, field: str, reason: str) -> NoReturn:
    line, _ = next(islice(numbered(path), index, None))
    raise InputError(f"{path}, line {line}, field {field}: {reason}")


def _refuse_no_number(path: Path) -> None:
    """Raise InputError for the first line with a number that is not valid JSON."""
    for place, line in numbered(path):
        if bad := _NO_NUMBER.search(line):
            where = f"{path}, line {place}, field {bad[1].decode()}"
            raise InputError(f"{where}: not a finite number; give one in [0, 1]")
