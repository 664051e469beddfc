"""Answers in memory, such as data frames, as rows by query; and results as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.files.columns import Given, MemoryRow
from lmkbc.types import Pair

if TYPE_CHECKING:
    import polars as pl


Answers: TypeAlias = "Mapping[Pair, Sequence[Any]] | Iterable[Mapping[str, Any]] | pl.DataFrame"
"""Objects by (subject, relation); or rows with SubjectEntity, Relation and the edition's column, else `objects`."""


def shown(title: str, *parts: pl.DataFrame | str) -> str:
    """Return HTML for a notebook: a title, then tables and sentences, with all text escaped."""
    shown_parts = (f"<p>{escape(part)}</p>" if isinstance(part, str) else part._repr_html_() for part in parts)
    return f"<h4>{escape(title)}</h4>" + "".join(shown_parts)


def given(answers: Any, edition: Edition, name: str) -> Given:
    """Return `Answers` as rows. InputError for a row that lacks a field. name: name of the answers in messages."""
    if isinstance(answers, Mapping):
        if wrong := next((key for key in answers if not (isinstance(key, tuple) and len(key) == 2)), None):
            raise InputError(f"{name}: {wrong!r} is no key of answers: give (subject, relation)")
        found = {(str(subject), str(relation)): _listed(objects) for (subject, relation), objects in answers.items()}
        return Given.of(Path(name), edition.column, found)
    if hasattr(answers, "to_dicts"):
        rows = answers.to_dicts()
    else:  # a data frame of pandas, or rows
        rows = answers.to_dict("records") if hasattr(answers, "columns") else answers
    made = []
    for number, row in enumerate(rows):
        try:
            column = "objects" if "objects" in row and edition.column not in row else edition.column
            subject, relation, objects = row["SubjectEntity"], row["Relation"], row[column]
        except KeyError as error:
            lacks = f"{name}, row {number}: lacks {error.args[0]}"
            raise InputError(f"{lacks}, a column of edition {edition.name}") from None
        relation = edition.spelt(relation) or relation
        made.append(MemoryRow(subject, relation, _listed(objects), row.get("SubjectEntityID")))
    return Given(Path(name), edition.column, made)


def _listed(objects: Any) -> Any:
    """Return a collection, or a single text, as a list; anything else unchanged: it is counted as malformed later."""
    if isinstance(objects, str):
        return [objects]
    return list(objects) if isinstance(objects, Iterable) and not isinstance(objects, bytes) else objects
