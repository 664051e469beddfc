"""The Batch API when it fails: a line that is missing, double, unknown or broken costs its own query and no other."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from forge import Ended, Forge
from loopback import Loopback
from places import CANARY, FINISHED, Places, tree

BESIDE = ["timing.json", "report.html"]
Lines = list[dict[str, Any]]


def first(**changes: Any) -> Callable[[Lines], list[Any]]:
    return lambda lines: [{**lines[0], **changes}, *lines[1:]]


def body(**changes: Any) -> Callable[[Lines], list[Any]]:
    return lambda lines: [
        {**lines[0], "response": {"status_code": 200, "body": {**lines[0]["response"]["body"], **changes}}},
        *lines[1:],
    ]


FAILED: dict[str, Callable[[Lines], list[Any]]] = {
    "two answers to one call": lambda lines: [*lines, body(usage=None)(lines)[0]],
    "a line missing": lambda lines: lines[1:],
    "all lines missing": lambda _: [],
    "an unknown id": first(custom_id="of nobody"),
    "an id that is no text": first(custom_id=7),
    "no id": lambda lines: [{name: value for name, value in lines[0].items() if name != "custom_id"}, *lines[1:]],
    "no response": first(response=None),
    "an error in place of a response": first(response=None, error={"code": "expired", "message": f"late, {CANARY}"}),
    "a response that is no object": first(response=[1]),
    "status 500": first(response={"status_code": 500, "body": {}}),
    "status 200 without a body": first(response={"status_code": 200}),
    "a body without choices": body(choices=[]),
    "a body with an error": body(choices=None, error={"message": "overloaded"}),
    "another model": body(model="some-other-model"),
    "a broken line": lambda lines: ["{", *lines[1:]],
    "a list for a line": lambda lines: [[], *lines[1:]],
    "a key twice": lambda lines: [
        f'{{"custom_id": {json.dumps(lines[0]["custom_id"])}, "custom_id": "x"}}',
        *lines[1:],
    ],
}
ANSWERED: dict[str, Callable[[Lines], list[Any]]] = {
    "a line twice": lambda lines: [*lines, lines[0]],
    "lines in another order": lambda lines: lines[::-1],
    "lines of others": lambda lines: [*lines, {"custom_id": "of nobody"}, "{", [], 1, None],
    "blank lines": lambda lines: ["", *lines, "", "  "],
    "fields of its own": first(x={"y": 1}),
}


def run(forge: Forge, places: Places, folder: Path, server: Loopback) -> Ended:
    where: Sequence[object] = ["--edition", "mini", "--data", places.data, "--store", folder / "store.sqlite"]
    asked = ["--system", places.chat("batch"), "--base-url", server.url, "--out", folder / "out"]
    ended = forge.run(["predict", *asked, *where], places.environment(folder), timeout=120)
    assert ended.code in (0, 1, 2), ended
    assert "Traceback" not in ended.err, ended.err
    assert CANARY not in ended.out + ended.err
    assert not [name for name, content in tree(folder).items() if CANARY.encode() in content]
    return ended


@pytest.fixture(scope="module")
def healthy(forge: Forge, places: Places, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("healthy")
    with Loopback(keep=False) as server:
        assert run(forge, places, folder, server).code == 0
    return tree(folder / "out", BESIDE)


@pytest.mark.listed
@pytest.mark.parametrize("name", [*FAILED, *ANSWERED])
def test_batch_faults(forge: Forge, places: Places, healthy: dict[str, bytes], tmp_path: Path, name: str) -> None:
    with Loopback(keep=False) as server:
        server.edit = {**FAILED, **ANSWERED}[name]
        ended = run(forge, places, tmp_path, server)
        if name in ANSWERED:
            assert ended.code == 0, ended.err
        else:
            assert ended.code == 1, f"exit {ended.code}: {ended.err}"
            assert not set(FINISHED) & set(tree(tmp_path / "out"))
            server.edit = None
            assert run(forge, places, tmp_path, server).code == 0
        assert tree(tmp_path / "out", BESIDE) == healthy
