"""`lmkbc audit`: a sample and its labels, by the command; what is wrong is one sentence, and nothing is lost."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bases import fact, mixed, written
from command import Command

import lmkbc

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("made") / "kb", mixed(), selection={"precision": 0.9})


@pytest.fixture
def run(made: Path, command: Command) -> Command:
    shutil.copytree(made, "kb")
    return command.under("audit")


def rows(path: Path = Path("kb-audit/labels.jsonl")) -> Rows:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def labelled(run: Command, label: Callable[[dict[str, Any]], str | None], *, sample: int = 60) -> Rows:
    """Draw a sample, label it, and return its lines."""
    run.done("kb", "--sample", sample)
    given = [{**row, "label": label(row)} for row in rows()]
    Path("labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    return given


def test_from_a_sample_to_its_precision(run: Command) -> None:
    given = labelled(run, lambda row: "u" if row["fact"] % 10 == 0 else "y" if row["relation"] == "children" else "n")
    shown, told = run.done("kb", "--labels", "labels.jsonl")
    unknown = sum(row["label"] == "u" for row in given)
    assert f"left out: {unknown} fact" in told
    assert [line.split()[0] for line in shown.splitlines()[2:]] == ["children", "country-borders", "***"]
    found = json.loads(run.done("kb", "--labels", "labels.jsonl", "--json")[0])
    children, borders, whole = found["precision"]
    assert (children["precision"], borders["precision"]) == (1.0, 0.0)
    assert whole["precision"] == pytest.approx(103 / 403, abs=1e-3)
    assert whole["low"] < whole["precision"] < whole["high"]
    assert (whole["relation"], whole["unknown"], whole["labelled"]) == (None, unknown, 60 - unknown)
    assert (children["promise"], borders["promise"]) == ("cannot tell", "fell short")
    assert borders["recalibrated"] < 0.15 < borders["confidence"]
    assert lmkbc.audit("kb", labels="labels.jsonl").table["relation"].to_list() == [
        "children",
        "country-borders",
        None,
    ]


def test_precision_without_what_labelled_rows_state_comes_first(command: Command) -> None:
    facts = [fact(row, "country-borders", f"land {row}", 0.9) for row in range(200)]
    written(Path("kb"), [one | {"stated_by": ["train"]} if one["subject_row"] < 150 else one for one in facts])
    run = command.under("audit")
    labelled(run, lambda row: "y" if int(row["subject"].removeprefix("subject ")) < 150 else "n")
    shown, _ = run.done("kb", "--labels", "labels.jsonl")
    assert shown.index(", without what labelled rows state") < shown.index(", what labelled rows state")
    found = json.loads(run.done("kb", "--labels", "labels.jsonl", "--json")[0])["precision"]
    whole = {row["origin"]: (row["facts"], row["precision"]) for row in found if row["relation"] is None}
    assert whole == {"model": (50, 0.0), "labels": (150, 1.0), None: (200, 0.75)}
    assert (found[0]["origin"], found[-1]["origin"]) == ("model", None)


@pytest.mark.parametrize("count", [20, 0])
def test_a_part_of_the_labels_is_enough_and_no_label_is_no_estimate(run: Command, count: int) -> None:
    labelled(run, lambda row: "y" if row in rows()[:count] else None)
    whole = json.loads(run.done("kb", "--labels", "labels.jsonl", "--json")[0])["precision"][-1]
    assert (whole["labelled"], whole["unlabelled"], whole["promise"]) == (count, 60 - count, "cannot tell")
    assert (whole["precision"] is None) == (count == 0)


def test_the_same_sample_comes_again(run: Command) -> None:
    for place in ("one", "other"):
        run.done("kb", "--sample", 30, "--seed", 7, "--out", place)
    assert Path("one/audit.html").read_bytes() == Path("other/audit.html").read_bytes()
    assert rows(Path("one/labels.jsonl")) == rows(Path("other/labels.jsonl"))


def test_what_is_there_stays(run: Command) -> None:
    run.done("kb", "--sample", 30)
    before = Path("kb-audit/labels.jsonl").read_bytes()
    assert "kb-audit holds files already, perhaps labels" in run.fails("kb", "--sample", 40)
    assert Path("kb-audit/labels.jsonl").read_bytes() == before


def changed(given: Rows, place: int, **fields: Any) -> str:
    return "".join(json.dumps({**row, **(fields if at == place else {})}) + "\n" for at, row in enumerate(given))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda rows: changed(rows, 2, label="maybe"), "line 3, field label: 'maybe'; write right, wrong or unknown"),
        (lambda rows: changed(rows, 2, label=1), "line 3, field label: '1'; write right, wrong or unknown"),
        (lambda rows: changed(rows, 1, fact=rows[0]["fact"]), "line 2: repeats line 1"),
        (lambda rows: changed(rows, 1, seed=9), "line 2: of another sample than line 1"),
        (lambda rows: changed(rows, 1, fact=10**9), "line 2: fact 1000000000 is not of this sample"),
        (lambda rows: changed(rows[:2], 1, sample=2), "line 2, field sample"),
        (lambda rows: changed(rows, 9)[:-40], "line 60: not valid JSON"),
        (lambda rows: "".join(changed([row], 0, base="0" * 64) for row in rows), "has labels of another base than kb"),
        (lambda rows: "\n", "labels.jsonl is empty"),
        (lambda rows: "y\nn\n", "labels.jsonl has no column 'relation'"),
    ],
)
def test_labels_that_cannot_be_are_one_sentence(run: Command, wrong: Callable[[Rows], str], told: str) -> None:
    given = labelled(run, lambda row: "y")
    Path("labels.jsonl").write_text(wrong(given))
    before = Path("labels.jsonl").read_bytes()
    error = run.fails("kb", "--labels", "labels.jsonl")
    assert (error.count("\n"), told in error) == (1, True), error
    assert Path("labels.jsonl").read_bytes() == before


def test_labels_of_a_base_that_was_built_anew_are_refused(run: Command) -> None:
    labelled(run, lambda row: "y")
    shutil.rmtree("kb")
    written(Path("kb"), mixed(299))
    assert "labels of another base than kb, or of an earlier state of it" in run.fails("kb", "--labels", "labels.jsonl")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("kb", "--sample", "3"), "--sample is 3: give 10 facts or more"),
        (("kb", "--sample", "10000000"), "--sample is 10000000: give 1000000 facts or fewer"),
        (("kb", "--sample", "30", "--labels", "kb/manifest.json"), "--sample draws a new sample"),
        (("kb", "--labels", "kb/manifest.json", "--out", "x"), "--out names a file for facts"),
        (
            ("kb", "--known", "train", "--known", "kb/manifest.json"),
            "--known names train and more: give train alone, or files",
        ),
        (("kb", "--known", "train", "--known", "val"), "--known names train and more"),
        (("kb", "--known", "train", "--out", "kb"), "kb is a directory"),
        (
            ("kb", "--known", "train", "--out", "kb/manifest.json"),
            "is there already, and this command replaces nothing",
        ),
        (("absent",), "absent is no directory"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(run: Command, words: tuple[str, ...], told: str) -> None:
    error = run.fails(*words)
    assert (error.count("\n"), told in error) == (1, True), error


def test_a_base_without_facts_has_nothing_to_audit(command: Command) -> None:
    written(Path("empty"), [])
    assert "empty holds no fact" in command.fails("audit", "empty")
