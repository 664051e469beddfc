"""`lmkbc audit --known wikidata`, over a stand-in of Wikidata: marks, coverage, etiquette, and a run that goes on."""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import polars as pl
import pytest
from bases import fact, written
from command import Command
from wikidata_server import Amount, WikidataServer, item

CONTACT = "Jane Doe, jane@example.org"
SUBJECTS = 240
"""Subjects of the base, Q1 and so on: five requests."""
ABSENT = SUBJECTS
"""The last subject, which Wikidata has no item of."""


def wikidata(delay: float = 0.0) -> WikidataServer:
    items = [item(f"Q{at}", f"subject {at - 1}", {"P47": ["Q1001"]} if at % 2 else {}) for at in range(1, SUBJECTS)]
    items[0]["claims"] |= item("Q1", "", {"P1971": [Amount("+9")], "P2046": [Amount("+10000", "Q35852")]})["claims"]
    merged = {"Q2": "Q777"}
    old = [each for each in items if each["id"] != "Q2"]
    return WikidataServer(
        [*old, item("Q777", "subject 1", {"P1971": [Amount("+4")]}), item("Q1001", "Nigér")], merged, delay=delay
    )


@pytest.fixture
def run(command: Command) -> Command:
    borders = [
        fact(at, "country-borders", "Niger", 0.9, object_id="Q1001" if at % 3 else None) for at in range(SUBJECTS)
    ]
    numbers = [fact(at, "children", "4", 0.9, literal="4") for at in range(2)]
    area = fact(0, "area", "100", 0.9, literal="100")
    nameless = fact(SUBJECTS, "children", "2", 0.9, subject="Nobody", subject_id=None, literal="2")
    written(Path("kb"), [*borders, *numbers, area, nameless])
    return command.under("audit", "kb", "--known", "wikidata")


def test_facts_beside_what_wikidata_answers(run: Command) -> None:
    throttled: list[int] = []

    def fault(number: int, params: Mapping[str, str]) -> str | None:
        throttled.extend([number] * (not throttled))
        return "429" if throttled == [number] else None

    with wikidata(delay=0.35) as world:
        world.fault = fault
        options = ("--api-url", world.api, "--contact", CONTACT)
        _, told = run.done(*options, "--out", "marked.csv")
        served = world.served
        run.done("--offline", *options[:2], "--out", "again.csv")
        assert world.served == served
        run.done("--refresh", *options, "--out", "anew.csv")
        assert world.served > served
    assert throttled != []
    assert served == 5 + 1 + 1  # the throttled request again, and the label of Q1001
    assert 1 < world.most_at_once <= 3
    assert all(f"({CONTACT})" in head for head in world.headers)
    asked = [
        set(unquote(head).partition("ids=")[2].partition("&")[0].split("|")) for head in world.headers[: served - 1]
    ]
    assert set().union(*asked) == {f"Q{at}" for at in range(1, SUBJECTS + 1)}
    named = f"2 subjects, whose facts are therefore not called new: subject {ABSENT - 1} (Q{ABSENT}), Nobody (no QID)"
    assert told.splitlines()[0].endswith(named)
    marked = pl.read_csv("marked.csv", infer_schema=False)
    assert marked.equals(pl.read_csv("again.csv", infer_schema=False))
    marks = {(row["subject"], row["relation"]): row["mark"] for row in marked.iter_rows(named=True)}
    expected = {
        (f"subject {at}", "country-borders"): "new" if at % 2 else "known" for at in range(SUBJECTS - 1)
    }  # by QID, and by label where the base has none
    expected |= {
        (f"subject {ABSENT - 1}", "country-borders"): "not covered",
        ("subject 0", "children"): "contradicting",
        ("subject 1", "children"): "known",  # its item was merged
        ("subject 0", "area"): "known",  # in hectares
        ("Nobody", "children"): "not covered",
    }
    assert marks == expected


def test_objects_that_were_merged_are_followed(command: Command) -> None:
    objects = {"Q3001": "known", "Q1002": "known", "Q1003": "new"}
    written(
        Path("kb"),
        [fact(at, "country-borders", item, 0.9, object_id=item) for at, item in enumerate(objects)],
    )
    borders = {"Q1": ["Q1001"], "Q2": ["Q3002"], "Q3": ["Q1001"]}
    items = [item(qid, qid, {"P47": known}) for qid, known in borders.items()]
    items += [item(qid, qid) for qid in ("Q1001", "Q1002", "Q1003")]
    with WikidataServer(items, {"Q3001": "Q1001", "Q3002": "Q1002"}) as world:
        options = ("--known", "wikidata", "--api-url", world.api, "--contact", CONTACT)
        command.done("audit", "kb", *options, "--out", "marked.csv")
    marked = pl.read_csv("marked.csv", infer_schema=False)
    assert dict(marked.select("object", "mark").rows()) == objects


def test_a_run_that_failed_goes_on_with_what_it_lacks(run: Command) -> None:
    with wikidata() as world:
        world.fault = lambda _, params: "400" if "Q9|" in params.get("ids", "") else None
        options = ("--api-url", world.api, "--contact", CONTACT, "--json")
        assert "answered HTTP 400" in run.fails(*options, status=1)
        answered, world.fault = world.served - 1, lambda *_: None
        run.done(*options)
        assert world.served == answered + 1 + (5 - answered) + 1
    assert answered > 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "set LMKBC_CONTACT, or --contact where a command has it, to your name"),
        (("--offline",), "offline, and the cache lacks values of P1971|P2046|P47 answers for 240 names or ids"),
        (("--known", "known.csv"), "--known names wikidata and more: give wikidata alone, or files"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(run: Command, words: tuple[str, ...], told: str) -> None:
    status, shown, error = run(*words)
    assert (status, shown, error.count("\n"), told in error) == (1 if "--offline" in words else 2, "", 1, True), error


def test_options_of_wikidata_without_it_have_no_effect(command: Command) -> None:
    written(Path("kb"), [fact(0, "children", "4", 0.9, literal="4")])
    for words in (("--contact", CONTACT), ("--offline",), ("--refresh",), ("--api-url", "http://127.0.0.1/")):
        assert f"{words[0]} is of questions to Wikidata" in command.fails("audit", "kb", *words)
    assert json.loads(command.done("audit", "kb", "--sample", "10", "--json")[0])["uncovered"] == []
