"""Function `tune`: learns what to keep per relation, and estimates the score on unseen subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from lmkbc.api.data_frames import shown
from lmkbc.api.keywords import check_kept, keywords, opened_subset
from lmkbc.errors import InputError, counted
from lmkbc.files.checksum import sha256
from lmkbc.files.writable import check_file
from lmkbc.progress import Report, silent
from lmkbc.run.options import RunOptions
from lmkbc.tune.tuning_set import FOLDS, SEED, TRIALS, TuningOptions, TuningSet

if TYPE_CHECKING:
    import polars as pl

    from lmkbc.tune.learn import Tuned


@dataclass(frozen=True)
class Tuning:
    """Result of tuning. tuned: rules, figures, held-out predictions. path: the file written, None without one."""

    tuned: Tuned
    edition: str
    split: str
    system: str
    path: Path | None

    @property
    def f1(self) -> float:
        """Return the cross-validated macro-F1, which estimates the score on unseen subjects."""
        return self.tuned.cv_macro_f1

    @cached_property
    def relations(self) -> pl.DataFrame:
        """Return a row per relation: queries, F1 out of fold, F1 without Optuna, F1 in sample, and the rule."""
        import polars as pl

        rows = [
            {
                "relation": name,
                "rows": relation.rows,
                "cv_f1": relation.cv_f1,
                "cv_f1_without_optuna": relation.cv_f1_without_optuna,
                "insample_f1": relation.insample_f1,
                "rule": described(relation.rule.to_table()),
            }
            for name, relation in sorted(self.tuned.relations.items())
        ]
        return pl.DataFrame(rows)

    def __repr__(self) -> str:
        return f"<Tuning of {self.system} on LM-KBC {self.edition}, {self.split}: F1 {self.f1:.3f} out of fold>"

    def _repr_html_(self) -> str:
        n = self.tuned.failed
        failed = [counted(n, "query has no answer: it counts as wrong", "queries have no answer: they count as wrong")]
        in_sample = f"{self.tuned.insample_macro_f1:.3f} in sample"
        title = f"{self.system} on LM-KBC {self.edition}, {self.split}: F1 {self.f1:.3f} out of fold, {in_sample}"
        return shown(title, self.relations, *failed[: bool(n)])


@keywords(RunOptions)
def tune(
    split: str = "val",
    *,
    folds: int = FOLDS,
    trials: int = TRIALS,
    seed: int = SEED,
    storage: str | None = None,
    rules: Sequence[str] | None = None,
    both_sides: bool = False,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    write: bool = True,
    overwrite: bool = False,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Tuning:
    """Learn which selection rule to use for each relation, with which parameters, by cross-validation.

    split: labelled split.
    folds: number of folds; a subject is in one fold only.
    trials: most trials of Optuna per relation and fold; 0: exact sweeps only.
    storage: URL of an SQLite or PostgreSQL database, which several processes may share.
    rules: rules to try, default all.
    both_sides: whether to try the rule `mutual` for symmetric relations too.
    relation: relations to tune, default all.
    limit: number of queries to use, from the first. With relation or limit, nothing is written.
    write: whether to write thresholds/EDITION/SYSTEM--MODEL.toml in the workspace, where `lmkbc.predict` finds it.
    overwrite: whether to replace an existing file.
    progress: callback for progress.

    InputError for wrong input, before any model is asked.
    """
    from lmkbc.run import submission
    from lmkbc.run.pipeline import propose
    from lmkbc.select import tuned_rules
    from lmkbc.select.tuned_rules import origin_of, own_selector, split_sha256
    from lmkbc.tune.learn import check
    from lmkbc.tune.learn import tune as tune_rules

    names = None if rules is None else tuple(rules)
    how = TuningOptions(rules=names, both_sides=both_sides, folds=folds, trials=trials, seed=seed)
    check(how, storage)
    run, recipe, subset = opened_subset(options, split, relation, limit)
    check_kept(run, "tune")
    space, chosen, split = run.workspace, run.edition, run.split
    examples = list(subset.rows(space.examples(chosen, split), lambda row: row.query.relation))
    origin, folder = origin_of(run, recipe), space.own("thresholds")
    path = tuned_rules.path_of(folder, chosen.name, recipe.name, origin) if write and subset.is_whole else None
    check_file(path)
    if path is not None and path.exists() and not overwrite:
        raise InputError(
            f"{path} holds what was tuned before: give --overwrite to replace it, or --no-write to tune without writing"
        )
    proposals = propose(run, recipe, [example.query for example in examples], progress)
    selector, _ = own_selector(run, recipe)
    data = TuningSet.of(proposals.sets, examples, chosen, relations=run.relations, selector=selector, options=how)
    tuned = tune_rules(data, storage=storage, report=progress)
    if path is not None:
        provenance = tuned_rules.Provenance.of(
            tuned,
            origin,
            edition=chosen.name,
            system=recipe.name,
            data_sha256=split_sha256(run, split),
            candidates_sha256=sha256(submission.candidate_lines(proposals.sets)),
        )
        tuned_rules.write(path, tuned, provenance)
    return Tuning(tuned, chosen.name, split, recipe.name, path)


def described(table: Mapping[str, Any]) -> str:
    """Return a rule on one line. A long table is named, not shown."""
    parameters = {name: value for name, value in table.items() if name != "rule" and not isinstance(value, Mapping)}
    rules = [value for value in table.values() if isinstance(value, Mapping) and "rule" in value]
    inner = "".join(f" over {described(rule)}" for rule in rules)
    return " ".join([str(table["rule"]), *(f"{name}={value}" for name, value in parameters.items())]) + inner
