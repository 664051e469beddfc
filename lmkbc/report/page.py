"""Pages from templates: all values are escaped. A page of one file has the hash of its only script in its policy."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import tomli_w

from lmkbc.files.writable import check_file, check_replaced
from lmkbc.report.figures import UNDRAWN, Plot
from lmkbc.report.links import Entity, Trace
from lmkbc.report.rows import LONGEST_TEXT, Error, Row, Shown, cut

SCRIPTS = {
    "report.html": "rows.js",
    "compare.html": "changes.js",
    "audit.html": "labels.js",
}
"""Template -> its script."""


_OWN = b'<meta name="generator" content="lmkbc">'
"""Part of the head of each page."""
HEAD = 1000
"""Bytes of a page in which it stands."""


def check_page(path: Path, *inputs: Path | None) -> None:
    """Raise InputError if a page cannot be written to a file later, or would replace a file that is no such page.

    inputs: files that the same command reads.
    """
    check_file(path, *inputs)
    check_replaced(path, _is_page, "page of this program")


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return _OWN in file.read(HEAD)


MOST_GOLD, MOST_DROPPED = 400, 100
"""Most objects of a row that are shown, gold or kept, and dropped."""


def render(template: str, **values: Any) -> str:
    """Return a page. All values are escaped, except figures, whose markup is our own."""
    return "".join(rendered(template, **values))


def rendered(template: str, **values: Any) -> Iterator[str]:
    """Yield a page in pieces. A value may be an iterator, which is read when its place is written."""
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
    script = asset(own) if own else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    yield from environment.get_template(template).generate(script=script, script_hash=digest, **values)


def asset(name: str) -> str:
    """Return a script or a style sheet of the templates."""
    return (files("lmkbc.report") / "templates" / name).read_text(encoding="utf-8")


def _figure(plot: Plot) -> Any:
    from markupsafe import Markup

    return Markup(plot.svg)  # noqa: S704 -- matplotlib has escaped all text in its markup


def _breakable(name: str) -> Any:
    """Return a name as markup that a narrow column may break before the words in it, as in PersonHasSpouse."""
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[a-z])(?=[A-Z])", name))


def packed(rows: Sequence[Row], relations: Sequence[str], entities: Mapping[str, Entity]) -> bytes:
    """Return some rows for the page's script: gzipped JSON in base64, so that no text can end the script element.

    relations: all relations, to which rows refer by place. entities: label and description of ids.
    """
    traces = dict.fromkeys(one.trace for row in rows for one in (*row.kept, *row.dropped) if one.trace)
    places = {trace: place for place, trace in enumerate(traces)}
    content = {
        "traces": list(places),
        "entities": {one: [cut(text, LONGEST_TEXT) for text in about] for one, about in sorted(entities.items())},
        "rows": [_row(row, relations.index(row.pair[1]), places) for row in rows],
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
    return base64.b64encode(gzip.compress(written, mtime=0))


def shortened(row: Row) -> Row:
    """Return a row with the objects that are shown: the best ones, if there are many."""
    gold, kept, dropped = row.gold[:MOST_GOLD], row.kept[:MOST_GOLD], row.dropped[:MOST_DROPPED]
    return replace(row, gold=gold, kept=kept, dropped=dropped, left_out=len(row.dropped) - len(dropped))


def _row(row: Row, relation: int, places: Mapping[Trace, int]) -> list[Any]:
    """Return a row as a list, in the order in which the script reads it."""
    flags = sum(1 << place for place, error in enumerate(Error) if error in row.errors)
    score = [round(value, 3) for value in row.score[:3]]
    gold = [[name, identifier, int(found)] for name, identifier, found in row.gold]
    return [
        row.pair[0],
        row.subject_id,
        relation,
        score,
        [*row.score[3:], len(row.dropped) + row.left_out],
        flags,
        gold,
        _objects(row.kept, places),
        _objects(row.dropped, places),
        row.nothing,
        row.reason,
        row.lost,
        row.marks,
        row.prompts,
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
