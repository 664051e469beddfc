"""The bundled edition is what the software shows first: its rows must be sound, and its own."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from space import MINI

Row = dict[str, Any]
EVAL = Path(__file__).parent.parent / "eval"
SPLITS = ("train", "val", "test")
NUMERIC = "PersonHasNumberOfChildren"
COLUMNS = {"SubjectEntityID", "SubjectEntity", "ObjectEntitiesID", "ObjectEntities", "Relation"}


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Row]]:
    return {split: read(EVAL / "mini" / f"{split}.jsonl") for split in SPLITS}


@pytest.fixture(scope="module")
def rows(splits: dict[str, list[Row]]) -> list[Row]:
    return [row for split in SPLITS for row in splits[split]]


def names(rows: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Every (name, QID) pair of the rows; literals and the empty answer are left out."""
    for row in rows:
        subject, objects = row["SubjectEntity"], row["ObjectEntities"]
        for pair in [(subject, row["SubjectEntityID"]), *zip(objects, row["ObjectEntitiesID"], strict=False)]:
            if isinstance(pair[1], str) and re.fullmatch(r"Q\d+", pair[1]):
                yield pair


def test_edition_names_the_relations_of_every_split(splits: dict[str, list[Row]]) -> None:
    assert len(MINI.relations) >= 8
    for split in SPLITS:
        assert {row["Relation"] for row in splits[split]} == set(MINI.relations)


@pytest.mark.parametrize(("split", "fewest", "most"), [("train", 30, 50), ("val", 15, 25), ("test", 15, 25)])
def test_counts(splits: dict[str, list[Row]], split: str, fewest: int, most: int) -> None:
    for relation, count in Counter(row["Relation"] for row in splits[split]).items():
        assert fewest <= count <= most, relation


def test_rows_are_well_formed(splits: dict[str, list[Row]]) -> None:
    for split in SPLITS:
        for row in splits[split]:
            ids, objects = row["ObjectEntitiesID"], row["ObjectEntities"]
            assert set(row) == COLUMNS
            assert re.fullmatch(r"Q[1-9]\d*", row["SubjectEntityID"]), row
            assert row["SubjectEntity"] == row["SubjectEntity"].strip() != ""
            assert len(ids) == len(objects) == len(set(ids)) == len(set(objects)) >= 1, row
            if ids == [""]:
                assert objects == [""], row
            elif row["Relation"] == NUMERIC:
                assert ids == objects == [str(int(ids[0]))], row
            else:
                assert all(re.fullmatch(r"Q[1-9]\d*", qid) for qid in ids), row
                assert all(objects), row


def test_only_test_hides_its_gold_and_some_relations_have_true_empties(splits: dict[str, list[Row]]) -> None:
    assert all(row["ObjectEntitiesID"] == [""] for row in splits["test"])
    for split in ("train", "val"):
        empty = Counter(row["Relation"] for row in splits[split] if row["ObjectEntitiesID"] == [""])
        assert set(empty) == {"CompanyHasParentOrganisation", "PersonHasNoblePrize", "PersonHasPlaceOfDeath"}
        full = Counter(row["Relation"] for row in splits[split] if row["ObjectEntitiesID"] != [""])
        assert min(full.values()) >= 5


def test_no_subject_twice_in_a_relation(rows: list[Row]) -> None:
    for column in ("SubjectEntityID", "SubjectEntity"):
        counts = Counter((row[column], row["Relation"]) for row in rows)
        assert [pair for pair, count in counts.items() if count > 1] == []


def test_borders_are_symmetric(splits: dict[str, list[Row]]) -> None:
    known = [row for split in ("train", "val") for row in splits[split] if row["Relation"] == "CountryBordersCountry"]
    borders = {row["SubjectEntityID"]: row["ObjectEntitiesID"] for row in known}
    for country, neighbours in borders.items():
        assert country not in neighbours
        for neighbour in neighbours:
            assert country in borders.get(neighbour, [country]), (country, neighbour)


def test_names_and_qids_pair_off(rows: list[Row]) -> None:
    qids, labels = defaultdict(set), defaultdict(set)
    for name, qid in names(rows):
        qids[name].add(qid)
        labels[qid].add(name)
    assert {name: found for name, found in qids.items() if len(found) > 1} == {}
    assert {qid: found for qid, found in labels.items() if len(found) > 1} == {}
