"""What a run of a split would ask, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from lmkbc.api.keywords import keywords
from lmkbc.api.opening import RunOptions, opened_part
from lmkbc.api.scores import listed
from lmkbc.progress import Report, silent
from lmkbc.run import directory as run_directory

if TYPE_CHECKING:
    from lmkbc.run.estimate import Forecast


@keywords(RunOptions)
def foresee(
    split: str,
    *,
    relation: str | Sequence[str] | None = None,
    limit: int | None = None,
    out: Path | str | None = None,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Forecast:
    """Forecast a run of a split, or of a part of it: what it would ask, and what of that is stored already.

    relation, limit, progress and options: as of `lmkbc.predict`. out: the directory of an earlier run, which tells how
    long the like took. InputError as there.
    """
    from lmkbc.run.estimate import forecast  # which loads what asks models

    run, recipe, part = opened_part(options, split, listed(relation), limit)
    edition, space = run.edition, run.workspace
    queries = part.rows(space.queries(edition, split), lambda query: query.relation)
    named = edition.split_named(split)
    own = out or run_directory.named(edition.name, named, recipe.name, None if part.is_whole else part)
    return forecast(run, recipe, queries, run_directory.timings(edition.name, recipe.name, Path(own)), progress)
