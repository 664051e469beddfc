"""Verification over a server: probabilities where it tells them, its word where it does not, and never a silent 1."""

import gzip
import itertools
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import Command
from loopback import Loopback, prompt_of
from opened import CUTOFF, generated, part, recipe_file, recipe_of
from space import MINI, SPACE

from lmkbc.models.answers import Store
from lmkbc.models.budget import Budget
from lmkbc.models.plain_questions import paragraphs, texts, word_log_probabilities
from lmkbc.models.server.address import Server
from lmkbc.models.server.body import decode
from lmkbc.models.server.server_model import ServerModel
from lmkbc.testing import Query, Run

WORDS = ("True", "False")
HASTY = part("limits", total_wait=1.0, timeout=2.0)
Make = Callable[..., ServerModel]


@pytest.fixture
def scorer(tmp_path: Path) -> Make:
    def make(url: str, **how: Any) -> ServerModel:
        store = Store(tmp_path / "store.sqlite")
        return ServerModel(Server.of(url, "stand-in"), store, HASTY, Budget(prices=(1.0, 1.0)), **how)

    return make


def says(first: dict[str, float], text: str = "True") -> Callable[[Any], dict[str, Any]]:
    return lambda _: {"content": text, "first": {token: math.log(p) for token, p in first.items()}}


@pytest.mark.parametrize("completion", [False, True])
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ({"True": 0.6, "False": 0.3, "Well": 0.1}, (0.6, 0.3)),
        ({" True": 0.4, "true": 0.1, "TR": 0.1, " fa": 0.2, "T": 0.1}, (0.7, 0.2)),
        ({"Tru": 0.9, "Maybe": 0.08}, (0.9, 0.02)),  # what is not told has what is left at most ...
        ({"False": 0.5, "Maybe": 0.1, "So": 0.2}, (0.1, 0.5)),  # ... and no more than the least that is told
        ({"Maybe": 0.7, "trueish": 0.2}, (0.0, 0.0)),
    ],
)
def test_probabilities_of_the_first_word(
    scorer: Make, completion: bool, first: dict[str, float], expected: tuple[float, float]
) -> None:
    with Loopback(says(first)) as server:
        asked = scorer(server.url, completion=completion)
        (found,) = word_log_probabilities(asked, ["Is it?"], WORDS)
        assert [math.exp(p) for p in found] == pytest.approx(expected)
        assert word_log_probabilities(asked, ["Is it?"], WORDS) == [found]  # from the store
    (body,) = server.requests
    assert (body["logprobs"], body.get("top_logprobs")) == ((5, None) if completion else (True, 20))
    assert asked.notes.remarks == []
    assert asked.notes.usage["requests"] == 1
    assert asked.notes.usage["cost"] > 0


@pytest.mark.parametrize("completion", [False, True])
@pytest.mark.parametrize(
    "server_that", [{"ignores": ("logprobs",)}, {"rejects": ("logprobs",)}, {"rejects": ("top_logprobs",)}, {}]
)
def test_without_probabilities_its_word_counts_and_one_line_says_so(
    scorer: Make, server_that: dict[str, Any], completion: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(body: dict[str, Any]) -> str:
        return {"yes?": " True.", "no?": "False, since", "eh?": "That is hard to say", "": ""}[prompt_of(body)]

    with Loopback(answer, **server_that) as server:
        asked = scorer(server.url, completion=completion)
        found = word_log_probabilities(asked, ["yes?", "no?", "eh?"], WORDS)
        assert word_log_probabilities(asked, ["yes?"], WORDS) == found[:1]
    assert found == [[0.0, -math.inf], [-math.inf, 0.0], [-math.inf, -math.inf]]
    assert asked.notes.remarks == [f"{server.url} returns no log-probabilities: what it writes is taken for certain"]
    assert caplog.text.count("returns no log-probabilities") == 1


BLANK = {"token": "\n", "logprob": 0.0, "top_logprobs": [{"token": "True", "logprob": -5.0}]}
FALSE = {"token": "Fal", "logprob": -0.1, "top_logprobs": [{"token": "Fal", "logprob": -0.1}]}


@pytest.mark.parametrize(
    "told",
    [
        {"content": [BLANK, FALSE]},  # a blank first token is passed over
        {"content": None},
        {"content": []},
        {"content": [{"token": "True", "logprob": -0.1}]},
        {"content": [{"token": "True", "logprob": -0.1, "top_logprobs": None}]},
        {"content": [{"token": " ", "logprob": -0.1, "top_logprobs": [{"token": "True", "logprob": -0.1}]}]},
        {"tokens": ["True"], "token_logprobs": [-0.1], "top_logprobs": [None]},
        {"tokens": [], "top_logprobs": None},
    ],
)
def test_alternatives_are_those_of_the_first_word_or_none(told: dict[str, Any]) -> None:
    choice = {"message": {"content": "True"}, "logprobs": told}
    _, (reply,) = decode(msgspec.json.encode({"choices": [choice]}))
    assert reply.first == ([("Fal", -0.1)] if told == {"content": [BLANK, FALSE]} else None)


def test_numbers_that_are_no_log_probabilities_do_no_harm(scorer: Make) -> None:
    first = {"True": 1000.0, "False": 5.0}
    with Loopback(lambda _: {"content": "True", "first": first}) as server:
        (found,) = word_log_probabilities(scorer(server.url), ["a"], WORDS)
    assert found == [0.0, 0.0]  # as likely as can be, both


def test_further_fields_go_with_every_question(scorer: Make) -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    with Loopback(lambda _: "True") as server:
        asked = scorer(server.url, extra=extra)
        texts(asked, ["a"], 4), paragraphs(asked, ["b"]), word_log_probabilities(asked, ["c"], WORDS)
    assert [body["chat_template_kwargs"] for body in server.requests] == [extra["chat_template_kwargs"]] * 3


def test_lost_answers_tell_nothing_and_are_reported(scorer: Make) -> None:
    with Loopback(faults=itertools.repeat("500")) as server:
        asked = scorer(server.url)
        assert word_log_probabilities(asked, ["a", "b"], WORDS) == [[-math.inf] * 2] * 2
        assert texts(asked, ["a"], 4) == [[]]
    assert any("2 of 2 questions have no answer" in remark for remark in asked.notes.remarks)
    offline = scorer("http://127.0.0.1:9/v1", offline=True)
    assert paragraphs(offline, ["a"]) == [None]
    assert "offline" in offline.notes.remarks[0]
    assert word_log_probabilities(asked, [], WORDS) == []


def test_texts_are_drawn_as_often_as_asked(scorer: Make) -> None:
    with Loopback() as server:
        ((one, two, three),) = texts(scorer(server.url), ["a"], 8, draws=3, temperature=0.5)
        assert one == two == three  # the stand-in answers by prompt and seed alone
    assert [(body["n"], body["temperature"]) for body in server.requests] == [(3, 0.5)]


CANARY = "sk-canary-7f3a91c2"


def test_the_key_is_written_nowhere(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a run that asks in two turns, verifies both ways, and meets a server that echoes the key."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return {"content": f'["Spain", "{CANARY}"] True', "first": {CANARY: -0.1, "True": -2.0, "False": -3.0}}

    table = {
        "component": "chat",
        "model": "m",
        "shots": {"k": 0},
        "prompt": {"component": "llmke23/prompt", "follow_up": "Sure?"},
        "limits": {"total_wait": 1.0},
        "sampling": {"logprobs": True},
        "verify": {"variants": ["statement", "reverse"], "samples": 2},
    }
    recipe = recipe_file(tmp_path / "r.toml", table, select={"rule": "verified", "inner": CUTOFF | {"threshold": 0.1}})
    (tmp_path / "t.json").write_text("{}")
    common = ["predict", "--split", "val", "--edition", "mini", "--system", recipe, "--limit", "6"]
    common += ["--store", tmp_path / "s.sqlite", "--search-table", tmp_path / "t.json", "--failed-as-empty"]
    with Loopback(answer, faults=["500", "broken-json", None, "reset"]) as server:
        shown, told = command.done(*common, "--base-url", server.url, "--out", tmp_path / "run")
        assert any(CANARY in head for head in server.headers)
        assert any("top_logprobs" in body for body in server.requests)
    other = ("--base-url", server.url, "--model", "other", "--out", tmp_path / "dead")
    lost = command.fails(*common, *other, status=1)
    assert "cannot be reached" in lost
    assert CANARY not in shown + told + lost + caplog.text
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"candidates.jsonl.gz", "manifest.json", "s.sqlite"} <= {path.name for path in kept}
    for path in kept:
        raw = path.read_bytes()
        assert CANARY.encode() not in (gzip.decompress(raw) if path.suffix == ".gz" else raw), path


@pytest.mark.parametrize("form", ["chat", "completion"])
def test_a_recipe_verifies_by_probability(tmp_path: Path, form: str) -> None:
    def answer(body: dict[str, Any]) -> str | dict[str, Any]:
        last = prompt_of(body).rstrip().split("\n")[-2:]
        if "Statement:" not in last[0]:
            return '["Spain", "Peru"]'
        return says({"True": 0.6, "False": 0.2} if "Spain" in last[0] else {" True": 0.1, " False": 0.9})(body)

    recipe = recipe_of({"component": "chat", "model": "m", "verify": {"shots": 2}, "prompt": {"form": form}})
    with Loopback(answer) as server:
        options = {"base_url": server.url, "store": tmp_path / "s.sqlite", "prices": (1.0, 1.0)}
        run = Run(workspace=SPACE, edition=MINI, servers=options)
        (found,), notes = generated(run, recipe, [Query("Utopia", "CountryBordersCountry")])
    assert {c.text: round(c.verification or 0, 6) for c in found.candidates} == {"Spain": 0.75, "Peru": 0.1}
    assert notes.usage["requests"] == 3
