from __future__ import annotations

import json
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmkbc.cli import build
from lmkbc.errors import InputError, LmkbcError
from lmkbc.models.store import Call, Store

CALL = Call(
    model="m",
    revision="r1",
    base_url="http://a/v1",
    prompt=[{"role": "user", "content": "Who?"}],
    sampling={"temperature": 0.0, "top_p": 0.9, "max_tokens": 5, "stop": ["\n"], "extra": {"a": 1}},
    schema={"type": "object"},
    seed=3,
    draw=0,
)
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


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "store.sqlite")


def test_every_field_of_a_call_is_tried() -> None:
    assert MATTERS.keys() == {field.name for field in fields(Call)}


@pytest.mark.parametrize("name", MATTERS)
def test_what_matters_misses(store: Store, name: str) -> None:
    store.put([(CALL, {"text": "x"})])
    assert store.get(replace(CALL, **{name: MATTERS[name]})) is None
    assert store.get(replace(CALL)) == {"text": "x"}


@pytest.mark.parametrize(
    "change",
    [{"temperature": 0.1}, {"top_p": 0.8}, {"max_tokens": 6}, {"stop": ["."]}, {"extra": {"a": 2}}],
    ids=lambda change: next(iter(change)),
)
def test_every_sampling_parameter_matters(store: Store, change: dict[str, Any]) -> None:
    store.put([(CALL, {"text": "x"})])
    assert store.get(replace(CALL, sampling={**CALL.sampling, **change})) is None


@pytest.mark.parametrize("prompt", ["Who?", [{"role": "user", "content": "Who? "}], []])
def test_every_character_of_the_prompt_matters(store: Store, prompt: Any) -> None:
    store.put([(CALL, {"text": "x"})])
    assert store.get(replace(CALL, prompt=prompt)) is None


@pytest.mark.parametrize(
    "sampling", [dict(reversed(CALL.sampling.items())), {**CALL.sampling, "temperature": 0}], ids=["order", "spelling"]
)
def test_how_the_same_is_written_does_not_matter(store: Store, sampling: dict[str, Any]) -> None:
    store.put([(CALL, {"text": "x"})])
    assert store.get(replace(CALL, sampling=sampling)) == {"text": "x"}


def test_keys_are_the_same_in_every_process() -> None:
    assert Call(model="m", prompt="p").key == "4447bfae831a91569d42ef858946b7401f49a64d19dc0f151b69d95a424ac249"


def test_answers_survive_and_replace_each_other(store: Store) -> None:
    store.put([(CALL, {"text": "x"}), (replace(CALL, draw=1), {"text": "ü\u0000"})])
    store.put([(CALL, {"text": "y"})])
    store.close()
    again = Store(store.path)
    assert again.get(CALL) == {"text": "y"}
    assert again.get(replace(CALL, draw=1)) == {"text": "ü\u0000"}


def test_two_processes_may_write(store: Store) -> None:
    other = Store(store.path)
    store.put([(CALL, 1)])
    other.put([(replace(CALL, draw=1), 2)])
    assert store.get(replace(CALL, draw=1)) == 2


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
    assert not store._db.execute("SELECT * FROM prompts").fetchall()


def test_notes(store: Store) -> None:
    assert store.note("job") is None
    store.set_note("job", {"id": 7})
    assert Store(store.path).note("job") == {"id": 7}
    store.set_note("job", None)
    assert store.note("job") is None


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello " * 100)
    with pytest.raises(InputError, match=r"notes\.txt cannot serve as the store"):
        Store(tmp_path / "notes.txt")
    with pytest.raises(InputError, match="cannot serve as the store"):
        Store(tmp_path)


def test_a_damaged_store_is_told_of(store: Store) -> None:
    calls = [replace(CALL, draw=draw) for draw in range(200)]
    store.put((call, {"text": "x" * 100}) for call in calls)
    store.close()
    raw = bytearray(store.path.read_bytes())
    raw[4096:] = b"\xff" * (len(raw) - 4096)
    store.path.write_bytes(raw)
    with pytest.raises(LmkbcError, match=r"cannot (be read|be written|serve as the store).*--store"):
        Store(store.path).get(CALL)


def test_a_newer_store_is_refused(store: Store) -> None:
    store.close()
    with sqlite3.connect(store.path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InputError, match="newer lmkbc"):
        Store(store.path)


def test_an_export_to_the_screen_cannot_steer_it(store: Store) -> None:
    said = "a\x9b31mb\u202ec\x1b[2J\x7f"
    store.put([(CALL, {"text": said})])
    shown = CliRunner().invoke(build(), ["store", "export", "--store", str(store.path)]).stdout
    assert all(char.isprintable() for char in shown.rstrip("\n"))
    assert json.loads(shown)["answer"]["text"] == said


def test_the_command(store: Store, tmp_path: Path) -> None:
    store.put([(CALL, {"text": "x", "prompt_tokens": 10})])
    run, given = CliRunner(), ["--store", str(store.path)]
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
    missing = run.invoke(build(), ["store", "stats", "--store", str(tmp_path / "none")])
    assert "there is no store" in str(missing.exception)
