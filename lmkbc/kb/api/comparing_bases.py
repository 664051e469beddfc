"""Comparison of two knowledge bases: facts that came, went and changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords
from lmkbc.errors import OptionError, check_known
from lmkbc.kb.api.exporting import LEAST
from lmkbc.progress import Report, silent
from lmkbc.session.options import OneRelation, Trust, WorkspaceDir
from lmkbc.session.subset import names_of
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class BaseComparison:
    """Differences of two knowledge bases, as tables. least: threshold of confidence.

    counts: a row per relation. came, went: facts of the second and of the first base alone, and what the other base has
    for their queries. changed: facts of both bases, with confidence and rank in each, and the kinds of changes.
    """

    first: Path
    second: Path
    least: float
    counts: pl.DataFrame
    came: pl.DataFrame
    went: pl.DataFrame
    changed: pl.DataFrame

    def _repr_html_(self) -> str:
        return shown(f"{self.second} beside {self.first}", self.counts)


@keywords
def compare_bases(
    first: Path | str,
    second: Path | str,
    *,
    relation: OneRelation = None,
    least: float = LEAST,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
    progress: Report = silent,
) -> BaseComparison:
    """Compare two knowledge bases: facts that came, went and changed.

    least: a change of confidence across it is listed. InputError for a base that is not finished or is damaged.
    """
    from lmkbc.kb.audit.changes import changes  # here, since it loads numpy and polars
    from lmkbc.kb.base.knowledge import Knowledge

    if not 0 <= least <= 1:
        raise OptionError("least", f"is {least}: give a confidence from 0 to 1")
    space = Workspace(workspace, trust=trust)
    wanted = [space.relation(name).name for name in names_of(relation)]
    mine, theirs = (Knowledge(Path(path), report=progress) for path in (first, second))
    known = list(dict.fromkeys([*mine.relations, *theirs.relations]))
    for name in wanted:
        check_known(name, known, f"no base has facts of {name!r}")
    made = changes(mine, theirs, wanted or known, least)
    return BaseComparison(mine.path, theirs.path, least, made.counts, made.came, made.went, made.changed)
