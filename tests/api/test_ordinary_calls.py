"""Calls as a notebook's user types them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import lmkbc

ASKED = ("Peru", "CountryBordersCountry")


def test_an_edition_may_be_a_number(tmp_path: Path) -> None:
    with pytest.raises(lmkbc.InputError, match="unknown edition '2021'"):
        lmkbc.predict(edition=2021, split="val", out=tmp_path / "run")  # type: ignore[arg-type]


def test_a_single_file_may_be_given_alone(tmp_path: Path) -> None:
    with pytest.raises(lmkbc.InputError, match=r"absent\.jsonl does not exist"):
        lmkbc.predict(edition="mini", split="val", files=tmp_path / "absent.jsonl", out=tmp_path / "run")  # type: ignore[arg-type]


def test_what_is_no_key_of_answers_is_named() -> None:
    with pytest.raises(lmkbc.InputError, match="'Peru' is no key of answers"):
        lmkbc.score({"Peru": ["Q298"]}, edition="mini")  # type: ignore[dict-item]


def test_a_single_text_is_one_object() -> None:
    assert lmkbc.score({ASKED: "Q298"}, {ASKED: ["Q298"]}, "mini").f1 == 1.0


def test_rows_of_a_pandas_frame_are_rows() -> None:
    row = {"SubjectEntity": ASKED[0], "Relation": ASKED[1], "ObjectEntitiesID": ["Q298"]}
    assert (
        lmkbc.score(
            SimpleNamespace(columns=[*row], to_dict={"records": [row]}.get),  # type: ignore[arg-type]
            {ASKED: ["Q298"]},
            "mini",
        ).f1
        == 1.0
    )


def test_evaluate_leads_to_score() -> None:
    with pytest.raises(AttributeError, match=r"call lmkbc\.score"):
        _ = lmkbc.evaluate
