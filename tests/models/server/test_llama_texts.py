"""A real llama.cpp server and our own decoding, over the same GGUF file: the same texts, the same probabilities."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llama_server
import msgspec
import pytest
import tiny_causal
import tiny_gguf
import torch
from opened import generated, recipe_of
from space import MINI, SPACE

from lmkbc.local.local_model import LocalModel
from lmkbc.models.answers import Store
from lmkbc.models.server.server_model import ServerModel
from lmkbc.testing import Query, Run, State

QUERIES = [Query(f"Utopia {place}", "CountryBordersCountry") for place in range(4)]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed: install lmkbc[llamacpp]")
    model = tiny_causal.model("llama")
    model.config.max_position_embeddings = 4096
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.v_proj.weight *= 20  # so that what is said depends on the whole prompt
    return tiny_gguf.write(tmp_path_factory.mktemp("llama") / "tiny.gguf", model)


@pytest.fixture(scope="module")
def server(weights: Path) -> Iterator[str]:
    with llama_server.serving(weights.parent / "log.txt", weights, exact=True) as url:
        yield url


every_form = pytest.mark.parametrize(
    "prompt",
    [
        {"form": "completion", "block": "{{ subject }}, {{ phrase }}:"},
        {"form": "single"},
        {"form": "single", "block": "Subject: {{ subject }}\nRelation: {{ phrase }}\n==>", "component": "lix23/prompt"},
        {"form": "chat", "task": "List them."},
    ],
    ids=lambda prompt: "-".join(prompt.values()),
)


@pytest.mark.whole(but=["single", "chat"])
@every_form
@pytest.mark.usefixtures("one_thread")
def test_the_server_and_the_model_here_say_the_same(
    prompt: dict[str, Any], server: str, weights: Path, tmp_path: Path
) -> None:
    """Templates included: what the server makes of the turns is what is read here."""
    table = {
        "component": "chat",
        "prompt": prompt,
        "shots": {"k": 2},
        "sampling": {"temperature": 0.0, "max_tokens": 12},
    }

    def own(asked: Any, text: str) -> str:
        # llama.cpp repeats the answer's beginning that it was given
        text = text.removeprefix(asked[-1]["content"]) if prompt.get("component") else text
        return text.rstrip("\ufffd")  # half a character, which it leaves out

    def said(name: str, **where: Any) -> list[str]:
        store = tmp_path / f"{name}.sqlite"
        given = dict(store=store, any_model=True, **where)
        run = Run(workspace=SPACE, edition=MINI, model=str(weights), servers=given)
        found, _ = generated(run, recipe_of(table), QUERIES)
        assert not any(State.MISSING in one.draws for one in found)
        lines = [msgspec.json.decode(line) for line in Store(store).export()]
        return sorted(own(line["prompt"], line["answer"]["text"]) for line in lines)

    texts = said("served", base_url=server)
    assert texts == said("here")
    assert any(texts)


@pytest.mark.whole(but=["chat-List them."])
@every_form
@pytest.mark.usefixtures("one_thread")
def test_a_closed_list_has_the_same_shares_over_the_server(
    prompt: dict[str, Any], server: str, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both read names to their ends."""
    monkeypatch.setattr(LocalModel, "beginnings", ServerModel.beginnings)
    table = {
        "component": "causal",
        "name": "list",
        "ranking": {"max": 3, "calibration": "neutral"},
        "prompt": prompt,
        "shots": {"k": 2},
    }

    def shares(name: str, **where: Any) -> dict[Query, dict[str, float]]:
        given = dict(store=tmp_path / f"{name}.sqlite", any_model=True, **where)
        run = Run(workspace=SPACE, edition=MINI, model=str(weights), servers=given)
        found, notes = generated(run, recipe_of(table), QUERIES[:2])
        assert (notes.usage.get("requests", 0) > 0) == (name == "served")
        return {one.query: {candidate.text: candidate.score for candidate in one.candidates} for one in found}

    here = shares("here")
    assert shares("served", base_url=server) == {query: pytest.approx(one, abs=2e-3) for query, one in here.items()}
    assert all(len(set(one.values())) > 2 for one in here.values())
