"""The attacks on linking share a small world to link in, and the command that is quick to ask again."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import Command
from forge import Ended
from link.stand_in import StandIn, item

from lmkbc.link.wikidata import Client

NAMES = [f"Landia {number}" for number in range(8)]
WORLD = {name: [f"Q{7000 + at}", f"Q{8000 + at}"] for at, name in enumerate(NAMES)}
ITEMS = {
    **{qid: item(qid, name, ["Q6256"], links=2) for name, ids in WORLD.items() for qid in ids},
    "Q6256": item("Q6256", "country"),
}
CONTACT = "Jane Doe, jane@example.org"
QUICK = f"""
import os
os.environ["LMKBC_CONTACT"] = {CONTACT!r}
from lmkbc.link import index_sources
from lmkbc.link.wikidata import Client
Client.__init__.__kwdefaults__.update(rate=1000.0, patience=6.0)
index_sources.LINES_PER_SAVE = 40
"""
"""The command as it is, but for the patience that real servers are due."""
Link = Callable[..., Ended]


def predictions(folder: Path) -> Path:
    """Write a file of names that only the search knows, a number and nothing."""
    rows: list[Mapping[str, object]] = [
        {"SubjectEntity": f"River {at}", "Relation": "RiverBasinsCountry", "ObjectEntities": [name, "Nowhere", "Q7000"]}
        for at, name in enumerate(NAMES)
    ]
    rows.append({"SubjectEntity": "Ada", "Relation": "PersonHasNumberOfChildren", "ObjectEntities": ["3"]})
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def link(url: str, *more: object) -> list[object]:
    """Return the command that links the predictions of the working folder."""
    return ["link", "predictions.jsonl", "--out", "linked.jsonl", "--edition", "mini", "--api-url", url, *more]


def world(**settings: Any) -> StandIn:
    """Return a stand-in that knows the names."""
    return StandIn(WORLD, ITEMS, **settings)


def checked(ended: Ended) -> Ended:
    """Require that a command ends well, or with one sentence that says why; never with a traceback."""
    assert ended.code in (0, 1, 2), ended
    assert "Traceback" not in ended.err, ended.err
    assert "ExceptionGroup" not in ended.err, ended.err
    assert not ended.code or [line for line in ended.err.splitlines() if line.startswith("error: ")], ended.err
    return ended


def linking(folder: Path, environment: Mapping[str, str], patch: pytest.MonkeyPatch, command: Command) -> Link:
    """Return the command in this process and a folder. client: its own settings, such as seconds a request."""
    for name, value in {**environment, "LMKBC_CONTACT": CONTACT}.items():
        patch.setenv(name, value)
    patch.chdir(folder)
    usual = Client.__init__.__kwdefaults__ or {}

    def run(url: str, *arguments: object, **client: float) -> Ended:
        patch.setattr(Client.__init__, "__kwdefaults__", usual | {"rate": 1000.0, "patience": 6.0} | client)
        return checked(Ended(*command(*link(url, *arguments)), 0.0))

    return run
