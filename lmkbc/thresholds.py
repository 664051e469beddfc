"""Thresholds files: what tuning learned, and the selector that it makes. A small TOML per edition, system and origin.

`[provenance]` says what was tuned on what: on which data, on whose answers, and in which words they were asked for.
`[relations.NAME]` holds F1 in and out of sample, and `select`, the rule;
`[confidence.NAME]` what calibrates its candidates, where the rule does not, and what precision that promises;
`[reliability]` what confidences were worth out of fold. Older files, which lack some of this, are read as they are.
`sha256` is of all, so that no damage goes unseen; who edits a file by hand removes that line.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import tomli_w

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.atomic import write_bytes
from lmkbc.files.toml import read_toml
from lmkbc.select.calibration import Calibration, PrecisionCurve
from lmkbc.select.confidence import calibration_of
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.registry import inner_rule
from lmkbc.select.rule import PerRelation, Rule, significant
from lmkbc.settings import checked

if TYPE_CHECKING:  # selecting must not wait for Optuna to load
    from lmkbc.tune.confidence import RelationConfidence
    from lmkbc.tune.reliability import Reliability
    from lmkbc.tune.tune import Tuned


CHECKSUM = "sha256"
LONGEST = 100
"""Characters of a file's name that tell of the origin; a longer text is cut, and ends with a hash of the whole."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of candidates: scores mean something else for another model, and for another prompt.

    models: by name, sorted; none where no model is asked.

    wording: "own" or "authors", as the recipe says; "" where nothing is asked. wording_sha256: of the settings and
    texts that prompts are made of.
    """

    models: tuple[str, ...] = ()
    wording: str = ""
    wording_sha256: str = ""

    @property
    def suffix(self) -> str:
        """Return the origin as part of a file's name, such as "--gpt-4--authors"; the usual wording is left out."""
        parts = ["+".join(self.models), "" if self.wording == "own" else self.wording]
        text = "".join(f"--{re.sub(r'[^A-Za-z0-9._+-]+', '_', part)}" for part in parts if part)
        if len(text) <= LONGEST:
            return text
        return f"{text[: LONGEST - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Origin of thresholds. data_sha256: of the labelled split; candidates_sha256: of the candidates.

    models, wording, wording_sha256: of the candidates' `Origin`; None in older files, which do not say.
    """

    edition: str
    system: str
    data_sha256: str
    candidates_sha256: str
    folds: int
    trials: int
    seed: int
    cv_f1: float
    insample_f1: float
    models: tuple[str, ...] | None = None
    wording: str | None = None
    wording_sha256: str | None = None
    lmkbc: str = field(default_factory=partial(version, "lmkbc"))

    @classmethod
    def of(
        cls, tuned: Tuned, origin: Origin, *, edition: str, system: str, data_sha256: str, candidates_sha256: str
    ) -> Provenance:
        """Return what a tuning result says of itself, and what it was made from."""
        return cls(
            edition=edition,
            system=system,
            data_sha256=data_sha256,
            candidates_sha256=candidates_sha256,
            folds=tuned.folds,
            trials=tuned.trials,
            seed=tuned.seed,
            cv_f1=significant(tuned.cv_macro_f1, 6),
            insample_f1=significant(tuned.insample_macro_f1, 6),
            models=origin.models,
            wording=origin.wording,
            wording_sha256=origin.wording_sha256,
        )

    @property
    def table(self) -> dict[str, Any]:
        """Return the fields that are known, as a file holds them."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def differs(self, system: str, origin: Origin, labelled: Collection[str]) -> str:
        """Return what keeps the thresholds from fitting candidates, as the rest of a sentence; "" where they fit.

        labelled: SHA-256 of the splits that they may have been tuned on.
        """
        if self.system != system:
            return f"was tuned for system {self.system}, not {system}"
        if self.models is not None and set(self.models) != set(origin.models):
            return f"was tuned on answers of {_listed(self.models)}, not of {_listed(origin.models)}"
        if self.wording_sha256 is not None and self.wording_sha256 != origin.wording_sha256:
            return f"was tuned on other prompts (wording {self.wording!r}, SHA-256 {self.wording_sha256[:12]}...)"
        if self.data_sha256 not in labelled:
            return f"was tuned on other data (SHA-256 {self.data_sha256[:12]}..., not {min(labelled)[:12]}...)"
        return ""


def _listed(models: Sequence[str]) -> str:
    return " and ".join(models) or "no named model"


class Thresholds(NamedTuple):
    """Content of a thresholds file. cv_f1: relation -> F1 out of fold."""

    selector: PerRelation
    provenance: Provenance
    cv_f1: Mapping[str, float]

    @property
    def about(self) -> dict[str, Any]:
        """Return where the selector comes from, for the records of a run."""
        return self.provenance.table | {"cv_f1_by_relation": dict(self.cv_f1)}


def path_of(folder: Path, edition: str, system: str, origin: Origin) -> Path:
    """Return where tuning puts the thresholds of an edition, system and origin in a workspace's thresholds/."""
    return folder / edition / f"{system}{origin.suffix}.toml"


def files(folder: Path, edition: str, system: str, origin: Origin) -> Iterator[Path]:
    """Yield the thresholds of an edition and system: those of the origin, of an unknown one, and of others by name."""
    own = [path_of(folder, edition, system, origin), path_of(folder, edition, system, Origin())]
    yield from filter(Path.is_file, own)
    for path in sorted((folder / edition).glob("*.toml")):
        if path not in own and path.name.startswith(f"{system}--"):
            about = read_toml(path).get("provenance")
            if isinstance(about, dict) and about.get("system") == system:
                yield path


def write(path: Path, tuned: Tuned, provenance: Provenance) -> None:
    """Replace a thresholds file. Rules are written as they were evaluated: tuning rounds before it scores."""
    table = {
        "provenance": provenance.table,
        "relations": {
            name: {
                "rows": relation.rows,
                "cv_f1": significant(relation.cv_f1, 6),
                "insample_f1": significant(relation.insample_f1, 6),
                "select": relation.rule.to_table(),
            }
            for name, relation in sorted(tuned.relations.items())
        },
        "confidence": {
            name: _confidence_table(confidence, tuned.relations[name].rule)
            for name, confidence in sorted(tuned.confidences.relations.items())
        },
        "reliability": {
            "recall_at_precision_90": significant(tuned.confidences.recall),
            "raw": reliability_table(tuned.confidences.raw),
            "calibrated": reliability_table(tuned.confidences.calibrated),
        },
    }
    write_bytes(path, tomli_w.dumps({CHECKSUM: _digest(table), **table}).encode())


@dataclass(frozen=True, kw_only=True)
class _Relation:
    """A table `relations.NAME`."""

    select: Rule
    rows: int = 0
    cv_f1: float | None = None
    insample_f1: float | None = None


@dataclass(frozen=True, kw_only=True)
class _Confidence:
    """A table `confidence.NAME`. weights, label_priors: of a calibration, if the relation's rule has none."""

    weights: Mapping[str, float] = field(default_factory=dict)
    label_priors: Mapping[str, float] = field(default_factory=dict)
    curve: PrecisionCurve = field(default_factory=PrecisionCurve)

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (*self.weights.values(), *self.label_priors.values()))):
            raise ValueError("a weight or a label prior is no finite number")


@dataclass(frozen=True, kw_only=True)
class _File:
    """A thresholds file."""

    provenance: Provenance
    relations: dict[str, _Relation]
    confidence: dict[str, _Confidence] = field(default_factory=dict)
    reliability: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for a file without relations, and for confidences of a relation that has no rule."""
        if not self.relations:
            raise ValueError("relations is empty: run lmkbc tune to make the file anew")
        for name in self.confidence:
            if name not in self.relations:
                raise ValueError(f"confidence.{name}: {did_you_mean(name, self.relations)}")


def _confidence_table(confidence: RelationConfidence, rule: Rule) -> dict[str, Any]:
    own = calibration_of(PerRelation(rule), "") == confidence.calibration
    curve = {name: value for name, value in asdict(confidence.curve).items() if value is not None}
    return ({} if own else asdict(confidence.calibration)) | {"curve": curve}


FIGURES = ("ece", "ace", "brier", "ace_spread", "brier_spread")


def reliability_table(reliability: Reliability) -> dict[str, Any]:
    """Return the figures, and a diagram's bins as [candidates, mean confidence, share right]."""
    figures = {name: significant(getattr(reliability, name)) for name in FIGURES}
    return figures | {"bins": [list(one) for one in reliability.bins]}


def read(path: Path, fallback: PerRelation | None = None) -> Thresholds:
    """Read a thresholds file. InputError names the file and the table that is wrong.

    fallback: serves relations that were never tuned.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist: run lmkbc tune to make it")
    table = read_toml(path)
    file = checked(_File, table, str(path), inner_rule)
    if file.sha256 and file.sha256 != _digest({name: value for name, value in table.items() if name != CHECKSUM}):
        raise InputError(
            f"{path} is not as tuning wrote it: tune again, or remove the line {CHECKSUM} to use it as it is"
        )
    selector = replace(
        (fallback or PerRelation(ExpectedF1())).under({name: one.select for name, one in file.relations.items()}),
        calibrations={
            name: Calibration(weights=own.weights, label_priors=own.label_priors)
            for name, own in file.confidence.items()
            if own.weights
        },
        curves={name: own.curve for name, own in file.confidence.items()},
    )
    cv_f1 = {name: one.cv_f1 for name, one in file.relations.items() if one.cv_f1 is not None}
    return Thresholds(selector, file.provenance, cv_f1)


def _digest(table: Mapping[str, Any]) -> str:
    """Return the SHA-256 of what a file says, however it is laid out."""
    return hashlib.sha256(msgspec.json.encode(table, order="deterministic")).hexdigest()
