"""The rows that a run learns from: train, and the labelled held-out split where the test split is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opened import generated, recipe_of
from space import MINI, SPACE, TRAIN

import lmkbc
from lmkbc.api.options import opened_subset
from lmkbc.run.base import Run
from lmkbc.types import Query

VAL = SPACE.examples(MINI, "val")


@pytest.mark.parametrize("split", ["val", "dev", "train", None])
def test_a_run_of_a_labelled_split_learns_from_train_alone(split: str | None) -> None:
    run, _, _ = opened_subset({"edition": "mini", "system": "prior"}, split, None, None)
    assert run.labelled == run.train == TRAIN


def test_a_run_of_the_test_split_learns_from_the_held_out_split_too() -> None:
    run, _, _ = opened_subset({"edition": "mini", "system": "prior"}, "test", None, None)
    assert run.labelled == [*TRAIN, *VAL]
    assert run.train == TRAIN, "examples of prompts, and names for links"


def test_where_the_held_out_split_is_not_here_train_is_learnt_from(tmp_path: Path) -> None:
    row = {"SubjectEntityID": "Q1", "SubjectEntity": "a", "Relation": "countryLandBordersCountry"}
    for split, gold in (("train", {"ObjectEntitiesID": ["Q2"], "ObjectEntities": ["b"]}), ("test", {})):
        path = tmp_path / SPACE.edition("2024").folder / f"{split}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(row | gold) + "\n")
    run, _, _ = opened_subset({"edition": "2024", "system": "prior", "data": tmp_path}, "test", None, None)
    assert run.labelled == run.train
    assert len(run.train) == 1


def test_the_manifest_names_what_a_test_run_may_learn_from(tmp_path: Path) -> None:
    run = lmkbc.predict("test", edition="mini", system="prior", out=tmp_path / "run")
    splits = {name for name in run.manifest["inputs"] if name.startswith("mini/")}
    assert splits == {"mini/train", "mini/val", "mini/test"}


def test_the_stack_learns_from_the_rows_of_both_and_never_from_a_query_s_own(tmp_path: Path) -> None:
    relation = "PersonPlaysInstrument"
    rows = [row for row in VAL if row.query.relation == relation]
    new = {gold.id for row in rows for gold in row.objects} - {gold.id for row in TRAIN for gold in row.objects}
    own = next(row for row in rows if {gold.id for gold in row.objects} & new)
    alone = {gold.id for gold in own.objects} & new
    alone -= {gold.id for row in VAL if row is not own for gold in row.objects}
    assert new
    assert alone
    recipe = recipe_of({"component": "embedded", "encoder": False})
    queries = [Query("Someone", relation), own.query]
    for splits, expected in ((("train",), set()), (("train", "val"), new)):
        run = Run(workspace=SPACE, edition=MINI, cache=tmp_path, labelled_splits=splits)
        (other, itself), _ = generated(run, recipe, queries)
        assert {one.id for one in other.candidates} & new == expected
        assert not {one.id for one in itself.candidates} & alone
