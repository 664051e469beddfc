"""Groups of options: each command shows them once, in place, and gets them as one value."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Unpack

import pytest
import typer
from command import Command
from typer.testing import CliRunner

from lmkbc.cli.options import spread
from lmkbc.run.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class Shared:
    seed: Annotated[int, typer.Option("--seed")] = 0


SHARED = (
    "--edition --system --model --from --data --offline --search-table --index --workspace "
    "--base-url --concurrency --max-cost --max-tokens --prices --store"
).split()


@pytest.mark.parametrize("words", ["predict", "tune", "probe controls"])
def test_the_shared_options_are_shown_once_and_in_one_order(command: Command, words: str) -> None:
    shown, _ = command.done(*words.split(), "--help")
    options = shown.partition("Example:")[0].split()
    places = [[at for at, word in enumerate(options) if word.rstrip(",") == name] for name in SHARED]
    assert all(len(found) == 1 for found in places), dict(zip(SHARED, places, strict=True))
    assert sorted(places) == places


@pytest.mark.parametrize("group", ["", "probe", "probe kmir", "train", "store", "data", "relations", "systems", "link"])
def test_lists_of_commands_cut_no_sentence_short(command: Command, group: str) -> None:
    shown, _ = command.done(*group.split(), "--help")
    commands = shown.partition("Commands:")[2].splitlines()
    assert len(commands) > 2
    assert [line for line in commands if line.endswith("...")] == []


def test_groups_give_way_to_their_options() -> None:
    got: list[object] = []

    def command(
        *, shared: Shared, limit: Annotated[int, typer.Option("--limit")] = 3, **options: Unpack[RunOptions]
    ) -> None:
        """Do it."""
        got.extend((shared, limit, options))

    shown = spread(command)
    assert list(inspect.signature(shown).parameters) == ["seed", "limit", *RunOptions.__annotations__]
    assert shown.__doc__ == "Do it."
    app = typer.Typer()
    app.command()(shown)
    words = ["-e", "2023", "--from", "a", "--from", "b", "--offline", "--prices", "2.50,10", "--seed", "4"]
    assert CliRunner().invoke(app, words).exit_code == 0
    shared, limit, options = got
    assert (shared, limit) == (Shared(seed=4), 3)
    assert isinstance(options, dict)
    given = {name: value for name, value in options.items() if value}
    assert given == {"edition": "2023", "files": [Path("a"), Path("b")], "offline": True, "prices": (2.5, 10.0)}
