"""Servers that fail in every way known: no failure becomes an answer, none is kept, and no run ends in a traceback."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_faults import AN_ANSWER, NO_ANSWER, SLOW
from forge import Ended, Forge
from loopback import Loopback
from places import CANARY, FINISHED, Places, tree

BESIDE = ["timing.json", "report.html"]


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(keep=False) as running:
        yield running


def asked(places: Places, folder: Path, server: Loopback, timeout: float = 20.0) -> Sequence[object]:
    return [
        "predict",
        "--system",
        places.chat(timeout=timeout),
        "--base-url",
        server.url,
        "--edition",
        "mini",
        "--data",
        places.data,
        "--out",
        folder / "out",
        "--store",
        folder / "store.sqlite",
    ]


def run(forge: Forge, places: Places, folder: Path, server: Loopback, timeout: float = 20.0) -> Ended:
    """One run, of which the key is nowhere and which ends as it should, well or ill."""
    ended = forge.run(asked(places, folder, server, timeout), places.environment(folder), timeout=120)
    assert ended.code in (0, 1, 2), ended
    assert "Traceback" not in ended.err, ended.err
    assert CANARY not in ended.out + ended.err
    assert not [name for name, content in tree(folder).items() if CANARY.encode() in content]
    return ended


@pytest.fixture(scope="module")
def healthy(
    forge: Forge, places: Places, server: Loopback, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The run that nothing disturbs."""
    folder = tmp_path_factory.mktemp("healthy")
    server.fault = None
    ended = run(forge, places, folder, server)
    assert ended.code == 0, ended.err
    return tree(folder / "out", BESIDE)


@pytest.mark.listed
@pytest.mark.parametrize("name", NO_ANSWER)
def test_chat_faults(
    forge: Forge, places: Places, server: Loopback, healthy: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    server.fault, timeout = NO_ANSWER[name], 0.4 if name in SLOW else 20.0
    ended = run(forge, places, tmp_path, server, timeout)
    assert ended.code == 1, f"exit {ended.code}: {ended.err}"
    assert not set(FINISHED) & set(tree(tmp_path / "out"))
    server.fault, before = None, server.served
    again = run(forge, places, tmp_path, server)
    assert again.code == 0, again.err
    assert server.served - before == places.rows, "a failure was kept as an answer"
    assert predictions(tree(tmp_path / "out", BESIDE)) == predictions(healthy)


@pytest.mark.listed
@pytest.mark.parametrize("name", AN_ANSWER)
def test_chat_oddities(
    forge: Forge, places: Places, server: Loopback, healthy: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    server.fault = AN_ANSWER[name]
    ended = run(forge, places, tmp_path, server)
    assert ended.code == 0, ended.err
    assert predictions(tree(tmp_path / "out", BESIDE)) == predictions(healthy)
    server.fault, before = None, server.served
    run(forge, places, tmp_path, server)
    assert server.served == before, "an answer was not kept"


def predictions(run: dict[str, bytes]) -> dict[str, Any]:
    """A run's files, less the manifest, which names the recipe with its time-outs, and less what only an odd reply has.

    That is its log-probabilities, which replies keep.
    """
    kept: dict[str, Any] = {name: content for name, content in run.items() if name != "manifest.json"}
    rows = map(json.loads, gzip.decompress(kept.pop("replies.jsonl.gz")).splitlines())
    return kept | {"replies": [{key: value for key, value in row.items() if key != "logprobs"} for row in rows]}
