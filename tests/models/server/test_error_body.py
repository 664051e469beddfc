"""Errors that come with status 200, in a choice, in a stream or as a page: named at once, in the server's own words."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from growth import in_proportion
from loopback import Body, Fault, Loopback, Request, Sent, response, whole
from opened import HASTY, part
from test_server_odd import BORDERS, Make, one, spain

from lmkbc import LmkbcError
from lmkbc.models.answers import Store
from lmkbc.models.server.address import Server
from lmkbc.models.server.body import decode
from lmkbc.models.server.client import as_served
from lmkbc.models.server.openai_client import ChatClient
from lmkbc.models.server.refusal import refusal
from lmkbc.testing import Query, State

CANARY = "sk-canary"
TOOL = {"function": {"name": "answer", "arguments": '{"objects": ["Spain"]}'}}


def as_json(body: Any) -> Fault:
    return whole(json.dumps(body))


def refusing(status: int, error: Body) -> Fault:
    return lambda _: response(json.dumps({"error": {"message": f"No, {CANARY}!", **error}}).encode(), status)


def lacking(chat: Make, fault: Fault, **how: Any) -> tuple[str, int]:
    """The reason why a query has no answer, and the number of requests for it."""
    with Loopback(spain, fault=fault) as server:
        generator = chat(server, **how)
        assert one(generator).draws == (State.MISSING,)
    (remark,) = [remark for remark in generator.notes.remarks if "1 query lacks answers" in remark]
    return remark.partition("lacks answers (")[2].partition("), first (")[0], server.served


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": "model 'x' not found, try pulling it first"}, "200: model 'x' not found, try pulling it first"),
        ({"error": {"message": "Odd thing.", "code": 400}}, "400: Odd thing."),
        ({"error": {"message": "Odd thing.", "code": "odd"}}, "200, odd: Odd thing."),
        (
            {"error": {"message": "Odd thing.", "type": "invalid_request_error"}},
            "200, invalid_request_error: Odd thing.",
        ),
        (
            {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"detail": "Odd."}'}}},
            "400: Provider returned error (Odd.)",
        ),
        ({"detail": "Odd thing."}, "200: Odd thing."),
        ({"detail": [{"loc": ["body", "n"], "msg": "Odd thing."}]}, "200: body.n: Odd thing."),
        ({"object": "error", "message": "Odd thing.", "type": "BadRequestError", "code": 400}, "400: Odd thing."),
        ({"object": "error", "message": {"detail": [{"loc": ["a"], "msg": "Odd."}]}, "code": 422}, "422: a: Odd."),
        ({"success": False, "message": "Odd thing.", "code": 1002}, "200, 1002: Odd thing."),
        ({"success": False, "errors": [{"code": 7003, "message": "Odd thing."}]}, "200, 7003: Odd thing."),
        ({"choices": None, "base_resp": {"status_code": 1004, "status_msg": "Odd thing."}}, "200: Odd thing."),
        ({"choices": None, "error": {"message": "Odd thing."}}, "200: Odd thing."),
        ({"choices": [], "error": {"message": "Odd thing."}}, "200: Odd thing."),
        ({"choices": [{"finish_reason": "error", "error": {"code": 400, "message": "Odd thing."}}]}, "400: Odd thing."),
        ([{"error": {"code": 400, "message": "Odd thing."}}], "400: Odd thing."),
        ({"error": {"message": "Odd\u001b[31m\n\u202ething." + "x" * 999}}, f"200: Odd [31m thing.{'x' * 185}"),
    ],
)
def test_an_error_with_status_200_is_that_error_and_asked_once(chat: Make, body: Any, reason: str) -> None:
    assert lacking(chat, as_json(body)) == (reason, 1)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (200, {"code": 401}, r"refuses the key .*\(401: No, \[key\]!\)"),
        (200, {"type": "authentication_error"}, r"refuses the key .*\(200, authentication_error: No, \[key\]!\)"),
        (200, {"code": 402}, r"no quota left \(402: No, \[key\]!\)"),
        (200, {"code": 404}, r"has no model .*\(404: No, \[key\]!\)"),
        (401, {}, "refuses the key"),
        (403, {}, "refuses the key"),
        (404, {}, "has no model 'stand-in'"),
        (402, {}, "no quota"),
        (429, {"code": "insufficient_quota"}, "no quota"),
    ],
)
def test_an_error_that_no_request_can_mend_ends_the_run(
    chat: Make, monkeypatch: pytest.MonkeyPatch, status: int, error: Body, said: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Loopback(fault=refusing(status, error)) as server, pytest.raises(LmkbcError, match=said) as caught:
        list(chat(server, limits=part("limits", concurrency=1)).generate([Query("a", BORDERS), Query("b", BORDERS)]))
    assert server.served == 1
    assert CANARY not in str(caught.getrepr(showlocals=True))
    assert "[key]" in str(caught.value)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ('{"id": "x", "choices": null}', "it holds no choices"),
        ('{"id": "x", "choices": []}', "it holds no choices"),
        ('{"choices": [{"finish_reason": "error", "message": {"content": ""}}]}', "it ended with 'error'"),
        ('{"choices": [{"message": {"content": "[', "its JSON is cut off or broken at character 38"),
        (
            "<!DOCTYPE html><html><head><title>Sign in</title></head></html>",
            "a web page, 'Sign in'): check --base-url",
        ),
        ("<html><h1>Gateway</h1></html>", "a web page): check --base-url"),
        ("Ollama is running", "the text 'Ollama is running'): check --base-url"),
        ("", "an empty body): check --base-url"),
        ('data: {"choices": [{"delta": {"content": "x"}}]}\n\n', "it is an event stream without an end"),
    ],
)
def test_a_page_is_not_asked_for_again_if_there_never_was_an_answer(chat: Make, sent: str, reason: str) -> None:
    found, served = lacking(chat, whole(sent))
    assert found.removesuffix(")") == f"the answer is not what the API promises ({reason}".removesuffix(")")
    assert served == (1 if "check --base-url" in reason else 2)  # a body that was paid for is asked for once more


def test_what_an_unread_body_cost_is_counted(chat: Make) -> None:
    unread = {"choices": [{"message": 7}], "usage": {"prompt_tokens": 50, "completion_tokens": "8"}}
    with Loopback(spain, fault=as_json(unread)) as server:
        generator = chat(server)
        assert one(generator).draws == (State.MISSING,)
    assert any(
        "2 requests, 0 answers from the store, 100 prompt and 16 answer" in one for one in generator.notes.remarks
    )


def test_a_fault_of_the_provider_behind_is_waited_out(chat: Make) -> None:
    busy = refusal(Server("https://x/v1", "m"), 429, b'[{"error": {"details": [{"retryDelay": "0.5s"}]}}]')
    assert getattr(busy, "wait", None) == 0.5
    error = {"code": 502, "message": "Upstream error"}
    fault = as_json({"choices": [{"finish_reason": "error", "message": {"content": ""}, "error": error}]})
    assert lacking(chat, fault) == ("502: Upstream error", 6)

    def edit(_: Body, answer: Body) -> None:
        if 1 < len(server.requests) < 5:
            answer["choices"][0] |= {"finish_reason": "error", "error": error}

    with Loopback(spain, change=edit) as server:
        asked = [Query("first", BORDERS), Query("second", BORDERS)]
        found = list(chat(server, store="b", limits=replace(HASTY, concurrency=1)).generate(asked))
    assert (len(server.requests), [one.failed for one in found]) == (5, [False, False])


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [TOOL]},
        {"content": "", "function_call": TOOL["function"]},
        {"content": "", "tool_calls": [{"function": {"name": "answer", "arguments": {"objects": ["Spain"]}}}]},
        {"content": [{"type": "reasoning", "text": "Peru"}, {"type": "output_text", "text": '["Spain"]'}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Peru"}]}, {"text": '["Spain"]'}]},
        {"content": ['["Sp', 'ain"]']},
        {"content": [{"type": "thinking", "text": None}, {"type": None, "text": '["Spain"]'}]},
        {"content": [{"type": "text", "text": '["Spain"]', "refusal": None, "annotations": []}], "refusal": None},
        {"content": [{"type": "text", "text": {"value": '["Spain"]', "annotations": []}}]},
        {"content": [{"type": "markdown", "text": '["Spain"]'}, {"type": "reasoning_text", "text": "Peru"}]},
        {"content": [{"type": "text", "text": '["Spain"]'}, {"type": "citation", "text": "Peru"}, None, 7]},
        {"content": [{"type": 7, "text": 7}, {"type": "text", "text": '["Spain"]', "refusal": 7}]},
        {"content": {"type": "text", "text": '["Spain"]'}},
        {"content": {"objects": ["Spain"]}},
        {"content": '["Spain"]', "tool_calls": [], "reasoning": {"text": "Peru"}, "reasoning_details": [1]},
    ],
)
def test_where_servers_put_the_text_of_an_answer(chat: Make, message: Body) -> None:
    def edit(_: Body, answer: Body) -> None:
        answer["choices"][0]["message"] = message
        answer.update(usage=None, error=None)

    with Loopback(change=edit) as server:
        assert [c.text for c in one(chat(server)).candidates] == ["Spain"]


@pytest.mark.parametrize("ends", ["[DONE]", '{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'])
@pytest.mark.parametrize("field", ["delta", "text"])
def test_an_event_stream_is_read_though_none_was_asked_for(chat: Make, ends: str, field: str) -> None:
    def fault(_: bytes) -> Sent:
        pieces = ['["Sp', 'ain"', "]"]
        parts = [{"delta": {"content": piece}} if field == "delta" else {"text": piece} for piece in pieces]
        events = [json.dumps({"model": "stand-in", "choices": [{"index": 0, **part}]}) for part in parts]
        return response("".join(f": PROCESSING\n\ndata: {one}\n\n" for one in [*events, ends]).encode())

    with Loopback(fault=fault) as server:
        assert [c.text for c in one(chat(server)).candidates] == ["Spain"]


COMMENT = ": PROCESSING\n\n"
EVENT = (
    'data: {{"model": "stand-in", "choices": [{{"index": 0, "delta": {{"content": {}}}, "finish_reason": {}}}]}}\n\n'
)
EVENTS = EVENT.format('"[\\"Sp"', "null") + EVENT.format('"ain\\"]"', '"stop"')


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda body: COMMENT + body,
        lambda body: f"\ufeff\n \r\n: keep-alive\r\n{COMMENT}{body}\n\n",
        lambda body: f"event: message\nid: 7\nretry: 3\ndata: {body}\n\ndata: [DONE]\n\n",
        lambda body: "data: " + json.dumps(json.loads(body), indent=1).replace("\n", "\ndata: ") + "\n\ndata: [DONE]\n",
        lambda _: COMMENT + EVENTS.replace("data: ", "data:\n "),
        lambda _: "data: \n\ndata:\n\n" + EVENTS,
        lambda _: EVENTS.replace("\n", "\r\n").replace("data: ", "data:"),
        lambda _: EVENTS.replace("data: ", "").replace("\n\n", "\n"),
        lambda _: EVENTS.replace('"index": 0', '"index": null').replace("\n\n", f"\n\n{COMMENT}"),
        lambda body: body.replace('"choices"', '"other": [NaN, -Infinity, Infinity], "choices"'),
    ],
)
def test_comments_and_empty_events_may_stand_around_an_answer(chat: Make, wrapped: Callable[[str], str]) -> None:
    with Loopback(spain, fault=lambda good: response(wrapped(good.decode()).encode())) as server:
        assert [c.text for c in one(chat(server)).candidates] == ["Spain"]
    assert server.served == 1


@pytest.mark.parametrize("ends", ["", 'data: {"usage": {"prompt_tokens": 5, "completion_tokens": 2}}\n\n'])
def test_a_stream_has_its_usage_and_log_probabilities(ends: str) -> None:
    logged = ', "logprobs": {"content": [{"token": "x", "logprob": -Infinity}, {"token": "y", "logprob": NaN}]}'
    _, (reply,) = decode((EVENTS.replace(', "finish', f'{logged}, "finish') + ends).encode())
    assert reply.logprobs == [("x", -1e30)] * 2
    assert (reply.prompt_tokens, reply.completion_tokens) == ((5, 2) if ends else (0, 0))


@pytest.mark.parametrize("used", [(144, 13), (4, 0), (5, 10)])
def test_the_draws_of_a_request_have_all_of_its_tokens(used: tuple[int, int]) -> None:
    choices = [{"index": place, "message": {"content": "Spain"}} for place in range(5)]
    usage = {"prompt_tokens": used[0], "completion_tokens": used[1]}
    _, replies = decode(json.dumps({"model": "m", "choices": choices, "usage": usage}).encode())
    shares = [(reply.prompt_tokens, reply.completion_tokens) for reply in replies]
    assert tuple(map(sum, zip(*shares, strict=True))) == used
    assert shares == sorted(shares, reverse=True)
    assert all(max(share) - min(share) <= 1 for share in zip(*shares, strict=True))


def test_a_body_in_another_character_set_is_read(chat: Make) -> None:
    def fault(good: bytes) -> Sent:
        return response(
            good.replace(b"Spain", "Perú".encode("latin-1")), 200, "Content-Type: text/json; charset=latin1"
        )

    with Loopback(spain, fault=fault) as server:
        assert [c.text for c in one(chat(server)).candidates] == ["Perú"]


def test_an_error_behind_a_comment_is_named(chat: Make) -> None:
    fault = whole(COMMENT + '{"error": {"message": "Odd thing.", "code": 400}}')
    assert lacking(chat, fault) == ("400: Odd thing.", 1)


def test_a_stream_s_error_is_named(chat: Make) -> None:
    fault = whole('data: {"error": {"message": "Odd thing.", "code": 400}}\n\ndata: [DONE]\n\n')
    assert lacking(chat, fault) == ("400: Odd thing.", 1)


class Versioned(Loopback):
    """A server whose API is below /v1 alone. page: what it sends elsewhere, with its status."""

    page = (404, b'{"detail": "Not Found"}')

    def respond(self, request: Request) -> Sent:
        self.tells["models"] = {"data": [{"id": "stand-in"}]}
        return super().respond(request) if request.path.startswith("/v1/") else response(self.page[1], self.page[0])


@pytest.mark.parametrize(
    "page", [Versioned.page, (404, b"404 page not found"), (200, b'{"error": "Unexpected endpoint"}'), (200, b"<html>")]
)
@pytest.mark.parametrize("any_model", [False, True])
def test_an_address_without_v1_is_named_with_it(
    chat: Make, tmp_path: Any, page: tuple[int, bytes], any_model: bool
) -> None:
    with Versioned() as server:
        server.page = page
        root = server.url.removesuffix("/v1")
        where = Server.of(root, "stand-in", any_model=any_model)
        said = f"{root} is not the whole address of its API: give {server.url} with --base-url"

        def ask() -> None:
            as_served(where, partial(ChatClient, where, HASTY), Store(tmp_path / "s"), {}, offline=False)
            one(chat(where))

        with pytest.raises(LmkbcError) as error:
            ask()
        assert str(error.value) == said


@pytest.mark.parametrize("end", ["/chat/completions", "/completions", "/models", "/"])
def test_a_whole_address_is_cut_to_its_base(end: str) -> None:
    assert Server.of(f"http://127.0.0.1:8000/v1{end}", "m").base_url == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "System role not supported"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, "After the optional system message, conversation roles must alternate user/assistant"),
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (400, "Only user, assistant and tool roles are supported, with the exception of an initial optional system"),
        (422, 'messages: Unexpected role "system"'),
        (400, "This model does not support system messages"),
        (400, "default chat template is no longer allowed, so you must provide a chat template"),
    ],
)
def test_refused_turns_get_the_advice_of_local_models(chat: Make, status: int, said: str) -> None:
    with (
        Loopback(change=lambda *_: (status, said)) as server,
        pytest.raises(
            LmkbcError,
            match=r"has no chat template .*: use form = 'completion'"
            if "template" in said
            else r"refuses the turns of a prompt .*: use form = 'single', whose only turn is the user's",
        ),
    ):
        one(chat(server))
    assert server.served == 1


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (rb"a\ud83d", "a\ufffd"),
        (rb"\udc00b", "\ufffdb"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\uD83D\uDE00", "\U0001f600"),
        (rb"\\ud83d", "\\ud83d"),  # a backslash, then letters
        (rb"\\\ud83d", "\\\ufffd"),
        (b"a\xed\xa0\xbdb", "a\ufffdb"),
        (rb"\u0000\n\"\ud83d\"", '\0\n"\ufffd"'),
        ("퟿\ue000".encode(), "퟿\ue000"),  # what stands beside the surrogates
    ],
)
def test_half_of_a_character_is_replaced(written: bytes, text: str) -> None:
    body = b'{"model": "m", "choices": [{"message": {"content": "' + written + b'"}, "finish_reason": "length"}]}'
    _, (reply,) = decode(body)
    assert (reply.text, reply.finish) == (text, "length")


def test_tokens_with_half_of_a_character_keep_their_log_probabilities() -> None:
    token = {"token": "\ud83d", "logprob": -0.5, "top_logprobs": []}
    choice = {"message": {"content": "x"}, "logprobs": {"content": [token]}}
    _, (reply,) = decode(json.dumps({"choices": [choice]}).encode())
    assert reply.logprobs == [("\ufffd", -0.5)]


def test_bytes_that_are_no_text_are_no_answer() -> None:
    with pytest.raises(ValueError, match="decode"):
        decode(b'{"choices": [{"text": "a\xff"}]}')


def nested(head: str, depth: int = 20_000, tail: str = "}") -> bytes:
    return (head * depth + "1" + tail * depth).encode()


@pytest.mark.parametrize(
    "body",
    [
        nested('{"a":'),
        nested("[", tail="]"),
        nested('{"error":', 900),
        nested('{"message":', 900),
        nested('{"error": {"message": [', 300, "]}}"),
        b'{"choices": [{"text": "a", "finish_reason": ' + nested('{"a":') + b"}]}",
        b"data: " + nested('{"a":') + b"\n",
        b'{"error": {"message": "x", "code": "' + b"9" * 5000 + b'"}}',
        b'{"error": {"message": "maximum 1' + b",000" * 2000 + b'"}}',
    ],
    ids=lambda body: repr(body[:24]),
)
def test_a_body_that_is_deep_or_has_long_numbers_is_an_error_like_others(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"deep|choices|error|Expected"):
        decode(body)
    assert str(refusal(Server("http://host/v1", "m"), 400, body))


def test_the_options_of_an_answer_may_be_nested_deeply() -> None:
    _, (reply,) = decode(b'{"choices": [{"text": "a"}], "usage": ' + nested('{"a":', 300) + b"}")
    assert reply.text == "a"


@pytest.mark.parametrize("part", ["system role ", "<title>", "context length ", "max_tokens is too large ", "(1 "])
def test_the_words_of_an_error_are_read_in_proportion_to_their_length(part: str) -> None:
    def read(text: str) -> str:
        body = text if part[0] == "<" else json.dumps({"error": {"message": text}})
        return str(refusal(Server("http://host/v1", "m"), 400, body.encode()))

    assert in_proportion(read, part, 64_000)
