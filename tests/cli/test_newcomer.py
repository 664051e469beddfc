"""The command as people expect it: asked for help, given what it does not know, completed by a shell, interrupted."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from command import Command

from lmkbc import Workspace, registry
from lmkbc.cli import build

ROOT = Path(__file__).resolve().parents[2]


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it."""
    yield words, group
    context = typer.Context(group)
    for name in group.list_commands(context) if hasattr(group, "list_commands") else ():
        yield from commands(group.get_command(context, name), (*words, name))


TREE = [*commands(typer.main.get_command(build()))]


@pytest.mark.parametrize(("words", "called"), TREE, ids=[" ".join(words) for words, _ in TREE])
def test_every_command_helps_with_h_in_words_and_a_real_example(
    command: Command, words: tuple[str, ...], called: Any
) -> None:
    shown, told = command.done(*words, "-h")
    assert told == ""
    assert shown.startswith(" ".join(("Usage: lmkbc", *words)))
    assert re.search(r"-h, --help", shown)
    example = (
        "COMMAND [ARGS]"
        if hasattr(called, "list_commands")
        else f"Example: lmkbc {' '.join(words).removesuffix(' file')}"
    )
    assert example in " ".join(shown.split())
    assert not re.search(r"<[a-z\[]|\brange\b", shown), "a value is shown as a type, not as a word"


def test_the_version_is_told(command: Command) -> None:
    assert command("--version") == (0, f"lmkbc {version('lmkbc')}\n", "")


def test_a_run_its_zip_and_its_file_are_scored_alike(command: Command, tmp_path: Path) -> None:
    command.done("predict", "-e", "mini", "-s", "val", "--system", "prior", "--out", "a")
    one = command("evaluate", "a")
    assert one[0] == 0, one
    for path in ("a/predictions.zip", "a/predictions.jsonl"):
        assert command("evaluate", path)[:2] == one[:2]
    packed = gzip.compress((tmp_path / "a" / "predictions.jsonl").read_bytes())
    (tmp_path / "p.jsonl.gz").write_bytes(packed)
    assert command("evaluate", "p.jsonl.gz", "-e", "mini")[:2] == one[:2]
    part = command("evaluate", "a", "--relation", "CountryBordersCountry", "--limit", "3", "--json")
    shown = json.loads(part[1])
    assert [(name, summary["rows"]) for name, summary in shown["relations"].items()] == [("CountryBordersCountry", 3)]
    assert command("evaluate", "a", "-e", "2023")[2].startswith("error: a is a run of edition mini, not of 2023")
    assert "a/predictions.zip is a run of edition mini" in command("evaluate", "a/predictions.zip", "-e", "2023")[2]
    with (tmp_path / "a" / "predictions.jsonl").open("a") as changed:
        changed.write("\n")
    assert "is a run of edition mini" not in command("evaluate", "a/predictions.jsonl", "-e", "2023")[2]


def test_a_part_of_a_file_is_linked(command: Command, tmp_path: Path) -> None:
    rows = [
        {"SubjectEntity": f"s{n}", "Relation": "CountryBordersCountry", "ObjectEntities": ["Germany"]} for n in "ab"
    ]
    rows.append(rows[0] | {"Relation": "PersonHasSpouse"})
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.json").write_text("{}")
    only = ("--relation", "CountryBordersCountry", "--limit", "1")
    assert command("link", "p.jsonl", "-e", "mini", "--search-table", "t.json", *only)[0] == 0
    linked = [json.loads(line) for line in (tmp_path / "linked.jsonl").read_text().splitlines()]
    assert [(row["SubjectEntity"], row["ObjectEntitiesID"]) for row in linked] == [("sa", ["Q183"])]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("lmkbc ", [*registry.COMMANDS]),
        ("lmkbc pr", ["predict", "probe"]),
        ("lmkbc evaluate --li", ["--limit"]),
        ("lmkbc predict --edition 202", ["2022", "2023", "2024", "2025", "2026"]),
        ("lmkbc predict --system smol", ["smollm2", "smollm2-embedded", "smollm2-probed"]),
    ],
)
def test_a_shell_completes_it(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: str, offered: list[str]
) -> None:
    monkeypatch.setenv("_LMKBC_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    shown, told = command.done()
    assert (sorted(shown.split()), told) == (sorted(offered), "")


@pytest.mark.parametrize("name", ["ask", "build", "data", "link", "predict", "probe", "train", "tune"])
def test_an_interrupted_command_says_what_is_kept(command: Command, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Workspace, "edition", interrupt)
    monkeypatch.setattr(Workspace, "recipe_path", interrupt)
    monkeypatch.setattr("lmkbc.train.corpus.gather", interrupt)
    words = {
        "ask": ("Peru", "country-borders", "-e", "mini"),
        "build": ("--subjects", "s.csv", "--out", "base", "-e", "mini"),
        "data": ("fetch", "2023"),
        "train": ("mlm", "--backbone", "x", "--out", "y"),
        "probe": ("controls", "-e", "mini"),
        "link": ("build", "i.sqlite", "-e", "mini"),
    }
    status, shown, told = command(name, *words.get(name, ("-e", "mini")))
    assert (status, shown) == (130, "")
    kept = r"\bkept\b.* the same command (goes on|gets the rest)"
    assert re.fullmatch(rf"error: interrupted; nothing half-written is left behind; .*{kept}.*\n", told), told


@pytest.mark.parametrize("group", ["", "probe", "probe kmir", "train", "store", "data", "relations", "systems", "link"])
def test_lists_of_commands_cut_no_sentence_short(command: Command, group: str) -> None:
    shown, _ = command.done(*group.split(), "--help")
    commands = shown.partition("Commands:")[2].splitlines()
    assert len(commands) > 2
    assert [line for line in commands if line.endswith("...")] == []


HEADINGS = ["Options:", "Input:", "Model:", "Selection:", "Output:"]


@pytest.mark.parametrize(
    ("words", "usual", "headings"),
    [
        ("predict", "--split --relation --limit --edition --system --model --help", HEADINGS),
        ("tune", "--split --relation --limit --edition --system --model --help", HEADINGS),
        ("ask", "--subject-id --edition --system --model --help", ["Arguments:", *HEADINGS]),
        (
            "build",
            "--subjects --out --relation --limit --edition --system --model --help",
            [*HEADINGS, "Growth:", "Workers:"],
        ),
        ("train soft-prompt", "", ["Options:", "Input:", "Output:", "Training:"]),
        ("submit", "--split --edition --out --check --data --workspace --trust --help", ["Arguments:", "Options:"]),
    ],
)
def test_the_help_has_the_usual_options_first_and_others_under_headings(
    command: Command, words: str, usual: str, headings: list[str]
) -> None:
    shown, _ = command.done(*words.split(), "--help")
    assert re.findall(r"^[A-Z][a-z]+:$", shown, re.MULTILINE) == headings
    first = re.search(r"^Options:\n(.*?)(?:\n\n|\Z)", shown, re.MULTILINE | re.DOTALL)
    assert first is not None
    assert not usual or re.findall(r"^  (?:-\w, )?(--[a-z-]+)", first[1], re.MULTILINE) == usual.split()
    named = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown.partition("Example:")[0], re.MULTILINE)
    assert sorted(named) == sorted(set(named))


def test_lists_say_what_rules_and_systems_do(command: Command) -> None:
    rules = json.loads(command.done("rules", "list", "--json")[0])
    assert {rule["name"] for rule in rules} == set(registry.RULES)
    assert all(rule["description"] for rule in rules)
    systems = json.loads(command.done("systems", "list", "--json")[0])
    long = [one["name"] for one in systems if not 3 <= len(one["summary"].split()) <= 7 or len(one["summary"]) > 36]
    assert not long
