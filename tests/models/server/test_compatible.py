"""Providers that are compatible in part: fields that they ignore or refuse, and errors of their own shapes."""

import itertools
from functools import partial
from pathlib import Path

import pytest
from loopback import KEY, Anthropic, Body, Gemini, Loopback, Request, Sent, response
from opened import part
from test_server_odd import BORDERS, Make, one, spain

from lmkbc import InputError, LmkbcError
from lmkbc.models.answers import Store
from lmkbc.models.server.address import Server
from lmkbc.models.server.client import as_served
from lmkbc.models.server.openai_client import ChatClient
from lmkbc.testing import Query, State

JSON = {"response_format": {"type": "json_object"}}
ALL = {"samples": 3, "temperature": 0.7, "logprobs": True, "max_tokens": 64, "extra": JSON}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.mark.parametrize("kind", [Anthropic, Gemini])
@pytest.mark.parametrize("sampling", [ALL, ALL | {"seed": 5}])
def test_all_draws_come_whatever_is_ignored_or_refused(chat: Make, kind: type[Loopback], sampling: Body) -> None:
    with kind(spain) as server:
        generator = chat(server, sampling=sampling)
        found = [*generator.generate([Query("a", BORDERS)]), *generator.generate([Query("b", BORDERS)])]
        asked = len(server.requests)
    assert [one.draws for one in found] == [(State.ANSWERED,) * 3] * 2
    assert asked <= 7  # of a refusal and six draws


def test_choices_that_are_missing_are_asked_for(chat: Make) -> None:
    def edit(_: Body, answer: Body) -> None:
        del answer["choices"][2:]

    with Loopback(spain, change=edit) as server:
        assert one(chat(server, sampling={"samples": 5})).draws == (State.ANSWERED,) * 5
    assert [body.get("n", 1) for body in server.requests] == [5, 1, 1, 1]


def test_a_wrong_key_ends_the_run_whatever_status_it_has(chat: Make) -> None:
    said = r"refuses the key in OPENAI_API_KEY \(400: API key not valid"
    with Gemini(spain, key="canary-of-another") as server, pytest.raises(LmkbcError, match=said) as error:
        list(chat(server).generate([Query(f"land {place}", BORDERS) for place in range(9)]))
    assert server.served <= 8
    assert KEY not in str(error.value)


WITHHELD = ["refusal", "SAFETY", "content_filter", "content_filter: PROHIBITED_CONTENT", "RECITATION", "Refusal"]
MESSAGES = [None, {"role": "assistant"}, {"role": "assistant", "content": None}, {"content": '["Spain"]'}]


@pytest.mark.parametrize(
    ("finish", "message"),
    [
        *itertools.product(WITHHELD, MESSAGES),
        ("stop", {"content": None, "refusal": "I can't help with that."}),
    ],
)
def test_what_is_withheld_is_no_answer_and_not_a_failed_call(chat: Make, finish: str, message: Body | None) -> None:
    def edit(_: Body, answer: Body) -> None:
        answer["choices"][0] = {"index": 0, "finish_reason": finish} | ({"message": message} if message else {})

    with Loopback(change=edit) as server:
        generator = chat(server)
        found = one(generator)
        assert (found.draws, found.candidates, found.nothing) == ((State.UNPARSED,), (), ())
        one(chat(server))
    assert server.served == 1
    assert any("1 query has 1 draw refused by the model or a content filter" in one for one in generator.notes.remarks)


def test_under_any_model_an_azure_deployment_is_its_own_name_and_no_list_is_asked_for(tmp_path: Path) -> None:
    server = Server.of("https://mine.openai.azure.com/openai/v1/", "prod", any_model=True)
    found = as_served(
        server, partial(ChatClient, server, part("limits")), Store(tmp_path / "s.sqlite"), {}, offline=False
    )
    assert (found.model, found.takes("gpt-4o-2024-08-06")) == ("prod", True)
    with pytest.raises(InputError, match="no model is named: give one with --model"):
        Server.of("https://mine.openai.azure.com/openai/v1/", "", any_model=True)


@pytest.mark.parametrize(
    ("url", "model", "said"),
    [
        (
            "https://mine.openai.azure.com/openai/deployments/prod?api-version=1",
            "gpt-4o",
            r"give https://mine.*/openai/v1, and ",
        ),
        ("https://mine.example/v1?api-key=1", "gpt-4o", "carries more than an address: give the key in OPENAI_API_KEY"),
        ("https://mine.example/v1#x", "gpt-4o", "carries more than an address: leave out # and what follows"),
        ("http://127.0.0.1:8080/v1", None, "--model"),
    ],
)
def test_an_address_with_more_than_an_address_or_without_a_model_is_refused_before_it_is_asked(
    url: str, model: str | None, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Server.of(url, model)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (
            400,
            {
                "message": "The response was filtered due to the prompt triggering the content management policy.",
                "code": "content_filter",
                "param": "prompt",
                "type": None,
            },
        ),
        (
            403,
            {"code": 403, "message": "Your input was flagged", "metadata": {"flagged_input": "x"}},
        ),
    ],
)
def test_a_prompt_that_a_filter_withholds_is_no_answer_and_not_asked_twice(
    chat: Make, status: int, error: Body
) -> None:
    with Loopback(spain, change=lambda *_: (status, error)) as server:
        generator = chat(server, sampling={"seed": 1, "extra": JSON})
        found = one(generator, Query("land", BORDERS))
        assert (found.draws, found.candidates, found.nothing) == ((State.UNPARSED,), (), ())
        assert any("refused by the model or a content filter" in remark for remark in generator.notes.remarks)
        one(chat(server, sampling={"seed": 1, "extra": JSON}))
    assert len(server.requests) == 1


STREAMS = [
    "This model only support stream mode, please enable the stream parameter to access the model. ",
    "parameter.enable_thinking must be set to false for non-streaming calls",
    "Non-streaming requests are not supported for this model",
    "stream must be true",
    "Streaming is required for this model",
    "Please set `stream=True`: only streaming output is available",
    "该模型仅支持流式调用",
]


@pytest.mark.parametrize("said", STREAMS)
@pytest.mark.parametrize("knows_options", [True, False])
def test_a_model_that_only_streams_is_asked_for_a_stream(chat: Make, said: str, knows_options: bool) -> None:
    def refuses(body: Body, _: Body) -> tuple[int, str] | None:
        if not knows_options and "stream_options" in body:
            return 400, "Unknown field: stream_options"
        return None if body.get("stream") else (400, said)

    with Loopback(spain, change=refuses) as server:
        generator = chat(server, sampling={"samples": 2, "temperature": 0.5, "extra": JSON})
        found = list(generator.generate([Query(f"land {place}", BORDERS) for place in range(3)]))
        asked = len(server.requests)
        generator = chat(server, store="b", sampling={"extra": {"stream": True}})
        assert one(generator).draws == (State.ANSWERED,)
    assert [each.draws for each in found] == [(State.ANSWERED,) * 2] * 3
    assert server.requests[asked - 1].keys() >= {"stream", "response_format", "n"}
    assert server.requests[asked]["stream"] is True


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("parameter.enable_thinking must be set to false", "enable_thinking = false"),
        ("The value of the enable_thinking parameter is restricted to True.", "enable_thinking = true"),
        ("body.enable_thinking: Field required", "enable_thinking = ..."),
        ("Missing required parameter: 'reasoning_effort'.", "reasoning_effort = ..."),
        ("top_k should be 1", "top_k = 1"),
        ("Set thinking_mode, please", "thinking_mode = ..."),
        ("max_tokens must be set to 5", ""),
        ("EXAMPLE_KEY must be set", ""),
        ("We do not like this", ""),
    ],
)
def test_a_field_that_a_server_wants_is_named_with_its_line_of_a_recipe(chat: Make, said: str, line: str) -> None:
    with Loopback(change=lambda *_: (400, said)) as server:
        generator = chat(server)
        one(generator)
    assert any(said in remark for remark in generator.notes.remarks)
    assert any(f"by extra = {{ {line} }}" in remark for remark in generator.notes.remarks) is bool(line)


@pytest.mark.parametrize("end", ["", "/", "/chat/completions"])
def test_the_query_of_an_address_goes_with_every_request(chat: Make, end: str) -> None:
    class Versioned(Loopback):
        def respond(self, request: Request) -> Sent:
            if not request.path.endswith("?api-version=2024-10-21&deployment=a%2Fb"):
                return response({"error": {"message": "Resource not found"}}, 404)
            path = request.path.partition("?")[0]
            return super().respond(request._replace(path=path))

    with Versioned(spain) as server:
        where = Server.of(f"{server.url}{end}?api-version=2024-10-21&deployment=a%2Fb", "stand-in", any_model=True)
        assert one(chat(where)).draws == (State.ANSWERED,)
    assert where.base_url == f"{server.url}?api-version=2024-10-21&deployment=a%2Fb"
