"""Whatever a server answers, a command ends with a sentence, and nothing is kept that a later run cannot read."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command
from languages import CONTACT, DATES, DESIGNERS, WEIGHTS, client, relation
from loopback import OK, Request, Sent, response
from wikidata_server import Amount, Day, WikidataServer, item, prop

from lmkbc import LmkbcError
from lmkbc.domain.labelled import make_data
from lmkbc.link.wikidata import Client

Edit = Callable[[Any], Any]
ITEM = "http://www.wikidata.org/entity/"
MOTTOS = relation("motto", "P856", "string")
RELATIONS = (DESIGNERS, DATES, WEIGHTS, MOTTOS)
BODIES = {
    "deep": b"[" * 10**5,
    "deep and cut off": b'{"results":' + b'{"x":' * 10**5,
    "nothing": b"",
    "no text": b"\xff\xfe",
    "a page": b"<html>",
}


def cell(*names: str, **value: Any) -> Edit:
    """Set the fields of some cells in each second row, and leave the others."""

    def edit(answer: Any) -> Any:
        for row in answer["results"]["bindings"][::2]:
            for name in {*names} & row.keys():
                row[name] |= value
        return answer

    return edit


VALUES = (
    *(
        "abc",
        "",
        "NaN",
        "Infinity",
        "-inf",
        "1E+100000000",
        "1e-100000000",
        "9" * 5000,
        "1_000",
        "0x10",
        "--1",
        "1e400",
    ),
    *(
        "1e400",
        "+" + "9" * 5000 + "-01-01T00:00:00Z",
        "9" * 16 + "-01-01T00:00:00Z",
        "2000-99-99T00:00:00Z",
        "0000-00-00T",
    ),
    *("\u0661\u0662", "a\x00b", "\x1b[31mred", "x" * 20_000, f"{ITEM}Q0", f"{ITEM}Q{'9' * 5000}", f"{ITEM}P31"),
    *("_:b1", "http://evil.example/Q1", f"{ITEM}Q1> . <x", "9" * 31, "1." + "1" * 200, "\u2028", "12\n13"),
)
WHOLE: dict[str, Edit] = {
    **{f"value {text[:30]!r}": cell("value", value=text) for text in VALUES},
    **{f"count {text[:9]!r}": cell("count", value=text) for text in ("abc", "-5", "1E5", "9" * 5000, "", "5.0", "NaN")},
    **{f"links {text[:9]!r}": cell("links", value=text) for text in ("abc", "\u0661", "9" * 5000, "-1", "1.5")},
    **{f"precision {text[:9]!r}": cell("precision", value=text) for text in ("99", "abc", "", "9" * 5000, "11.0")},
    **{f"label {text[:9]!r}": cell("label", "name", value=text) for text in ("", "\x00", "\x1b]0;x\x07", "x" * 20_000)},
    **{f"subject {text[:30]!r}": cell("subject", "item", value=text) for text in ("", "x", f"{ITEM}Q{'9' * 99}")},
    "a calendar that is none": cell("calendar", value="x"),
    "a unit that is no address": cell("unit", value="grams"),
    "a unit that is endless": cell("unit", value="Q" * 10**5),
    "cells of a number": cell("value", "count", "item", value=5),
    "cells of nothing": cell("value", "count", "item", value=None),
    "cells of a list": cell("value", "count", "item", value=[]),
    "nodes without names": cell("value", "subject", "item", type="bnode"),
    "rows that are lists": lambda _: {"results": {"bindings": [[]]}},
    "empty rows": lambda _: {"results": {"bindings": [{}] * 500}},
    "no rows": lambda _: {"results": {"bindings": []}},
    "no results": lambda _: {},
    "a list": lambda _: [],
    "results that are a list": lambda _: {"results": []},
    "an error": lambda _: {"error": {"code": "x\x1b[31m", "info": "y\n" * 999}},
}


class Hostile(WikidataServer):
    """Edits each answer before it is sent. edit: None for good answers; bytes are sent as they are."""

    edit: Edit | bytes | None = None

    def respond(self, request: Request) -> Sent:
        good = super().respond(request)
        if self.edit is None:
            return good
        if isinstance(self.edit, bytes):
            return response(self.edit, OK)
        return response(json.dumps(self.edit(json.loads(good.raw.partition(b"\r\n\r\n")[2]))).encode(), OK)


@pytest.fixture(scope="module")
def served() -> Iterator[Hostile]:
    people = [item(f"Q{2000 + at}", f"Person {at}", aliases=[f"P. {at}"]) for at in range(9)]
    claims = [
        {
            "P31": ["Q9143"],
            "P287": [f"Q{2000 + at % 9}"],
            "P571": [Day(f"{1950 + at}-03-05T00:00:00Z", 11)],
            "P2067": [Amount(f"+{at + 1}.50", "Q41803" if at % 2 else "Q11570")],
            "P856": [f"Motto {at}"],
        }
        for at in range(24)
    ]
    made = [item(f"Q{1001 + at}", f"Lang {at}", each, links=at) for at, each in enumerate(claims)]
    kinds = [item("Q9143", "programming language"), item("Q11570", "kilogram"), item("Q5", "human")]
    with Hostile([*kinds, *people, *made, prop("P571", "inception", "time")]) as stand_in:
        yield stand_in


@pytest.fixture
def world(served: Hostile) -> Iterator[Hostile]:
    served.edit = None
    yield served
    served.edit = None


def make(world: Hostile, folder: Path) -> dict[str, Any] | LmkbcError:
    """Make data of items, dates, numbers and texts, and return how each was drawn, or the error."""
    asks = client(world.sparql, patience=0.1)
    made: dict[str, Any] | LmkbcError
    try:
        made = make_data(RELATIONS, folder / "data", client=asks, cache=folder / "cache", per_relation=9)
    except LmkbcError as error:
        made = error
    assert isinstance(made, dict) or (str(made).isprintable() and len(str(made)) < 1000), repr(str(made))
    return made


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.whole if place % 4 else ()) for place, case in enumerate(WHOLE)]
)
def test_data_are_made_without_what_cannot_be_read(world: Hostile, tmp_path: Path, case: str) -> None:
    world.edit = WHOLE[case]
    make(world, tmp_path)
    world.edit = None
    assert isinstance(make(world, tmp_path), dict), "what cannot be read was kept"


def test_an_answer_that_an_earlier_version_kept_is_asked_for_again(world: Hostile, tmp_path: Path) -> None:
    make(world, tmp_path)
    with sqlite3.connect(tmp_path / "cache") as kept:
        kept.execute("""UPDATE answers SET answer = replace(answer, '"count":"24"', '"count":"abc"')""")
    asked = world.served
    assert isinstance(make(world, tmp_path), dict)
    assert world.served - asked == len(RELATIONS), "the counts"


@pytest.fixture
def space(command: Command, world: Hostile, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Calls of a server that are soon given up, and a workspace of one relation."""
    monkeypatch.setenv("LMKBC_CONTACT", CONTACT)
    quick = {"rate": 1000.0, "patience": 0.1}
    monkeypatch.setattr(Client.__init__, "__kwdefaults__", (Client.__init__.__kwdefaults__ or {}) | quick)
    command.done("init", "space")
    command.done("relations", "new", "P571", "--of", "Q9143", "--api-url", world.api, "--workspace", "space")
    return command


def test_the_command_names_what_it_left_out_and_goes_on_with_a_good_server(space: Command, world: Hostile) -> None:
    words = ("data", "make", "--workspace", "space", "--endpoint", world.sparql)
    for world.edit in (*BODIES.values(), lambda answer: [answer]):
        assert "a broken reply" in space.fails(*words, status=1)
    world.edit = cell("precision", value="99")
    _, told = space.done(*words)
    assert "inception: subjects that are left out, since they cannot be gold: 12 with a date of an unknown" in told
