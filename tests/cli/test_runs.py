"""`lmkbc runs`: what lies in a folder, scored with its interval, and the page that links its reports."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import Command

import lmkbc
from lmkbc.compare import score_interval
from lmkbc.scoring.table import RowScore


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
    assert (rows["test"]["f1"], rows["part <b>"]["part"]) == (None, "first 9")
    assert "whole" in command.done("runs", folder, "--edition", "mini")[0]


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


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    draw = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        f1 = draw.choice([0.0, 0.5, 1.0], p=[0.5, 0.2, 0.3], size=120)
        rows = {(f"s{at}", f"r{at % 3}"): RowScore(1, 1, float(own), 1, 1, 1) for at, own in enumerate(f1)}
        found = score_interval(rows, by_relation=True)
        assert found is not None
        covered += found[0] <= 0.4 <= found[1]
    assert 0.9 <= covered / 200 <= 0.99
    assert score_interval({("a", "r"): RowScore(1, 1, 1.0, 1, 1, 1)}, by_relation=True) is None


def test_evaluate_prints_the_interval(command: Command, folder: Path) -> None:
    _, told = command.done("evaluate", folder / "whole", "--interval")
    assert re.search(r"macro-F1 0\.\d{3}, 95 % interval 0\.\d{3} to 0\.\d{3}", told)
    shown, _ = command.done("evaluate", folder / "whole", "--interval", "--json")
    low, high = json.loads(shown)["macro_f1_interval"]
    assert 0 < low < high < 1


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
        own.unlink()
        for _ in range(2):
            command.done(*words, own)
        own.write_text("")
        command.done(*words, own)
