"""Function `tune`: what to keep per relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from msgspec import Meta

from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import check_kept, keywords, opened_subset
from lmkbc.errors import InputError, OptionError
from lmkbc.files.checksum import sha256
from lmkbc.files.writable import check_file
from lmkbc.progress import Report, silent
from lmkbc.session.options import OUTPUT, SELECTION, Folds, Limit, OneRelation, RunOptions, Split, Trials
from lmkbc.settings import listed
from lmkbc.tune.tuning_set import FOLDS, SEED, TRIALS, TuningOptions, TuningSet

if TYPE_CHECKING:
    import polars as pl

    from lmkbc.session.run import Run
    from lmkbc.tune.learn import Tuned
    from lmkbc.types import Example


@dataclass(frozen=True)
class Tuning:
    """Result of tuning. tuned: rules, figures, held-out predictions. path: the file written, None without one.

    title: the edition's, for headings. reviewed: rows of decided facts that were learned from too.
    """

    tuned: Tuned
    edition: str
    title: str
    split: str
    system: str
    path: Path | None
    reviewed: int = 0

    @property
    def f1(self) -> float:
        """Return the cross-validated macro-F1, which estimates the score on unseen subjects."""
        return self.tuned.cv_macro_f1

    @cached_property
    def relations(self) -> pl.DataFrame:
        """Return a row per relation: queries, answered ones, F1 untuned, out of fold and in sample, and the rule.

        reason: why it is not tuned. most: maximum number of objects of an answer; None for no limit.
        """
        import polars as pl

        rows = [
            {
                "relation": name,
                "rows": relation.rows,
                "answered": relation.answered,
                "untuned_f1": relation.untuned_f1,
                "cv_f1": relation.cv_f1,
                "insample_f1": relation.insample_f1,
                "rule": described(relation.rule.to_table()),
                "most": relation.most,
                "reason": relation.reason,
            }
            for name, relation in sorted(self.tuned.relations.items())
        ]
        return pl.DataFrame(rows)

    def __repr__(self) -> str:
        return f"<Tuning of {self.system} on {self.title}, {self.split}: F1 {self.f1:.3f} out of fold>"

    def _repr_html_(self) -> str:
        f1 = f"F1 {self.f1:.3f} out of fold, {self.tuned.insample_macro_f1:.3f} in sample"
        return shown(
            f"{self.system} on {self.title}, {self.split}: {f1}", self.relations, *filter(None, [self.tuned.unanswered])
        )


@keywords
def tune(
    split: Split = "val",
    *,
    folds: Folds = FOLDS,
    trials: Trials = TRIALS,
    seed: Annotated[int, Meta(description="Seed of folds and search.", extra=SELECTION)] = SEED,
    relation: OneRelation = None,
    limit: Limit = None,
    rules: Annotated[
        Sequence[str] | None,
        Meta(
            description="Only these rules, comma-separated, as in cutoff,top-k.",
            extra={**SELECTION, "parser": listed, "metavar": "RULES"},
        ),
    ] = None,
    write: Annotated[
        bool,
        Meta(
            description="Write thresholds/EDITION/SYSTEM--MODEL.toml.",
            extra={**OUTPUT, "flags": ("--write/--no-write",)},
        ),
    ] = True,
    overwrite: Annotated[bool, Meta(description="Replace thresholds that exist already.", extra=OUTPUT)] = False,
    reviews: Annotated[
        Path | str | None,
        Meta(
            description="Knowledge base with decisions of persons: learn from its decided subjects too. No figure is "
            "of them.",
            extra={**SELECTION, "metavar": "DIR"},
        ),
    ] = None,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Tuning:
    """Learn which selection rule to use for each relation, with which parameters, by cross-validation.

    What is written lies in the workspace, where `lmkbc.predict` finds it. With relation or limit, nothing is written.
    reviews: a subject of the base counts if all its facts in the relation are decided, an object is right, and no
    labelled row is about it. progress: callback for progress.

    InputError for wrong input, before any model is asked.
    """
    from lmkbc.run import submission
    from lmkbc.run.pipeline import propose
    from lmkbc.tune import tuned_rules
    from lmkbc.tune.families import check_rules
    from lmkbc.tune.learn import tune as tune_rules

    names = None if rules is None else tuple(rules)
    how = TuningOptions(rules=names, folds=folds, trials=trials, seed=seed)
    check_rules(names)
    if overwrite and not write:
        raise OptionError("overwrite", "replaces a file, and nothing is to be written: leave it out")
    plan, subset = opened_subset(options, split, relation, limit)
    check_kept(plan, "tune")
    run, recipe, origin = plan.run, plan.recipe, plan.origin
    space, chosen, split = run.workspace, run.edition, run.split
    examples = list(subset.rows(space.examples(chosen, split), lambda row: row.query.relation))
    path = (
        tuned_rules.path_of(space.own("thresholds"), chosen.name, recipe.name, origin)
        if write and subset.is_whole
        else None
    )
    check_file(path)
    if path is not None and path.exists() and not overwrite:
        raise InputError(
            f"{path} holds what was tuned before: give --overwrite to replace it, or --no-write to tune without writing"
        )
    decided = [] if reviews is None else _decided(Path(reviews), run, examples)
    proposals = propose(plan, [example.query for example in (*examples, *decided)], progress)
    more = [pair for pair in zip(proposals.sets[len(examples) :], decided, strict=True) if not pair[0].failed]
    sets, rows = [*proposals.sets[: len(examples)], *(one for one, _ in more)], [*examples, *(row for _, row in more)]
    data = TuningSet(sets, rows, chosen, run.relations, recipe.select, how, len(more))
    tuned = tune_rules(data, report=progress)
    if path is not None:
        provenance = tuned_rules.Provenance.of(
            tuned,
            origin,
            edition=chosen.name,
            system=recipe.name,
            data_sha256=tuned_rules.split_sha256(run, split),
            candidates_sha256=sha256(submission.candidate_lines(sets)),
            reviewed_rows=len(more),
        )
        tuned_rules.write(path, tuned, provenance)
    return Tuning(tuned, chosen.name, chosen.title, split, recipe.name, path, len(more))


def _decided(base: Path, run: Run, examples: Sequence[Example]) -> list[Example]:
    """Return the rows of a base that persons decided, of the relations of some rows, and of subjects without a row."""
    from lmkbc.kb.audit.reviewed_rows import reviewed_rows

    asked = {row.query.relation for row in examples}
    labelled = {
        name for row in (*examples, *run.labelled) for name in (row.query.subject, row.query.subject_id) if name
    }
    rows = reviewed_rows(base, run.edition, {name: one for name, one in run.relations.items() if name in asked})
    return [row for row in rows if labelled.isdisjoint((row.query.subject, row.query.subject_id))]


def described(table: Mapping[str, Any]) -> str:
    """Return a rule on one line. A long table is named, not shown."""
    parameters = {name: value for name, value in table.items() if name != "rule" and not isinstance(value, Mapping)}
    rules = [value for value in table.values() if isinstance(value, Mapping) and "rule" in value]
    inner = "".join(f" over {described(rule)}" for rule in rules)
    return " ".join([str(table["rule"]), *(f"{name}={value}" for name, value in parameters.items())]) + inner
