"""Names and ids of published rows: paired where that is sure, whole where they were split, never one for the other."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import learned
from space import SPACE

from lmkbc import InputError, Workspace
from lmkbc.files.splits import objects_of, read_examples
from lmkbc.testing import Example, GoldObject, Query

QID = re.compile(r"Q\d+")
KNOWN = {"Q49110": {"Boston University"}, "Q13371": {"Harvard University"}}


def shown(*row: tuple[str, str | None]) -> list[tuple[str, str | None]]:
    return list(row)


@pytest.mark.parametrize(
    ("names", "ids", "expected"),
    [
        pytest.param(["Washington", "D.C."], ["Q61"], shown(("Washington, D.C.", "Q61")), id="one id"),
        pytest.param(
            ["A", "B Sutherland", "Jr.", "C"],
            ["Q1", "Q2", "Q3"],
            shown(("A", "Q1"), ("B Sutherland, Jr.", "Q2"), ("C", "Q3")),
            id="what looks like the rest of a name",
        ),
        pytest.param(
            ["University of California", "Berkeley", "Harvard University", "Boston University"],
            ["Q168756", "Q13371", "Q49110"],
            shown(
                ("University of California, Berkeley", "Q168756"),
                ("Harvard University", "Q13371"),
                ("Boston University", "Q49110"),
            ),
            id="what other rows pair",
        ),
        pytest.param(
            ["A", "B", "Harvard University", "C", "D"],
            ["Q1", "Q2", "Q13371", "Q3", "Q4", "Q5"],
            shown(
                ("A", "Q1"),
                ("B", "Q2"),
                ("Harvard University", "Q13371"),
                ("", "Q3"),
                ("", "Q4"),
                ("", "Q5"),
                ("C", None),
                ("D", None),
            ),
            id="a lost name: sure up to where other rows stop telling",
        ),
        pytest.param(
            ["A", "B", "C"],
            ["Q1", "Q2"],
            shown(("", "Q1"), ("", "Q2"), ("A", None), ("B", None), ("C", None)),
            id="nothing tells",
        ),
        pytest.param([], ["Q1"], shown(("", "Q1")), id="no names"),
        pytest.param(["A"], [], shown(("A", None)), id="no ids"),
        pytest.param(["A", "Q7"], ["Q1", "Q7", "Q8"], shown(("A", "Q1"), ("", "Q7"), ("", "Q8")), id="an id as name"),
    ],
)
def test_a_row_of_unequal_lists(names: list[str], ids: list[str], expected: list[tuple[str, str | None]]) -> None:
    assert [(found.name, found.id) for found in objects_of(names, ids, KNOWN)] == expected


@given(st.lists(st.text(max_size=3), max_size=8), st.lists(st.integers(1, 30).map("Q{}".format), max_size=8), st.data())
def test_no_name_and_no_id_is_lost_or_made_up(pieces: list[str], ids: list[str], data: st.DataObject) -> None:
    names = st.sampled_from([*pieces, "x"])
    known = data.draw(st.dictionaries(st.sampled_from([*ids, "Q1"]), st.sets(names), max_size=4))
    found = objects_of(pieces, ids, known)
    assert [gold.id for gold in found if gold.id] == ids
    parts = [part for gold in found for part in gold.parts or gold.names]
    assert [part for part in parts if part] == [piece for piece in pieces if piece]
    assert all(gold.name == ", ".join(gold.parts or gold.names) for gold in found)


def test_what_one_row_shows_tells_more_of_another(tmp_path: Path) -> None:
    rows = [
        (["A", "University", "Berkeley", "B"], ["Q1", "Q168756", "Q2"]),
        (["University", "Berkeley", "Boston University"], ["Q168756", "Q49110"]),
        (["Boston University"], ["Q49110"]),
    ]
    lines = [
        {
            "SubjectEntity": f"s{place}",
            "Relation": "PersonHasEmployer",
            "ObjectEntities": names,
            "ObjectEntitiesID": ids,
        }
        for place, (names, ids) in enumerate(rows)
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    first = read_examples(path, SPACE.edition("2023"))[0]
    assert first.objects[1] == GoldObject(("University, Berkeley",), "Q168756", ("University", "Berkeley"))
    assert first.names == ("A", "University, Berkeley", "B")


def test_a_hostile_row_is_read_in_bounded_time() -> None:
    names, ids = [str(number) for number in range(40_000)], [f"Q{number}" for number in range(1, 20_001)]
    assert not any(found.names and found.id for found in objects_of(names, ids, KNOWN))


@pytest.mark.parametrize("name", ["2022", "2023", "2024", "2025", "2026"])
def test_no_name_of_an_official_file_is_an_id_and_the_scorer_sees_the_published_column(
    data_dir: Path, name: str
) -> None:
    space = Workspace(data=data_dir)
    edition = space.edition(name)
    for split in ("train", edition.held_out):
        path = space.split_path(edition, split)
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        for example, row in zip(space.examples(edition, split), rows, strict=True):
            assert not any(QID.fullmatch(name) for gold in example.objects for name in gold.names)
            ids = row.get("ObjectEntitiesID")
            assert [gold.id for gold in example.objects if gold.id] == [one for one in ids or () if one]
            score, published = edition.metric.scorer.score, row[edition.column]
            published = [one for one in published if one != []]  # two rows of 2022 hold an object without a name
            relation, answers = example.query.relation, [one if isinstance(one, str) else one[0] for one in published]
            counts = score(answers, edition.gold_column(example), relation)
            assert counts == score(answers, published, relation) or published == [""]


def test_names_of_prizes_stay_names(data_dir: Path) -> None:
    space = Workspace(data=data_dir)
    for name in ("2024", "2025"):
        rows = {row.query.subject: row for row in space.examples(space.edition(name), "train")}
        physics = rows["Nobel Prize in Physics"]
        assert physics.named
        assert GoldObject(("John Strutt, 3rd Baron Rayleigh",), "Q83297", physics.objects[24].parts) in physics.objects
        assert physics.objects[-1] == GoldObject(("David J. Wineland",), "Q61045")
        year = rows["Time Person of the Year"]
        assert (len(year.names), year.size, year.named) == (45, 46, False)
        assert GoldObject(("Nikita Khrushchev",), "Q35314") in year.objects


def test_an_object_without_a_name_is_a_candidate_by_its_id_alone() -> None:
    space = Workspace()
    edition = space.edition("2024")
    row = Example(Query("Prize", "awardWonBy"), (GoldObject((), "Q5"), GoldObject(("Ada",)), GoldObject(("Bo",), "Q6")))
    (found,) = learned("prior", edition, space.relations, [row]).generate([Query("Medal", "awardWonBy")])
    assert {(one.text, one.id) for one in found.candidates} == {("Q5", "Q5"), ("Bo", "Q6")}
    assert edition.gold_column(row) == ["Q5", "Q6"]
    strings = space.edition("2025")
    split = Example(row.query, (GoldObject(("Ada, Jr.",), "Q7", ("Ada", "Jr.")), *row.objects))
    assert strings.gold_column(split) == ["Ada", "Jr.", "Ada", "Bo"]


def test_unequal_lists_are_no_reason_to_refuse_and_nested_names_are(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"SubjectEntity": "s", "Relation": "PersonHasEmployer", "ObjectEntities": [[["x"]]]}))
    with pytest.raises(InputError, match="line 1, field ObjectEntities"):
        read_examples(path, SPACE.edition("2023"))
