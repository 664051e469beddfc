"""Finished knowledge bases of facts that a test names, without a build."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
from space import SPACE

from lmkbc.build import manifest, parts
from lmkbc.build.facts import FACTS, MISSING, NOTHING, Tables
from lmkbc.build.settle import REMOVED, Settled

RUN = "0" * 16
ATTACK = '<script>window.broken = 1</script>"><img src=x onerror="window.broken = 2">{{ 7 * 7 }}</script>\u2028'


def fact(row: int, relation: str, object_: str, confidence: float, **more: Any) -> dict[str, Any]:
    """A row of facts: subject N is QN."""
    known = SPACE.relations[relation]
    about = {"subject_row": row, "subject": f"subject {row}", "subject_id": f"Q{row + 1}", "relation": relation}
    made = {
        "property": known.property,
        "object": object_,
        "object_id": None,
        "confidence": confidence,
        "sources": ["m#0"],
    }
    return {**dict.fromkeys(FACTS), "calibrated": True, "model": "m", "run": RUN, **about, **made, **more}


def base(folder: Path, facts: Iterable[dict[str, Any]], **inputs: Any) -> Path:
    """The directory of a base, its facts by relation and in the order given."""
    frame = pl.DataFrame(list(facts), schema=FACTS)
    tables = Tables(frame, pl.DataFrame(schema=NOTHING), pl.DataFrame(schema=MISSING))
    settled = Settled(tables, pl.DataFrame(schema=REMOVED))
    outputs = dict(parts.write(folder, [settled], RUN))
    counts = dict(Counter(frame["relation"].to_list()))
    shard = manifest.Shard(number=0, queries=len(frame), facts=counts, linked={}, nothing={}, failed={})
    begun = manifest.started({"edition": "mini", **inputs}, {name: SPACE.relations[name] for name in counts})
    whole = manifest.finished(begun, len(frame), [shard], {"outputs": outputs})
    (folder / manifest.MANIFEST).write_bytes(manifest.written(whole))
    return folder


def mixed(count: int = 300) -> list[dict[str, Any]]:
    """Facts of two relations and of many confidences, some with texts that are made to break a page."""
    borders = [
        fact(row, "country-borders", f"land {row}", row % 97 / 97, object_id=f"Q{row + 1000}") for row in range(count)
    ]
    children = [fact(row, "children", str(row % 5), 0.9, literal=str(row % 5)) for row in range(count // 3)]
    hostile = {"object": ATTACK, "model": ATTACK, "sources": [ATTACK] * 50, "subject": "x" * 10_000}
    return [*borders, *children, *(fact(row, "children", "", 0.95, **hostile) for row in range(3))]
