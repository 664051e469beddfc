"""Calls as a notebook's user types them."""

from pathlib import Path

import pytest

import lmkbc


def test_an_edition_may_be_a_number(tmp_path: Path) -> None:
    with pytest.raises(lmkbc.InputError, match="unknown edition '2021'"):
        lmkbc.predict(edition=2021, split="val", out=tmp_path / "run")  # type: ignore[arg-type]


def test_a_single_file_may_be_given_alone(tmp_path: Path) -> None:
    given = str(tmp_path / "absent.jsonl")
    with pytest.raises(lmkbc.InputError, match=r"absent\.jsonl does not exist"):
        lmkbc.predict(edition="mini", split="val", files=given, out=tmp_path / "run")  # type: ignore[arg-type]


def test_what_is_no_key_of_answers_is_named() -> None:
    with pytest.raises(lmkbc.InputError, match="'Peru' is no key of answers"):
        lmkbc.score({"Peru": ["Q298"]}, edition="mini")  # type: ignore[dict-item]


def test_a_single_text_is_one_object() -> None:
    asked = ("Peru", "CountryBordersCountry")
    assert lmkbc.score({asked: "Q298"}, {asked: ["Q298"]}, "mini").f1 == 1.0


def test_rows_of_a_pandas_frame_are_rows() -> None:
    class Frame:
        columns = ("SubjectEntity", "Relation", "ObjectEntitiesID")

        def to_dict(self, orient: str) -> list[dict[str, object]]:
            assert orient == "records"
            return [dict(zip(self.columns, ("Peru", "CountryBordersCountry", ["Q298"]), strict=True))]

    gold = {("Peru", "CountryBordersCountry"): ["Q298"]}
    assert lmkbc.score(Frame(), gold, "mini").f1 == 1.0  # type: ignore[arg-type]


def test_evaluate_leads_to_score() -> None:
    with pytest.raises(AttributeError, match=r"call lmkbc\.score"):
        _ = lmkbc.evaluate
