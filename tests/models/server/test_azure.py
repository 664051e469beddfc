"""Azure OpenAI: what a user types as its address, where its key goes, and what a deployment is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from loopback import Body
from providers import KEY, Azure
from test_server_odd import BORDERS, Make, one, spain

from lmkbc.errors import InputError
from lmkbc.models.answers import Store
from lmkbc.models.server.address import Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.refusal import ServerError
from lmkbc.models.server.served import as_served
from lmkbc.types import Query, State

PATH = "https://mine.openai.azure.com/openai/deployments/prod"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_a_deployment_is_asked_at_its_own_path_with_its_own_header(chat: Make) -> None:
    with Azure(answer=spain) as server:
        whole = server.url.replace("?", "/chat/completions?")  # as the portal shows it
        for url in (server.url, whole):
            found = one(chat(url, "gpt-4o"))
            assert [c.text for c in found.candidates] == ["Spain"]
    assert len(server.requests) == 1  # one address, so one answer
    assert not any("authorization" in head.casefold() for head in server.headers)


def test_the_newer_path_takes_a_bearer_s_key_and_the_deployment_s_name(chat: Make) -> None:
    with Azure(newer=True, answer=spain, served="prod") as server:
        assert [c.text for c in one(chat(server, "prod")).candidates] == ["Spain"]
        with pytest.raises(ServerError, match=r"has no model 'gpt-4o', .* \(404: The API deployment .* does not exist"):
            one(chat(server, "gpt-4o"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (PATH, r"names no version of Azure's API: put \?api-version=VERSION behind it"),
        (f"{PATH}?api-version=", "names no version"),
        (f"{PATH}?api-version=1&key=abc", "carries more than an address"),
        ("https://mine.example/v1?api-version=1", "carries more than an address"),
    ],
)
def test_an_address_that_lacks_something_is_refused_before_it_is_asked(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Server.of(url, "gpt-4o")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda url: url.replace("2024-10-21", "1999-01-01"), "Resource not found"),
        (lambda url: url.replace("prod", "other"), "Resource not found"),
    ],
)
def test_a_wrong_address_is_one_sentence(change: Callable[[str], str], said: str, chat: Make) -> None:
    with Azure() as server, pytest.raises(ServerError, match=said) as error:
        one(chat(change(server.url), "gpt-4o"))
    assert KEY not in str(error.value)


def test_a_wrong_key_is_one_sentence(chat: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-of-another")
    with Azure() as server, pytest.raises(ServerError, match=r"refuses the key in OPENAI_API_KEY \(401: Access denied"):
        one(chat(server, "gpt-4o"))


def test_a_deployment_that_is_another_model_says_so_and_can_be_named(chat: Make) -> None:
    with Azure(answer=spain, served="phi-4") as server:
        with pytest.raises(ServerError, match="answers as 'phi-4': say --model phi-4"):
            one(chat(server, "gpt-4o"))
        assert not one(chat(server, "phi-4")).failed


@pytest.mark.parametrize(
    ("url", "asked", "name"),
    [(f"{PATH}?api-version=1", "gpt-4o", "prod"), ("https://mine.openai.azure.com/openai/v1/", "prod", "prod")],
)
def test_under_any_model_a_deployment_is_its_own_name_and_no_list_is_asked_for(
    url: str, asked: str, name: str, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.sqlite")
    found = as_served(Server.of(url, asked, any_model=True), Limits(), store, {}, offline=False)
    assert (found.model, found.takes("gpt-4o-2024-08-06")) == (name, True)


def test_a_prompt_that_a_filter_withholds_is_no_answer_and_not_asked_twice(chat: Make) -> None:
    def edit(_: Body, __: Body) -> tuple[int, Body]:
        said = "The response was filtered due to the prompt triggering the content management policy."
        return 400, {"message": said, "code": "content_filter", "param": "prompt", "type": None}

    with Azure(answer=spain, change=edit) as server:
        generator = chat(server, "gpt-4o", schema=True, sampling={"seed": 1})
        found = one(generator, Query("land", BORDERS))
        assert (found.draws, found.candidates, found.nothing) == ((State.UNPARSED,), (), ())
        assert any("refused by the model or a content filter" in remark for remark in generator.notes.remarks)
        one(chat(server, "gpt-4o", schema=True, sampling={"seed": 1}))
    assert len(server.requests) == 1
