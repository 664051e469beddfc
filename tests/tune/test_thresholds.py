"""Thresholds files: lossless, refused where they do not belong, and wrong ones named."""

import random
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from space import SPACE

from lmkbc import InputError
from lmkbc.plan import Origin
from lmkbc.tune import tuned_rules
from tests.tune.test_tune import EDITION, RELATION, example, scored
from tests.tuned import tuned as tune_all

GPT4 = Origin(models=("gpt-4",), wording="own", wording_sha256="a" * 64)
NAME = 'Ōé "x".y'
OTHER = "StateBordersState"


@cache
def tuned() -> Any:
    """What is learned of a relation whose candidates tell right from wrong, and of one where nothing does."""
    draw = random.Random(0)
    sets, examples = [], []
    for number in range(60):
        made = example(f"s{number}", *([NAME] if number % 3 else []))
        right = draw.betavariate(5, 2) if made.objects else draw.betavariate(1, 6)
        other = example(f"s{number}", NAME if number % 2 else "Q2", relation=OTHER)
        examples += made, other
        sets += scored(made, 1 - right, **{NAME: right, "Q2": draw.betavariate(1, 6)}), scored(other, Q2=0.5, Q3=0.6)
    made = tune_all(sets, examples, EDITION, relations=SPACE.relations, trials=0)
    known = made.confidences.relations  # of the first, confidences are those of its rule
    own = replace(known[RELATION], calibration=made.relations[RELATION].rule.calibration)
    return replace(made, confidences=replace(made.confidences, relations={**known, RELATION: own}))


def provenance(**changes: str) -> tuned_rules.Provenance:
    given = {"edition": "2023", "system": "bert", "data_sha256": "d" * 64, "candidates_sha256": "c" * 64} | changes
    return tuned_rules.Provenance.of(tuned(), GPT4, **given)


def test_round_trip_is_lossless_and_stable(tmp_path: Path) -> None:
    path = tuned_rules.path_of(tmp_path, "2023", "bert", GPT4)
    tuned_rules.write(path, tuned(), provenance())
    assert path == tmp_path / "2023" / "bert--gpt-4.toml"
    selector, read, cv_f1, _ = tuned_rules.read(path)
    known = tuned().confidences.relations
    assert cv_f1 == {name: round(one.cv_f1, 6) for name, one in tuned().relations.items()}
    assert selector.rules == {name: one.rule for name, one in tuned().relations.items()}
    assert [selector.rules[name].name for name in (RELATION, OTHER)] == ["calibrated", "cutoff"]
    assert selector.calibrations == {OTHER: known[OTHER].calibration}
    assert selector.calibration(RELATION) == known[RELATION].calibration == selector.rules[RELATION].calibration
    assert NAME in known[RELATION].calibration.label_priors
    for promise in ("sure", "average", "overall"):
        assert selector.curves[promise] == {name: one.curves[promise] for name, one in known.items()}
    assert (selector.curves["overall"][RELATION].max, selector.curves["overall"][OTHER].max) == (1, None)
    assert read == provenance()
    assert (read.cv_f1, read.trials) == (round(tuned().cv_macro_f1, 6), 0)
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
        (f"[relations.{OTHER}.select]", f"[relations.{OTHER}.selec]", r"no setting .*\.selec': did you mean 'select'"),
        ('rule = "cutoff"', 'rule = "cutof"', f"setting 'relations.{OTHER}.select': unknown selection rule 'cutof'"),
        ('    "gpt-4",', "    4,", "setting 'provenance.models"),
        ('wording = "own"', "wording = 1", "setting 'provenance.wording' is 1: give a string"),
        (f"confidence.{OTHER}", "confidence.c", f"confidence.c: known are: {RELATION}, {OTHER}"),
        (r"(\[confidence\.\w+\.weights\]\n\w+) = [-0-9.]+", r"\1 = inf", "no finite number"),
        (r"precision = \[\n    [0-9.]+,", "precision = [\n    0.999,", "precision holds no rising numbers"),
        (r"precision = \[\n    [0-9.]+,", "precision = [", "differ in length"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "bert.toml"
    tuned_rules.write(path, tuned(), provenance())
    text = path.read_text(encoding="utf-8")
    pattern = old if "0-9" in old else re.escape(old)
    assert re.search(pattern, text)
    path.write_text(re.sub(pattern, new, text), encoding="utf-8")
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
    edited = path.read_text().replace(
        f'{OTHER}.select]\nrule = "cutoff"\n', f'{OTHER}.select]\nrule = "cutoff"\nmin = 1\n'
    )
    assert edited != path.read_text()
    path.write_text(edited)
    with pytest.raises(InputError, match="remove the line sha256"):
        tuned_rules.read(path)
    path.write_text("".join(line for line in edited.splitlines(keepends=True) if not line.startswith("sha256")))
    assert tuned_rules.read(path)[0].rules[OTHER] == replace(tuned().relations[OTHER].rule, min=1)
