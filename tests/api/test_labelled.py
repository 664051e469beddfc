"""The rows that a run learns from: train, and the labelled held-out split where the test split is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opened import generated, recipe_of
from space import MINI, SPACE, TRAIN

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


def _written(folder: Path, **splits: str) -> Run:
    """A run of the test split of these files. splits: name -> the subjects of its rows, one letter each."""
    gold = {"ObjectEntitiesID": ["Q1"], "ObjectEntities": ["x"], "Relation": "countryLandBordersCountry"}
    for split, subjects in splits.items():
        path = folder / SPACE.edition("2024").folder / f"{split}.jsonl"
        path.parent.mkdir(exist_ok=True)
        rows = [gold | {"SubjectEntityID": f"Q{ord(subject)}", "SubjectEntity": subject} for subject in subjects]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run, _, _ = opened_subset({"edition": "2024", "system": "prior", "data": folder}, "test", None, None)
    return run


def test_where_the_held_out_split_is_not_here_train_is_learnt_from(tmp_path: Path) -> None:
    run = _written(tmp_path, train="ab", test="c")
    assert run.labelled == run.train
    assert [row.query.subject for row in run.labelled] == ["a", "b"]


def test_rows_about_a_query_of_the_test_split_are_left_out(tmp_path: Path) -> None:
    run = _written(tmp_path, train="abc", val="de", test="bdf")
    assert [row.query.subject for row in run.labelled] == ["a", "c", "e"]
    assert [row.query.subject for row in run.train] == ["a", "b", "c"]


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
    for split, expected in (("val", set()), ("test", new)):
        run = Run(workspace=SPACE, edition=MINI, cache=tmp_path, split=split)
        (other, itself), _ = generated(run, recipe, queries)
        assert {one.id for one in other.candidates} & new == expected
        assert not {one.id for one in itself.candidates} & alone


@pytest.mark.parametrize("component", ["prior", "naive-bayes"])
def test_statistics_are_those_of_the_rows_of_both(component: str) -> None:
    relation = "PersonPlaysInstrument"
    split_objects = [
        {gold.id for row in rows if row.query.relation == relation for gold in row.objects} for rows in (TRAIN, VAL)
    ]
    for split, expected in (("val", split_objects[0]), ("test", set.union(*split_objects))):
        run = Run(workspace=SPACE, edition=MINI, split=split)
        ((one,), _) = generated(run, recipe_of({"component": component}), [Query("Someone", relation)])
        assert {candidate.id for candidate in one.candidates} == expected
