"""Whose answer it is: under --any-model, answers are kept and recorded under the name of the model that is served."""

import gzip
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Body, Loopback
from opened import part, recipe_file
from postgres import free_port

import lmkbc
from lmkbc import InputError, LmkbcError
from lmkbc.models.answers import Store
from lmkbc.models.server.address import Server
from lmkbc.models.server.client import as_served
from lmkbc.models.server.openai_client import ChatClient


class Named(Loopback):
    """Serves one model, which it names in its list, and in its answers."""

    def __init__(self, name: str, text: str, port: int = 0) -> None:
        super().__init__(lambda _: text, port=port)
        self.tells["models"] = {"data": [{"id": name}]}
        self._name = name

    def reply(self, body: Body) -> tuple[int, Body]:
        status, answer = super().reply(body)
        return status, answer | {"model": self._name}


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def given(tmp_path: Path, port: int) -> dict[str, Any]:
    limits = {"total_wait": 1.0, "concurrency": 1}
    asks = {"component": "chat", "model": "gpt-4", "shots": {"k": 0}, "limits": limits}
    return {
        "edition": "mini",
        "system": str(recipe_file(tmp_path / "asks.toml", asks)),
        "store": tmp_path / "store.sqlite",
        "any_model": True,
        "base_url": f"http://127.0.0.1:{port}/v1",
        "limit": 3,
    }


def objects(run: lmkbc.PredictedRun) -> set[str]:
    return {row["object"] for row in run.candidates.to_dicts()}


@pytest.mark.whole
def test_two_models_on_one_port_are_two_models(
    command: Command, tmp_path: Path, port: int, given: dict[str, Any]
) -> None:
    made: dict[str, lmkbc.PredictedRun] = {}
    asked = []
    for name, text, fresh in (
        ("model-a", "France", False),
        ("model-b", "Chile", False),
        ("model-a", "Spain", False),  # its answers of before are there
        ("model-a", "Spain", True),
    ):
        with Named(name, f'["{text}"]', port) as server:
            run = lmkbc.predict("val", out=tmp_path / f"run{len(asked)}", page=True, fresh=fresh, **given)
        asked.append((server.served, *objects(run)))
        assert {body["model"] for body in server.requests} <= {name}
        assert run.manifest["models"] == [name]
        rows = gzip.decompress((run.directory / "replies.jsonl.gz").read_bytes()).splitlines()
        assert {json.loads(row)["model"] for row in rows} == {name}
        assert f"<dd>{name}</dd>" in (run.directory / "report.html").read_text()
        made[name] = run
    assert asked == [(3, "France"), (3, "Chile"), (0, "France"), (3, "Spain")]
    stats = {row["model"]: row["answers"] for row in Store(given["store"]).stats()}
    assert stats == {"model-a": 3, "model-b": 3}

    offline = lmkbc.predict("val", out=tmp_path / "offline", offline=True, **given)  # of the model that was last
    assert (offline.manifest["models"], objects(offline)) == (["model-a"], {"Spain"})
    words = ("predict", "--split", "val", "--edition", "mini", "--system", given["system"], "--store", given["store"])
    words = (*words, "--any-model", "--base-url", given["base_url"], "--limit", 3, "--dry-run")
    for more, requests, stored in (((), 0, 3), (("--fresh",), 3, 0)):
        (total,) = (line for line in command.done(*words, *more)[0].splitlines() if line.startswith("*** Sum ***"))
        assert (int(total.split()[3]), int(total.split()[5])) == (requests, stored)


def test_a_build_names_the_model_that_is_served_and_goes_on_with_no_other(
    tmp_path: Path, port: int, given: dict[str, Any]
) -> None:
    (tmp_path / "names.csv").write_text("name,class\nFrance,country\n")
    del given["limit"]
    out = tmp_path / "base"
    with Named("model-a", '["Spain"]', port):
        base = lmkbc.build(tmp_path / "names.csv", out, relation="CountryBordersCountry", **given)
    assert set(base.facts.collect()["model"]) == {"model-a"}
    assert base.manifest["inputs"]["served"] == ["model-a"]
    with Named("model-b", '["Spain"]', port) as server, pytest.raises(InputError, match="served"):
        lmkbc.build(tmp_path / "names.csv", out, relation="CountryBordersCountry", **given)
    assert server.served == 0


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        (None, "does not tell at /models which model it serves: name the model with --model in place of --any-model"),
        ({"data": []}, "does not tell at /models"),
        ({"data": [{"id": "a"}, {"id": "b"}]}, r"serves 2 models \(a, b\): name one of them with --model"),
    ],
)
def test_what_is_served_has_to_be_clear(listed: Any, said: str, tmp_path: Path, given: dict[str, Any]) -> None:
    with Loopback(port=int(given["base_url"].split(":")[2][:-3])) as server:
        server.tells["models"] = listed
        with pytest.raises(LmkbcError, match=said):
            lmkbc.predict("val", out=tmp_path / "run", **given)
    assert not server.requests
    assert not (tmp_path / "run").exists()


def test_a_list_of_models_that_never_comes_is_named_with_the_setting(tmp_path: Path, given: dict[str, Any]) -> None:
    with Loopback(port=int(given["base_url"].split(":")[2][:-3])) as server:
        server.tells["models"] = lambda _: time.sleep(1)
        with pytest.raises(LmkbcError, match=r"/v1 answered none of 2 calls .* by --timeout SECONDS"):
            lmkbc.predict("val", out=tmp_path / "run", timeout=0.2, **given)
    assert not server.requests


@pytest.mark.parametrize(
    ("listed", "chosen"),
    [
        (["one"], "one"),
        (["a", "gpt-4", "gpt-4-2024-01-01"], "gpt-4"),
        (["a", "openai/gpt-4"], "openai/gpt-4"),
        (["/models/Tiny.gguf"], "/models/Tiny.gguf"),
    ],
)
def test_the_model_that_is_asked_for_comes_before_others(listed: Sequence[str], chosen: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    with Loopback() as server:
        server.tells["models"] = {"data": [{"id": name} for name in listed]}
        given = Server(server.url, "gpt-4", any_model=True)
        found = as_served(given, partial(ChatClient, given, part("limits")), store, {}, offline=False)
    assert found.model == chosen


def test_any_model_needs_no_model_in_the_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tmp_path / "any.toml"
    table = '[[generate]]\ncomponent = "chat"\nprompt = { listing = "json" }\nshots = { method = "random", k = 1 }\n'
    recipe.write_text(f'description = "Any."\n\n{table}\n[select]\nrule = "cutoff"\nthreshold = 0.5\n')
    with Loopback() as server:
        server.tells["models"] = {"data": [{"id": "model-a"}]}
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        given = {"edition": "mini", "system": str(recipe), "limit": 2, "any_model": True, "store": tmp_path / "s"}
        made = lmkbc.predict("val", out=tmp_path / "a", **given)
        assert made.manifest["models"] == ["model-a"]
        server.tells["models"] = {"data": [{"id": "model-a"}, {"id": "model-b"}]}
        with pytest.raises(InputError, match="serves 2 models"):
            lmkbc.predict("val", out=tmp_path / "b", **given)
    with pytest.raises(InputError, match="no model is named, and --offline"):
        lmkbc.predict("val", out=tmp_path / "c", offline=True, **given | {"store": tmp_path / "t"})
