"""Thresholds files: what tuning learned, one small TOML per edition and system, and the selector that it makes.

`[provenance]` says what was tuned on what; `[relations.NAME]` holds F1 in and out of sample, and `select`, the rule;
`[confidence.NAME]` what calibrates its candidates, where the rule does not, and what precision that promises;
`[reliability]` what confidences were worth out of fold. Files of before there were the last two are read as they are.
`sha256` is of all, so that no damage goes unseen; who edits a file by hand removes that line.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import tomli_w

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files.atomic import write_bytes
from lmkbc.files.jsonl import read_toml
from lmkbc.select.calibration import Calibration
from lmkbc.select.confidence import calibration_of
from lmkbc.select.curve import PrecisionCurve
from lmkbc.select.expected_f1 import ExpectedF1
from lmkbc.select.registry import build
from lmkbc.select.rule import PerRelation, Rule, significant
from lmkbc.settings import checked

if TYPE_CHECKING:  # selecting must not wait for Optuna to load
    from lmkbc.tune.confidence import RelationConfidence
    from lmkbc.tune.reliability import Reliability
    from lmkbc.tune.tune import Tuned


SEAL = "sha256"
KNOWN = (SEAL, "provenance", "relations", "confidence", "reliability")


def package_version() -> str:
    """The installed version of lmkbc, "unknown" in a bare checkout."""
    try:
        return version("lmkbc")
    except PackageNotFoundError:
        return "unknown"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where thresholds come from. data_sha256: of the labelled split; candidates_sha256: of the candidates."""

    edition: str
    system: str
    data_sha256: str
    candidates_sha256: str
    folds: int
    trials: int
    seed: int
    cv_f1: float
    insample_f1: float
    lmkbc: str = field(default_factory=package_version)

    @classmethod
    def of(cls, tuned: Tuned, *, edition: str, system: str, data_sha256: str, candidates_sha256: str) -> Provenance:
        """What a tuning result says of itself, and what it was made from."""
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
        )


def path_of(folder: Path, edition: str, system: str) -> Path:
    """Where the thresholds of an edition and system lie in a workspace's thresholds/."""
    return folder / edition / f"{system}.toml"


def write(path: Path, tuned: Tuned, provenance: Provenance) -> None:
    """Replace a thresholds file. Rules are written as they were evaluated: tuning rounds before it scores."""
    table = {
        "provenance": asdict(provenance),
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
    write_bytes(path, tomli_w.dumps({SEAL: _digest(table), **table}).encode())


@dataclass(frozen=True, kw_only=True)
class _Confidence:
    """A table `confidence.NAME`. weights, habits: of a calibration, where the relation's rule has none of its own."""

    weights: Mapping[str, float] = field(default_factory=dict)
    habits: Mapping[str, float] = field(default_factory=dict)
    curve: PrecisionCurve = field(default_factory=PrecisionCurve)

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (*self.weights.values(), *self.habits.values()))):
            raise ValueError("a weight or a habit is no finite number")


def _confidence_table(confidence: RelationConfidence, rule: Rule) -> dict[str, Any]:
    own = calibration_of(PerRelation(rule), "") == confidence.calibration
    curve = {name: value for name, value in asdict(confidence.curve).items() if value is not None}
    return ({} if own else asdict(confidence.calibration)) | {"curve": curve}


FIGURES = ("ece", "ace", "brier", "ace_spread", "brier_spread")


def reliability_table(reliability: Reliability) -> dict[str, Any]:
    """The figures, and a diagram's bins as [candidates, mean confidence, share right]."""
    figures = {name: significant(getattr(reliability, name)) for name in FIGURES}
    return figures | {"bins": [list(one) for one in reliability.bins]}


def read(path: Path, fallback: PerRelation | None = None) -> tuple[PerRelation, Provenance]:
    """The selector and provenance of a thresholds file. InputError names the file and the table that is wrong.

    fallback: serves relations that were never tuned.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist: run lmkbc tune to make it")
    table = read_toml(path)
    relations = table.get("relations")
    if not isinstance(relations, dict) or not relations:
        raise InputError(f"{path} lacks [relations.NAME] tables: run lmkbc tune to make them anew")
    rules = {name: _rule(path, name, entry) for name, entry in relations.items()}
    confidence = checked(dict[str, _Confidence], table.get("confidence", {}), f"{path}, [confidence]")
    for name in confidence:
        if name not in rules:
            raise InputError(f"{path}, [confidence.{name}]: {did_you_mean(name, rules)}")
    provenance = _provenance(path, table.get("provenance"))
    _check_seal(path, table)
    selector = replace(
        (fallback or PerRelation(ExpectedF1())).under(rules),
        calibrations={
            name: Calibration(weights=own.weights, habits=own.habits) for name, own in confidence.items() if own.weights
        },
        curves={name: own.curve for name, own in confidence.items()},
    )
    return selector, provenance


def _check_seal(path: Path, table: Mapping[str, Any]) -> None:
    for name in table:
        if name not in KNOWN:
            raise InputError(f"{path}, field {name}: unknown; {did_you_mean(name, KNOWN)}")
    content = {name: value for name, value in table.items() if name != SEAL}
    if SEAL in table and table[SEAL] != _digest(content):
        raise InputError(f"{path} is not as tuning wrote it: tune again, or remove the line {SEAL} to use it as it is")


def _digest(table: Mapping[str, Any]) -> str:
    """SHA-256 of what a file says, however it is laid out."""
    return hashlib.sha256(msgspec.json.encode(table, order="deterministic")).hexdigest()


def _rule(path: Path, name: str, entry: Any) -> Rule:
    if not isinstance(entry, dict) or not isinstance(entry.get("select"), dict):
        raise InputError(f"{path}, [relations.{name}]: lacks select, a table with a rule")
    try:
        return build(entry["select"])
    except InputError as error:
        raise InputError(f"{path}, [relations.{name}.select]: {error}") from None


def _provenance(path: Path, table: Any) -> Provenance:
    kinds: dict[str, type | tuple[type, ...]] = {"int": int, "str": str, "float": (int, float)}
    if not isinstance(table, dict):
        raise InputError(f"{path} lacks [provenance]: run lmkbc tune to make it anew")
    known = {field.name: kinds[str(field.type)] for field in fields(Provenance)}
    for name in table:
        if name not in known:
            raise InputError(f"{path}, [provenance], field {name}: unknown; {did_you_mean(name, known)}")
    for name, kind in known.items():
        if not isinstance(table.get(name), kind):
            raise InputError(f"{path}, [provenance], field {name}: missing or of the wrong type")
    return Provenance(**table)


def check(provenance: Provenance, system: str, data_hash: str, *, force: bool = False) -> None:
    """Refuse thresholds that another system or other data made, unless forced: their scores mean something else."""
    if force:
        return
    if provenance.system != system:
        raise InputError(
            f"these thresholds were tuned for system {provenance.system}, not {system}: tune {system}, or force them"
        )
    if provenance.data_sha256 != data_hash:
        raise InputError(
            f"these thresholds were tuned on other data (SHA-256 {provenance.data_sha256[:12]}..., not "
            f"{data_hash[:12]}...): tune again, or force them"
        )
