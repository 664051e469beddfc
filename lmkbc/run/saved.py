"""Reader of a saved run: a directory, a zip, or a predictions file; its cost; and the reader of gold."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted
from lmkbc.files.checksum import file_sha256
from lmkbc.files.columns import read_column, texts_of
from lmkbc.files.fact_rows import field_of
from lmkbc.files.jsonl import read_jsonl
from lmkbc.files.places import name_of
from lmkbc.files.reader import whole
from lmkbc.run import submission
from lmkbc.scoring.table import WRONG
from lmkbc.session.subset import Subset
from lmkbc.types import Pair
from lmkbc.workspace import Workspace


@dataclass(frozen=True, slots=True)
class InSample:
    """Mark of a run whose rules were tuned on the same split, so that its scores are too high.

    f1: F1 out of fold, None if unknown. relations: the same by relation. over: what `f1` is of, "" for what is scored.
    """

    f1: float | None = None
    relations: Mapping[str, float] = field(default_factory=dict)
    over: str = ""

    def of(self, subset: Subset, edition: Edition) -> InSample:
        """Return the mark for scores of a subset: F1 of its relations if it has all their queries, else of the split.

        F1 of several relations is known where it is their mean.
        """
        if subset.is_whole or self.f1 is None:
            return self
        asked = [f1 for name, f1 in self.relations.items() if subset.holds(name)]
        is_mean = len(asked) == 1 or (asked and edition.metric.average == "relation")
        return (
            replace(self, f1=math.fsum(asked) / len(asked))
            if is_mean and not any(part.limit for part in (subset, *subset.within))
            else replace(self, over=f"on the whole split, over {counted(len(self.relations), 'relation')}")
        )

    @property
    def remark(self) -> str:
        """Return the remark for every score of the run."""
        known = "is not known" if self.f1 is None else f"{self.f1:.3f} {self.over}".strip()
        return f"the rules saw this split; F1 out of fold {known}"


UNMEASURED = frozenset({"differs", "narrowed", "precision"})
"""Fields of a manifest's selection without which a run keeps what tuning measured; "precision" is of older runs."""
CHANGED = "the predictions are not those of the run's manifest: they were changed or copied after the run"


@dataclass(frozen=True)
class SavedRun:
    """A saved run: the path of its predictions, and its manifest, if it has one.

    changed: whether the predictions are not those that the manifest lists.
    """

    path: Path
    predictions: Path
    manifest: Mapping[str, Any] = field(default_factory=dict)
    changed: bool = False

    @classmethod
    def at(cls, path: Path) -> SavedRun:
        """Return the run at a path. InputError if it has no predictions."""
        if not path.exists():
            raise InputError(f"{path} does not exist: check the path")
        if not path.is_dir():
            beside = _beside(path)
            changed = _is_changed(path, beside)
            return cls(path, path, {} if changed else beside, changed)
        predictions, manifest = path / submission.PREDICTIONS, path / submission.MANIFEST
        if not predictions.is_file():
            why, how = "this is no run", "give a finished run"
            if (path / submission.MISSING).is_file():
                why = f"the run is not finished, since queries failed, which {submission.MISSING} lists"
                how = "the command that began it asks them again, and with --failed-as-empty it ends without them"
            if (path / "facts").is_dir():
                why, how = "it is a knowledge base", f"'lmkbc report {path}' shows it, 'lmkbc audit {path}' measures it"
            raise InputError(f"{path} holds no {submission.PREDICTIONS}: {why}; {how}")
        written = submission.read_manifest(manifest) if manifest.is_file() else {}
        return cls(path, predictions, written, _is_changed(predictions, written))

    @property
    def name(self) -> str:
        """Return the name of the directory or file."""
        return name_of(self.path.resolve())

    @property
    def remarks(self) -> list[str]:
        """Return remarks for every score of the run: on other predictions than it wrote, and on failures as empty."""
        counts = self.table("counts")
        as_empty = f"{counts.get('failed')} queries failed, and count as empty answers (--failed-as-empty)"
        return [CHANGED] if self.changed else [as_empty] if counts.get("as_empty") else []

    @property
    def subset(self) -> Subset:
        """Return the subset of its split that the run asked."""
        limit, relations = self.manifest.get("limit"), self.manifest.get("relations")
        names = frozenset(map(str, relations)) if isinstance(relations, list) else frozenset[str]()
        return Subset(names, limit if isinstance(limit, int) else None)

    @property
    def is_subset(self) -> bool:
        """Return whether the run asked only a subset of its split."""
        return is_subset(self.manifest)

    @property
    def in_sample(self) -> InSample | None:
        """Return the mark of a run whose rules were tuned on its own split; None for other runs.

        F1 is unknown for other answers than the tuned ones, and for a run that keeps less than the rules do.
        """
        chosen, inputs = self.table("selection"), self.table("inputs")
        if "data_sha256" not in chosen:
            return None
        own = [digest for name, digest in inputs.items() if name.endswith(f"/{self.manifest.get('split')}")]
        if chosen["data_sha256"] not in own:
            return None
        other = chosen.get("system") != self.manifest.get("system") or not UNMEASURED.isdisjoint(chosen)
        f1, relations = chosen.get("cv_f1"), chosen.get("cv_f1_by_relation")
        if other or not isinstance(f1, float):
            return InSample()
        known = relations.items() if isinstance(relations, dict) else ()
        return InSample(f1, {name: value for name, value in known if isinstance(value, float)})

    def text(self, field_name: str) -> str | None:
        """Return a text field of the manifest; None if there is none."""
        value = self.manifest.get(field_name)
        return value if isinstance(value, str) else None

    def table(self, field_name: str) -> Mapping[str, Any]:
        """Return a table of the manifest; empty if there is none."""
        value = self.manifest.get(field_name)
        return value if isinstance(value, dict) else {}

    def predicted(self, edition: Edition) -> Mapping[Pair, tuple[str, ...]]:
        """Return the predictions by query, as texts. InputError if two rows answer one query with different objects."""
        return {pair: texts_of(value) for pair, value in self._written(edition).items()}

    def _written(self, edition: Edition) -> Mapping[Pair, Any]:
        return read_column(self.predictions, edition, agree=True).values

    def answers(self, edition: Edition) -> Mapping[Pair, Any]:
        """Return the predictions by query for scoring. A query without a readable answer counts as wrong."""
        return dict.fromkeys(self.unreadable, WRONG) | dict(self._written(edition))

    @cached_property
    def unreadable(self) -> frozenset[Pair]:
        """Return the queries whose answers could not be parsed. They have no row, and count as wrong."""
        listed = self.predictions.with_name(submission.MISSING)
        if submission.MISSING not in self.table("outputs") or not listed.is_file():
            return frozenset()
        return frozenset((row.SubjectEntity, row.Relation) for row in read_jsonl(listed, MissingRow))


ASKED = (
    *("edition", "split", "learn_from", "empty", "limit", "relations"),
    *("system", "model", "models", "recipe", "selection", "inputs"),
)
"""Fields of a manifest that say what a run asked: recipe, inputs and options. Those of the same run are equal."""


def is_subset(manifest: Mapping[str, Any]) -> bool:
    """Return whether a run asked only a subset of its split."""
    return not manifest.keys().isdisjoint(("limit", "relations"))


def differences(
    first: Mapping[str, Any], second: Mapping[str, Any], names: Sequence[str] = ASKED
) -> dict[str, tuple[Any, Any]]:
    """Return path -> two values that differ, for two manifests. None stands for a value that is not there."""
    mine, theirs = (dict(_leaves({name: one.get(name) for name in names})) for one in (first, second))
    paths = dict.fromkeys([*mine, *theirs])
    return {path: (mine.get(path), theirs.get(path)) for path in paths if mine.get(path) != theirs.get(path)}


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of all parts of JSON that have no parts."""
    parts = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    if not value or not parts:
        yield path, value
    for name, part in parts:
        yield from _leaves(part, f"{path}.{name}" if path else str(name))


class MissingRow(msgspec.Struct):
    """Fields that are read of a query without an answer."""

    SubjectEntity: str
    Relation: str
    reason: str = ""


def _beside(path: Path) -> dict[str, Any]:
    """Return the manifest beside a run's own file; {} for any other file."""
    manifest = path.with_name(submission.MANIFEST)
    if path.name not in (submission.PREDICTIONS, submission.ARCHIVE) or not (path.is_file() and manifest.is_file()):
        return {}
    return submission.read_manifest(manifest)


def _is_changed(path: Path, manifest: Mapping[str, Any]) -> bool:
    """Return whether a run's file is another one than the manifest lists. A manifest may list no files."""
    outputs = manifest.get("outputs")
    return isinstance(outputs, dict) and outputs.get(path.name) != file_sha256(path)


def edition_of(space: Workspace, runs: Sequence[SavedRun], named: str | None) -> Edition | None:
    """Return the named edition, else the one in the manifests; None if there is none. InputError for two editions."""
    named_by = {run.text("edition"): run for run in runs if run.text("edition")}
    for name, run in named_by.items():
        if name != (named or next(iter(named_by))):
            other = named or next(iter(named_by))
            raise InputError(f"{run.path} is a run of edition {name}, not of {other}: give runs of one edition")
    chosen = named or next(iter(named_by), None)
    return space.edition(chosen) if chosen else None


def read_gold(path: Path, edition: Edition) -> Mapping[Pair, Any]:
    """Return the gold column by query. InputError if a row has no list of objects."""
    gold = read_column(path, edition)
    bad = next((pair for pair, value in gold.values.items() if not isinstance(value, list)), None)
    if bad:
        raise InputError(
            f"{path}, row {bad}, {field_of(path, edition.column)}: no list of objects; give a labelled split"
        )
    return gold.values


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunTiming:
    """Seconds and usage of a run. usage: step -> name of a figure -> value."""

    seconds: float | None = None
    usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> RunTiming:
        """Read a file. If it is absent, or another kind of file, return an empty object; the latter logs a warning."""
        if not path.is_file():
            return cls()
        try:
            content = msgspec.json.decode(whole(path))
        except (InputError, msgspec.DecodeError) as error:
            log.warning("%s: %s", path, error)
            return cls()
        if not isinstance(content, dict):
            return cls()
        seconds, steps = content.get("seconds"), content.get("usage")
        known = steps.items() if isinstance(steps, dict) else ()
        usage = {str(name): values for name, values in known if isinstance(values, dict)}
        return cls(seconds if isinstance(seconds, int | float) else None, usage)

    def then(self, seconds: float, usage: Mapping[str, Mapping[str, Any]]) -> RunTiming:
        """Return the timing of the run after one more call of it, which leaves what it lacks if it asked nothing."""
        asked = any(used.get(name) for used in usage.values() for name in ("requests", "calls"))
        if asked or usage.keys() != self.usage.keys():
            return RunTiming(seconds, usage)
        known = {step: {name: value for name, value in used.items() if value} for step, used in usage.items()}
        return RunTiming(self.seconds, {step: {**self.usage[step], **used} for step, used in known.items()})

    def total(self, name: str) -> float | None:
        """Return the sum of a figure over all steps; None if no step has it."""
        values = [value for step in self.usage.values() if isinstance(value := step.get(name), int | float)]
        return math.fsum(values) if values else None

    @property
    def tokens(self) -> int | None:
        """Return the tokens of prompts and answers; None if unknown."""
        parts = [part for name in ("prompt_tokens", "completion_tokens") if (part := self.total(name)) is not None]
        return int(sum(parts)) if parts else None
