"""Pages from templates: all values are escaped, each page is one file, and its only script has its hash in the page."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import tomli_w

from lmkbc.report.figures import UNDRAWN, Plot
from lmkbc.report.links import Entity, Trace
from lmkbc.report.rows import LONGEST_TEXT, Error, Row, Shown, cut

SCRIPTS = {
    "report.html": "rows.js",
    "compare.html": "changes.js",
    "knowledge.html": "entities.js",
    "audit.html": "labels.js",
}
"""Template -> its script."""


def render(template: str, **values: Any) -> str:
    """Return a page. All values are escaped, except figures, whose markup is our own."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("lmkbc.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}
    environment.filters["figure"] = _figure
    environment.filters["breakable"] = _breakable
    environment.globals["undrawn"] = UNDRAWN
    own = SCRIPTS.get(template)
    script = (files("lmkbc.report") / "templates" / own).read_text(encoding="utf-8") if own else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page: str = environment.get_template(template).render(script=script, script_hash=digest, **values)
    return page


def _figure(plot: Plot) -> Any:
    from markupsafe import Markup

    return Markup(plot.svg)  # noqa: S704 -- matplotlib has escaped all text in its markup


def _breakable(name: str) -> Any:
    """Return a name as markup that a narrow column may break before the words in it, as in PersonHasSpouse."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[a-z])(?=[A-Z])", name))


def packed(rows: Sequence[Row], entities: Mapping[str, Entity] | None) -> str:
    """Return the rows for the page's script: gzipped JSON in base64, so that no text can end the script element.

    entities: label and description of ids; None if objects have no ids.
    """
    relations, known = list(dict.fromkeys(row.pair[1] for row in rows)), entities or {}
    traces = dict.fromkeys(one.trace for row in rows for one in (*row.kept, *row.dropped) if one.trace)
    places = {trace: place for place, trace in enumerate(traces)}
    content = {
        "relations": relations,
        "errors": [str(error) for error in Error],
        "links": entities is not None,
        "traces": list(places),
        "entities": {one: [cut(text, LONGEST_TEXT) for text in about] for one, about in sorted(known.items())},
        "rows": [_row(row, relations.index(row.pair[1]), places) for row in rows],
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return base64.b64encode(gzip.compress(written, mtime=0)).decode()


def _row(row: Row, relation: int, places: Mapping[Trace, int]) -> list[Any]:
    """Return a row as a list, in the order in which the script reads it."""
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
        _objects(row.kept, places),
        _objects(row.dropped, places),
        row.nothing,
        row.reason,
        [list(reply) for reply in row.replies],
    ]


def _objects(objects: Iterable[Shown], places: Mapping[Trace, int]) -> list[list[Any]]:
    """Return objects as lists. places: trace -> its index in the list of traces."""
    return [
        [
            one.text,
            one.id,
            one.score,
            one.source,
            int(one.right),
            one.verification,
            places[one.trace] if one.trace else None,
            one.due,
        ]
        for one in objects
    ]


def as_toml(table: Mapping[str, Any]) -> str:
    """Return a table as TOML, without nulls."""
    return tomli_w.dumps(_without_nulls(table))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value if inner is not None] if isinstance(value, list) else value
