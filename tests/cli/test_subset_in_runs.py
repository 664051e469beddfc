"""A run of a part of a split is shown as such beside runs of whole splits."""

import json
import os
import re
from pathlib import Path

import pytest
from command import Command


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_table_of_runs_names_the_part_of_a_split(command: Command) -> None:
    words = ("--edition", "mini", "--split", "val", "--system", "bl22-empty", "--no-report")
    command.done("predict", *words, "--limit", 3, "--out", "all/part")
    command.done("predict", *words, "--out", "all/whole")
    shown = command.done("runs", "all")[0]
    part, whole = (next(line for line in shown.splitlines() if line.startswith(name)) for name in ("part", "whole"))
    assert "val; the first 3" in part
    assert "first" not in whole
    assert "best published" not in command.done("evaluate", "all/part")[1]


def test_a_page_of_a_part_says_so_and_is_not_compared_with_whole_splits(
    command: Command, data_dir: Path, tmp_path: Path
) -> None:
    words = ("--edition", "2022", "--split", "val", "--system", "bl22-empty", "--report", "--data", data_dir)
    part = "CountryBordersWithCountry; the first 3"
    command.done("predict", *words, "--relation", "CountryBordersWithCountry", "--limit", 3, "--out", "part")
    command.done("predict", *words, "--out", "whole")
    (pages, compared) = (tmp_path / "pages"), tmp_path / "compare.html"
    pages.mkdir()
    for run, more in (("part", ()), ("whole", ()), ("whole", ("--limit", 5))):
        command.done("report", run, "--out", pages / f"{run}{len(more)}.html", "--data", data_dir, *more)
    texts = {path.stem: path.read_text() for path in pages.iterdir()}
    titles = {name: re.search("<title>(.*)</title>", text) for name, text in texts.items()}
    assert [name for name, text in texts.items() if 'id="published"' in text] == ["whole0"]
    assert {name: title and title[1].rpartition("dev")[2] for name, title in titles.items()} == {
        "part0": f", {part}",
        "whole0": "",
        "whole2": ", the first 5",
    }
    assert f"<dd>2022, dev, {part}</dd>" in texts["part0"]
    assert f"dev, {part}" in command.done("evaluate", "part", "--data", data_dir)[0]
    command.done("compare", "part", "part", "--html", compared, "--data", data_dir)
    assert f"dev, {part}" in compared.read_text()


def test_a_limit_is_of_what_the_runs_asked(command: Command, tmp_path: Path) -> None:
    """In each command that scores; the relation is not the first one of the split."""
    own, other = "PersonPlaysInstrument", "RiverBasinsCountry"
    words = ("--edition", "mini", "--split", "val", "--system", "prior", "--no-report")
    for name, more in {"a": ("-r", own), "a6": ("-r", own, "--limit", 6), "first": ("--limit", 50)}.items():
        command.done("predict", *words, *more, "--out", name)
    command.done("predict", *words, "-r", other, "--out", "b")

    def scored(*given: object) -> dict[str, int]:
        shown = json.loads(command.done("evaluate", *given, "--json")[0])
        assert shown["remarks"]["missing"] == 0
        return {name: values["rows"] for name, values in shown["relations"].items()}

    assert scored("a", "--limit", 4) == scored("a6", "--limit", 4) == {own: 4}
    assert scored("a6", "--limit", 9) == scored("a6") == {own: 6}
    first = scored("first")
    assert sum(first.values()) == 50
    assert {name: scored("first", "-r", name)[name] for name in first} == first
    shown, _ = command.done("compare", "a", "a6", "--limit", 4)
    assert shown.startswith(f"LM-KBC mini, val, {own}; the first 4: a6")
    assert re.search(rf"{own} +4 ", shown)
    command.done("report", "a", "--limit", 4, "--out", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"LM-KBC mini, val, {own}; the first 4</title>" in page
    assert f"a asked {own} alone, not {other}: name a relation" in command.fails("evaluate", "a", "-r", other)
    assert f"of {own}; {other} that all runs asked" in command.fails("compare", "a", "b")


def test_runs_of_one_minute_are_listed_newest_first(command: Command, tmp_path: Path) -> None:
    for second, name in enumerate(("b", "c", "a")):
        words = ("--edition", "mini", "--split", "val", "--system", "bl22-empty", "--no-report", "--limit", 3)
        command.done("predict", *words, "--out", tmp_path / name)
        os.utime(tmp_path / name / "manifest.json", (second, second))
    listed = json.loads(command.done("runs", tmp_path, "--json")[0])
    assert [row["name"] for row in listed] == ["a", "c", "b"]
