"""Bodies that servers send in place of an answer, or around one, as data: name -> what becomes of a good answer."""

import gzip
import itertools
from typing import Any

from loopback import OK, Body, Fault, Sent, chunked, edited, response, status, whole
from places import CANARY


def choice(**changes: Any) -> Fault:
    return edited(lambda good: good["choices"][0].update(changes))


def message(**changes: Any) -> Fault:
    return edited(lambda good: good["choices"][0]["message"].update(changes))


def cut(text: str, **choices: Any) -> Fault:
    def edit(good: Body) -> None:
        good["choices"][0]["message"]["content"] = text
        good["choices"][0].update(choices)

    return edited(edit)


def rest_of(body: bytes) -> bytes:
    """Return the second half of a chunked body, and its end."""
    rest = body[len(body) // 2 :]
    return b"%x\r\n" % len(rest) + rest + b"\r\n0\r\n\r\n"


TOOL = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
NO_ANSWER: dict[str, Fault] = {
    **{f"status {code}": status(code) for code in (400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 500, 502, 503)},
    "429 without a wait": status(429),
    "429 for a day": status(429, "Retry-After: 86400"),
    "429 for nonsense": status(429, "Retry-After: soon"),
    "429 for no number": status(429, "Retry-After: nan"),
    "status 204": lambda _: Sent(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "redirect to another host": lambda _: response(b"", "307 X", "Location: http://127.0.0.2:9/v1/chat/completions"),
    "redirect to itself": lambda _: response(b"", "307 X", "Location: /v1/chat/completions"),
    "redirect nowhere": lambda _: response(b"", "302 X", "Location: gopher://[::"),
    "an error with status 200": whole('{"error": {"message": "overloaded"}}'),
    "a page": whole("<html>Welcome to the proxy</html>"),
    "no body": whole(""),
    "null": whole("null"),
    "a list": whole("[]"),
    "an empty object": whole("{}"),
    "a string": whole('"Spain"'),
    "JSON cut short": lambda body: response(body[: len(body) // 2]),
    "deep JSON": whole("[" * 200_000),
    "UTF-16": lambda body: response(body.decode().encode("utf-16")),
    "no UTF-8": lambda body: response(body.replace(b"choices", b"choi\xffces")),
    "garbage called gzip": lambda body: response(body, OK, "Content-Encoding: gzip"),
    "gzip cut short": lambda body: response(gzip.compress(body)[:-20], OK, "Content-Encoding: gzip"),
    "no HTTP": lambda _: Sent(b"\x16\x03\x01 hello\r\n\r\n", "close"),
    "reset in the body": lambda body: response(body[:20], length=len(body), end="reset"),
    "closed in the body": lambda body: response(body[:20], length=len(body), end="close"),
    "a broken chunk": lambda body: chunked(body, b"zz\r\n"),
    "a last chunk that is missing": lambda body: chunked(body, b""),
    "silence": lambda _: Sent(b"", "hang"),
    "a drip": lambda _: response(b"", length=5000, pieces=itertools.repeat(b" "), pause=0.05),
    "choices null": edited(lambda good: good.update(choices=None)),
    "no choices": edited(lambda good: good.update(choices=[])),
    "a choice null": edited(lambda good: good.update(choices=[None])),
    "message null": choice(message=None),
    "content null": message(content=None),
    "content an object": message(content={}),
    "content a number": message(content=7),
    "content empty": message(content=""),
    "content blank": message(content="\u00a0\u2028"),
    "content invisible": message(content="\u200b\u3000\u000b"),
    "no parts": message(content=[]),
    "only a tool call": message(content=None, tool_calls=TOOL),
    "only reasoning": message(content=None, reasoning_content="Spain, I think"),
    "nothing within the length": cut("", finish_reason="length"),
    "an error for a reason to end": cut("None", finish_reason="error"),
    "another model": edited(lambda good: good.update(model="some-other-model")),
}
"""The query stays without an answer: it is reported, never written as empty, and asked again by the next run."""

AN_ANSWER: dict[str, Fault] = {
    "two choices": edited(lambda good: good["choices"].append({**good["choices"][0], "index": 1})),
    "negative usage": edited(lambda good: good.update(usage={"prompt_tokens": -5, "completion_tokens": -1})),
    "huge usage": edited(lambda good: good.update(usage={"prompt_tokens": 10**30, "completion_tokens": 10**30})),
    "usage in words": edited(lambda good: good.update(usage={"prompt_tokens": "many"})),
    "usage null": edited(lambda good: good.update(usage=None)),
    "log-probabilities that are no numbers": choice(logprobs={"content": [{"token": "x", "logprob": "NaN"}]}),
    "no reason to end": choice(finish_reason=None),
    "no model's name": edited(lambda good: good.pop("model")),
    "text called text": lambda body: response(body, OK, "Content-Type: text/plain"),
    "fields of its own": edited(lambda good: good.update(x={"y": [None]}, service_tier=5)),
    "an event stream": lambda body: response(b"data: " + body + b"\n\ndata: [DONE]\n\n"),
    "in chunks": lambda body: chunked(body, rest_of(body)),
    "in gzip": lambda body: response(gzip.compress(body), OK, "Content-Encoding: gzip"),
    "half of a character in a field": edited(lambda good: good.update(id="a\ud83d")),
    "half of a character in a token": choice(logprobs={"content": [{"token": "\udc00", "logprob": -1.0}]}),
    "our key in a field": edited(lambda good: good.update(id=CANARY, system_fingerprint=CANARY)),
}
"""The odd part is not the answer: it counts as any other."""

SLOW = ("silence", "a drip")
