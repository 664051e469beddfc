"""The page of a run whose split has no gold: what will be submitted, counts, and the surest and least sure answers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from lmkbc.edition import Edition
from lmkbc.files.atomic import writing
from lmkbc.generate.recorded_rows import RecordedRow, each_row
from lmkbc.report.page import rendered
from lmkbc.run import submission
from lmkbc.run.saved import SavedRun
from lmkbc.types import Pair

ENDS = 25
"""Number of answers at each end of the order."""
SHOWN = 500
"""Maximum number of characters of a reply, and of objects of an answer."""


def write(run: SavedRun, edition: Edition, split: str, path: Path) -> None:
    """Write the page to a file. An answer is as sure as its best candidate's score, and has the reply of a model."""
    answers = run.predicted(edition)
    best = {
        _pair(row): max((one.score for one in row.candidates or () if one.object), default=0.0)
        for row in _rows(run, submission.CANDIDATES, edition)
    }
    relations: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for (_, relation), objects in answers.items():
        counts = relations[relation]
        counts[0], counts[1], counts[2] = counts[0] + 1, counts[1] + len(objects), counts[2] + (not objects)
    order = sorted(
        (pair for pair, objects in answers.items() if objects), key=lambda pair: (-best.get(pair, 0.0), pair)
    )
    ends = {"The surest answers": order[:ENDS], "The least sure answers": order[ENDS:][-ENDS:]}
    wanted = {pair for pairs in ends.values() for pair in pairs}
    replies = {
        _pair(row): next(filter(None, row.completions or ()), "")
        for row in _rows(run, submission.REPLIES, edition)
        if _pair(row) in wanted
    }
    counts_of: dict[str, Any] = {name: value for name, value in run.table("counts").items() if isinstance(value, int)}
    asked = ", ".join(filter(None, (edition.title, split, run.subset.words)))
    values: dict[str, Any] = {
        "title": f"{run.text('system') or run.name} on {asked}",
        "counts": counts_of,
        "relations": sorted(relations.items()),
        "ends": {
            name: [
                (
                    subject,
                    relation,
                    ", ".join(map(str, answers[subject, relation][:SHOWN])),
                    best.get((subject, relation)),
                    replies.get((subject, relation), "")[:SHOWN],
                )
                for subject, relation in pairs
            ]
            for name, pairs in ends.items()
            if pairs
        },
    }
    with writing(path) as file:
        for piece in rendered("unlabelled.html", **values):
            file.write(piece.encode())


def _pair(row: RecordedRow) -> Pair:
    return row.SubjectEntity, row.Relation


def _rows(run: SavedRun, name: str, edition: Edition) -> Any:
    place = run.path / name
    return each_row(place, edition) if place.is_file() else ()
