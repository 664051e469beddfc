"""Function `score`: the official score of a run, a file, or answers in memory."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lmkbc.commands.data_frames import Answers, given, shown
from lmkbc.commands.keywords import chosen_edition, keywords
from lmkbc.edition import Edition
from lmkbc.errors import InputError
from lmkbc.evaluation.official import Evaluation, evaluate
from lmkbc.files.columns import Given
from lmkbc.files.fact_rows import stream
from lmkbc.files.jsonl import numbered
from lmkbc.files.places import placed
from lmkbc.files.tables import SCORES, columns_of, folded
from lmkbc.run.saved import CHANGED, InSample, SavedRun, edition_of
from lmkbc.scoring.table import Summary
from lmkbc.session.subset import WHOLE, Subset
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

SAMPLE = 200
"""Rows that are read to find the edition of a file."""


@runtime_checkable
class HasRun(Protocol):
    """Protocol of a run with a directory, such as the result of `lmkbc.predict`."""

    @property
    def directory(self) -> Path:
        """Return the run's directory."""


@dataclass(frozen=True)
class Scores:
    """An official result. f1, p, r: macro averages as the edition prints them, each in [0, 1].

    evaluation: the official table, and counts of missing, unknown and malformed rows. split: "" if the gold was given.
    subset: queries of the split that were scored. in_sample: scores out of fold, if the run's rules were tuned on its
    own split. changed: whether the predictions are not those of the run's manifest.
    """

    edition: Edition
    split: str
    profile: str
    evaluation: Evaluation
    subset: Subset = WHOLE
    in_sample: InSample | None = None
    changed: bool = False

    @property
    def overall(self) -> Summary:
        """Return the averages over all relations."""
        return self.evaluation.table.overall

    @property
    def f1(self) -> float:
        """Return the macro-F1."""
        return self.overall.f1

    @property
    def p(self) -> float:
        """Return the macro precision."""
        return self.overall.p

    @property
    def r(self) -> float:
        """Return the macro recall."""
        return self.overall.r

    @cached_property
    def relations(self) -> pl.DataFrame:
        """Return the official table, a row per relation; `overall` has the averages.

        If the rules were tuned on the split, column out_of_fold_f1 stands beside f1.
        """
        import polars as pl

        table = self.evaluation.table.relations
        frame = pl.DataFrame([{"relation": name} | asdict(summary) for name, summary in table.items()])
        if self.in_sample is None:
            return frame
        out_of_fold = [self.in_sample.relations.get(name) for name in table]
        return frame.with_columns(pl.Series("out_of_fold_f1", out_of_fold, pl.Float64()))

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the macro-F1 over other subjects; None if a relation has only one row."""
        from lmkbc.evaluation.comparison import score_interval  # here, since it loads numpy

        metric = self.edition.profiles.get(self.profile, self.edition.metric)
        return score_interval(dict(self.evaluation.table.rows), by_relation=metric.average == "relation")

    @property
    def heading(self) -> str:
        """Return the title, and the remark if there is one."""
        return ": ".join(filter(None, (self.title, self.remark)))

    @property
    def remark(self) -> str:
        """Return remarks if the rules were tuned on the split, or the predictions were changed; else ""."""
        seen = [self.in_sample.remark] if self.in_sample else []
        return "; ".join([*seen, *([CHANGED] if self.changed else [])])

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Return the score of every row: SubjectEntity, Relation, p, r, f1, hits, predicted, gold."""
        import polars as pl

        names = ("SubjectEntity", "Relation", "p", "r", "f1", "hits", "predicted", "gold")
        return pl.DataFrame([(*pair, *score) for pair, score in self.evaluation.table.rows], schema=names, orient="row")

    @property
    def title(self) -> str:
        """Return edition, split, subset and profile in words."""
        what = ", ".join(filter(None, (self.edition.title, self.split, self.subset.words)))
        return f"{what}{f' ({self.profile})' if self.profile else ''}"

    def __repr__(self) -> str:
        remark = f"; {self.remark}" if self.remark else ""
        return f"<Scores {self.title}: macro-F1 {self.f1:.3f}, P {self.p:.3f}, R {self.r:.3f}{remark}>"

    def _repr_html_(self) -> str:
        title = f"{self.title}: macro-F1 {self.f1:.3f}, P {self.p:.3f}, R {self.r:.3f}"
        return shown(title, self.relations, *filter(None, (self.remark, self.evaluation.remarks)))


@keywords
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
    trust: bool = False,
) -> Scores:
    """Score predictions exactly as the organisers do.

    predictions: a run, its directory, zip or file; or answers by query, as rows or as a frame with the edition's
    columns.
    gold: gold answers in the same forms; default those of the split. The default split is the run's, else the held-out
    one.
    profile: name of an earlier scorer of the edition.
    strict: whether to refuse missing, unknown or malformed rows.
    rows: whether to keep the score of each row.
    relation: relations to score, default all.
    limit: number of queries to score, from the first.

    InputError for input that cannot be scored.
    """
    space, run = Workspace(workspace, data, trust=trust), saved_run(predictions)
    chosen = run_edition(space, [run] if run else [], edition)
    subset = scored_part(chosen, [run] if run else [], relation, limit)
    named = "" if gold is not None else split or (run and run.text("split")) or "val"
    truth = space.gold_path(chosen, named) if gold is None else Path(gold) if isinstance(gold, str) else gold
    answers = given(predictions, chosen, "predictions") if run is None else run.predictions
    labels = truth if isinstance(truth, Path) else given(truth, chosen, "the gold")
    scorer = chosen.under(profile) if profile else chosen
    unreadable = run.unreadable if run else frozenset()
    try:
        result = evaluate(answers, labels, scorer, strict=strict, rows=rows, subset=subset, unreadable=unreadable)
    except InputError as error:
        raise elsewhere(space, answers, chosen, named, labels) or error from None
    if run and result.unknown and result.missing == sum(one.rows for one in result.table.relations.values()):
        raise elsewhere(space, answers, chosen, named, labels) or InputError(
            result.unknown_relation
            or f"{run.predictions} answers none of the queries of {labels}: name the split that it was made for"
        )
    if result.unknown_relation:
        log.warning(result.unknown_relation)
    if run and (unread := [name for name in columns_of(run.predictions) if folded(name) in SCORES.split()]):
        log.warning(
            "%s: %s is not read, since all objects count alike; to choose by scores, use 'lmkbc predict --from'",
            run.predictions,
            ", ".join(unread),
        )
    seen = run.in_sample.of(subset, chosen) if run and run.in_sample else None
    return Scores(chosen, named, profile, result, subset, seen, bool(run and run.changed))


def saved_run(predictions: Any) -> SavedRun | None:
    """Return the run at a place; None for answers in memory."""
    if isinstance(predictions, HasRun):
        return SavedRun.at(predictions.directory)
    return SavedRun.at(Path(predictions)) if isinstance(predictions, Path | str) else None


def open_run(run: Path | str | HasRun) -> SavedRun:
    """Return the run at a place. InputError for anything else."""
    opened = saved_run(run)
    if opened is None:
        raise InputError(f"{type(run).__name__} is no run: give a directory, a zip, a file, or what predict returned")
    return opened


def run_edition(space: Workspace, runs: Sequence[SavedRun], named: str | None) -> Edition:
    """Return the named edition, else that of the runs, else the one whose queries they answer, else the default one."""
    if known := edition_of(space, runs, named):
        return known
    found = space.split_of({pair for run in runs for pair in _pairs(_first_rows(run.predictions))})
    if found is None:
        return chosen_edition(space, None)
    log.info("Edition %s: its %s has these queries. --edition names another.", found[0].name, found[1])
    return found[0]


def scored_part(
    edition: Edition, runs: Sequence[SavedRun], relation: str | Sequence[str] | None, limit: int | None
) -> Subset:
    """Return the queries that are scored: of those that all runs asked, the ones that the options name.

    InputError for relations that a run did not ask.
    """
    chosen = Subset.of(edition, relation, limit)
    for run in runs if chosen.relations else ():
        if not any(map(run.subset.holds, chosen.relations)):
            asked, named = (", ".join(sorted(names)) for names in (run.subset.relations, chosen.relations))
            raise InputError(f"{run.path} asked {asked} alone, not {named}: name a relation that it asked, or none")
    return chosen.inside(run.subset for run in runs)


def scored_on(
    space: Workspace,
    runs: Sequence[SavedRun],
    edition: str | None,
    split: str | None,
    gold: Path | str | None,
    relation: str | Sequence[str] | None,
    limit: int | None,
) -> tuple[Edition, Subset, str, Path]:
    """Return the edition of runs, the subset and the split that they are scored on, and the file of its gold.

    Of the split, the options come first, then what the runs' manifests say. Without either, it is val.
    """
    chosen = run_edition(space, runs, edition)
    named = split or next(filter(None, (run.text("split") for run in runs)), "val")
    return chosen, scored_part(chosen, runs, relation, limit), named, placed(gold) or space.gold_path(chosen, named)


def other_edition(space: Workspace, path: Path | Given, edition: Edition, gold: Path | Given) -> InputError | None:
    """Return an error for a file that fits only other editions' relations and columns; None if it fits this one.

    gold: gold answers. If the file shares a relation with them, it is taken to be of this edition.
    """
    if not (isinstance(path, Path) and isinstance(gold, Path)):
        return None
    rows = _first_rows(path)
    relations, columns = {row["Relation"] for row in rows}, set(rows[0] if rows else ()).intersection(*rows)
    fits = [one for one in space.editions.values() if relations <= {*one.relations} and one.column in columns]
    if not fits or edition in fits or relations & {row["Relation"] for row in _first_rows(gold)}:
        return None
    names = " or ".join(one.name for one in fits)
    return InputError(f"{path} is a file of edition {names}, not of {edition.name}: name edition {fits[0].name}")


def elsewhere(
    space: Workspace, path: Path | Given, edition: Edition, split: str, gold: Path | Given
) -> InputError | None:
    """Return an error for a file of another edition or split; None for any other file."""
    return other_edition(space, path, edition, gold) or other_split(space, path, edition, split)


def other_split(space: Workspace, path: Path | Given, edition: Edition, split: str) -> InputError | None:
    """Return an error for a file whose first rows answer another split that is here; None for any other file.

    split: "" if the gold was given, so that the file may be of any split.
    """
    rows = _first_rows(path) if split and isinstance(path, Path) else []
    found = space.split_of(_pairs(rows), edition)
    if found is None or found == (edition, edition.split_named(split)):
        return None
    return InputError(
        f"{path} answers {found[1]} of edition {found[0].name}, not {split} of {edition.name}: name "
        f"edition {found[0].name} and split {found[1]}, or give another file"
    )


def _pairs(rows: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """Return the subjects and relations of rows."""
    return {(row["SubjectEntity"], row["Relation"]) for row in rows}


def _first_rows(path: Path) -> list[dict[str, Any]]:
    """Return a file's first rows; none for a file without subjects and relations."""
    try:
        rows = [json.loads(line) for _, line in islice(numbered(path, stream), SAMPLE)]
        return [row for row in rows if isinstance(row["Relation"], str) and isinstance(row["SubjectEntity"], str)]
    except (InputError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
