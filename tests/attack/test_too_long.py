"""Prompts of 9,000 tokens, and a model that takes 8,192: one sentence, nothing kept, no empty answer, either way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny_causal
import tiny_gguf
from command import Command
from loopback import Body, Loopback, prompt_of
from telling import Telling

from lmkbc.models.answers import Store

WINDOW, LONG = 8192, 9000
WRITES = 'sampling = { max_tokens = 4 }\nshots = { k = 0 }\nprompt = { form = "single", task = "{task}" }\n'
RANKS = (
    'shots = { k = 1 }\nranking = { objects = 2, calibration = "nothing" }\n'
    'prompt = { form = "completion", task = "{task}" }\n'
)
RECIPE = """description = "x"
[[generate]]
component = "{component}"
model = "{model}"
{table}[select]
rule = "cutoff"
threshold = 0.5
"""


class Narrow(Loopback):
    """Refuses what is longer than its window, in llama.cpp's words. Its tokens are characters."""

    def reply(self, body: Body) -> tuple[int, Body]:
        if (length := len(prompt_of(body))) < WINDOW:
            return super().reply(body)
        said = f"request ({length} tokens) exceeds the available context size ({WINDOW} tokens), try increasing it"
        return 400, {"error": {"message": said, "type": "exceed_context_size_error", "n_ctx": WINDOW}}


@contextmanager
def here(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A model of this machine, whose tokens are bytes."""
    model = tiny_causal.model("llama")
    model.config.max_position_embeddings = WINDOW
    yield str(tiny_gguf.write(folder / "tiny.gguf", model)), []


@contextmanager
def served(server: Loopback) -> Iterator[tuple[str, list[str]]]:
    with server:
        yield "m", ["--base-url", server.url]


@pytest.mark.parametrize(
    ("place", "component", "table", "said"),
    [
        ("here", "causal", WRITES, "2 of 2 draws not asked, since prompts exceed the model's window: say fit = true"),
        (
            "here",
            "causal",
            RANKS,
            "2 of 2 prompts whose candidates are ranked exceed the model's window: show fewer examples",
        ),
        ("server", "chat", WRITES, "2 prompts exceed the server's context: say fit = true in the recipe's table shots"),
        (
            "ranking server",
            "causal",
            RANKS,
            "prompts whose candidates are ranked exceed the context of http://127.0.0.1:",
        ),
    ],
    ids=["writes here", "ranks here", "server writes", "server ranks"],
)
@pytest.mark.usefixtures("one_thread")
def test_what_exceeds_the_window_is_one_sentence(
    command: Command, place: str, component: str, table: str, said: str, tmp_path: Path
) -> None:
    recipe, store = tmp_path / "r.toml", tmp_path / "s.sqlite"
    opened = (
        here(tmp_path) if place == "here" else served(Narrow() if place == "server" else Telling("echo", window=WINDOW))
    )
    with opened as (model, options):
        own = table.replace("{task}", "Answer. " * (LONG // 8))
        recipe.write_text(RECIPE.format(component=component, model=model, table=own))
        words = ["predict", "--split", "val", "--edition", "mini", "--limit", "2", "--system", str(recipe)]
        status, _, told = command(*words, *options, "--store", store, "--out", "run")
    *notes, error = told.splitlines()
    assert (status, error.startswith("error: 2 of 2 queries failed")) == (1, True), told
    assert sum(said in line for line in notes) == 1
    assert not list(Store(store).export())
    assert not (tmp_path / "run" / "predictions.jsonl").exists()
