"""Answers that are longer than a server allows: a shorter one is asked for, and what it refuses is left out alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from loopback import Body, Loopback, prompt_of
from opened import HASTY
from test_server_odd import BORDERS, Make, one, spain

from lmkbc.models.server.refusal import answer_limit
from lmkbc.testing import Query, State

ASKED = 32768
NARROW = (None, 4096, 300)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (
            "max_tokens is too large: 32768. This model supports at most 4096 completion tokens, whereas you "
            "provided 32768.",
            4096,
        ),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
        (
            "max_tokens: 32768 > 8192, which is the maximum allowed number of output tokens for "
            "claude-3-5-sonnet-20241022",
            8192,
        ),
        (
            "`max_tokens` must be less than or equal to `8192`, the maximum value is less than the `context_window`",
            8192,
        ),
        ("max_tokens: Input should be less than or equal to 4096", 4096),
        (
            "The maximum tokens you requested exceeds the model limit of 8,192: max_tokens must be lower than that.",
            8192,
        ),
        (
            "This request requires more credits, or fewer max_tokens. You requested up to 32768 tokens, but can "
            "only afford 2000.",
            2000,
        ),
        (
            "Unable to submit request because it has a maxOutputTokens value of 32768 but the supported range is "
            "from 1 (inclusive) to 8193 (exclusive).",
            8192,
        ),
        ("Requests with max_tokens > 4096 must have stream=true", 4096),
        ("max_tokens is too large", ASKED // 2),
        ("max_tokens 32768 is too large", ASKED // 2),
    ],
)
def test_a_limit_of_every_answer_is_read(said: str, limit: int) -> None:
    assert answer_limit(ASKED, said) == (limit, None, None)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 32768. This model's maximum context length is "
            "4096 tokens and your request has 300 input tokens (32768 > 4096 - 300). None",
            NARROW,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 33068 tokens (300 in the "
            "messages, 32768 in the completion). Please reduce the length of the messages or completion.",
            NARROW,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 32768 output tokens and "
            "your prompt contains at least 300 input tokens, for a total of at least 33068 tokens.",
            NARROW,
        ),
        (
            "This endpoint's maximum context length is 4096 tokens. However, you requested about 33068 tokens "
            "(300 of text input, 32768 in the output).",
            NARROW,
        ),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a "
            "total of 33068 tokens: 300 tokens from the input messages and 32768 tokens for the completion.",
            NARROW,
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 300 `inputs` "
            "tokens and 32768 `max_new_tokens`",
            NARROW,
        ),
        (
            "Prompt contains 300 tokens and 0 draft tokens, too large for model with 4096 maximum context length",
            NARROW,
        ),
        (
            "Request too large for model `m` on tokens per minute (TPM): Limit 4096, Requested 33068, please "
            "reduce your message size",
            NARROW,
        ),
        (
            "input length and `max_tokens` exceed context limit: 180000 + 32768 > 200000, decrease input length "
            "or `max_tokens`",
            (None, 200000, 180000),
        ),
        (
            "This model's maximum context length is 4096 tokens: max_tokens is more than is left.",
            (None, 4096, None),
        ),
    ],
)
def test_a_window_is_read_with_the_prompt_that_it_holds(
    said: str, limit: tuple[int | None, int | None, int | None]
) -> None:
    assert answer_limit(ASKED, said) == limit


@pytest.mark.parametrize(
    "said",
    [
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "Unsupported parameter: 'max_tokens' is not supported with this model 'o3-mini-2025-01-31'.",
        "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens.",
        "the request exceeds the available context size. try increasing the context size",
        "`max_tokens` must be greater than `thinking.budget_tokens`",
        "temperature must be less than or equal to 2",
        "Only one completion choice is allowed",
        "",
    ],
)
def test_other_refusals_say_nothing_of_an_answer_s_length(said: str) -> None:
    assert answer_limit(ASKED, said) is None


class Picky(Loopback):
    """A server that refuses some requests. refuses: body -> the words of the refusal; "" for none."""

    def __init__(self, refuses: Callable[[Body], str], **how: Any) -> None:
        super().__init__(spain, **how)
        self._refuses = refuses

    def reply(self, body: Body) -> tuple[int, Body]:
        said = self._refuses(body)
        return (400, {"error": {"message": said, "code": None}}) if said else super().reply(body)


def length(body: Body) -> int:
    asked = body.get("max_tokens") or body.get("max_completion_tokens") or 0
    assert isinstance(asked, int)
    return asked


def test_the_limit_that_a_message_states_is_kept_and_told_once(chat: Make) -> None:
    said = "max_tokens is too large: 32768. This model supports at most 4096 completion tokens"
    with Picky(lambda body: said if length(body) > 4096 else "") as server:
        generator = chat(server, sampling={"max_tokens": ASKED})
        found = list(generator.generate([Query(f"land {place}", BORDERS) for place in range(20)]))
    assert not any(one.failed for one in found)
    assert [length(body) for body in server.requests].count(4096) == 20
    assert len(server.requests) <= 20 + 4
    told = "the server accepts no answer of 32768 tokens: max_tokens was reduced, to 4096 for the longest prompt"
    assert sum(told in remark for remark in generator.notes.remarks) == 1


@pytest.mark.parametrize("listed", [True, False])
def test_an_answer_gets_what_the_window_leaves_beside_its_prompt(chat: Make, listed: bool) -> None:
    window = 2000

    def refuses(body: Body) -> str:
        prompt = len(prompt_of(body)) // 3
        said = (
            f"This model's maximum context length is {window} tokens. However, you requested {length(body) + prompt} "
            f"tokens ({prompt} in the messages, {length(body)} in the completion)."
        )
        return said if prompt + length(body) > window else ""

    with Picky(refuses) as server:
        if listed:
            server.tells["models"] = {"data": [{"id": "stand-in", "max_model_len": window}]}
            server.tells["tokenize"] = lambda body: {"tokens": [0] * (len(body["prompt"]) // 3)}
        generator = chat(server, sampling={"max_tokens": ASKED}, shots={"k": 2, "fit": True})
        asked = [Query("land " + "x" * 30 * place, BORDERS) for place in range(12)]
        found = list(generator.generate(asked))
    assert not any(one.failed for one in found), generator.notes.remarks
    assert not any("fit = true" in remark or "were shown fewer" in remark for remark in generator.notes.remarks)
    assert len(server.requests) <= 12 + (2 if listed else 12)
    answered = [body for body in server.requests if not refuses(body)]
    assert all(length(body) + len(prompt_of(body)) // 3 > 0.9 * window for body in answered)


def test_both_names_of_a_limit_are_reduced(chat: Make) -> None:
    def refuses(body: Body) -> str:
        if "max_tokens" in body:
            return "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
        return "max_completion_tokens is too large: at most 4096 completion tokens" if length(body) > 4096 else ""

    with Picky(refuses) as server:
        assert not one(chat(server, sampling={"max_tokens": ASKED})).failed
    assert server.requests[-1]["max_completion_tokens"] == 4096
    assert len(server.requests) == 3


EXTRA = {
    "chat_template_kwargs": {"enable_thinking": True},
    "response_format": {"type": "json_object"},
    "top_k": 5,
    "reasoning_effort": "low",
}
ALL = {"samples": 3, "temperature": 0.7, "logprobs": True, "max_tokens": 64, "extra": EXTRA}


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ("Only one completion choice is allowed", "n"),
        ("n > 1 is not supported", "n"),
        ("n must be 1 when using greedy sampling, got 3.", "n"),
        ("logprobs is not supported", "logprobs"),
        ("This model returns no probabilities", "logprobs"),
        ("Something is not to our liking", "response_format"),
        ("Unrecognized request argument supplied: chat_template_kwargs", "chat_template_kwargs"),
        ("body.chat_template_kwargs: Extra inputs are not permitted", "chat_template_kwargs"),
        ("parameter.enable_thinking must be set to false for non-streaming calls", "chat_template_kwargs"),
        ("chat_template is not supported for Mistral tokenizers.", "chat_template_kwargs"),
        ('Invalid JSON payload received. Unknown name "top_k": Cannot find field.', "top_k"),
        ("create() got an unexpected keyword argument 'reasoning_effort'", "reasoning_effort"),
    ],
)
def test_what_is_refused_is_left_out_and_nothing_else(chat: Make, said: str, field: str) -> None:
    with Picky(lambda body: said if field in body and (field != "n" or body["n"] > 1) else "") as server:
        generator = chat(server, sampling=ALL)
        found = list(generator.generate([Query("a", BORDERS), Query("b", BORDERS)]))
    assert [one.draws for one in found] == [(State.ANSWERED,) * 3] * 2
    given = {"n", "logprobs", "temperature", "max_tokens", *EXTRA}
    assert given - server.requests[-1].keys() == {field}
    assert any(f"the server takes no {field}: asked without" in remark for remark in generator.notes.remarks)


def test_a_refusal_of_one_prompt_leaves_out_nothing_that_others_were_answered_with(chat: Make) -> None:
    with Picky(lambda body: "We do not like this" if "land 3" in prompt_of(body) else "") as server:
        generator = chat(server, sampling=ALL)
        found = list(generator.generate([Query("first", BORDERS)]))
        found += generator.generate([Query(f"land {place}", BORDERS) for place in range(6)])
    assert [one.query.subject for one in found if one.failed] == ["land 3"]
    assert all(
        body.keys() >= {"n", "logprobs", "response_format"}
        for body in server.requests
        if "land 3" not in prompt_of(body)
    )


@pytest.mark.parametrize(("read", "told"), [(10, True), (0, False), (4000, False)])
def test_a_server_that_cuts_prompts_is_found_by_its_count(chat: Make, read: int, told: bool) -> None:
    def edit(_: Body, answer: Body) -> None:
        answer["usage"] = {"prompt_tokens": read, "completion_tokens": 5}

    with Loopback(spain, change=edit) as server:
        generator = chat(server, shots={"k": 4})
        for place in range(3):
            assert not one(generator, Query(f"land {place}", BORDERS)).failed
    said = [
        remark for remark in generator.notes.remarks if "the server read only 10 tokens of a prompt of about" in remark
    ]
    assert len(said) == told


@pytest.mark.parametrize(("window", "told"), [(400, True), (10_000, False)])
def test_a_window_is_found_by_a_longer_prompt_that_counts_no_more(chat: Make, window: int, told: bool) -> None:
    def edit(body: Body, answer: Body) -> None:
        template = 100  # tokens that the server's own chat template adds
        answer["usage"] = {"prompt_tokens": min(template + len(prompt_of(body)) // 4, window), "completion_tokens": 5}

    with Loopback(spain, change=edit) as server:
        asked = [Query("land " + "x" * length, BORDERS) for length in (1, 1300, 2200)]
        generator = chat(server, shots={"k": 0}, limits=replace(HASTY, concurrency=1))
        assert not any(one.failed for one in generator.generate(asked))
    assert any("the server read only 400 tokens" in remark for remark in generator.notes.remarks) == told
