"""Submissions: same inputs, same bytes; every query once; a kill leaves the old run or the new one."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from space import SPACE

from lmkbc.edition import misfit
from lmkbc.errors import InputError, LmkbcError
from lmkbc.run.submission import answers, archive, candidate_lines, check, package, prediction_lines
from lmkbc.types import Candidate, Nil, Prediction, Query
from tests.candidates import candidate_set, sources

IDS, STRINGS = SPACE.edition("2023"), SPACE.edition("2026")
QUERY = Query("Rhine", "RiverBasinsCountry", "Q584")


@given(
    st.lists(st.builds(Candidate, st.text(max_size=8), id=st.none() | st.from_regex(r"Q[1-9][0-9]?|", fullmatch=True)))
)
def test_whatever_is_kept_the_submission_is_sound(kept: list[Candidate]) -> None:
    for edition in (IDS, STRINGS):
        lines = prediction_lines(edition, [Prediction(QUERY, tuple(kept))])
        check(edition, SPACE.relations, [QUERY], archive(lines))
        values = json.loads(lines)[edition.column]
        assert len({edition.metric.scorer.key(value) for value in values}) == len(values)


def test_answers_are_ids_or_texts_each_once_and_never_blank() -> None:
    kept = (
        Candidate(" A", id="Q1"),
        Candidate("a.", id="Q1"),
        Candidate("b", id=None),
        Candidate("..."),
        Candidate(""),
    )
    assert answers(IDS, Prediction(QUERY, kept)) == ["Q1"]
    assert answers(STRINGS, Prediction(QUERY, kept)) == ["A", "b"]


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


def test_a_submission_that_lacks_or_doubles_a_row_is_caught() -> None:
    lines = prediction_lines(IDS, [Prediction(QUERY)])
    with pytest.raises(LmkbcError, match="2 rows for 1 queries"):
        check(IDS, SPACE.relations, [QUERY], archive(lines + lines))
    with pytest.raises(LmkbcError, match="row 1"):
        check(IDS, SPACE.relations, [Query("Elbe", "RiverBasinsCountry")], archive(lines))


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
        (CHILDREN, "1,000", False),
        (CHILDREN, "four", True),
        (CHILDREN, "nan", True),
        (CHILDREN, "1e999", True),
        (CHILDREN, "Q202", False),
    ],
)
def test_a_name_is_no_id(tmp_path: Path, relation: str, value: str, refused: bool) -> None:
    path = write(tmp_path / "p.jsonl", ("Rhine", relation, [value, " "], None))
    assert misfit(IDS, SPACE.relations[relation], value) is refused
    assert not misfit(STRINGS, SPACE.relations[relation], value)
    query = Query("Rhine", relation)
    if not refused:
        package(path, IDS, SPACE.relations, [query])
        return
    with pytest.raises(InputError, match=r"p\.jsonl, \('Rhine', '\w+'\), field ObjectEntitiesID: .* is not a"):
        package(path, IDS, SPACE.relations, [query])
    with pytest.raises(LmkbcError, match="row 1 of the submission"):
        check(IDS, SPACE.relations, [query], archive(path.read_bytes()))


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
