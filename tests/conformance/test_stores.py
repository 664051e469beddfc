"""Every back end of the store must pass this: a file, and a database that workers on many machines share."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from calls import CALL
from typer.testing import CliRunner

from lmkbc import InputError
from lmkbc.cli import build
from lmkbc.models.answers import Store
from lmkbc.models.base import Call
from lmkbc.models.store_place import Database

MATTERS: dict[str, Any] = {
    "model": "m2",
    "revision": "r2",
    "base_url": "http://b/v1",
    "prompt": [{"role": "system", "content": "Who?"}],
    "sampling": {},
    "schema": None,
    "seed": 4,
    "draw": 1,
}


PLACES: dict[type, Callable[[pytest.FixtureRequest], Any]] = {
    Path: lambda request: request.getfixturevalue("tmp_path") / "deep" / "store.sqlite",
    Database: lambda request: Database(request.getfixturevalue("postgres").fresh("stores")),
}
"""Kind of place -> where a new store is to lie."""


@pytest.fixture(params=PLACES, ids=lambda kind: kind.__name__)
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    opened = Store(PLACES[request.param](request))
    yield opened
    opened.close()


def url(store: Store) -> str:
    return store.place.url if isinstance(store.place, Database) else str(store.place)


def execute(store: Store, sql: str) -> list[Any]:
    """Return what SQL gives that names tables as in {answers}."""
    prefix = "lmkbc_" if isinstance(store.place, Database) else ""
    db = store._rows._db
    cursor = db.execute(re.sub(r"{(\w+)}", rf"{prefix}\1", sql))
    found = cursor.fetchall() if cursor.description else []
    db.commit()
    return found


def rows(store: Store, table: str) -> list[Any]:
    return execute(store, f"SELECT * FROM {{{table}}}")


def test_every_field_of_a_call_is_tried() -> None:
    assert MATTERS.keys() == {field.name for field in fields(Call)}


MISSES = [
    *({name: value} for name, value in MATTERS.items()),
    *(
        {"sampling": {**CALL.sampling, **change}}
        for change in ({"temperature": 0.1}, {"top_p": 0.8}, {"max_tokens": 6}, {"stop": ["."]}, {"extra": {"a": 2}})
    ),
    *({"prompt": prompt} for prompt in ("Who?", [{"role": "user", "content": "Who? "}], [])),
]


@pytest.mark.parametrize("change", MISSES, ids=str)
def test_what_matters_misses(store: Store, change: dict[str, Any]) -> None:
    """Every field of a call, every parameter of its sampling, every character of its prompt."""
    store.put([(CALL, {"text": "x"})])
    assert store.get(replace(CALL, **change)) is None
    assert store.get(replace(CALL)) == {"text": "x"}


@pytest.mark.parametrize(
    "sampling", [dict(reversed(CALL.sampling.items())), {**CALL.sampling, "temperature": 0}], ids=["order", "spelling"]
)
def test_how_the_same_is_written_does_not_matter(store: Store, sampling: dict[str, Any]) -> None:
    store.put([(CALL, {"text": "x"})])
    assert store.get(replace(CALL, sampling=sampling)) == {"text": "x"}


def test_answers_survive_and_the_first_one_stays(store: Store) -> None:
    later = replace(CALL, draw=1)
    assert not store.put([(CALL, {"text": "x"})])
    assert store.put([(CALL, {"text": "y"}), (later, {"text": "ü\u0000"})]) == {CALL.key}
    again = Store(store.place)
    assert [again.get(CALL), again.get(later)] == [{"text": "x"}, {"text": "ü\u0000"}]
    again.drop(CALL)
    assert store.get(CALL) is None
    assert not store.put([(CALL, {"text": "y"})])
    assert again.get(CALL) == {"text": "y"}
    assert not store.put([])
    again.close()


def test_stats_export_and_prune(store: Store) -> None:
    answer = {"text": "x", "prompt_tokens": 10, "completion_tokens": 2}
    store.put([(CALL, answer), (replace(CALL, draw=1), answer), (replace(CALL, model="m2"), {"text": "y"})])
    first, second = store.stats()
    assert (first["answers"], first["prompts"], first["prompt_tokens"], first["completion_tokens"]) == (2, 1, 20, 4)
    assert (second["model"], second["prompt_tokens"]) == ("m2", 0)
    lines = [json.loads(line) for line in store.export("m2")]
    assert [(line["call"]["model"], line["prompt"], line["answer"]) for line in lines] == [
        ("m2", CALL.prompt, {"text": "y"})
    ]
    assert len(list(store.export())) == 3
    assert store.prune(before="2020-01-01") == 0
    assert store.prune(model="m") == 2
    assert store.get(CALL) is None
    assert store.prune() == 1
    assert not store.stats()
    assert not rows(store, "prompts")


def test_notes(store: Store) -> None:
    assert store.note("job") is None
    store.set_note("job", {"id": 7})
    assert Store(store.place).note("job") == {"id": 7}
    store.set_note("job", None)
    assert store.note("job") is None


def test_numbers_of_tokens_are_of_the_answer_and_not_of_its_text(store: Store) -> None:
    text = '\u0000 "prompt_tokens":7 '
    store.put([(CALL, {"text": text, "prompt_tokens": 3}), (replace(CALL, draw=1), [1]), (replace(CALL, draw=2), 1)])
    (found,) = store.stats()
    assert (found["answers"], found["prompt_tokens"]) == (3, 3)


def test_every_character_is_kept_wherever_it_stands(store: Store) -> None:
    odd = "a\0b\ufffe\U0010ffff"
    calls = [replace(CALL, model=odd), replace(CALL, prompt=odd), replace(CALL, sampling={"stop": [odd]})]
    store.put((call, {"text": odd}) for call in calls)
    assert [store.get(call) for call in calls] == [{"text": odd}] * 3
    assert [row["answers"] for row in store.stats()] == [1, 2]
    (line,) = store.export(odd)
    assert json.loads(line)["call"]["model"] == odd
    assert store.prune(model=odd) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_exports_and_models_are_in_one_order(store: Store, order: int) -> None:
    names = ["Z", "a", "ä", "B", "_", "a b"]
    store.put((replace(CALL, model=name), {"text": name}) for name in names[::order])
    assert [row["model"] for row in store.stats()] == sorted(names, key=str.encode)
    keys = [json.loads(line)["key"] for line in store.export()]
    assert keys == sorted(keys)


@pytest.mark.parametrize("broken", ["{", '{"words": 1}'])
def test_what_cannot_be_read_is_asked_again(store: Store, broken: str) -> None:
    class Answer(msgspec.Struct):
        text: str

    store.put([(CALL, {"text": "x"})])
    execute(store, f"UPDATE {{answers}} SET answer = '{broken}'")
    assert store.get(CALL, Answer) is None
    assert not store.put([(CALL, {"text": "y"})])
    assert store.get(CALL, Answer) == Answer("y")


@pytest.mark.parametrize("version", [1, 99])
def test_a_store_of_another_version_is_refused(store: Store, version: int) -> None:
    in_file = f"PRAGMA user_version = {version}"
    execute(store, f"UPDATE {{version}} SET version = {version}" if isinstance(store.place, Database) else in_file)
    with pytest.raises(InputError, match=r"another version of lmkbc.*--store"):
        Store(store.place)


def test_the_command(store: Store, tmp_path: Path) -> None:
    store.put([(CALL, {"text": "x", "prompt_tokens": 10})])
    run, given = CliRunner(), ["--store", url(store)]
    shown = run.invoke(build(), ["store", "stats", "--json", *given])
    assert json.loads(shown.stdout)[0]["prompt_tokens"] == 10
    assert run.invoke(build(), ["store", "export", "--out", str(tmp_path / "x.jsonl"), *given]).exit_code == 0
    assert json.loads((tmp_path / "x.jsonl").read_bytes())["key"] == CALL.key
    assert json.loads(run.invoke(build(), ["store", "export", *given]).stdout)["key"] == CALL.key
    for wrong, said in ((["prune", *given], "what to drop"), (["prune", "--before", "May", *given], "YYYY-MM-DD")):
        error = run.invoke(build(), ["store", *wrong]).exception
        assert said in str(error)
    assert run.invoke(build(), ["store", "prune", "--all", *given]).exit_code == 0
    assert not store.stats()
