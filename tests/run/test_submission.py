"""Submissions: same inputs, same bytes; every query once; a kill leaves the old run or the new one."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE
from submitted import check

from lmkbc import InputError
from lmkbc.run.submission import answers, archive, candidate_lines, package, prediction_lines
from lmkbc.testing import Candidate, Nil, Prediction, Query
from tests.candidates import candidate_set, sources

IDS, STRINGS = SPACE.edition("2023"), SPACE.edition("2026")
QUERY = Query("Rhine", "RiverBasinsCountry", "Q584")


@given(
    st.lists(st.builds(Candidate, st.text(max_size=8), id=st.none() | st.from_regex(r"Q[1-9][0-9]?|", fullmatch=True)))
)
def test_whatever_is_kept_the_submission_is_sound(kept: list[Candidate]) -> None:
    for edition in (IDS, STRINGS):
        lines = prediction_lines(edition, [Prediction(QUERY, tuple(kept))])
        check(edition, [QUERY], archive(lines))


def test_answers_are_ids_or_texts_each_once_and_never_blank() -> None:
    kept = (
        Candidate(" A", id="Q1"),
        Candidate("a.", id="Q1"),
        Candidate("b", id=None),
        Candidate("..."),
        Candidate(""),
    )
    assert answers(IDS, Prediction(QUERY, kept)) == ["Q1"]
    assert answers(STRINGS, Prediction(QUERY, kept)) == ["A", "b", "..."]  # which the scorer counts


def test_same_inputs_same_bytes_and_one_root_file() -> None:
    lines = prediction_lines(IDS, [Prediction(QUERY, (Candidate("Germany", id="Q183"),))])
    assert archive(lines) == archive(lines)
    with zipfile.ZipFile(io.BytesIO(archive(lines))) as opened:
        (entry,) = opened.infolist()
        assert entry.filename == "predictions.jsonl"
        assert entry.date_time == (1980, 1, 1, 0, 0, 0)  # no clock: the same bytes on another day
        assert json.loads(opened.read("predictions.jsonl")) == {
            "SubjectEntity": "Rhine",
            "Relation": "RiverBasinsCountry",
            "SubjectEntityID": "Q584",
            "ObjectEntitiesID": ["Q183"],
        }
    found = candidate_set(QUERY, (Candidate("Germany", 0.5, sources("m#0"), "Q183"), Nil(0.1)))
    assert candidate_lines([found]) == candidate_lines([found])
    assert candidate_lines([found])[4:8] == bytes(4)  # gzip's time


def test_packaging_reorders_drops_strangers_and_refuses_gaps(tmp_path: Path) -> None:
    other = Query("Elbe", "RiverBasinsCountry")
    path = tmp_path / "p.jsonl"
    rows = [
        {"SubjectEntity": name, "Relation": "RiverBasinsCountry", "ObjectEntitiesID": values}
        for name, values in (("Elbe", ["Q1", " Q1", ""]), ("Unknown", []), ("Rhine", ["Q2"]))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    zipped, unknown = package(path, IDS, SPACE.relations, [QUERY, other])
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        kept = [json.loads(line) for line in opened.read("predictions.jsonl").splitlines()]
    assert [(row["SubjectEntity"], row["ObjectEntitiesID"]) for row in kept] == [("Rhine", ["Q2"]), ("Elbe", ["Q1"])]
    assert unknown == 1
    with pytest.raises(InputError, match=r"lacks 1 of 3 queries, first \('Ems'"):
        package(path, IDS, SPACE.relations, [QUERY, other, Query("Ems", "RiverBasinsCountry")])
    path.write_text(json.dumps(rows[0] | {"ObjectEntitiesID": [1]}))
    with pytest.raises(InputError, match="not a list of strings"):
        package(path, IDS, SPACE.relations, [other])


def write(path: Path, *rows: tuple[str, str, list[str], str | None]) -> Path:
    lines = [
        {"SubjectEntity": subject, "Relation": relation, "ObjectEntitiesID": values, "SubjectEntityID": qid}
        for subject, relation, values, qid in rows
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


BASIN, CHILDREN = "RiverBasinsCountry", "PersonHasNumberOfChildren"


@pytest.mark.parametrize(
    ("relation", "value", "refused"),
    [
        (BASIN, "Q183", False),
        (BASIN, "Germany", True),
        (BASIN, "q183", True),
        (BASIN, "Q0", True),
        (BASIN, "4", True),
        (BASIN, "https://www.wikidata.org/wiki/Q183", True),
        (BASIN, "[UNK]", True),
        (CHILDREN, "4", False),
        (CHILDREN, "four", True),
        (CHILDREN, "nan", True),
        (CHILDREN, "1e999", True),
    ],
)
def test_a_name_is_no_id(tmp_path: Path, relation: str, value: str, refused: bool) -> None:
    path = write(tmp_path / "p.jsonl", ("Rhine", relation, [value, " "], None))
    query = Query("Rhine", relation)
    if not refused:
        package(path, IDS, SPACE.relations, [query])
        return
    with pytest.raises(InputError, match=r"p\.jsonl, line 1, \('Rhine', '\w+'\), field ObjectEntitiesID: .* is not a"):
        package(path, IDS, SPACE.relations, [query])


AREA, CITY = "hasArea", "personHasCityOfDeath"


@pytest.mark.parametrize(
    ("year", "relation", "value", "told"),
    [
        *((2023, CHILDREN, value, "'2', or []") for value in ("None", "nan", "74 km2", "70-80", "74,36", "two", "1/2")),
        *((2023, CHILDREN, value, "write '2'") for value in ("2.0", "02", "+2", "2.", "2e0")),
        *((2024, "seriesHasNumberOfEpisodes", value, "write '1000'") for value in ("1,000", "1e3", "1_000", "1000.0")),
        *((2023, BASIN, value, "not a QID") for value in ("Q", "Q042", "None", "nan", "Chile", "P31", "L42")),
        *((2024, CITY, value, "write 'Q42'") for value in ("q42", "http://www.wikidata.org/entity/Q42", "wd:Q42")),
        *(
            (2025, AREA, value, "reads no number")
            for value in ("None", "74 km2", "70-80", "1 234", "\u22125", "½", "~7")
        ),
        (2024, "seriesHasNumberOfEpisodes", "Q52", "reads it as text, which no gold has: give digits alone"),
        (2025, AREA, "nan", "reads nan"),
        (2026, AREA, "inf", "reads inf"),
        (2026, AREA, "74,36", "reads 7436"),
        (2025, AREA, "1.234,56", "reads 1.23456"),
        (2026, AREA, "0", "reads 0"),
    ],
)
def test_what_can_only_be_wrong_is_refused(tmp_path: Path, year: int, relation: str, value: str, told: str) -> None:
    edition = SPACE.edition(str(year))
    lines = [
        {"SubjectEntity": name, "Relation": relation, edition.column: values}
        for name, values in (("a", []), ("b", [value]), ("c", [value, "x"]))
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("\n\n".join(map(json.dumps, lines)))
    queries = [Query(name, relation) for name in "cab"]
    with pytest.raises(InputError) as error:
        package(path, edition, SPACE.relations, queries)
    assert f"p.jsonl, line 5, ('c', {relation!r}), field {edition.column}: {value!r} is not a" in str(error.value)
    assert str(error.value).endswith("(and 2 more values like it)")
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("year", "relation", "value", "gold"),
    [
        *((2025, AREA, value, "1000") for value in ("1,000", "1e3", "+1000.0", "1_000", " 1000 ", "1,000.5", "999,")),
        *((2026, AREA, value, "1234567") for value in ("12,34,567", "1,234,567", "1234567.0")),
        (2026, AREA, "-5", "-5"),
        *((2023, CHILDREN, value, value) for value in ("0", "12", "-1", "2.5")),
        (2023, BASIN, "Q42", "Q42"),
        *((year, CITY, value, value) for year in (2025, 2026) for value in ("Nan", "None", "Q", "70-80", "74 km2")),
        (2022, "PersonCauseOfDeath", "none", "None"),
    ],
)
def test_what_can_be_right_is_never_refused(tmp_path: Path, year: int, relation: str, value: str, gold: str) -> None:
    """The scorer itself counts it as a hit."""
    edition = SPACE.edition(str(year))
    query = Query("a", relation)
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"SubjectEntity": "a", "Relation": relation, edition.column: [value]}))
    zipped, _ = package(path, edition, SPACE.relations, [query])
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        (submitted,) = json.loads(opened.read("predictions.jsonl"))[edition.column]
    truth: list[Any] = [[gold]] if year in (2022, 2026) else [gold]
    assert edition.metric.scorer.score([submitted], truth, relation)[0] == 1


def test_empty_strings_are_left_out_and_null_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, query = tmp_path / "p.jsonl", Query("Rhine", BASIN)
    package(write(path, ("Rhine", BASIN, [""], None)), IDS, SPACE.relations, [query])
    assert not caplog.messages  # the form in which gold of 2023 says that there is none
    package(write(path, ("Rhine", BASIN, ["", "Q1", " "], None)), IDS, SPACE.relations, [query])
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        "2 empty strings left out, which the scorer would count as wrong"
    ]
    path.write_text(json.dumps({"SubjectEntity": "Rhine", "Relation": BASIN, "ObjectEntitiesID": [None]}))
    with pytest.raises(InputError, match=r"line 1, .*: not a list of strings"):
        package(path, IDS, SPACE.relations, [query])


@pytest.mark.parametrize("spelled", ["Rhône ", " Rho\u0302ne", "Rho\u0302ne", "Rhône\xa0", "Rhône\t"])
def test_a_subject_in_another_unicode_form_is_matched(
    tmp_path: Path, spelled: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "p.jsonl", ("Elbe", BASIN, [], None), (spelled, BASIN, ["Q1"], None))
    zipped, unknown = package(path, IDS, SPACE.relations, [Query("Rhône", BASIN), Query("Elbe", BASIN)])
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        rows = [json.loads(line) for line in opened.read("predictions.jsonl").splitlines()]
    assert [(row["SubjectEntity"], row["ObjectEntitiesID"]) for row in rows] == [("Rhône", ["Q1"]), ("Elbe", [])]
    assert unknown == 0
    assert "p.jsonl: 1 row is matched by Unicode form (NFC) and blanks, first" in caplog.text
    write(path, ("Elbe", BASIN, [], None), (spelled, BASIN, ["Q1"], None), ("Rhône  ", BASIN, ["Q2"], None))
    with pytest.raises(InputError, match="lacks 1 of 1 queries"):  # it is not clear which row it is
        package(path, IDS, SPACE.relations, [Query("Rhône", BASIN)])


def test_two_rows_that_disagree_are_refused_and_namesakes_keep_their_own(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    for first, second in ((None, None), ("Q584", "Q584"), (None, "Q584"), ("Q584", None)):
        write(path, ("Elbe", BASIN, [], None), ("Rhine", BASIN, ["Q1"], first), ("Rhine", BASIN, ["Q2"], second))
        with pytest.raises(InputError, match=r"p\.jsonl, line 3, field ObjectEntitiesID: .* than in line 2; keep one"):
            package(path, IDS, SPACE.relations, [QUERY])
    write(path, ("Rhine", BASIN, ["Q1", "Q2"], "Q584"), ("Rhine", BASIN, ["Q2", "Q1"], "Q584"))
    assert package(path, IDS, SPACE.relations, [QUERY])[1] == 0
    write(path, ("Rhine", BASIN, ["Q1"], "Q584"), ("Rhine", BASIN, ["Q2"], "Q585"))
    zipped, _ = package(path, IDS, SPACE.relations, [Query("Rhine", BASIN, "Q585"), QUERY])
    with zipfile.ZipFile(io.BytesIO(zipped)) as opened:
        rows = [json.loads(line)["ObjectEntitiesID"] for line in opened.read("predictions.jsonl").splitlines()]
    assert rows == [["Q2"], ["Q1"]]
