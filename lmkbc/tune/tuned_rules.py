"""Tuned rules: their files in thresholds/, one TOML per edition, system and origin of candidates.

`[provenance]` records the data, models and words that tuning used. `[relations.NAME]` holds F1 in and out of sample,
the numbers of labelled and of answered rows, and the rule in `select`. `[confidence.NAME]` holds the calibration of
candidates, if the rule has none, and the curve of expected precision. `[reliability]` holds the measured reliability of
confidences, out of fold. `sha256` is a checksum of all tables; remove that line after an edit by hand.
"""

from __future__ import annotations

import glob
import hashlib
import math
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
from lmkbc.files.checksum import content_sha256
from lmkbc.files.reader import read_toml
from lmkbc.plan import Origin
from lmkbc.select.calibration import AVERAGE, OVERALL, SURE, SUREST, Calibration, PrecisionCurve
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.narrowings import AtMost
from lmkbc.select.rule import Rule, inner_rule, significant
from lmkbc.select.selector import PerRelation
from lmkbc.session.run import Run
from lmkbc.settings import checked

if TYPE_CHECKING:  # selection must not load Optuna
    from lmkbc.tune.confidence import RelationConfidence
    from lmkbc.tune.learn import Tuned
    from lmkbc.tune.reliability import Reliability


CHECKSUM = "sha256"
FEW = 20
"""Answered rows of a relation below which tuned confidences are rough (`python -m eval.bench few`): they are marked."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Data, models and wording that thresholds were tuned on.

    data_sha256: hash of the labelled split.
    candidates_sha256: hash of the candidates.
    models, wording, wording_sha256, steps_sha256: as in the candidates' `Origin`.
    reviewed_rows: rows of facts that persons decided, which were learned from beside the split.
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
    models: tuple[str, ...]
    wording: str
    wording_sha256: str
    steps_sha256: str = ""
    reviewed_rows: int = 0
    lmkbc: str = field(default_factory=partial(version, "lmkbc"))

    @classmethod
    def of(
        cls,
        tuned: Tuned,
        origin: Origin,
        *,
        edition: str,
        system: str,
        data_sha256: str,
        candidates_sha256: str,
        reviewed_rows: int = 0,
    ) -> Provenance:
        """Return the provenance of a tuning result."""
        return cls(
            edition=edition,
            system=system,
            data_sha256=data_sha256,
            candidates_sha256=candidates_sha256,
            folds=tuned.options.folds,
            trials=tuned.options.trials,
            seed=tuned.options.seed,
            cv_f1=significant(tuned.cv_macro_f1, 6),
            insample_f1=significant(tuned.insample_macro_f1, 6),
            models=origin.models,
            wording=origin.wording,
            wording_sha256=origin.wording_sha256,
            steps_sha256=origin.steps_sha256,
            reviewed_rows=reviewed_rows,
        )

    def differs(self, system: str, origin: Origin, labelled: Collection[str]) -> str:
        """Return why the thresholds do not fit candidates, as the end of a sentence; "" if they fit.

        labelled: SHA-256 of the splits that they may have been tuned on.
        """
        if self.system != system:
            return f"was tuned for system {self.system}, not {system}"
        if set(self.models) != set(origin.models):
            return f"was tuned on answers of {_listed(self.models)}, not of {_listed(origin.models)}"
        if self.wording_sha256 != origin.wording_sha256:
            return f"was tuned on other prompts (wording {self.wording!r}, SHA-256 {self.wording_sha256[:12]}...)"
        if self.steps_sha256 != origin.steps_sha256:
            return "was tuned with other settings of the steps before selection, such as clean and pool"
        if self.data_sha256 not in labelled:
            return f"was tuned on other data (SHA-256 {self.data_sha256[:12]}..., not {min(labelled)[:12]}...)"
        return ""


def _listed(models: Sequence[str]) -> str:
    return " and ".join(models) or "no named model"


class Thresholds(NamedTuple):
    """Content of a thresholds file. cv_f1: relation -> F1 out of fold. few: relation -> answered rows, if few."""

    selector: PerRelation
    provenance: Provenance
    cv_f1: Mapping[str, float]
    few: Mapping[str, int]


def path_of(folder: Path, edition: str, system: str, origin: Origin) -> Path:
    """Return the path of the thresholds for an edition, system and origin in a workspace's thresholds/."""
    return folder / edition / f"{system}{origin.suffix}.toml"


def files(folder: Path, edition: str, system: str, origin: Origin) -> Iterator[Path]:
    """Yield the thresholds files of an edition and system: those of the origin, then those of others, by name."""
    own = path_of(folder, edition, system, origin)
    if own.is_file():
        yield own
    for path in sorted((folder / edition).glob(f"{glob.escape(system)}*.toml")):
        if path != own:
            about = read_toml(path).get("provenance")
            if isinstance(about, dict) and about.get("system") == system:
                yield path


def write(path: Path, tuned: Tuned, provenance: Provenance) -> None:
    """Write or replace a thresholds file. The rules are already rounded: tuning rounds before it scores."""
    shared = (replace(one.curves[OVERALL], max=None) for one in tuned.confidences.relations.values())
    table = {
        "provenance": asdict(provenance),
        "relations": {
            name: {
                "rows": relation.rows,
                "answered": relation.answered,
                "cv_f1": significant(relation.cv_f1, 6),
                "insample_f1": significant(relation.insample_f1, 6),
                **({"most": relation.most} if relation.most else {}),
                "select": relation.rule.to_table(),
            }
            for name, relation in sorted(tuned.relations.items())
            if name in tuned.confidences.relations  # an answer of it was read
        },
        "overall": _curve(next(shared, PrecisionCurve())),
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
    """A table `relations.NAME`. rows: labelled rows, 0 if unknown. answered: those with an answer, None if unknown.

    most: maximum number of objects of an answer.
    """

    select: Rule
    rows: int = 0
    answered: int | None = None
    most: int | None = None
    cv_f1: float | None = None
    insample_f1: float | None = None


CURVES = {SURE: "curve", AVERAGE: "average"}
"""Promise of single relations -> field of a table `confidence.NAME`."""


@dataclass(frozen=True, kw_only=True)
class _Confidence:
    """A table `confidence.NAME`. weights, label_priors, highest: of the calibration, if the rule has no such.

    curve, average: curves of the precision that is promised with 95 %, and on average.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    label_priors: Mapping[str, float] = field(default_factory=dict)
    highest: float = SUREST
    curve: PrecisionCurve = field(default_factory=PrecisionCurve)
    average: PrecisionCurve = field(default_factory=PrecisionCurve)

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (*self.weights.values(), *self.label_priors.values()))):
            raise ValueError("a weight or a label prior is no finite number")


@dataclass(frozen=True, kw_only=True)
class _File:
    """Content of a thresholds file. overall: curve of the precision that is promised for all relations together."""

    provenance: Provenance
    relations: dict[str, _Relation]
    overall: PrecisionCurve = field(default_factory=PrecisionCurve)
    confidence: dict[str, _Confidence] = field(default_factory=dict)
    reliability: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError if there are no relations, or confidences of a relation without a rule."""
        if not self.relations:
            raise ValueError("relations is empty: run lmkbc tune to make the file anew")
        for name in self.confidence:
            if name not in self.relations:
                raise ValueError(f"confidence.{name}: {did_you_mean(name, self.relations)}")


def _confidence_table(confidence: RelationConfidence, rule: Rule) -> dict[str, Any]:
    in_rule = PerRelation(rule).calibration("") == confidence.calibration
    curves = {name: _curve(confidence.curves[promise]) for promise, name in CURVES.items()}
    return ({} if in_rule else asdict(confidence.calibration)) | curves


def _curve(curve: PrecisionCurve) -> dict[str, Any]:
    """Return the columns of a curve as a table."""
    return {column: value for column, value in asdict(curve).items() if value is not None}


FIGURES = ("ece", "ace", "brier", "ace_spread", "brier_spread")


def reliability_table(reliability: Reliability) -> dict[str, Any]:
    """Return the figures of a reliability, and its bins as [candidates, mean confidence, share of right candidates]."""
    figures = {name: significant(getattr(reliability, name)) for name in FIGURES}
    return figures | {"bins": [list(one) for one in reliability.bins]}


def read(path: Path, fallback: PerRelation | None = None) -> Thresholds:
    """Read a thresholds file. Raise InputError with the file and the wrong table.

    fallback: selector for relations without thresholds.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist: run lmkbc tune to make it")
    table = read_toml(path)
    file = checked(_File, table, str(path), inner_rule)
    if file.sha256 and file.sha256 != _digest({name: value for name, value in table.items() if name != CHECKSUM}):
        raise InputError(
            f"{path} is not as tuning wrote it: tune again, or remove the line {CHECKSUM} to use it as it is"
        )
    most = {name: one.most for name, one in file.relations.items() if one.most}
    selector = replace(
        (fallback or PerRelation(ExpectedF1())).under({name: one.select for name, one in file.relations.items()}),
        calibrations={
            name: Calibration(weights=one.weights, label_priors=one.label_priors, highest=one.highest)
            for name, one in file.confidence.items()
            if one.weights
        },
        curves={
            promise: {name: getattr(one, curve) for name, one in file.confidence.items()}
            for promise, curve in CURVES.items()
        }
        | {OVERALL: {name: replace(file.overall, max=one.average.max) for name, one in file.confidence.items()}},
    ).narrowed(*([AtMost(most)] if most else []))
    rows = {name: one.rows if one.answered is None else one.answered for name, one in file.relations.items()}
    few = {name: count for name, count in rows.items() if 0 < count < FEW}
    cv_f1 = {name: one.cv_f1 for name, one in file.relations.items() if one.cv_f1 is not None}
    return Thresholds(selector, file.provenance, cv_f1, few)


def _digest(table: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a file's content, independent of its layout."""
    return hashlib.sha256(msgspec.json.encode(table, order="deterministic")).hexdigest()


def named_few(rows: Mapping[str, int]) -> str:
    """Return relations with their numbers of answered rows, in words."""
    return ", ".join(f"{name} ({count})" for name, count in rows.items())


def split_sha256(run: Run, split: str) -> str:
    """Return the SHA-256 of a split's file."""
    return content_sha256(run.workspace.split_path(run.edition, split))
