"""A run whose texts are made to break a page, and its gold."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from bases import ATTACK, Base, answered, failed

from lmkbc.link.index_sources import build_index
from lmkbc.testing import CandidateSet, Query

RELATIONS = ("CountryBordersCountry", "PersonPlaysInstrument")


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    written = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(written) if path.suffix == ".gz" else written)


def index(folder: Path, count: int = 60) -> Path:
    """An index in which the name "object N" means Q(N + 1) and the better known Q(N + 500)."""
    written = [
        {
            "type": "item",
            "id": f"Q{place + first}",
            "labels": {"en": {"value": ATTACK}},
            "descriptions": {"en": {"value": f"{ATTACK} {first}"}},
            "aliases": {"en": [{"value": f"object {place}"}]},
            "sitelinks": dict.fromkeys(map(str, range(first))),
        }
        for place in range(count)
        for first in (1, 500)
    ]
    lines(folder / "dump.json", written)
    build_index(folder / "index.sqlite", dump=folder / "dump.json")
    return folder / "index.sqlite"


def run(folder: Path, count: int = 60) -> tuple[Path, Path, Path]:
    """The run's directory, the gold file and the replies that the run read."""
    made = folder / "run"
    made.mkdir()
    gold, answers, candidates, replies = [], [], [], []
    for name in RELATIONS:
        for place in range(count):
            query = {"SubjectEntity": f"{ATTACK if place == 3 else 'subject'} {place:03}", "Relation": name}
            true = [] if place % 7 == 6 else [f"Q{place + 1}"]
            gold.append({**query, "ObjectEntities": [f"object {place}" for _ in true], "ObjectEntitiesID": true})
            kept = [f"Q{place + 1}"] if place % 2 else [f"Q{place + 500}", "Q9"][: place % 3]
            answers.append({**query, "ObjectEntitiesID": kept})
            some = [
                {"object": f"object {place}" if place % 4 else ATTACK, "score": 0.7, "id": f"Q{place + 1}"},
                {"object": f"object {place}", "score": 0.6, "id": f"Q{place + 500}", "source": "model#0; other#1"},
                {"object": "nowhere", "score": 0.2},
                {"object": "", "score": 0.1},
            ]
            lost = [[ATTACK, "closed"], ["gone", "no name"]][: place % 3]
            candidates.append({**query, "candidates": some, "pooled": True, "dropped_objects": lost})
            replies.append({**query, "model": ATTACK, "completions": [ATTACK + "x" * (1_000_000 if place == 1 else 9)]})
    lines(made / "predictions.jsonl", answers)
    lines(made / "candidates.jsonl.gz", candidates)
    told = {"edition": "mini", "split": "val", "system": ATTACK, "recipe": {"model": ATTACK}, "counts": {"queries": 9}}
    told["counts"]["dropped_objects"] = {"closed": 2 * count, "link": 2 * count}
    (made / "manifest.json").write_text(json.dumps(told))
    (made / "timing.json").write_text(json.dumps({"seconds": 1.5, "usage": {ATTACK: {"calls": 3}}}))
    lines(folder / "gold.jsonl", gold)
    lines(folder / "replies.jsonl", replies)
    return made, folder / "gold.jsonl", folder / "replies.jsonl"


BORDERS = {
    "Chad": (("Libya", "Q1016", 0.9), (ATTACK, None, 0.6)),
    "Libya": (),
    "Niger": (("Chad", "Q657", 0.8), ("Libyan Jamahiriya", "Q1016", 0.55)),
    "CHAD.": (("Niger", "Q1032", 0.7),),
    "chad": (("Mali", "Q912", 0.7),),
    ATTACK.strip(): (("Chad", "Q657", 0.5), ("Long " + "x" * 10_000, None, 0.52)),
}
"""Subject -> its neighbours: names, QIDs and confidences."""
MANY = 60


def _answer(query: Query) -> CandidateSet:
    if query.relation != "CountryBordersCountry":
        return failed(query) if query.subject == "Niger" else answered(query, (f"{len(query.subject)}", None, 0.7))
    return answered(query, *BORDERS.get(query.subject, (("Hub, the", "Q9", 0.6),)))


def base(folder: Path) -> Base:
    """A knowledge base with hostile names, an entity that many facts name, and facts that do not agree."""
    made = Base(folder, [], shard=32)
    with made.file.open("w", newline="", encoding="utf-8") as file:
        ids = {"Chad": "Q657", "Libya": "Q1016", "Niger": "Q1032"}
        named = [(name, ids.get(name, "")) for name in BORDERS]
        csv.writer(file).writerows([("name", "id"), *named, *((f"Land {n}", f"Q{n + 5000}") for n in range(MANY))])
    again(made)
    return made


def again(made: Base) -> None:
    """Give the command of a base once more."""
    with pytest.MonkeyPatch.context() as patch:
        made.build(patch, _answer, ("country-borders", "children"))
