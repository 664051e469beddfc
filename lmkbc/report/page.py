"""Pages from templates: everything escaped, one file, no script but the one whose hash the page names."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from lmkbc.report.plot import Plot
from lmkbc.report.rows import Error, Row, Shown


def render(template: str, **values: Any) -> str:
    """A page. What is put in is escaped; figures alone are markup of our own."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lmkbc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = _figure
    script = (files("lmkbc.report") / "templates" / "rows.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page: str = environment.get_template(template).render(script=script, script_hash=digest, **values)
    return page


def _figure(plot: Plot) -> Any:
    from markupsafe import Markup

    return Markup(plot.svg)  # noqa: S704 -- matplotlib's markup, in which it has escaped all text


def packed(rows: Sequence[Row]) -> str:
    """The rows for the page's script: JSON, gzipped, in base64, in which no text can end the script's element."""
    relations = list(dict.fromkeys(row.pair[1] for row in rows))
    content = {
        "relations": relations,
        "errors": [str(error) for error in Error],
        "rows": [_row(row, relations.index(row.pair[1])) for row in rows],
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return base64.b64encode(gzip.compress(written, mtime=0)).decode()


def _row(row: Row, relation: int) -> list[Any]:
    """One row as a list, in the order in which the script reads it."""
    flags = sum(1 << place for place, error in enumerate(Error) if error in row.errors)
    score = [round(value, 3) for value in row.score[:3]]
    gold = [[name, identifier, int(found)] for name, identifier, found in row.gold]
    counts = list(row.score[3:])
    return [
        row.pair[0],
        row.subject_id,
        relation,
        score,
        counts,
        flags,
        gold,
        _objects(row.kept),
        _objects(row.dropped),
        row.nothing,
        row.reason,
        [list(reply) for reply in row.replies],
    ]


def _objects(objects: Iterable[Shown]) -> list[list[Any]]:
    return [[one.text, one.id, one.score, one.source, int(one.right), one.truth] for one in objects]
