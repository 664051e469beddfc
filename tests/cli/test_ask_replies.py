"""What `lmkbc ask` shows of replies: how many samples wrote a text, and the text of those that cannot be read."""

import json
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

import pytest
from command import Command
from loopback import Loopback

RECIPE = """description = "asks"
[[generate]]
component = "chat"
model = "stand-in"
sampling = { samples = 5, temperature = 0.7, max_tokens = 200 }
[select]
rule = "cutoff"
threshold = 0.1
"""


ASKED = ("ask", "Ada", "PersonHasNumberOfChildren", "-e", "mini", "--system", "chat.toml", "--store", "s.sqlite")


def ask(command: Command, texts: Sequence[str], *more: str, recipe: str = RECIPE) -> tuple[int, str, str]:
    Path("chat.toml").write_text(recipe)
    turn: Iterator[str] = cycle(texts)
    with Loopback(lambda _: next(turn)) as server:
        return command(*ASKED, "--base-url", server.url, *more)


def test_a_reply_that_cannot_be_read_is_shown_shortened_and_escaped(command: Command) -> None:
    status, _, told = ask(command, ["I would not \x1b[31msay " + "why " * 200])
    assert status == 1, told
    assert "gave no usable answer about 'Ada' (truncated), but wrote 'I would not \\x1b[31msay why why" in told
    assert " characters): " in told
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["12", "unknown size", "12", "12", "large"], [(3, "'12'"), (1, "'unknown size'"), (1, "'large'")]),
        (["12"], [(5, "'12'")]),
    ],
)
def test_samples_are_counted_by_what_they_wrote(
    command: Command, texts: list[str], shown: list[tuple[int, str]]
) -> None:
    _, _, told = ask(command, texts)
    lines = [line for line in told.splitlines() if line.startswith("the model wrote")]
    assert lines == [f"the model wrote, in {count} of 5 samples: {text}" for count, text in shown]


def test_a_reply_of_one_sample_is_not_counted(command: Command) -> None:
    single = RECIPE.replace("samples = 5", "samples = 1")
    assert "the model wrote: '12'\n" in ask(command, ["12"], recipe=single)[2]
    assert json.loads(ask(command, ["12"], "--json", recipe=single)[1])["replies"] == ["12"]
