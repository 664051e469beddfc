"""`--learn-from`: which labelled rows a run and a base learn from, and the count of what these rows state."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from command import Command
from opened import generated, recipe_of
from small import give_mini
from space import MINI, SPACE, TRAIN

from lmkbc import Workspace
from lmkbc.commands.keywords import opened_subset
from lmkbc.testing import Query, Run

BORDERS = "CountryBordersCountry"
VAL = SPACE.examples(MINI, "val")
ANSWERS = {
    ("Chile", "Q298"): [("Argentina", "Q414", 0.9), ("Peru", "Q419", 0.8), ("Cuba", "Q241", 0.7)],
    ("Andorra", "Q228"): [("Spain", "Q29", 0.9), ("France", "Q142", 0.8)],
    ("Brunei", "Q921"): [("Malaysia", "Q833", 0.9)],
}
"""Train has the rows of Argentina (with Chile) and of Andorra (with both), and none of Peru and Malaysia."""


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "SubjectEntity": subject,
            "SubjectEntityID": qid,
            "Relation": BORDERS,
            "candidates": [{"object": name, "id": id_, "score": score} for name, id_, score in objects],
        }
        for (subject, qid), objects in ANSWERS.items()
    ]
    Path("subjects.csv").write_text("name,id,class\n" + "".join(f"{s},{q},country\n" for s, q in ANSWERS))
    path = Path("answers.candidates.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def manifest(folder: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((Path(folder) / "manifest.json").read_text())
    return made


@pytest.mark.whole(but=["None-learned0-inputs0", "train-learned3-inputs3", "none-learned4-inputs4"])
@pytest.mark.parametrize(
    ("given", "learned", "inputs"),
    [
        (None, ["train", "val"], {"mini/train", "mini/val", "mini/test"}),
        ("train,val", ["train", "val"], {"mini/train", "mini/val", "mini/test"}),
        ("dev, train", ["train", "val"], {"mini/train", "mini/val", "mini/test"}),
        ("train", ["train"], {"mini/train", "mini/test"}),
        ("none", [], {"mini/train", "mini/test"}),
    ],
)
def test_a_test_run_learns_from_what_is_named(
    command: Command, given: str | None, learned: list[str], inputs: set[str]
) -> None:
    words = ("--learn-from", given) if given else ()
    told = command.done("predict", "--edition", "mini", "--system", "prior", "--out", "run", *words)[1]
    made = manifest("run")
    assert made["learn_from"] == learned
    assert {name for name in made["inputs"] if name.startswith("mini/")} == inputs
    assert ("prior learns from the labelled rows of train and val" in told) == (len(learned) == 2)
    count = made["counts"]["stated_by_labels"]
    shown = rf"\b{count} of \d+ objects can be read in the labelled rows of {' and '.join(learned)}, since the row"
    assert bool(re.search(shown, told)) == bool(learned) == bool(count)


@pytest.mark.parametrize(
    ("split", "given", "error"),
    [
        ("test", "val", "--learn-from is 'val': give train, train,val or none"),
        ("test", "all", "--learn-from is 'all': give train, train,val or none"),
        ("test", "train,test", "--learn-from is 'train,test': give train, train,val or none"),
        ("test", "none,train", "--learn-from is 'none,train': give train, train,val or none"),
        ("test", "", "'' names nothing at one of its commas"),
        ("val", "train,val", "--learn-from names val, which is the split that is asked: give train"),
    ],
)
def test_other_splits_are_refused(command: Command, split: str, given: str, error: str) -> None:
    words = ("--edition", "mini", "--system", "prior", "--split", split, "--learn-from", given)
    assert error in command.fails("predict", *words)


def test_a_split_that_is_not_here_is_named(command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "data" / SPACE.edition("2024").folder
    folder.mkdir(parents=True)
    row = {"SubjectEntity": "a", "SubjectEntityID": "Q1", "Relation": "countryLandBordersCountry"}
    for split in ("train", "test"):
        gold = {"ObjectEntitiesID": ["Q2"], "ObjectEntities": ["b"]}
        (folder / f"{split}.jsonl").write_text(json.dumps({**row, **gold}) + "\n")
    words = ("--edition", "2024", "--system", "prior", "--data", tmp_path / "data", "--learn-from", "train,val")
    assert "the val split of edition 2024 is not in" in command.fails("predict", *words)


def test_a_system_that_learns_from_no_row_refuses_the_choice(command: Command) -> None:
    words = ("--edition", "mini", "--system", "bl22-empty", "--split", "test")
    assert "--learn-from has no effect: bl22-empty learns from no labelled rows" in command.fails(
        "predict", *words, "--learn-from", "train"
    )
    run = opened_subset({"edition": "mini", "system": "bl22-empty"}, "test", None, None)[0].run
    assert run.labelled_splits == ("train",), "it has not read the other split"


@pytest.mark.parametrize("verb", [("tune", "--no-write"), ("probe", "controls")])
def test_what_scores_all_objects_leaves_none_out(command: Command, verb: tuple[str, ...]) -> None:
    words = ("--edition", "mini", "--system", "prior", "--learn-from", "none")
    assert "--learn-from is none, which leaves out right objects" in command.fails(*verb, *words)


def test_the_report_of_a_run_says_how_many(command: Command, answers: Path) -> None:
    words = ("--edition", "mini", "--split", "val", "--relation", "country-borders", "--out", "run")
    rows = [row.query for row in VAL if row.query.relation == BORDERS]
    assert {"Brunei", "Chile"} <= {query.subject for query in rows}
    known = {row["SubjectEntity"]: row for row in map(json.loads, answers.read_text().splitlines())}
    made = [known.get(q.subject, {"SubjectEntity": q.subject, "Relation": BORDERS, "candidates": []}) for q in rows]
    Path("all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    told = command.done("predict", *words, "--from", "all.jsonl", "--failed-as-empty", "--report")[1]
    assert "can be read in the labelled rows" not in told, "recorded answers read no rows"
    assert manifest("run")["counts"]["stated_by_labels"] == 1
    assert "1 of 4 objects, from the other side (train)" in Path("run/report.html").read_text()


def test_without_labels_an_answer_that_loses_all_is_withheld(command: Command, answers: Path) -> None:
    words = ("--edition", "mini", "--from", answers, "--subjects", "subjects.csv", "--relation", "country-borders")
    told = command.done("build", *words, "--out", "kb")[1]
    assert "kb: facts that labelled rows state: 3 of 6" in told
    facts = pl.read_parquet("kb/facts").select("subject", "object", "stated_by", "model").sort("subject", "object")
    stated = {(subject, object_) for subject, object_, splits, _ in facts.rows() if splits == ["train"]}
    assert stated == {("Chile", "Argentina"), ("Andorra", "Spain"), ("Andorra", "France")}
    assert facts["stated_by"].null_count() == 3
    assert facts["model"].unique().to_list() == ["answers"]
    counts = manifest("kb")
    assert (counts["counts"]["facts"], counts["counts"]["stated_by_labels"]) == (6, 3)
    assert counts["of_relations"]["country-borders"]["stated_by_labels"] == 3
    assert "differ in learn_from" in command.fails("build", *words, "--out", "kb", "--learn-from", "none")
    told = command.done("build", *words, "--out", "left", "--learn-from", "none")[1]
    assert "without what labelled rows state" in told
    assert "facts that labelled rows state:" not in told
    left = pl.read_parquet("left/facts")
    assert set(left.select("subject", "object").rows()) == {
        ("Chile", "Peru"),
        ("Chile", "Cuba"),
        ("Brunei", "Malaysia"),
    }
    assert pl.read_parquet("left/nothing").select("subject", "reason").rows() == [("Andorra", "withheld")]


def test_a_report_and_an_audit_show_them_apart(command: Command, answers: Path) -> None:
    words = ("--edition", "mini", "--from", answers, "--subjects", "subjects.csv", "--relation", "country-borders")
    command.done("build", *words, "--out", "kb")
    command.done("report", "kb")
    page = Path("kb/report/index.html").read_text()
    assert "<strong>3</strong> of them known: stated by labelled rows" in page
    assert page.count("stated by train") == 3
    assert (
        "2 of 3 checked facts are known, without what labelled rows state"
        in command.done("audit", "kb", "--known", "val")[1]
    )
    found = json.loads(command.done("audit", "kb", "--known", "val", "--json")[0])["known"]
    whole = {row["origin"]: (row["facts"], row["known"], row["checked"]) for row in found if row["relation"] is None}
    assert whole == {"model": (3, 2, 3), "labels": (3, 1, 1), None: (6, 3, 4)}
    assert [row["origin"] for row in found] == sorted(
        (row["origin"] for row in found), key=["model", "labels", None].index
    )


@pytest.mark.parametrize("split", ["val", "dev", "train", None])
def test_a_run_of_a_labelled_split_learns_from_train_alone(split: str | None) -> None:
    run = opened_subset({"edition": "mini", "system": "prior"}, split, None, None)[0].run
    assert run.labelled == run.train == TRAIN


def _written(folder: Path, **splits: str) -> Run:
    """A run of the test split of these files. splits: name -> the subjects of its rows, one letter each."""
    gold = {"ObjectEntitiesID": ["Q1"], "ObjectEntities": ["x"], "Relation": "countryLandBordersCountry"}
    for split, subjects in splits.items():
        path = folder / SPACE.edition("2024").folder / f"{split}.jsonl"
        path.parent.mkdir(exist_ok=True)
        rows = [gold | {"SubjectEntityID": f"Q{ord(subject)}", "SubjectEntity": subject} for subject in subjects]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return opened_subset({"edition": "2024", "system": "prior", "data": folder}, "test", None, None)[0].run


@pytest.mark.parametrize(
    ("splits", "labelled"),
    [
        ({"train": "ab", "test": "c"}, "ab"),  # the held-out split is not here
        ({"train": "abc", "val": "de", "test": "bdf"}, "ace"),  # no row about a query that is asked
    ],
)
def test_a_test_run_learns_from_rows_that_are_here_and_are_not_asked(
    tmp_path: Path, splits: dict[str, str], labelled: str
) -> None:
    run = _written(tmp_path, **splits)
    assert "".join(row.query.subject for row in run.labelled) == labelled
    assert "".join(row.query.subject for row in run.train) == splits["train"]


def test_the_stack_learns_from_the_rows_of_both_and_never_from_a_query_s_own(tmp_path: Path) -> None:
    relation = "PersonPlaysInstrument"
    rows = [row for row in VAL if row.query.relation == relation]
    new = {gold.id for row in rows for gold in row.objects} - {gold.id for row in TRAIN for gold in row.objects}
    own = next(row for row in rows if {gold.id for gold in row.objects} & new)
    alone = {gold.id for gold in own.objects} & new
    alone -= {gold.id for row in VAL if row is not own for gold in row.objects}
    assert new
    assert alone
    recipe = recipe_of({"component": "embedded", "evidence": ["train"]})
    queries = [Query("Someone", relation), own.query]
    give_mini(tmp_path, relation)
    space = Workspace(tmp_path)
    for split, expected in (("val", set()), ("test", new)):
        run = Run(workspace=space, edition=space.edition("mini"), cache=tmp_path, split=split)
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
