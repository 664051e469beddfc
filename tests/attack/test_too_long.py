"""Prompts of 9,000 tokens, and a model that takes 8,192: one sentence, nothing kept, no empty answer, either way."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import tiny_causal
import tiny_gguf
from command import Command
from telling import Telling

from lmkbc.models.answers import Store

WINDOW, LONG = 8192, 9000
RANKS = (
    'shots = { k = 1 }\nranking = { max = 2, calibration = "nothing" }\n'
    'prompt = { form = "completion", task = "{task}" }\n'
)
RECIPE = """description = "x"
[[generate]]
component = "causal"
model = "{model}"
{table}[select]
rule = "cutoff"
threshold = 0.5
"""


@contextmanager
def here(folder: Path) -> Iterator[str]:
    """A model of this machine, whose tokens are bytes."""
    model = tiny_causal.model("llama")
    model.config.max_position_embeddings = WINDOW
    yield str(tiny_gguf.write(folder / "tiny.gguf", model))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("here", "2 of 2 prompts whose candidates are ranked exceed the model's window: show fewer examples"),
        ("server", "prompts whose candidates are ranked exceed the context of http://127.0.0.1:"),
    ],
)
@pytest.mark.usefixtures("one_thread")
def test_what_exceeds_the_window_is_one_sentence(command: Command, place: str, said: str, tmp_path: Path) -> None:
    recipe, store = tmp_path / "r.toml", tmp_path / "s.sqlite"
    with here(tmp_path) if place == "here" else Telling("echo", window=WINDOW) as opened:
        model, options = (opened, []) if isinstance(opened, str) else ("m", ["--base-url", opened.url])
        own = RANKS.replace("{task}", "Answer. " * (LONG // 8))
        recipe.write_text(RECIPE.format(model=model, table=own))
        words = ["predict", "--split", "val", "--edition", "mini", "--limit", "2", "--system", str(recipe)]
        status, _, told = command(*words, *options, "--store", store, "--out", "run")
    *notes, error = told.splitlines()
    assert (status, error.startswith("error: 2 of 2 queries failed")) == (1, True), told
    assert sum(said in line for line in notes) == 1
    assert not list(Store(store).export())
    assert not (tmp_path / "run" / "predictions.jsonl").exists()
