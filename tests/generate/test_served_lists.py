"""Closed lists over a server, as recipes and commands have them."""

import json
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Loopback
from opened import generated, generators, recipe_of
from space import MINI, SPACE
from telling import Telling

from lmkbc import InputError
from lmkbc.models.answers import Store
from lmkbc.testing import Query, Run, State

NAME = "CountryBordersCountry"
QUERIES = [Query("Utopia", NAME), Query("Atlantis", NAME)]
TABLE: dict[str, Any] = {
    "component": "causal",
    "model": "m",
    "prompt": {"form": "completion", "block": "{{ subject }}, {{ phrase }}:", "listing": "comma", "null": "none"},
    "shots": {"k": 1},
    "ranking": {"max": 2, "calibration": "nothing"},
}
RECIPE = """description = "x"
[[generate]]
component = "causal"
model = "m"
prompt = { form = "completion", block = "{{ subject }}, {{ phrase }}:" }
shots = { k = 1 }
ranking = { max = 2, calibration = "nothing" }
[select]
rule = "cutoff"
threshold = 0.5
"""

pytestmark = pytest.mark.usefixtures("one_thread")


def over(tmp_path: Path, **servers: Any) -> Run:
    return Run(workspace=SPACE, edition=MINI, servers=dict(store=tmp_path / "store.sqlite", **servers))


@pytest.mark.parametrize("place", ["recipe", "option"])
def test_the_server_that_is_named_ranks(place: str, tmp_path: Path) -> None:
    with Telling("llama.cpp") as server:
        table = TABLE | ({"base_url": server.url} if place == "recipe" else {})
        run = over(tmp_path, base_url=server.url if place == "option" else None)
        found, notes = generated(run, recipe_of(table), QUERIES)
    assert all(one.draws == (State.ANSWERED,) and len(one.candidates) == 2 for one in found)
    assert {source.model for one in found for c in one.candidates for source in c.sources} == {"m"}
    assert notes.usage["requests"] > 0


def test_an_address_in_the_environment_is_no_word_about_a_local_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default's questions to a model of this machine go to no server unless it is named here."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    run = Run(workspace=SPACE, edition=MINI, offline=True, servers={"store": tmp_path / "s.sqlite"})
    with pytest.raises(InputError, match="the model m cannot be loaded"):
        list(generators(run, recipe_of(TABLE)))


@pytest.mark.parametrize(
    ("server", "code", "said"),
    [
        (Telling("echo"), 0, ""),
        (Loopback(), 1, "returns no log-probabilities of a given text, which candidate ranking needs"),
        (Telling("llama.cpp", window=8), 1, "maximum context length is 8 tokens"),
    ],
    ids=["tells", "tells none", "too narrow"],
)
def test_the_command_ends_with_a_sentence(
    command: Command, server: Loopback, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    words = ["predict", "--split", "val", "--edition", "mini", "--system", "r.toml", "--limit", "2"]
    with server:
        status, _, told = command(*words, "--base-url", server.url, "--store", "s.sqlite", "--out", "run")
    assert (status, said in told) == (code, True), told
    lines = [json.loads(line) for line in Store(tmp_path / "s.sqlite").export()]
    assert bool(lines) == (code == 0)
