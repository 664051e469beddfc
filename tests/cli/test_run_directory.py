"""Runs: what is there stays, a part is no whole, what lacks answers says how to go on; and lists of runs."""

import gzip
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Command
from opened import recipe_file
from space import SPACE

import lmkbc
from lmkbc.commands.terminal import show_as

QUERIES = SPACE.queries(SPACE.edition("mini"), "val")
PREDICT = ("predict", "--split", "val", "--edition", "mini", "--system", "bl22-empty")
RECORDED = ("predict", "--split", "val", "--edition", "mini")
WHOLE = ["candidates.jsonl.gz", "manifest.json", "predictions.jsonl", "predictions.zip", "timing.json"]
LACKING = ["candidates.jsonl.gz", "manifest.json", "missing.jsonl", "timing.json"]


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def manifest(directory: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((directory / "manifest.json").read_bytes())
    return read


def answers(path: Path, numbers: range) -> Path:
    rows = [
        {"SubjectEntity": QUERIES[n].subject, "Relation": QUERIES[n].relation, "model": "m", "completions": ["None"]}
        for n in numbers
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_run_replaces_a_run_and_keeps_a_persons_own_files(command: Command, tmp_path: Path) -> None:
    command.done(*PREDICT, "--out", "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "predictions.zip").write_text("damaged")
    command.done(*PREDICT, "--out", "run")
    assert names(tmp_path / "run") == sorted([*WHOLE, "notes.txt"])
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "run" / "predictions.zip").read_bytes()[:2] == b"PK"


def test_a_run_of_changed_relations_replaces_none_of_earlier_ones(command: Command, tmp_path: Path) -> None:
    command.done("init", "space")
    command.done("relations", "new", "maker:entity", "--offline", "--workspace", "space")
    row = {"SubjectEntity": "Wheel", "Relation": "maker", "ObjectEntities": [["Bolt"]]}
    (tmp_path / "space" / "data").mkdir()
    for split in ("train", "val"):
        (tmp_path / "space" / "data" / f"{split}.jsonl").write_text(json.dumps(row))
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"completions": ['["Bolt"]']}))
    predict = ("predict", "--split", "val", "--workspace", "space", "--trust", "--from", "a.jsonl", "--no-report")
    module = tmp_path / "space" / "relations" / "maker.py"
    for number in (1, 1, 2):
        if number == 2:
            module.write_text(module.read_text() + "# other\n")
        command.done(*predict)
        made = sorted((tmp_path / "submissions").iterdir())
        assert len(made) == number
    inputs = [manifest(one)["inputs"]["relations/maker.py"] for one in made]
    assert inputs[0] != inputs[1] == hashlib.sha256(module.read_bytes()).hexdigest()


def test_a_limited_run_has_a_name_of_its_own_and_no_zip(command: Command, tmp_path: Path) -> None:
    command.done(*PREDICT)
    whole = tmp_path / "submissions" / "mini-val-bl22-empty"
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    _, told = command.done(*PREDICT, "--limit", 5)
    part = tmp_path / "submissions" / "mini-val-bl22-empty-first5"
    assert (f"the first 5 of {len(QUERIES)} queries" in told, ".zip" in told) == (True, False), told
    assert names(part) == [name for name in WHOLE if not name.endswith(".zip")]
    assert (manifest(part)["limit"], manifest(part)["counts"]["queries"]) == (5, 5)
    assert "limit" not in manifest(whole)
    for words, other in (((*PREDICT, "--limit", 5, "--out", whole), "limit"), ((*PREDICT, "--out", part), "limit")):
        assert f"{words[-1]} holds another run, which is not replaced: other {other}; name" in command.fails(*words)
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before
    command.done(*PREDICT, "--limit", 10**6)  # cuts nothing off
    assert names(tmp_path / "submissions") == ["mini-val-bl22-empty", "mini-val-bl22-empty-first5"]


def test_a_run_with_failed_queries_keeps_the_rest_and_says_how_to_go_on(command: Command, tmp_path: Path) -> None:
    given = answers(tmp_path / "some.jsonl", range(3, len(QUERIES)))
    told = command.fails(*RECORDED, "--from", given, "--out", "run", status=1)
    first = QUERIES[0]
    said = told.splitlines()[-1]
    assert said.startswith(
        f"error: 3 of {len(QUERIES)} queries failed, first ({first.subject!r}, {first.relation!r}); "
    )
    assert all(word in said for word in ("run/missing.jsonl", "run/candidates.jsonl.gz", "--from", "--failed-as-empty"))
    assert names(tmp_path / "run") == LACKING
    missing = [json.loads(line) for line in (tmp_path / "run" / "missing.jsonl").read_text().splitlines()]
    assert [(row["SubjectEntity"], row["Relation"], row["reason"]) for row in missing] == [
        (query.subject, query.relation, "missing") for query in QUERIES[:3]
    ]
    assert manifest(tmp_path / "run")["counts"]["failed"] == 3
    rest = tmp_path / "rest.jsonl"
    rest.write_text("".join(json.dumps(row | {"completions": ["None"]}) + "\n" for row in missing))
    kept = tmp_path / "run" / "candidates.jsonl.gz"
    command.done(*RECORDED, "--from", given, "--from", rest, "--out", "both")
    command.done(*RECORDED, "--from", kept, "--from", rest, "--out", "run")
    assert names(tmp_path / "run") == WHOLE
    both, one = ((tmp_path / name / "predictions.jsonl").read_bytes() for name in ("both", "run"))
    assert both == one


def test_a_run_with_failed_queries_goes_beside_a_finished_one(command: Command, tmp_path: Path) -> None:
    every, some = answers(tmp_path / "all.jsonl", range(len(QUERIES))), answers(tmp_path / "some.jsonl", range(9))
    mine = (*RECORDED, "--from", some, "--out", "run")
    _, told = command.done(*mine, "--failed-as-empty")
    lacking, first = len(QUERIES) - 9, QUERIES[9]
    assert (
        f"{lacking} of {len(QUERIES)} queries failed, first ({first.subject!r}, {first.relation!r}); they are "
        "submitted as empty answers; run/missing.jsonl lists them\n"
    ) in told
    assert len((tmp_path / "run" / "missing.jsonl").read_text().splitlines()) == lacking
    assert names(tmp_path / "run") == sorted([*WHOLE, "missing.jsonl"])
    for _ in range(2):
        assert "run-unfinished/missing.jsonl" in command.fails(*mine, status=1)
    assert names(tmp_path / "run") == sorted([*WHOLE, "missing.jsonl"])
    assert names(tmp_path / "run-unfinished") == LACKING
    command.done(*RECORDED, "--from", every, "--out", "run-unfinished")
    assert "run-unfinished-2/missing.jsonl" in command.fails(*mine, status=1)
    assert names(tmp_path / "run-unfinished") == WHOLE


def test_a_finished_run_is_replaced_by_the_same_run_alone(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe_file(recipe, {"component": "prior"}, select={"rule": "expected-f1"})
    mine = ("predict", "--split", "val", "--edition", "mini", "--system", recipe, "--no-report")
    first = tmp_path / "submissions" / "mini-val-mine"
    command.done(*mine, "--note", "the first")
    command.done(*mine)
    assert manifest(first)["note"] == "the first"
    before = {path.name: path.read_bytes() for path in first.iterdir()}
    recipe_file(recipe, {"component": "prior"}, select={"rule": "cutoff", "threshold": 0.1})
    for _ in range(2):
        told = command.done(*mine)[1]
        assert "submissions/mini-val-mine keeps another run (other recipe.select.rule, " in told
        assert "submissions/mini-val-mine-2/predictions.zip: " in told
    assert {path.name: path.read_bytes() for path in first.iterdir()} == before
    assert names(tmp_path / "submissions") == ["mini-val-mine", "mini-val-mine-2"]
    assert "other learn_from" in command.fails(*mine, "--learn-from", "none", "--out", "submissions/mini-val-mine-2")
    found = json.loads(command.done("runs", "--diff", first, f"{first}-2", "--json")[0])
    assert found["recipe.select.rule"] == ["expected-f1", "cutoff"]
    assert {*found} == {"recipe.select.rule", "recipe.select.threshold", "selection.how", "note"}
    monkeypatch.setattr("lmkbc.run.pipeline.Steps.models", ["another"])
    assert "this one is submissions/mini-val-mine-3\n" in command.done(*mine)[1]
    assert names(tmp_path / "submissions") == ["mini-val-mine", "mini-val-mine-2", "mini-val-mine-3"]


def test_a_run_without_any_answer_has_no_candidates(command: Command, tmp_path: Path) -> None:
    given = tmp_path / "none.jsonl"
    row = {"SubjectEntity": QUERIES[0].subject, "Relation": QUERIES[0].relation, "completions": [None]}
    given.write_text(json.dumps(row))
    assert "candidates.jsonl.gz" not in command.fails(*RECORDED, "--from", given, "--out", "run", status=1)
    assert names(tmp_path / "run") == [name for name in LACKING if not name.startswith("candidates")]


def test_every_score_of_a_run_comes_back(command: Command, tmp_path: Path) -> None:
    for system in ("prior", "naive-bayes"):
        recipe = recipe_file(tmp_path / f"{system}.toml", {"component": system}, select={"rule": "expected-f1"})
        command.done(*PREDICT[:-2], "--system", recipe, "--out", system)
        kept = tmp_path / system / "candidates.jsonl.gz"
        command.done(*RECORDED, "--from", kept, "--out", f"{system}-again")
        lines = gzip.decompress(kept.read_bytes())
        assert gzip.decompress((tmp_path / f"{system}-again" / kept.name).read_bytes()) == lines
        assert b'"score"' in lines


def test_a_zip_lies_beside_its_predictions_and_replaces_zips_alone(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    rows = SPACE.split_path(SPACE.edition("mini"), "val").read_text()
    (tmp_path / "mine" / "p.jsonl").write_text(rows)
    submit = ("submit", "mine/p.jsonl", "--edition", "mini", "--split", "val")
    for _ in range(2):  # the same again is no change
        assert "mine/p.zip: 160 rows of mini val" in command.done(*submit)[1]
    first, *others = rows.splitlines(keepends=True)
    (tmp_path / "mine" / "p.jsonl").write_text(
        "".join([json.dumps(json.loads(first) | {"ObjectEntitiesID": []}) + "\n", *others])
    )
    written = (tmp_path / "mine" / "p.zip").read_bytes()
    assert (
        command.fails(*submit)
        == "error: mine/p.zip is there already and holds something else: name the zip with --out\n"
    )
    assert (tmp_path / "mine" / "p.zip").read_bytes() == written
    assert command.done(*submit, "--out", "mine/p.zip")[0] == ""
    assert (tmp_path / "mine" / "p.zip").read_bytes() != written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    (tmp_path / "notes.zip").write_text("no zip of this program")
    assert "notes.zip is there already and is no zip that this command wrote" in command.fails(
        *submit, "--out", "notes.zip"
    )


@pytest.mark.parametrize("words", [("data", "list"), ("predict", "--split", "test", *PREDICT[3:])], ids=" ".join)
def test_data_that_the_environment_names_and_that_is_absent_is_told(
    words: tuple[str, ...], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMKBC_DATA", "/nonexistent")
    assert (
        command(*words)[2].count("LMKBC_DATA is '/nonexistent', which is no directory: no official split is found") == 1
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    lmkbc.predict(edition="mini", split="val", system="prior", out=place / "whole", page=False)
    lmkbc.predict(edition="mini", split="val", system="prior", out=place / "part <b>", limit=9, page=False)
    lmkbc.predict(edition="mini", split="test", system="prior", out=place / "test", page=False)
    (place / "part <b>" / "report.html").write_text("<p>a page</p>")
    (place / "notes").mkdir()
    (place / "notes" / "todo.txt").write_text("no run")
    return place


def test_runs_are_listed_with_what_they_score(command: Command, folder: Path) -> None:
    shown, _ = command.done("runs", folder, "--json")
    rows = {row["name"]: row for row in json.loads(shown)}
    assert {*rows} == {"whole", "part <b>", "test"}
    whole = rows["whole"]
    assert whole["f1"] == pytest.approx(lmkbc.score(folder / "whole").f1)
    assert whole["low"] < whole["f1"] < whole["high"]
    assert (whole["edition"], whole["split"], whole["system"], whole["rules"]) == ("mini", "val", "prior", "untuned")
    assert (rows["test"]["f1"], rows["part <b>"]["part"]) == (None, "the first 9")
    assert "whole" in command.done("runs", folder, "--edition", "mini")[0]


def test_runs_with_costs_are_drawn(folder: Path, tmp_path: Path) -> None:
    for place, name in enumerate(("whole", "part <b>")):
        shutil.copytree(folder / name, tmp_path / name)
        (tmp_path / name / "timing.json").write_text(json.dumps({"seconds": 1, "usage": {"m": {"cost": place + 0.25}}}))
        page = lmkbc.runs(tmp_path).write().read_text()
        assert page.count("<figure") == place
    assert "F1 against cost" in page
    assert "part &lt;b&gt;</text>" in page


def test_the_page_links_reports_and_escapes_names(folder: Path, tmp_path: Path) -> None:
    page = lmkbc.runs(folder).write(tmp_path / "index.html").read_text()
    links = re.findall(r'<a href="([^"]+)">', page)
    assert len(links) == 1
    assert links[0].endswith("/part%20%3Cb%3E/report.html")
    assert "part &lt;b&gt;" in page
    assert "<b>" not in page


def test_a_damaged_run_is_left_out_with_a_line(folder: Path, tmp_path: Path, command: Command) -> None:
    for name in ("whole", "bad"):
        shutil.copytree(folder / "whole", tmp_path / name)
    (tmp_path / "bad" / "manifest.json").write_text("{")
    (tmp_path / "whole" / "timing.json").write_text("[")
    shown, told = command.done("runs", tmp_path)
    assert "bad" not in shown
    assert "left out" in told


@pytest.mark.whole
def test_the_interval_covers_the_mean_as_often_as_it_says(tmp_path: Path) -> None:
    draw, mini, three = np.random.default_rng(1), SPACE.edition("mini").relations, ["Q1", "Q2", "Q3"]

    def interval(kept: list[list[str]]) -> tuple[float, float] | None:
        about = [{"SubjectEntity": f"s{at}", "Relation": mini[at % 3]} for at in range(len(kept))]
        for name, objects in (("run", kept), ("gold", [three] * len(kept))):
            rows = [json.dumps(one | {"ObjectEntitiesID": ids}) for one, ids in zip(about, objects, strict=True)]
            (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
        return lmkbc.score(tmp_path / "run.jsonl", edition="mini", gold=tmp_path / "gold.jsonl").interval

    answers = [["Q9"], ["Q1"], three]  # of F1 0, 0.5, 1
    covered = 0
    for _ in range(200):
        found = interval([answers[at] for at in draw.choice(3, p=[0.5, 0.2, 0.3], size=120)])
        assert found is not None
        covered += found[0] <= 0.4 <= found[1]
    assert 0.9 <= covered / 200 <= 0.99
    assert interval([three]) is None


def test_evaluate_prints_the_interval(command: Command, folder: Path) -> None:
    _, told = command.done("evaluate", folder / "whole", "--interval")
    assert re.search(r"macro-F1 0\.\d{3}, 95 % interval 0\.\d{3} to 0\.\d{3}", told)
    shown, _ = command.done("evaluate", folder / "whole", "--interval", "--json")
    low, high = json.loads(shown)["macro_f1_interval"]
    assert 0 < low < high < 1


@pytest.mark.parametrize(
    ("form", "head", "nothing", "some"),
    [
        (None, r"relation +P +R +F1", r"PersonHasNoblePrize +- +0\.400 +0\.400", r"Country\w+ +0\.040 "),
        ("markdown", r"\| relation \| P \|", r"\| PersonHasNoblePrize \| - \| 0\.400 ", r"\| Country\w+ \| 0\.040 "),
        ("latex", r"relation & P & R & F1 \\\\", r"PersonHasNoblePrize & - & 0\.400 ", r"Country\w+ & 0\.040 "),
        ("csv", r"relation,P,R,F1", r"PersonHasNoblePrize,,0\.4,", r"Country\w+,0\.0[34]\d{9,},"),
    ],
)
def test_the_precision_of_nothing_is_shown_as_such_in_every_format(
    form: str | None, head: str, nothing: str, some: str, command: Command, folder: Path
) -> None:
    shown, _ = command.done("evaluate", folder / "whole", *(("--format", form) if form else ()))
    for pattern in (head, nothing, some, r"\*\*\* Average \*\*\*"):
        assert re.search(pattern, shown), (pattern, shown)


def test_names_are_escaped_in_the_formats_of_papers(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for form in ("markdown", "latex"):
        show_as(form, ["a_b", "n"], [["x|y & 5%\x1b", 0.5]])
        shown[form] = capsys.readouterr().out.splitlines()
    assert shown["markdown"] == ["| a_b | n |", "| --- | ---: |", "| x\\|y & 5%\ufffd | 0.500 |"]
    assert shown["latex"][2::2][:2] == [r"a\_b & n \\", "x|y \\& 5\\%\ufffd & 0.500 \\\\"]


def test_a_labelled_run_ends_with_its_score_beside_the_floors(command: Command) -> None:
    shown, _ = command.done(
        "predict", "--split", "val", "--edition", "mini", "--system", "prior", "--limit", 30, "--report"
    )
    scores = lmkbc.score("submissions/mini-val-prior-first30")
    assert scores.interval
    figures = [f"{figure:.3f}" for figure in (scores.f1, *scores.interval)]
    title, head, own, *floors = (line.split() for line in shown.splitlines())
    assert (" ".join(title), head[0]) == ("LM-KBC mini, val, the first 30", "run")
    assert own == ["mini-val-prior-first30", *figures, "30"]
    assert [line[1:-1] for line in floors] == [
        ["class", "prior", own[1], "-", "-"],
        ["all-empty", "file", "0.000", "-", "-"],
    ]


def test_a_run_whose_predictions_were_changed_is_named_everywhere(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    for name in ("whole", "edited"):
        shutil.copytree(folder / "whole", tmp_path / name)
    rows = (tmp_path / "edited" / "predictions.jsonl").read_text().splitlines(keepends=True)
    first = {**json.loads(rows[0]), "ObjectEntitiesID": []}
    (tmp_path / "edited" / "predictions.jsonl").write_text("".join([json.dumps(first) + "\n", *rows[1:]]))
    for words in (
        ("evaluate", "edited"),
        ("evaluate", "edited/predictions.jsonl", "--edition", "mini"),
        ("compare", "whole", "edited"),
        ("runs", "."),
    ):
        shown, told = command.done(*words)
        assert "the predictions are not those of the run's manifest" in " ".join((shown + told).split())
    assert "edited" in told
    assert "whole" not in told
    assert json.loads(command.done("evaluate", "edited", "--json")[0])["changed"] is True
    changed = {row["name"]: row["changed"] for row in json.loads(command.done("runs", ".", "--json")[0])}
    assert changed == {"whole": False, "edited": True}
    command.done("report", "edited", "--out", "page.html")
    assert "<dt>predictions</dt><dd>the predictions are not those" in (tmp_path / "page.html").read_text()
    for words in (
        ("evaluate", "whole"),
        ("evaluate", "whole/predictions.jsonl"),
        ("evaluate", "whole/predictions.zip"),
    ):
        assert "not those of" not in "".join(command.done(*words))


@pytest.mark.whole
def test_a_page_replaces_pages_alone(command: Command, folder: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(folder / "whole", runs / "whole")
    pages = {
        "index.html": ("runs", "runs", "--html"),
        "compare.html": ("compare", "runs/whole", "runs/whole/predictions.jsonl", "--html"),
        "page.html": ("report", "runs/whole", "--out"),
    }
    for name, words in pages.items():
        own = tmp_path / name
        own.write_text("<!doctype html><title>my notes</title>")
        assert f"{name} is there already and is no page of this program" in command.fails(*words, own)
        assert own.read_text() == "<!doctype html><title>my notes</title>"
        own.write_text("")
        command.done(*words, own)
        if name == "index.html":  # all are written by one function, and this page has the fewest figures
            command.done(*words, own)
            own.unlink()
            command.done(*words, own)
