"""What a dry run shows and counts against what a server then receives and charges, for recipes that ask again."""

import itertools
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Body, Loopback, prompt_of
from opened import recipe_of
from space import MINI, SPACE

from lmkbc.models.answers import Store
from lmkbc.plan import Plan
from lmkbc.run.estimate import estimate, foreseen
from lmkbc.run.pipeline import propose
from lmkbc.testing import Run

PRICES = 2.0, 10.0
QUERIES = SPACE.queries(MINI, "val")[:80:20]
NAMES = {"listing": "semicolon", "null": "None"}
FEW = {"samples": 3, "temperature": 1.0, "max_tokens": 9}
ONE = {"temperature": 0.0, "max_tokens": 13}
COUNT = itertools.count()
STEPS = [
    {"name": "works", "ask": "Works of {{ subject }}?", "parse_as": "list", "each": True, "max": 3, "samples": 1},
    {"name": "account", "ask": "Tell about {{ works }} of {{ subject }}."},
    {"name": "known", "ask": "Is anything known of {{ subject }}?", "parse_as": "gate", "samples": 1},
]
RECIPES: dict[str, dict[str, Any]] = {
    "samples": {"sampling": FEW, "prompt": NAMES},
    "text, verified": {
        "sampling": FEW,
        "prompt": {**NAMES, "form": "completion"},
        "verify": {"by": "text", "samples": 3, "variants": ["statement", "reverse"]},
    },
    "chat, verified": {
        "sampling": ONE,
        "prompt": {**NAMES, "component": "thyl26/prompt", "most": 2},
        "verify": {
            "component": "mave26/questions",
            "questions": [{"ask": "Of {{ subject }}: {{ object }}? {{ object }}, {{ question }}"}],
        },
    },
    "turns": {
        "sampling": {**FEW, "first_temperature": 0.0, "max_tokens": 200},
        "prompt": {**NAMES, "component": "llmke23/prompt", "follow_up": "Sure, {{ subject }}?"},
    },
    "repaired": {
        "sampling": FEW,
        "prompt": {
            "component": "llm2kb23/prompt",
            "task": "Write JSON.",
            "repair": "Write {{ answer }} as a list: {{ list }}",
        },
    },
    "steps": {
        "sampling": FEW,
        "prompt": {**NAMES, "steps": STEPS, "ask": "{{ works }}: {{ account }} {{ question }}"},
        "verify": {"component": "prop22/facts", "by": "text"},
    },
    "verified": {"sampling": FEW, "prompt": NAMES, "verify": {}},
}


def tokens(text: str) -> list[str]:
    """Split a text as a tokenizer with few words does."""
    return re.findall(r"\s?\w{1,4}|\s?[^\w\s]", text)


def length(body: Body) -> int:
    return len(tokens(prompt_of(body))) + 5 * len(body.get("messages", "x"))


def longest(body: Body) -> str:
    """Name as many objects as the answer has room for; affirm what is asked for a word."""
    asked = prompt_of(body).rstrip()
    most: int = body.get("max_tokens", 256)
    if most == 4 or asked.startswith("Is anything known"):
        return "True"
    if "JSON" in asked:
        return "..." * (most // 3)
    if most == ONE["max_tokens"]:
        return "Balikesoturamindove; Goanimerusolitakebu"
    start = 100 + next(COUNT) * 5 % 700
    return "; ".join(f"B{number}" for number in range(start, start + (most + 1) // 2))


class Charging(Loopback):
    """Charges for tokens of its own, and forbids answers that are longer than what was asked for."""

    def __init__(self) -> None:
        super().__init__(longest)
        self.spent = Counter[str]()

    def reply(self, body: Body) -> tuple[int, Body]:
        code, made = super().reply(body)
        texts = [one.get("text") or one["message"]["content"] for one in made["choices"]]
        assert max(len(tokens(text)) for text in texts) <= body.get("max_tokens", 256)
        used = {"prompt_tokens": length(body), "completion_tokens": sum(len(tokens(text)) for text in texts)}
        made["usage"] = used
        self.spent.update(used)
        return code, made


def matches(planned: Any, body: Body) -> bool:
    """Return whether a request has the wording of a planned one, with anything in its slots, and its sampling."""
    prompt, sampling = planned.request.prompt, planned.request.sampling
    text = prompt.text if "prompt" in body else "\n".join(turn["content"] for turn in prompt.messages())
    worded = re.sub(r"\\{(object|answer|context|works|account)\\}", ".+", re.escape(text))
    same = sampling.temperature == body.get("temperature") and (sampling.max_tokens or 256) == body.get("max_tokens")
    return same and re.fullmatch(worded, prompt_of(body), re.DOTALL) is not None


@pytest.mark.whole(but=["samples", "chat, verified", "turns", "repaired", "steps"])
@pytest.mark.parametrize("name", RECIPES)
def test_what_a_run_sends_was_shown_and_costs_no_more_than_was_counted(name: str, tmp_path: Path) -> None:
    with Charging() as server:
        servers = {"store": tmp_path / "store.sqlite", "prices": PRICES}
        Store(tmp_path / "store.sqlite").set_note(f"several answers of m at {server.url}", True)
        run = Run(workspace=SPACE, edition=MINI, cache=tmp_path, servers=servers)
        table = {"component": "chat", "model": "m", "base_url": server.url, "shots": {"k": 2}, **RECIPES[name]}
        recipe = recipe_of(table)
        foretold, shown = estimate(Plan.of(run, recipe), QUERIES), list(foreseen(Plan.of(run, recipe), QUERIES))
        assert (server.served, foretold.is_bound) == (0, True)
        propose(Plan.of(run, recipe), QUERIES)
        received = Counter[tuple[int, int]]()
        for body in server.requests:
            places = [
                (at, number)
                for at, (_, _, requests) in enumerate(shown)
                for number, planned in enumerate(requests)
                if matches(planned, body)
            ]
            assert places, prompt_of(body)
            received[places[0]] += 1
        assert foretold.total("requests") <= server.served <= foretold.total("requests") + foretold.total("further")
        assert (server.served > foretold.total("requests")) == (name != "samples")
        for kind, field in (("prompt_tokens", "prompt_tokens"), ("completion_tokens", "answer_tokens")):
            assert server.spent[kind] <= foretold.total(field), kind
        for (at, number), count in received.items():
            assert count <= shown[at][2][number].times
        assert all(any(place[0] == at for place in received) for at in range(len(QUERIES)))
        assert {number for _, number in received} == set(range(len(shown[0][2])))
        last = estimate(Plan.of(replace(run, budgets=[]), recipe), QUERIES)
        assert (last.total("requests"), last.total("further")) == (0, 0)


@pytest.mark.parametrize(
    ("system", "words", "name"),
    [
        ("few-shot", (), "SmolLM2-135M-Instruct"),
        ("few-shot", ("--model", "foo/bar", "--base-url", "http://127.0.0.1:9/v1"), "foo/bar"),
        ("few-shot", ("--any-model", "--base-url", "http://127.0.0.1:9/v1"), "the model of http://127.0.0.1:9/v1"),
        ("smollm2-embedded", ("--model", "foo/bar", "--base-url", "http://127.0.0.1:9/v1"), "likelihood (foo/bar)"),
    ],
)
def test_a_dry_run_heads_prompts_with_the_model_that_would_be_asked(
    command: Command, system: str, words: tuple[str, ...], name: str
) -> None:
    asked = ("--edition", "mini", "--split", "val", "--relation", "CountryBordersCountry", "--dry-run", "--show", "1")
    shown, _ = command.done("predict", "--system", system, *asked, *words)
    assert shown.startswith(f"=== {name}: Bosnia and Herzegovina: ")
