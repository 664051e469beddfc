import json
from pathlib import Path

import pytest

from lmkbc import InputError, Relation
from lmkbc.link.explained import explain, link_rows, read_rows
from lmkbc.link.linker import Linker
from lmkbc.link.search import SearchTable
from lmkbc.link.train_objects import TrainObjects
from lmkbc.testing import Example


@pytest.fixture
def linker(relations: dict[str, Relation], examples: list[Example]) -> Linker:
    return Linker(relations, TrainObjects(examples, relations), search=SearchTable({"Isar": "Q7", "Inn": "Q9"}))


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_predictions_file_is_linked_and_counted(tmp_path: Path, linker: Linker, relations) -> None:
    source, target = tmp_path / "p.jsonl", tmp_path / "linked.jsonl"
    lines = [
        {"SubjectEntity": "Ulm", "Relation": "Rivers", "ObjectEntities": ["inn", "Isar", "ISAR", "Lech", ""]},
        {"SubjectEntity": "Ada", "Relation": "children", "ObjectEntitiesID": ["3"]},
        {"SubjectEntity": "Bob", "SubjectEntityID": "Q1", "Relation": "spouses", "ObjectEntitiesID": []},
    ]
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = link_rows(read_rows(source, relations), target, linker)
    assert [row["ObjectEntitiesID"] for row in rows(target)] == [["Q14369", "Q7"], ["3"], []]
    assert rows(target)[0]["ObjectEntities"] == lines[0]["ObjectEntities"]
    assert rows(target)[2]["SubjectEntityID"] == "Q1"
    assert report.per_relation() == {"Rivers": (3, 1, 0), "children": (1, 0, 0)}
    assert [(query.subject, link.searched, link.strategy) for query, link in report.unlinked] == [
        ("Ulm", "Lech", "no hit")
    ]
    assert {(tally.evidence, tally.linked) for tally in report.tallies() if tally.linked} == {
        ("relation", 1),
        ("search", 2),
        ("literal", 1),
    }


GOOD = '{"SubjectEntity": "Ulm", "Relation": "rivers", "ObjectEntities": []}'
ODD_ROWS = {
    '{"SubjectEntity": "Ulm", "Relation": "River", "ObjectEntities": []}': "Relation: unknown 'River'; did you mean",
    '{"SubjectEntity": " ", "Relation": "rivers", "ObjectEntities": []}': "SubjectEntity: empty",
    '{"SubjectEntity": "Ulm", "Relation": "rivers"}': "ObjectEntities: absent",
    '{"SubjectEntity": "Ulm", "Relation": "rivers", "ObjectEntities": null}': "ObjectEntities: absent",
    '{"SubjectEntity": "Ulm", "Relation": "rivers", "Objects": ["Inn"]}': "ObjectEntities: absent",
    '{"SubjectEntity": "Ulm", "Relation": "rivers", "ObjectEntities": [["Inn"]]}': r"ObjectEntities.* Expected `str`",
    '{"SubjectEntity": "Ulm", "Relation": "rivers", "ObjectEntities": [null]}': r"ObjectEntities.* Expected `str`",
    '{"SubjectEntity": "Ulm", "Relation": "rivers", "ObjectEntities": "Inn"}': "ObjectEntities: Expected `array",
    '{"SubjectEntity": 5, "Relation": "rivers", "ObjectEntities": []}': "SubjectEntity: Expected `str`",
    '{"Relation": "rivers", "ObjectEntities": []}': "missing required field `SubjectEntity`",
    "[]": "Expected `object`",
    "null": "Expected `object`",
    "{": "not valid JSON",
    '{"x":' + "[" * 100_000 + "]" * 100_000 + "}": "nested too deeply",
}


@pytest.mark.parametrize(("row", "reason"), ODD_ROWS.items(), ids=range(len(ODD_ROWS)))
def test_an_odd_row_is_named_by_line_and_field(
    tmp_path: Path, linker: Linker, relations: dict[str, Relation], row: str, reason: str
) -> None:
    (tmp_path / "p.jsonl").write_text(f"{GOOD}\n\n{row}\n")
    with pytest.raises(InputError, match=f"line 3.*{reason}"):
        read_rows(tmp_path / "p.jsonl", relations)
    assert not (tmp_path / "out").exists()


def test_explain_shows_every_candidate_with_its_evidence(linker: Linker) -> None:
    link, offers = explain(linker, "Inn", "rivers", "Rosenheim")
    assert (link.id, link.evidence) == ("Q14369", "relation")
    assert [(offer.evidence, offer.hit.id, offer.fits, offer.chosen) for offer in offers] == [
        ("relation", "Q14369", True, True),
        ("search", "Q9", None, False),
    ]
    link, offers = explain(linker, "Isar (upper)", "rivers")
    assert (link.evidence, link.searched) == ("re-search", "Isar")
    assert (offers[-1].evidence, offers[-1].chosen) == ("search 'Isar'", True)
    assert explain(linker, "Lech", "rivers")[1] == []
