"""What the attacks on linking share: a small world to link in, the command run fast and killed, damage to files.

`--attack N` asks for N draws of each attack that is drawn and for all of those that are listed; without it a few are
tried.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from link.stand_in import StandIn, item

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 240.0
"""Seconds after which a command counts as hanging: far more than any takes on a busy machine."""
SAMPLE = 16
"""Of listed cases, each so manieth is tried without --attack."""
NAMES = [f"Landia {number}" for number in range(8)]
WORLD = {name: [f"Q{7000 + at}", f"Q{8000 + at}"] for at, name in enumerate(NAMES)}
ITEMS = {
    **{qid: item(qid, name, ["Q6256"], links=2) for name, ids in WORLD.items() for qid in ids},
    "Q6256": item("Q6256", "country"),
}
DRIVER = """
import sys
from lmkbc import cli
from lmkbc.link import dump
from lmkbc.link.wikidata import Client
Client.__init__.__kwdefaults__.update(rate=1000.0, backoff=0.01, patience={patience})
dump.LINES_PER_SAVE = 40
cli.main()
"""
"""The command as it is, but for the patience that real servers are due."""


def cases(metafunc: pytest.Metafunc, listed: Sequence[Any]) -> Sequence[Any]:
    """All listed cases, or a few of them where the whole attack was not asked for."""
    return listed if metafunc.config.getoption("attack", default=None) else listed[::SAMPLE]


def draws(metafunc: pytest.Metafunc) -> range:
    """Seeds: as many as --attack says, else one."""
    return range(metafunc.config.getoption("attack", default=None) or 1)


class Ended(NamedTuple):
    """How a command ended: its exit status and what it wrote to standard error."""

    code: int
    told: str

    def check(self) -> Ended:
        """A command ends well, or with one sentence that says why; never with a traceback."""
        assert self.code in (0, 1, 2), self
        assert "Traceback" not in self.told, self.told
        assert "ExceptionGroup" not in self.told, self.told
        if self.code:
            assert [line for line in self.told.splitlines() if line.startswith("error: ")], self.told
        return self


def environment(folder: Path) -> dict[str, str]:
    """A user's, with a cache of its own. No proxy stands before the loopback."""
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return kept | {
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LMKBC_CONTACT": "Jane Doe, jane@example.org",
    }


def run(folder: Path, *arguments: object, kill_after: float | None = None) -> Ended:
    """Run `lmkbc` in a process of its own; `kill_after` seconds SIGKILL ends it, which gives the code -9."""
    command = [sys.executable, "-c", DRIVER.format(patience=60.0), *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _, told = process.communicate(timeout=LONGEST if kill_after is None else kill_after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        _, told = process.communicate()
        assert kill_after is not None, f"hangs: {arguments}"
    return Ended(process.returncode, told)


def killed_until_done(
    folder: Path, seconds: float, draw: random.Random, arguments: Sequence[object], between: Callable[[], None]
) -> int:
    """Kill a command one to three times at random moments, then let it finish. Returns how often a kill struck."""
    kills = 0
    for _ in range(draw.choice((1, 2, 3))):
        ended = run(folder, *arguments, kill_after=draw.uniform(0, seconds))
        kills += ended.code == -signal.SIGKILL
        assert ended.code in (0, -signal.SIGKILL), ended.told
        between()
    ended = run(folder, *arguments)
    assert ended.check().code == 0, ended.told
    return kills


def predictions(folder: Path) -> Path:
    """A file of names that only the search knows, a number and nothing."""
    rows: list[Mapping[str, object]] = [
        {"SubjectEntity": f"River {at}", "Relation": "RiverBasinsCountry", "ObjectEntities": [name, "Nowhere", "Q7000"]}
        for at, name in enumerate(NAMES)
    ]
    rows.append({"SubjectEntity": "Ada", "Relation": "PersonHasNumberOfChildren", "ObjectEntities": ["3"]})
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def link(folder: Path, url: str, *more: object) -> list[object]:
    """The command that links the predictions of a folder."""
    return ["link", "predictions.jsonl", "--out", "linked.jsonl", "--edition", "mini", "--api-url", url, *more]


def world(**settings: Any) -> StandIn:
    """A stand-in that knows the names."""
    return StandIn(WORLD, ITEMS, **settings)


def flipped(raw: bytes, draw: random.Random) -> bytes:
    """One bit is another."""
    at = draw.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << draw.randrange(8)]) + raw[at + 1 :]


def overwritten(raw: bytes, draw: random.Random) -> bytes:
    """A page is another's, as after a torn write."""
    at, size = draw.randrange(len(raw)), draw.choice((1, 64, 4096))
    return raw[:at] + draw.randbytes(min(size, len(raw) - at)) + raw[at + size :]


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a flipped bit": flipped,
    "many flipped bits": lambda raw, draw: flipped(flipped(flipped(raw, draw), draw), draw),
    "other bytes": overwritten,
    "cut": lambda raw, draw: raw[: draw.randrange(len(raw))],
    "cut in half": lambda raw, draw: raw[: len(raw) // 2],
    "empty": lambda raw, draw: b"",
    "zeros": lambda raw, draw: bytes(len(raw)),
    "longer": lambda raw, draw: raw + draw.randbytes(4096),
    "twice": lambda raw, draw: raw + raw,
    "no file of its kind": lambda raw, draw: b"PK\x03\x04" + draw.randbytes(500),
    "JSON null": lambda raw, draw: b"null\n",
    "a JSON list": lambda raw, draw: b'[{"x": []}]\n',
    "deep JSON": lambda raw, draw: b"[" * 10**5,
    "a JSON number": lambda raw, draw: b"1e999\n",
    "broken gzip": lambda raw, draw: b"\x1f\x8b\x08\x00" + draw.randbytes(500),
    "no UTF-8": lambda raw, draw: raw.replace(b"a", b"\xff"),
}
