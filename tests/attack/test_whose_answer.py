"""Whose answer it is, and who is sent what: models that change behind a port, recipes that ask for keys, odd marks."""

from __future__ import annotations

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest
from loopback import Body, Loopback
from space import MINI, SPACE

import lmkbc
from lmkbc.answer.parse import parse, verbatim
from lmkbc.errors import InputError
from lmkbc.generate.access import server_of
from lmkbc.models.base import Reply
from lmkbc.models.budget import Budget
from lmkbc.models.reference import ModelReference
from lmkbc.models.server.limits import Limits, OverBudgetError, Paid, estimate
from lmkbc.run.base import Run
from lmkbc.run.options import Servers
from lmkbc.types import State

CANARY = "sk-canary-7f3a91c2"
RECIPE = """description = "asks any model"
[[generate]]
component = "chat"
model = "gpt-4"
any_model = true
shots = { k = 0 }
limits = { first_wait = 0.001, concurrency = 2 }
[select]
rule = "cutoff"
threshold = 0.5
"""
MODELS = {"model-a": "France", "model-b": "Chile", "owner/model-c": "Kenya", "/srv/models/Model-D.gguf": "Japan"}


class Named(Loopback):
    """Serves one model, and says so or echoes the name that it was asked for, as llama.cpp did."""

    def __init__(self, name: str, port: int, echoes: bool) -> None:
        super().__init__(lambda _: f'["{MODELS[name]}"]', port=port)
        self.tells["models"] = {"data": [{"id": name}]}
        self._name, self._echoes = name, echoes

    def reply(self, body: Body) -> tuple[int, Body]:
        status, answer = super().reply(body)
        return status, answer if self._echoes else answer | {"model": self._name}


def test_models_that_change_behind_a_port(seed: int, tmp_path: Path) -> None:
    drawn = random.Random(seed)
    recipe = tmp_path / "asks.toml"
    recipe.write_text(RECIPE)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    asked = dict.fromkeys(MODELS, 0)
    given: dict[str, Any] = {"edition": "mini", "system": str(recipe), "store": tmp_path / "store.sqlite"}
    for turn in range(5):
        name, limit, fresh = drawn.choice([*MODELS]), drawn.randint(1, 6), drawn.random() < 0.2
        with Named(name, port, drawn.random() < 0.5) as server:
            run = lmkbc.predict("val", out=tmp_path / f"{turn}", limit=limit, fresh=fresh, base_url=server.url, **given)
        assert {row["object"] for row in run.candidates.to_dicts()} == {MODELS[name]}
        assert server.served == (limit if fresh else max(limit - asked[name], 0))
        assert run.manifest["models"] == [name.rpartition("/")[2] if name.startswith("/") else name]
        asked[name] = max(asked[name], limit)


STRANGERS = [
    "https://evil.example/v1",
    "http://evil.example/v1",
    "https://api.openai.com.evil.example/v1",
    "https://api.openai.com:80@evil.example/v1",
    "https://evil.example/https://api.openai.com/v1",
    "https://evil.example\\@api.openai.com/v1",
    "https://evil.example#@api.openai.com/v1",
    "https://evil.example?@api.openai.com/v1",
    "https://api.openai.com./v1",
    "https://xapi.openai.com/v1",
    "https://openai.com/v1",
    "http://api.openai.com/v1",
    "http://localhost.evil.example/v1",
    "http://127.0.0.1.evil.example/v1",
    "http://0.0.0.0:80/v1",
    "http://2130706433/v1",
    "http://[::ffff:192.0.2.1]/v1",
    "http://127.1/v1",
    "https://ａｐｉ.openai.com/v1",
    "ftp://api.openai.com/v1",
]


HERE = ["http://127.0.0.1:9/v1", "http://localhost:9/v1", "http://[::1]:9/v1"]


@pytest.mark.parametrize("wanted", ["", "OPENAI_API_KEY", "PATH"])
@pytest.mark.parametrize("url", [*STRANGERS, *HERE])
def test_keys_that_recipes_ask_for(url: str, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.delenv("LMKBC_KEYS", raising=False)
    run = Run(workspace=SPACE, edition=MINI, servers=Servers(store=tmp_path / "s.sqlite"))
    settings = ModelReference(model="m", base_url=url, key_env=wanted)
    if url in HERE:
        assert server_of(settings, run, run.store()).key == ""
        return
    with pytest.raises(InputError) as error:
        server_of(settings, run, run.store())
    assert CANARY not in str(error.value)


MARKS = "-–—_*~{}()\"'“”‘’«»`.,;: \t\n"


def test_marks_that_say_nothing(seed: int) -> None:
    drawn = random.Random(seed)
    relations = [SPACE.relation(name) for name in MINI.relations]
    for _ in range(300):
        text = "".join(drawn.choices(MARKS, k=drawn.randint(1, 8)))
        for relation in relations:
            for read in (parse, verbatim):
                found = read(text, relation, "Peru")
                assert found.state in (State.UNPARSED, State.TRUNCATED), (text, relation.name, read)


def test_reports_beyond_all_estimates(seed: int) -> None:
    drawn = random.Random(seed)
    times, concurrency = drawn.uniform(1, 100), drawn.choice([2, 8, 64])
    limit = drawn.randint(5_000, 50_000)
    budget = Budget(max_tokens=limit)
    body = {"messages": [{"role": "user", "content": "x" * 200}]}
    used = int(estimate(body)[0] * times), int(estimate(body)[1] * times)

    async def ask(_: Any) -> list[Reply]:
        for _ in range(drawn.randint(1, 9)):
            await asyncio.sleep(0)
        return [Reply("yes", prompt_tokens=used[0], completion_tokens=used[1])]

    async def work(paid: Paid) -> None:
        for _ in range(100):
            try:
                await paid.answer(body, ask)
            except OverBudgetError:
                return

    async def all_at_once() -> None:
        paid = Paid(budget, Limits(concurrency=concurrency))
        await asyncio.gather(*(work(paid) for _ in range(concurrency)))

    asyncio.run(all_at_once())
    assert 0 < budget.prompt_tokens + budget.completion_tokens <= max(limit, sum(used))
