"""The official score of a run, a file, or answers in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack, runtime_checkable

from lmkbc.api.frames import Answers, by_query, relations_frame, rows_frame, shown
from lmkbc.api.opening import chosen_edition, space_of
from lmkbc.api.options import Sources, keywords
from lmkbc.edition import Edition
from lmkbc.errors import InputError, counted
from lmkbc.evaluate import Evaluation, evaluate_file
from lmkbc.files.packed import lines, stream
from lmkbc.run.saved import InSample, SavedRun, edition_of, read_gold, scored
from lmkbc.run.subset import WHOLE, Subset
from lmkbc.scoring.table import WRONG, Summary
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

SAMPLE = 200
"""Rows that tell which edition a file is of."""


@runtime_checkable
class HasRun(Protocol):
    """What `lmkbc.predict` returns: a run that lies in a directory."""

    @property
    def directory(self) -> Path:
        """Where it lies."""


@dataclass(frozen=True)
class Scores:
    """An official result. f1, p, r: the macro averages, as the edition prints them; each in [0, 1].

    evaluation: the official table, and how many rows of the file were odd. split: "" where the gold was given. subset:
    the queries of the split that were scored. in_sample: of a run whose rules were tuned on its own split, what they
    score out of fold.
    """

    edition: Edition
    split: str
    profile: str
    evaluation: Evaluation
    subset: Subset = WHOLE
    in_sample: InSample | None = None

    @property
    def overall(self) -> Summary:
        """Over all relations."""
        return self.evaluation.table.overall

    @property
    def f1(self) -> float:
        """The macro-F1."""
        return self.overall.f1

    @property
    def p(self) -> float:
        """The macro precision."""
        return self.overall.p

    @property
    def r(self) -> float:
        """The macro recall."""
        return self.overall.r

    @cached_property
    def relations(self) -> pl.DataFrame:
        """The official table, a row per relation; `overall` has the averages.

        Where rules saw the split, out_of_fold_f1 stands beside f1.
        """
        return relations_frame(self.evaluation.table, self.in_sample.relations if self.in_sample else None)

    @property
    def remark(self) -> str:
        """Return what to say beside the scores where the rules saw the split; "" where they did not."""
        return self.in_sample.remark(whole=self.subset.is_whole) if self.in_sample else ""

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The score of every row."""
        return rows_frame(self.evaluation.table)

    @property
    def title(self) -> str:
        """What was scored."""
        split = f", {self.split}" if self.split else ""
        first = "" if self.subset.limit is None else f", the first {self.subset.limit}"
        return f"LM-KBC {self.edition.name}{split}{first}{f' ({self.profile})' if self.profile else ''}"

    def __repr__(self) -> str:
        remark = f"; {self.remark}" if self.remark else ""
        return f"<Scores {self.title}: macro-F1 {self.f1:.3f}, P {self.p:.3f}, R {self.r:.3f}{remark}>"

    def _repr_html_(self) -> str:
        odd = [remark for remark in (self.remark, self.evaluation.remarks) if remark]
        averages = f"macro-F1 {self.f1:.3f}, P {self.p:.3f}, R {self.r:.3f}"
        return shown(f"{self.title}: {averages}", self.relations, *odd)


@keywords()
def score(
    predictions: Path | str | HasRun | Answers,
    gold: Path | str | Answers | None = None,
    edition: str | None = None,
    *,
    split: str | None = None,
    profile: str = "",
    strict: bool = False,
    rows: bool = True,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    data: Path | str | None = None,
    workspace: Path | str | None = None,
) -> Scores:
    """Score predictions exactly as the organisers do.

    predictions: a run, its directory, zip or file; or answers by query, rows or a frame in the edition's columns. gold:
    likewise; else the split's, which is that of the run, else the held-out one. profile: an earlier scorer of the
    edition. strict: refuse missing, unknown or malformed rows. rows: whether each row's score is kept. relation, limit:
    score these relations, or the first so many queries, alone. InputError for what cannot be scored.
    """
    sources: Sources = {"edition": edition, "data": data, "workspace": workspace}
    return _score(predictions, gold, split, profile, strict, rows, (relation, limit), **sources)


def _score(
    predictions: Any,
    gold: Any,
    split: str | None,
    profile: str,
    strict: bool,
    rows: bool,
    subset: tuple[str | Sequence[str] | None, int | None],
    **sources: Unpack[Sources],
) -> Scores:
    space, run = space_of(sources), finished(predictions)
    edition = _edition(space, run, sources.get("edition"))
    asked, limit = subset
    chosen = Subset.of(space, edition, listed(asked), limit)
    if chosen.is_whole and run is not None:
        chosen = _part(run, space, edition)
    named = "" if gold is not None else split or (run and run.text("split")) or "val"
    truth = space.gold_path(edition, named) if gold is None else gold
    counted = edition.under(profile) if profile else edition
    if run is not None and isinstance(truth, Path | str):
        result = _of_files(space, run, Path(truth), counted, chosen, strict, rows)
    else:
        result = _in_memory(run, predictions, truth, counted, chosen, strict)
    return Scores(edition, named, profile, result, chosen, run.in_sample if run else None)


def _part(run: SavedRun, space: Workspace, edition: Edition) -> Subset:
    """The subset of its split that a run asked."""
    limit, relations = run.manifest.get("limit"), run.manifest.get("relations")
    names = [name for name in relations if isinstance(name, str)] if isinstance(relations, list) else None
    return Subset.of(space, edition, names, limit if isinstance(limit, int) else None)


def finished(predictions: Any) -> SavedRun | None:
    """The run that lies somewhere; None for answers in memory."""
    if isinstance(predictions, HasRun):
        return SavedRun.at(predictions.directory)
    return SavedRun.at(Path(predictions)) if isinstance(predictions, Path | str) else None


def _edition(space: Workspace, run: SavedRun | None, named: str | None) -> Edition:
    told = edition_of(space, [run], named) if run else None
    return told or chosen_edition(space, named)


def _of_files(
    space: Workspace, run: SavedRun, gold: Path, edition: Edition, subset: Subset, strict: bool, rows: bool
) -> Evaluation:
    predictions = run.predictions
    try:
        result = evaluate_file(
            predictions, gold, edition, strict=strict, rows=rows, subset=subset, unreadable=run.unreadable
        )
    except InputError as error:
        raise other_edition(space, predictions, edition, gold) or error from None
    if result.unknown and result.missing == sum(one.rows for one in result.table.relations.values()):
        raise other_edition(space, predictions, edition, gold) or InputError(
            f"{predictions} answers none of the queries of {gold}: name the split that it was made for"
        )
    return result


def other_edition(space: Workspace, path: Path, edition: Edition, gold: Path | None = None) -> InputError | None:
    """What to say of a file that other editions' relations and columns fit, and not this one's; None where it does.

    gold: what it is scored by; a file that tells of the same relations is of the same edition.
    """
    relations, columns = _first_rows(path)
    fits = [one for one in space.editions.values() if relations <= {*one.relations} and one.column in columns]
    if not relations or not fits or edition in fits or (gold and relations & _first_rows(gold)[0]):
        return None
    names = " or ".join(one.name for one in fits)
    first = fits[0].name
    return InputError(f"{path} is a file of edition {names}, not of {edition.name}: name edition {first}")


def _first_rows(path: Path) -> tuple[set[str], set[str]]:
    """The relations and the common columns of a file's first rows; none of what is no file of any edition."""
    relations, columns = set[str](), set[str]()
    try:
        with stream(path) as file:
            for row in map(json.loads, filter(bytes.strip, islice(lines(file), SAMPLE))):
                relations.add(str(row["Relation"]))
                columns = columns & row.keys() if columns else {*row}
    except (InputError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return set(), set()
    return relations, columns


def _in_memory(
    run: SavedRun | None, predictions: Any, gold: Any, edition: Edition, subset: Subset, strict: bool
) -> Evaluation:
    read = isinstance(gold, Path | str)
    truth = dict(read_gold(Path(gold), edition)) if read else by_query(gold, edition, "gold")
    truth = dict(subset.rows(truth.items(), lambda row: row[0][1]))
    given = run.answers(edition) if run else by_query(predictions, edition, "predictions")
    answers = {pair: value for pair, value in given.items() if subset.holds(pair[1])}
    missing, unknown = truth.keys() - answers.keys(), answers.keys() - truth.keys()
    unknown = set() if subset.limit else unknown
    if strict and (missing or unknown):
        first = sorted(missing or unknown)[0]
        raise InputError(
            f"{counted(len(missing), 'query is', 'queries are')} missing and {len(unknown)} unknown, first {first}; "
            "mend them"
        )
    if not truth:
        raise InputError("the gold has no query that is to be scored: give rows of a labelled split")
    named = run or SavedRun(Path("predictions"), Path("predictions"))
    unread = sum(answers[pair] == [*WRONG] for pair in named.unreadable & answers.keys() & truth.keys())
    return Evaluation(scored(named, edition, answers, truth), len(missing), len(unknown), 0, 0, unread)


def listed(values: Sequence[str] | str | None) -> list[str] | None:
    """One name, or several."""
    return [values] if isinstance(values, str) else None if values is None else list(values)
