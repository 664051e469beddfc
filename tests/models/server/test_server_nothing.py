"""Replies that say nothing: no answer, never empty, never kept, and asked again by the next run."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, prompt_of
from space import RELATIONS
from test_server_odd import BORDERS, Body, Make, one, spain

from lmkbc.answer.parse import parse
from lmkbc.models.answers import Store
from lmkbc.testing import Query, State

QUERY = Query("land", BORDERS)
BLANKS = (
    "",
    " ",
    "\n\t",
    "\u00a0",
    "\u000b",
    "\u000c",
    "\u001c",
    "\u0085",
    "\u1680",
    "\u180e",
    "\u2003",
    "\u2028",
    "\u2029",
    "\u202f",
    "\u3000",
    "\u200b",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u061c",
    "\u202e",
    "\u0000",
    "\u2800",
    "\u3164",
    "\u115f",
    "\uffa0",
    "\ufe0f",
    "\U000e0020",
    "\u00a0\u200b\n\ufeff",
)


def said(text: Any, finish: str = "stop") -> Callable[[Body, Body], None]:
    def edit(_: Body, answer: Body) -> None:
        answer["choices"][0].update(message={"role": "assistant", "content": text}, finish_reason=finish)

    return edit


def message(**fields: Any) -> Callable[[Body, Body], None]:
    def edit(_: Body, answer: Body) -> None:
        answer["choices"][0]["message"] = fields

    return edit


TOOL = {"id": "1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
NOTHING: dict[str, Callable[[Body, Body], None]] = {
    **{f"blank {text!a}": said(text) for text in BLANKS},
    "null": said(None),
    "no message": message(),
    "an empty list": said([]),
    "tool calls": message(content=None, tool_calls=[TOOL]),
    "reasoning": message(content=None, reasoning_content="It borders Spain."),
    "a thought in parts": said([{"type": "thinking", "thinking": "Spain"}]),
    "a closed thought": said("<think>It borders Spain.</think>\n\u200b"),
    "a thought cut off": said("<think>It borders Sp", "length"),
    "spent": said("", "length"),
    "spent, by another word": said("\u3000", "MAX_TOKENS"),
    "an error": said("None", "error"),
    "an abort": said('["Spain"]', "abort"),
    "an error in capitals": said("[]", "ERROR"),
}


def test_nothing_is_no_answer_and_asked_again(chat: Make, tmp_path: Path) -> None:
    edits = {f"land {place}.": edit for place, edit in enumerate(NOTHING.values())}
    asked = [Query(name, BORDERS) for name in edits]

    def edit(body: Body, answer: Body) -> None:
        next(edit for name, edit in edits.items() if name in prompt_of(body).splitlines()[-1])(body, answer)

    with Loopback(change=edit) as server:
        generator = chat(server)
        found = {one.query.subject: one for one in generator.generate(asked)}
    wrong = [name for name, subject in zip(NOTHING, edits, strict=True) if not found[subject].failed]
    assert (wrong, [one for one in found.values() if one.candidates]) == ([], [])
    assert Store(tmp_path / "store.sqlite").stats() == []
    lost = f"{len(NOTHING) - 3} queries have {len(NOTHING) - 3} draws without any text, or cut off within thoughts"
    assert any(
        lost in one and "not kept, so that the next run asks them again" in one for one in generator.notes.remarks
    )
    with Loopback(spain, port=server.port) as healthy:
        again = list(chat(healthy).generate(asked))
    assert [c.text for one in again for c in one.candidates] == ["Spain"] * len(asked)


@pytest.mark.parametrize("text", BLANKS, ids=ascii)
def test_blank_text_is_not_parsed(text: str) -> None:
    for relation in RELATIONS.values():
        for style in ("{}", "```\n{}\n```", "<think>None</think>{}", " {}\n\n{}"):
            assert parse(style.format(text, text), relation, "land").state is State.UNPARSED
        assert parse(f"{text}None{text}", relation, "land").state is State.ABSTAINED
        assert parse(f"[{text.strip()}]", relation, "land").state in (State.ABSTAINED, State.UNPARSED)


@pytest.mark.parametrize("text", [".", "...", "…", "**", "?", "/", "!", ";", "|", ":", "#", "##", '"', "()."])
def test_marks_that_say_nothing_are_no_abstention(text: str) -> None:
    for relation in RELATIONS.values():
        assert parse(text, relation, "land").state in (State.UNPARSED, State.TRUNCATED)


def test_of_several_draws_only_those_that_say_something_are_kept(chat: Make) -> None:
    turns = itertools.cycle(('["Spain"]', None, "[]"))
    with Loopback(lambda _: {"content": next(turns)}) as server:
        found = one(chat(server, sampling={"samples": 3, "temperature": 1.0}))
        assert found.draws == (State.ANSWERED, State.UNPARSED, State.ABSTAINED)
        again = one(chat(server, sampling={"samples": 3, "temperature": 1.0}))
        assert again.draws == (State.ANSWERED, State.ANSWERED, State.ABSTAINED)
        assert server.served == 2


@pytest.mark.parametrize(
    ("text", "finish"), [("I'm sorry, I cannot help.", "stop"), ("", "content_filter"), (None, "SAFETY")]
)
def test_what_is_kept_and_of_no_use_names_the_way_out(chat: Make, text: str, finish: str) -> None:
    with Loopback(change=said(text, finish)) as server:
        generator = chat(server)
        assert one(generator).failed
        assert any("lmkbc store prune" in told for told in generator.notes.remarks)
        assert one(chat(server)).failed
        assert server.served == 1
