"""What a server's response is read as: half of a character is no reason to ask again."""

from __future__ import annotations

import json

import pytest

from lmkbc.models.server.body import decode


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
