"""Results as polars data frames, and frames as answers by query. Polars is loaded when a frame is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.scoring.table import Pair, Table

if TYPE_CHECKING:
    import polars as pl

Answers: TypeAlias = "Mapping[Pair, Sequence[Any]] | Iterable[Mapping[str, Any]] | pl.DataFrame"
"""Objects by (subject, relation); or rows with SubjectEntity, Relation and the edition's column, as in its files."""


def by_query(answers: Answers, edition: Edition, what: str) -> dict[Pair, Any]:
    """Answers or gold by query. InputError, which begins with `what`, for a row that lacks a field or comes twice."""
    if isinstance(answers, Mapping):
        return {(str(subject), str(relation)): list(objects) for (subject, relation), objects in answers.items()}
    rows: Iterable[Mapping[str, Any]] = answers.to_dicts() if hasattr(answers, "to_dicts") else answers
    found: dict[Pair, Any] = {}
    for number, row in enumerate(rows):
        try:
            pair, objects = (row["SubjectEntity"], row["Relation"]), row[edition.column]
        except KeyError as error:
            lacks = f"{what}, row {number}: lacks {error.args[0]}"
            raise InputError(f"{lacks}, a column of edition {edition.name}") from None
        if pair in found:
            raise InputError(f"{what}, row {number}: {pair} comes twice; keep one of the two")
        found[pair] = objects
    return found


def relations_frame(table: Table, out_of_fold: Mapping[str, float] | None = None) -> pl.DataFrame:
    """Return the official table, a row per relation. out_of_fold: F1 of relations whose rules saw the split."""
    import polars as pl

    frame = pl.DataFrame([{"relation": name} | asdict(summary) for name, summary in table.relations.items()])
    if out_of_fold is None:
        return frame
    return frame.with_columns(pl.Series("out_of_fold_f1", [out_of_fold.get(n) for n in table.relations], pl.Float64()))


def rows_frame(table: Table) -> pl.DataFrame:
    """The score of every row: SubjectEntity, Relation, p, r, f1, hits, predicted, gold."""
    import polars as pl

    names = ("SubjectEntity", "Relation", "p", "r", "f1", "hits", "predicted", "gold")
    return pl.DataFrame([(*pair, *score) for pair, score in table.rows], schema=names, orient="row")


def shown(title: str, *parts: pl.DataFrame | str) -> str:
    """What a notebook shows: a title, then tables and sentences, all text escaped."""
    told = (f"<p>{escape(part)}</p>" if isinstance(part, str) else part._repr_html_() for part in parts)
    return f"<h4>{escape(title)}</h4>" + "".join(told)
