"""The documents' own examples: what they print loads, runs as typed, and ends as they show."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from checkout import ROOT
from command import Command
from small import give_mini

from lmkbc import Workspace, registry
from lmkbc.cli import build

README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def typed(heading: str) -> tuple[list[str], str]:
    """The commands of a section, comments left out, and the output that it shows."""
    section = README.split(f"## {heading}\n", 1)[1]
    commands, output = re.findall(r"```\n(.*?)```", section, flags=re.DOTALL)[:2]
    return [line.partition(" #")[0].strip() for line in commands.splitlines()], output


@pytest.mark.model
@pytest.mark.parametrize("only", ["PersonPlaysInstrument", pytest.param("", marks=pytest.mark.whole)])
def test_sixty_seconds_work_when_typed(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    """The suite has eight rows of one relation: the model is the same, and reads a twentieth; the scores are others."""
    commands, output = typed("First run")
    assert commands[:2] == ["make predict", "source .venv/bin/activate"]
    give_mini(tmp_path, only, 8 if only else None)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    shown = []
    for typed_one in commands[2:]:
        program, *words = typed_one.split()
        status, printed, told = command(*words)
        assert (program, status) == ("lmkbc", 0), told
        shown.append([line.split()[:1] if only else line.rstrip() for line in printed.splitlines()])
    assert shown[1] == ([["LM-KBC"], ["relation"], [only], ["***"]] if only else output.splitlines())
    assert opened == [(tmp_path / "submissions" / "mini-val-smollm2-embedded" / "report.html").as_uri()]


@pytest.mark.floats
def test_python_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[0]
    exec(compile(code, "README.md", "exec"), {})
    assert f"{capsys.readouterr().out.strip()} " in code.partition("# ")[2].replace(";", " ")


@pytest.mark.parametrize("only", ["CountryBordersCountry", pytest.param("", marks=pytest.mark.whole)])
def test_the_guide_to_sure_answers_keeps_some(command: Command, tmp_path: Path, only: str) -> None:
    """The figures that the page shows are of all relations."""
    page = (ROOT / "docs" / "confidence.md").read_text(encoding="utf-8")
    give_mini(tmp_path, only)
    tune, predict, evaluate = (line.split() for line in re.findall(r"^lmkbc +(.*)$", page, flags=re.MULTILINE))
    command.done(*tune, "--trials", "0")
    _, told = command.done(*predict)
    kept, promised = re.findall(r", (\d+) objects, .* at precision ([\d.]+), promised by [1-8] of [18]", told)[0]
    assert only or f"Here it is {promised}, and {kept} objects are kept." in page
    assert int(kept) > 0
    assert json.loads(command.done(*evaluate, "--json")[0])["micro_p"] > float(promised)
    shutil.rmtree("submissions")
    best = re.findall(r"here ([\d.]+) for borders", page)[0]
    for few in ((), ("--relation", "PersonPlaysInstrument"))[: 1 if only else 2]:  # more than these can promise
        told = command.fails(*predict[:-1], best if few else "0.9", *few, status=1)
        reached = dict(re.findall(r"(\w+): ([.\d]+) at recall", told))
        assert f"give --precision {max(reached.values())}, or best:0.1" in told
        assert only or (reached == {few[1]: "0.21"} if few else reached["CountryBordersCountry"] == best)
        assert not Path("submissions").exists()


def test_what_python_callers_are_shown_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PYTHON, flags=re.DOTALL):
        exec(compile(code.replace('system="embedded"', 'system="naive-bayes"'), "python.md", "exec"), names)
    assert (tmp_path / "report.html").is_file()
    assert capsys.readouterr().out.splitlines()[-1] == f"{2 / 3}"


def test_shown_score_tables_have_the_columns_of_the_command() -> None:
    metrics = {edition.metric.detailed: edition.metric for edition in Workspace().editions.values()}
    heads = [["relation", *(column.label for column in metrics[detailed].columns)] for detailed in (False, True)]
    assert [re.split(" {2,}", line) for line in re.findall("^relation .*$", README, flags=re.MULTILINE)] == heads


def test_options_that_documents_name_exist() -> None:
    group = typer.main.get_command(build())
    known = {option for command in _commands(group) for parameter in command.params for option in parameter.opts}
    known |= {option for command in _commands(group) for one in command.params for option in one.secondary_opts}
    for page in PAGES:
        for line in re.findall(r"^lmkbc .*$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
            options = re.findall(r"(?<=\s)--?[a-z][a-z-]*", line.partition(" #")[0])
            assert [option for option in options if option not in known] == [], f"{page.name}: {line}"


def _commands(group: Any) -> Iterator[Any]:
    yield group
    context = typer.Context(group)
    for name in group.list_commands(context) if hasattr(group, "list_commands") else ():
        yield from _commands(group.get_command(context, name))


def test_every_command_has_its_page() -> None:
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in registry.COMMANDS if f"`lmkbc {name}" not in commands] == []


def test_links_of_documents_lead_somewhere_in_a_clone() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in pages}
    anchors = {page: {_anchor(head) for head in re.findall(r"^#+ (.*)$", text, re.M)} for page, text in texts.items()}
    absent = []
    for page, text in texts.items():
        for link, place, anchor in re.findall(r"\]\((?!\w+:)(([^)#]*)#?([^)]*))\)", text):
            to = (page.parent / place).resolve() if place else page
            if not to.exists() or (anchor and anchor not in anchors[to]):
                absent.append(f"{page.relative_to(ROOT)}: {link}")
    assert absent == []


def _anchor(head: str) -> str:
    """Return what a link calls a heading."""
    return re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")


def test_benchmarks_that_documents_name_exist() -> None:
    named = {
        name for page in PAGES for name in re.findall(r"python -m eval\.bench ([a-z]\w*)", page.read_text("utf-8"))
    }
    assert [name for name in named if not (ROOT / "eval" / "bench" / f"{name}.py").is_file()] == []


def test_no_page_shows_what_lies_elsewhere() -> None:
    """Diagrams are images of this repository: what a browser draws, it fetches its script for."""
    written = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    foreign = r"```mermaid|<script|<iframe|!\[[^]]*\]\(https?:|<img[^>]*src=\"?https?:"
    assert {name: found for name, text in written.items() if (found := re.findall(foreign, text))} == {}
    assert "mermaid" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in (ROOT / "docs").glob("*.svg"):
        assert not re.search(r"(href|src)=|<script|@import|url\((?!#)", path.read_text(encoding="utf-8")), path.name
