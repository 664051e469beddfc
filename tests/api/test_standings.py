"""Published results beside what each system needs: counted from recipes, taken from editions, sorted and filtered."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Command
from opened import recipe_file
from space import SPACE
from typer.testing import CliRunner

from lmkbc import Edition
from lmkbc.cli import build
from lmkbc.recipe import read_file

BORDERS = "country-borders"
RELATIONS = len(SPACE.edition("mini").relations)
OTHERS = RELATIONS - 1
CHAT: dict[str, Any] = {
    "component": "chat",
    "model": "owner/Big-8B",
    "sampling": {"samples": 4, "max_tokens": 50},
    "verify": {"only": [BORDERS]},
    "relations": {
        BORDERS: {
            "sampling": {"samples": 10},
            "prompt": {
                "ask": "{{ fact }} {{ asked }}",
                "steps": [{"name": "fact", "ask": "What is {{ subject }}?", "max_tokens": 30}],
            },
        }
    },
}
READS = {"context": {"provider": "titles", "path": "from"}, "sampling": {"max_tokens": 20}}


@cache
def results_of(edition: str) -> list[Any]:
    """Return all results of an edition. Reading the recipes of its systems takes a second."""
    shown = CliRunner().invoke(build(), ["systems", "compare", edition, "--json"]).stdout
    return [SimpleNamespace(**row) for row in json.loads(shown)]


def official(edition: str, split: str) -> list[Any]:
    """Return the results on a split by the official scorer."""
    own = SPACE.edition(edition).split_named(split)
    return [row for row in results_of(edition) if row.split == own and not row.profile]


@pytest.mark.parametrize(
    ("tables", "needs"),
    [
        ([CHAT], (4 * OTHERS + 10, 4 * 50 * OTHERS + 10 * (50 + 30), 8.0, "none")),
        ([CHAT, {**CHAT, "only": [BORDERS]}], (4 * OTHERS + 20, 4 * 50 * OTHERS + 20 * (50 + 30), 8.0, "none")),
        ([CHAT | {"sampling": {"samples": 4}}], (4 * OTHERS + 10, None, 8.0, "none")),
        ([CHAT | READS | {"model": "m-270m"}], (OTHERS + 10, 20 * OTHERS + 10 * (20 + 30), 0.27, "passages")),
        ([CHAT, {"component": "prior"}], (None, None, 8.0, "none")),
    ],
    ids=["draws and a step", "two sources", "no limit", "passages", "not a model alone"],
)
def test_a_recipe_says_what_it_needs(
    command: Command, tmp_path: Path, tables: list[dict[str, Any]], needs: tuple[object, ...]
) -> None:
    (tmp_path / "lmkbc.toml").touch()
    (tmp_path / "systems").mkdir()
    published = {"mini/val": 0.5, "other/test": 0.9}
    recipe_file(tmp_path / "systems/mine.toml", *tables, published=published, year=2026, licence="none", differs=["x"])
    (row,) = json.loads(command.done("systems", "compare", "mini", "--json")[0])
    whole = [row[name] and round(row[name] * RELATIONS, 6) for name in ("draws", "tokens")]
    assert (*whole, row["billions"], row["retrieval"]) == needs
    assert (row["system"], row["split"], row["f1"], row["licence"], row["differs"]) == (
        "mine",
        "val",
        0.5,
        "none",
        ["x"],
    )


def test_results_are_sorted_within_a_split_and_filtered(command: Command) -> None:
    def listed(*words: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(command.done("systems", "compare", *words, "--json")[0])
        return rows

    rows = listed("2024")
    assert [row["split"] for row in rows] == sorted((row["split"] for row in rows), key=["test", "val"].index)
    best = [row["f1"] for row in rows if row["split"] == "test"]
    assert best == sorted(best, reverse=True)
    assert {row["retrieval"] for row in rows} > {"answer", "passages", "none"}
    assert {row["retrieval"] for row in listed("2024", "--closed-book")} == {"", "none"}
    small = listed("2024", "--split", "dev", "--largest", "1.5", "--sort", "billions")
    assert {row["split"] for row in small} == {"val"}
    assert [row["billions"] for row in small] == sorted(row["billions"] for row in small)
    assert {row["system"] for row in small if row["measured"]} == {"smollm2-embedded", "qwen-coder-embedded"}
    assert "did you mean '2024'" in command.fails("systems", "compare", "20244")
    assert "edition 2024 has no split 'tets': did you mean 'test'?" in command.fails(
        "systems", "compare", "2024", "-s", "tets"
    )
    shown, told = command.done("systems", "compare", "2023", "--split", "val")
    assert "val/2023-legacy" in shown
    assert told.startswith("measured here")


@pytest.mark.parametrize(
    ("edition", "split", "results"),
    [
        ("2022", "dev", [(0.698, "ProP, facts checked, its file scored today"), (0.546, "li22")]),
        ("2022", "test", [(0.679, "ProP, facts not checked"), (0.456, "First entrant"), (0.337, "Second entrant")]),
        ("2022", "test", [(0.28, "Third entrant without a paper")]),
        ("2023", "test", [(0.701, "llmke23-best"), (0.619, "llm2kb23"), (0.612, "LLM2KB, on the board")]),
        ("2025", "test", [(0.398, "Creo et al., Soft Thinking"), (0.241, "sirenze25"), (0.216, "jge25")]),
        ("2026", "test", [(0.62, "REAP"), (0.5408, "CoRe, exchanges reasoned too")]),
        ("2026", "val", [(0.548, "core26")]),
    ],
)
def test_what_was_published_is_ranked_as_it_was(edition: str, split: str, results: list[tuple[float, str]]) -> None:
    rows = official(edition, split)
    found = [next(row for row in rows if row.system.startswith(name)) for _, name in results]
    assert [row.f1 for row in found] == [pytest.approx(f1) for f1, _ in results]
    assert found == sorted(found, key=lambda row: -row.f1)
    reasons = [row.about for row in found if row.system.startswith(("REAP", "Creo")) or "entrant" in row.system]
    assert all(reason.startswith("No recipe: ") for reason in reasons)


@pytest.mark.parametrize(
    ("edition", "split", "best"),
    [
        ("2022", "dev", 0.698),
        ("2023", "val", 0.63),
        ("2024", "val", 0.455),
        ("2025", "val", 0.224),
        ("2026", "val", 0.67),
    ],
)
def test_the_best_published_result_is_that_by_the_official_scorer(edition: str, split: str, best: float) -> None:
    own = SPACE.edition(edition)
    listed = [one.f1 for one in own.published if one.split == split and not one.profile]
    published = [row.f1 for row in official(edition, split) if not row.measured]
    assert max(listed) == max(published) == best


@pytest.mark.parametrize("edition", SPACE.editions.values(), ids=list(SPACE.editions))
def test_a_result_with_a_recipe_is_that_of_the_recipe_and_is_listed_once(edition: Edition) -> None:
    for one in edition.published:
        if one.recipe:
            place = "/".join(filter(None, (edition.name, one.split, one.profile)))
            assert read_file(SPACE.recipe_path(one.recipe)).published[place] == pytest.approx(one.f1, abs=6e-4), one
            assert not any((one.model, one.licence, one.retrieval, one.about)), one
    rows = [(row.system, row.split, row.profile) for row in results_of(edition.name)]
    rows += [(one.system, one.split, one.profile) for one in edition.published if one.recipe]
    assert {row for row in rows if rows.count(row) > 1} == set()


SIZES: dict[tuple[str, ...], float | None] = {
    ("Qwen3-8B", "gemma-3-12b-it"): 20,
    ("SmolLM2-135M-Instruct",): 0.135,
    ("gemma3:27b",): 27,
    ("opt-1.3b",): 1.3,
    ("Mixtral-8x7B",): None,
    ("Qwen3-8B", "gpt-4"): None,
    ("bert-large-cased",): None,
}
"""Models of a system -> parameters in billions, as their names tell."""


def test_the_size_of_a_model_is_in_its_name(command: Command, tmp_path: Path) -> None:
    (tmp_path / "lmkbc.toml").touch()
    (tmp_path / "systems").mkdir()
    for at, models in enumerate(SIZES):
        tables = [{"component": "chat", "name": f"{n}", "model": model} for n, model in enumerate(models)]
        recipe_file(tmp_path / f"systems/mine{at}.toml", *tables, published={"mini/val": 0.5}, licence="none")
    rows = {row["system"]: row for row in json.loads(command.done("systems", "compare", "mini", "--json")[0])}
    assert [rows[f"mine{at}"]["billions"] for at in range(len(SIZES))] == [*SIZES.values()]
