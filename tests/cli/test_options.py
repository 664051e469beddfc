"""Groups of options: each command shows them once, in place, and gets them as one value."""

from __future__ import annotations

import inspect
from typing import Annotated

import pytest
import typer
from command import Command
from typer.testing import CliRunner

from lmkbc.cli.options import listed
from lmkbc.cli.run_options import RecipeOptions, ServerOptions, SourceOptions
from lmkbc.cli.spread import spread
from lmkbc.errors import InputError

SHARED = (
    "--edition --system --model --from --data --offline --search-table --index --workspace "
    "--base-url --concurrency --max-cost --max-tokens --prices --store"
).split()


@pytest.mark.parametrize("words", ["predict", "tune", "probe controls"])
def test_the_shared_options_are_shown_once_and_in_one_order(command: Command, words: str) -> None:
    status, shown, told = command(*words.split(), "--help")
    assert status == 0, told
    options = shown.partition("Example:")[0].split()
    places = [[at for at, word in enumerate(options) if word.rstrip(",") == name] for name in SHARED]
    assert all(len(found) == 1 for found in places), dict(zip(SHARED, places, strict=True))
    assert sorted(places) == places


@pytest.mark.parametrize("group", ["", "probe", "probe kmir", "train", "store", "data", "relations", "systems", "link"])
def test_lists_of_commands_cut_no_sentence_short(command: Command, group: str) -> None:
    status, shown, told = command(*group.split(), "--help")
    assert status == 0, told
    commands = shown.partition("Commands:")[2].splitlines()
    assert len(commands) > 2
    assert [line for line in commands if line.endswith("...")] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("predict -e mini --max-cost inf", "error: --max-cost is inf: give a finite number, not below 0\n"),
        ("predict -e mini --precision nan", "error: --precision is nan: give a share between 0 and 1, as in 0.9\n"),
        ("tune -e mini --prices 1,inf", "error: --prices is '1,inf': give two numbers"),
    ],
)
def test_what_is_wrong_with_an_option_is_told_by_the_name_that_was_typed(
    command: Command, words: str, told: str
) -> None:
    status, _, error = command(*words.split())
    assert (status, error.startswith(told)) == (2, True), error


def test_a_group_gives_way_to_its_options_in_place() -> None:
    got: list[object] = []

    def command(
        *, recipe: RecipeOptions, limit: Annotated[int, typer.Option("--limit")] = 3, sources: SourceOptions
    ) -> None:
        """Do it."""
        got.extend((recipe, limit, sources))

    shown = spread(command)
    names = list(inspect.signature(shown).parameters)
    assert names == ["edition", "system", "model", "files", "limit", *SourceOptions.__slots__]
    assert shown.__doc__ == "Do it."
    app = typer.Typer()
    app.command()(shown)
    assert CliRunner().invoke(app, ["-e", "2023", "--from", "a", "--from", "b", "--offline"]).exit_code == 0
    recipe, limit, sources = got
    assert isinstance(recipe, RecipeOptions)
    assert (recipe.edition, list(map(str, recipe.files or ())), limit) == ("2023", ["a", "b"], 3)
    assert sources == SourceOptions(offline=True)


def test_prices_and_lists() -> None:
    assert ServerOptions(prices="2.50,10").as_settings().prices == (2.5, 10.0)
    with pytest.raises(InputError, match="--prices is '1': give two numbers"):
        ServerOptions(prices="1").as_settings()
    assert (listed(None), listed("a, b ,c")) == (None, ["a", "b", "c"])
    for wrong in ("", "a,,b", "a,"):
        with pytest.raises(InputError, match="names nothing at one of its commas"):
            listed(wrong)
