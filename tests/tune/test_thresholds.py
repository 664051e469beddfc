"""Thresholds files: lossless, refused where they do not belong, and wrong ones named."""

from dataclasses import replace
from pathlib import Path

import pytest

from lmkbc import InputError
from lmkbc.plan import Origin
from lmkbc.select.calibration import AVERAGE, PROMISES, SURE, Calibration, PrecisionCurve
from lmkbc.tune import tuned_rules
from lmkbc.tune.confidence import Confidences, Kept, RelationConfidence
from lmkbc.tune.learn import Tuned, TunedRelation
from lmkbc.tune.reliability import Bin, Reliability
from lmkbc.tune.tuning_set import TuningOptions
from tests.rules import rule_of

CURVE = PrecisionCurve(threshold=(0.25, 0.5), precision=(0.75, 0.905), recall=(0.5, 0.25), max=1)
WIDER = PrecisionCurve(threshold=(0.125,), precision=(0.9,), recall=(0.75,), max=2)
SHARED = PrecisionCurve(threshold=(0.5,), precision=(0.92,), recall=(0.5,))
GPT4 = Origin(models=("gpt-4",), wording="own", wording_sha256="a" * 64)
RULES = {
    "b": rule_of("cutoff", threshold=0.0123, min=1),
    "a": rule_of(
        "calibrated",
        inner=rule_of("expected-f1", missing=0.5),
        weights={"gpt-4:said": -1.0},
        label_priors={'Ōé "x".y': 0.25},
    ),
}


def tuned() -> Tuned:
    relations = {name: TunedRelation(rule, 1 / 3, 0.5, 100, 0.25, 100) for name, rule in RULES.items()}
    none = PrecisionCurve()
    own = RelationConfidence(
        RULES["a"].calibration, {SURE: none, AVERAGE: replace(none, max=1), "overall": replace(SHARED, max=1)}, 0.0
    )
    beside = RelationConfidence(
        Calibration(weights={"score": 0.5}, label_priors={"ü": 0.125}),
        {SURE: CURVE, AVERAGE: WIDER, "overall": replace(SHARED, max=2)},
        0.25,
    )
    worth = Reliability(ece=0.125, ace=0.25, brier=0.5, bins=(Bin(3, 0.5, 0.75),))
    nothing = Kept(facts=0, precision=None, interval=None, recall=0.0, relations=0, broken=0)
    kept = dict.fromkeys(PROMISES, nothing)
    known = Confidences(
        relations={"a": own, "b": beside},
        recall=0.1,
        recall_interval=(0, 0.2),
        kept=dict.fromkeys(PROMISES, kept),
        raw=worth,
        calibrated=worth,
    )
    return Tuned(relations, 1 / 3, 0.5, (), 0, TuningOptions(trials=200), known, 0.25)


def provenance(**changes: str) -> tuned_rules.Provenance:
    given = {"edition": "2023", "system": "bert", "data_sha256": "d" * 64, "candidates_sha256": "c" * 64} | changes
    return tuned_rules.Provenance.of(tuned(), GPT4, **given)


def test_round_trip_is_lossless_and_stable(tmp_path: Path) -> None:
    path = tuned_rules.path_of(tmp_path, "2023", "bert", GPT4)
    tuned_rules.write(path, tuned(), provenance())
    assert path == tmp_path / "2023" / "bert--gpt-4.toml"
    selector, read, cv_f1, _ = tuned_rules.read(path)
    assert cv_f1 == {"a": 0.333333, "b": 0.333333}
    assert selector.rules == RULES
    assert selector.calibrations == {"b": Calibration(weights={"score": 0.5}, label_priors={"ü": 0.125})}
    assert selector.curves[SURE] == {"a": PrecisionCurve(), "b": CURVE}
    assert selector.curves[AVERAGE] == {"a": PrecisionCurve(max=1), "b": WIDER}
    assert selector.curves["overall"] == {
        "a": replace(SHARED, max=1),
        "b": replace(SHARED, max=2),
    }  # as many as that of the relation
    assert selector.calibration("a") == RULES["a"].calibration
    assert read == provenance()
    assert (read.cv_f1, read.trials) == (0.333333, 200)
    content = path.read_bytes()
    tuned_rules.write(path, tuned(), provenance())
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("system", "origin", "data", "why"),
    [
        ("bert", GPT4, "d", ""),
        ("gpt", GPT4, "d", "was tuned for system bert, not gpt"),
        ("bert", replace(GPT4, models=("gpt-3.5",)), "d", "was tuned on answers of gpt-4, not of gpt-3.5"),
        ("bert", replace(GPT4, models=("a", "gpt-4")), "d", "was tuned on answers of gpt-4, not of a and gpt-4"),
        ("bert", replace(GPT4, wording_sha256="b" * 64), "d", "was tuned on other prompts (wording 'own', SHA-256 aaa"),
        ("bert", GPT4, "e", "was tuned on other data (SHA-256 dddddddddddd..., not eeeeeeeeeeee...)"),
    ],
)
def test_thresholds_say_in_what_they_differ(system: str, origin: Origin, data: str, why: str) -> None:
    told = provenance().differs(system, origin, [data * 64])
    assert (told.startswith(why), bool(told)) == (True, bool(why)), told


def test_the_origins_own_file_comes_first_and_those_of_other_systems_never(tmp_path: Path) -> None:
    other, unknown = replace(GPT4, models=("gpt-3.5",)), Origin()
    for system, origin in (("bert", other), ("bert", unknown), ("bert", GPT4), ("bert--gpt", GPT4)):
        path = tuned_rules.path_of(tmp_path, "2023", system, origin)
        tuned_rules.write(path, tuned(), provenance(system=system))
    names = [path.name for path in tuned_rules.files(tmp_path, "2023", "bert", GPT4)]
    assert names == ["bert--gpt-4.toml", "bert--gpt-3.5.toml", "bert.toml"]
    assert not list(tuned_rules.files(tmp_path, "2022", "bert", GPT4))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[provenance]", "[provenanc", "not valid TOML"),
        ("[provenance]", "[source]", r"needs provenance|no setting 'source'"),
        ("folds = 5", "fold = 5", "no setting 'provenance.fold': did you mean 'folds'"),
        ("folds = 5", "", "needs provenance.folds"),
        ("seed = 0", 'seed = "0"', "setting 'provenance.seed' is '0': give a whole number"),
        ("relations.", "relation.", "no setting 'relation': did you mean 'relations'"),
        ("[relations.b.select]", "[relations.b.selec]", "no setting 'relations.b.selec': did you mean 'select'"),
        ('rule = "cutoff"', 'rule = "cutof"', "setting 'relations.b.select': unknown selection rule 'cutof'"),
        ('    "gpt-4",', "    4,", "setting 'provenance.models"),
        ('wording = "own"', "wording = 1", "setting 'provenance.wording' is 1: give a string"),
        ("confidence.b", "confidence.c", "confidence.c: known are: a, b"),
        ("score = 0.5", "score = inf", "no finite number"),
        ("    0.905,", "    0.5,", "precision holds no rising numbers"),
        ("    0.905,", "", "differ in length"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "bert.toml"
    tuned_rules.write(path, tuned(), provenance())
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        tuned_rules.read(path)
    assert str(path) in str(caught.value)


@pytest.mark.whole
def test_a_file_that_lost_a_bit_is_refused_or_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    tuned_rules.write(path, tuned(), provenance())
    whole, same = path.read_bytes(), tuned_rules.read(path)
    for place in range(0, len(whole), 2):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place // 2 % 8
        path.write_bytes(damaged)
        try:
            assert tuned_rules.read(path) == same
        except InputError:
            continue


def test_who_edits_thresholds_by_hand_removes_the_seal(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    tuned_rules.write(path, tuned(), provenance())
    edited = path.read_text().replace("0.0123", "0.3")
    path.write_text(edited)
    with pytest.raises(InputError, match="remove the line sha256"):
        tuned_rules.read(path)
    path.write_text("".join(line for line in edited.splitlines(keepends=True) if not line.startswith("sha256")))
    assert tuned_rules.read(path)[0].rules["b"] == rule_of("cutoff", threshold=0.3, min=1)
