"""Closed lists over servers: the same log-probabilities as here, in whichever way they are told, or one sentence."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_gguf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback import Loopback
from opened import part
from telling import Telling

from lmkbc import LmkbcError
from lmkbc.local.local_model import LocalModel
from lmkbc.local.model import CausalModel
from lmkbc.models.answers import Store
from lmkbc.models.base import Message, Prompt
from lmkbc.models.budget import Budget
from lmkbc.models.server.address import Server
from lmkbc.models.server.server_model import ServerModel
from lmkbc.testing import Notes

pytestmark = pytest.mark.usefixtures("one_thread")

HASTY = part("limits", concurrency=3, total_wait=1.0, timeout=20.0)
OPTIONS = ["Spain", "Spain and Peru", "Sp", "Perú", "none", "none"]
Make = Callable[..., ServerModel]


@pytest.fixture(scope="module")
def model() -> CausalModel:
    tokenizer = tiny_causal.tokenizer()
    tokenizer.chat_template = tiny_gguf.TEMPLATE
    return CausalModel(tiny_causal.model("llama"), tokenizer)


@pytest.fixture(scope="module", params=["llama.cpp", "echo"])
def server(request: pytest.FixtureRequest, model: CausalModel) -> Iterator[Telling]:
    with Telling(request.param, model) as serving:
        yield serving


@pytest.fixture
def scorer(tmp_path: Path) -> Make:
    def make(url: str, *, offline: bool = False, notes: Notes | None = None, **budget: Any) -> ServerModel:
        where, store = Server.of(url, "stand-in"), Store(tmp_path / "store.sqlite")
        return ServerModel(where, store, HASTY, Budget(**budget), offline=offline, notes=notes)

    return make


def text(words: str) -> Prompt:
    return Prompt((Message("user", "Chile: Peru\n"),), (Message("user", words),), "completion")


def here(model: CausalModel, prompts: list[Prompt], options: list[list[str]]) -> list[list[float]]:
    return LocalModel(model).score(prompts, options)


def same(found: Any, wanted: list[list[float]]) -> bool:
    return bool(found == [pytest.approx(row, abs=1e-4) for row in wanted])


PROMPTS = [text(f"{name}:") for name in ("Utopia", "Atlantis", "Ütopia", "Utopia", "É")]


@pytest.mark.whole(but=["echo"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("ab é\n", min_size=1, max_size=5), min_size=1, max_size=4), st.text("ab:\n ", max_size=6))
def test_whatever_the_options(
    server: Telling, scorer: Make, model: CausalModel, options: list[str], ending: str
) -> None:
    prompt = text(f"Utopia{ending}")
    assert same(scorer(server.url).score([prompt], [options]), here(model, [prompt], [options]))


def test_a_chat_is_what_the_servers_template_makes_of_it(model: CausalModel, scorer: Make) -> None:
    chat = Prompt((Message("system", "List them."),), (Message("user", "Utopia?"),), "chat")
    with Telling("llama.cpp", model) as serving:
        assert same(scorer(serving.url).score([chat], [OPTIONS]), here(model, [chat], [OPTIONS]))
    with (
        Telling("echo", model) as serving,
        pytest.raises(LmkbcError, match="does not return prompts"),
    ):
        scorer(serving.url).score([replaced(chat)], [OPTIONS])


def replaced(prompt: Prompt) -> Prompt:
    return Prompt(prompt.static, (Message("user", "Atlantis?"),), prompt.form)


def test_the_tokens_of_a_server_are_unknown_and_its_options_are_scored_whole(model: CausalModel, scorer: Make) -> None:
    with Telling("llama.cpp", model) as serving:
        assert scorer(serving.url).beginnings(PROMPTS[0], OPTIONS) == OPTIONS
    begun = LocalModel(model).beginnings(PROMPTS[0], OPTIONS)
    assert all(option.startswith(text) for text, option in zip(begun, OPTIONS, strict=True))


@pytest.mark.whole(but=["echo"])
def test_what_is_kept_is_not_asked_again(server: Telling, scorer: Make) -> None:
    rows, notes = [OPTIONS] * len(PROMPTS), Notes()
    first = scorer(server.url, notes=notes)
    found, asked = first.score(PROMPTS, rows), len(server.requests)
    again, kept = Notes(), scorer(server.url, offline=True, notes=Notes())
    assert scorer(server.url, notes=again).score(PROMPTS, rows) == found == kept.score(PROMPTS, rows)
    assert len(server.requests) == asked
    assert again.usage["prompt_tokens"] == notes.usage["prompt_tokens"] > 0
    assert (notes.usage["from_store"], again.usage["from_store"]) == (0, len(set(PROMPTS)))
    assert notes.usage["requests"] >= notes.usage["completion_tokens"] > 0


def test_each_place_of_the_tree_is_asked_for_once(model: CausalModel, scorer: Make) -> None:
    with Telling("llama.cpp", model) as serving:
        scorer(serving.url).score([PROMPTS[0]], [["Spain", "Spain and Peru", "Sp", "Spa"]])
        asked = [body for body in serving.requests if not isinstance(body["prompt"], str)]
    probes = 2  # of what the server tells of a token that it is made to write
    assert len(asked) - probes == len(" Spain and Peru")
    assert len({tuple(body["prompt"]) for body in asked}) == len(" Spain and Peru")


def test_tokens_beyond_the_likeliest_are_asked_for_alone(
    model: CausalModel, scorer: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.models.server.likelihood.ALTERNATIVES", 3)
    options = [*"abcdefgh"]
    with Telling("llama.cpp", model) as serving:
        chat = Prompt((), (Message("user", "Utopia"),), "chat")  # where no blank comes first
        assert same(scorer(serving.url).score([chat], [options]), here(model, [chat], [options]))


@pytest.mark.parametrize("kind", ["llama.cpp", "echo"])
def test_faults_are_asked_again_and_what_is_lost_is_asked_by_the_next_run(
    kind: Any, model: CausalModel, scorer: Make
) -> None:
    rows, notes = [OPTIONS] * len(PROMPTS), Notes()
    faults = [None] * 4 + ["500", "reset", "broken-json"] + ["500"] * 20
    with Telling(kind, model, faults=faults) as serving:
        found = scorer(serving.url, notes=notes).score(PROMPTS, rows)
        lost = [place for place, row in enumerate(found) if row is None]
        assert lost  # how many depends on which requests the faults meet: all where three prompts fail in a row
        assert "has not returned the log-probabilities of all prompts" in notes.remarks[0]
        whole, rest = scorer(serving.url).score(PROMPTS, rows), Notes()
        assert same(whole, here(model, PROMPTS, rows))
        assert [row for place, row in enumerate(whole) if place not in lost] == [row for row in found if row]
        assert scorer(serving.url, offline=True, notes=rest).score(PROMPTS, rows) == whole
        assert not rest.remarks


def test_a_budget_ends_the_asking(model: CausalModel, scorer: Make) -> None:
    rows = [OPTIONS] * len(PROMPTS)
    with Telling("llama.cpp", model) as serving:
        asked = scorer(serving.url, max_tokens=2000)
        found = asked.score(PROMPTS, rows)
        assert None in found
        count = len(serving.requests)
        assert asked.score(PROMPTS, rows) == found
        assert len(serving.requests) == count  # nothing is asked for once it has ended


@pytest.mark.parametrize(("kind", "slots", "most"), [("llama.cpp", 2, 2), ("llama.cpp", None, 3), ("echo", None, 3)])
def test_no_more_prompts_are_asked_about_than_a_server_has_slots(
    kind: Any, slots: int | None, most: int, model: CausalModel, scorer: Make
) -> None:
    """Else each drives the others out of its prompt cache."""
    with Telling(kind, model, delay=0.002) as serving:
        serving.tells["props"] = {"total_slots": slots}
        scorer(serving.url).score([text(f"{name}:") for name in "abcdef"], [["x"]] * 6)
        assert 1 < serving.most_at_once <= most <= HASTY.concurrency


@pytest.mark.parametrize("kind", ["llama.cpp", "echo"])
def test_what_there_is_no_room_for_cannot_be_told(kind: Any, model: CausalModel, scorer: Make) -> None:
    prompts, rows = [text("a:"), text("b:"), text("b" * 60)], [["x"], ["x", "y" * 60], ["x", "z"]]
    with Telling(kind, model, window=40) as serving:
        fits, *lost = scorer(serving.url).score(prompts, rows)
        assert fits == [pytest.approx(here(model, prompts[:1], [["x"]])[0][0], abs=1e-4)]
        assert lost == [None, None]
        assert scorer(serving.url, offline=True).score(prompts, rows) == [fits, None, None]


@pytest.mark.parametrize(
    "serving",
    [
        Loopback(),
        Loopback(ignores=("logprobs",)),
        Loopback(rejects=("echo",)),
        Loopback(rejects=("logprobs",)),
        Loopback(lambda body: f"{body['prompt']} x", ignores=("logprobs",)),
        Telling("llama.cpp", processed=True),
    ],
    ids=["generated alone", "none", "no echo", "refused", "echo without", "after the bias"],
)
def test_a_server_without_them_is_one_sentence_and_nothing_is_kept(
    serving: Loopback, scorer: Make, tmp_path: Path
) -> None:
    with serving, pytest.raises(LmkbcError) as raised:
        scorer(serving.url).score(PROMPTS, [OPTIONS] * len(PROMPTS))
    assert str(raised.value).startswith(f"{serving.url} returns no log-probabilities of a given text")
    assert "\n" not in str(raised.value)
    assert not list(Store(tmp_path / "store.sqlite").export())


def test_a_server_that_breaks_off_fails_all_and_is_not_asked_again(scorer: Make) -> None:
    notes = Notes()
    with Loopback(faults=itertools.repeat("reset")) as server:
        asked = scorer(server.url, notes=notes)
        assert asked.score(PROMPTS, [OPTIONS] * len(PROMPTS)) == [None] * len(PROMPTS)
        spent = notes.usage["requests"]
        assert asked.score(PROMPTS, [OPTIONS] * len(PROMPTS)) == [None] * len(PROMPTS)
        assert notes.usage["requests"] == spent
    assert "broke off or cannot be reached" in notes.remarks[0]
