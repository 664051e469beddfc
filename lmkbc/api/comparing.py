"""Comparison of runs on the same queries, with a test of the difference's significance."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from lmkbc.api.scores import HasRun, open_run, other_split, scored_on
from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords
from lmkbc.edition import Edition
from lmkbc.errors import InputError, OptionError, counted
from lmkbc.files.atomic import write_bytes
from lmkbc.files.splits import read_examples
from lmkbc.generate.recorded_rows import each_row
from lmkbc.names import subject_key
from lmkbc.run.saved import SavedRun, read_gold
from lmkbc.run.submission import CANDIDATES
from lmkbc.session.options import DataDir, EditionName, Gold, Limit, OneRelation, OneSplit, Trust, WorkspaceDir
from lmkbc.types import Pair
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

    from lmkbc.evaluation.comparison import Comparison

MOST_ROWS = 500
"""Most rows won, and most rows lost, that a page shows of a pair of runs."""
MOST_OBJECTS = 20
"""Most objects of an answer that a page shows there."""


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of the first runs with those after them.

    comparisons: one per pair of runs: the difference over all, and by relation. remarks: a sentence for each run whose
    rules were tuned on the split, or whose predictions are not those of its manifest. split: "" if the gold was given.
    part: part of the split that was compared, in words; "" for all.
    """

    edition: Edition
    comparisons: Sequence[Comparison]
    remarks: Sequence[str] = ()
    split: str = ""
    part: str = ""

    @property
    def verdicts(self) -> list[str]:
        """Return a sentence per comparison that interprets its numbers."""
        return [one.verdict for one in self.comparisons]

    @property
    def title(self) -> str:
        """Return edition, split and part in words."""
        return ", ".join(filter(None, (self.edition.title, self.split, self.part)))

    @cached_property
    def table(self) -> pl.DataFrame:
        """Return a row per comparison and relation, and one over all, with the fields of a `Difference`."""
        import polars as pl

        rows = []
        for one in self.comparisons:
            differences = {**one.relations, "*** Average ***": one.overall}
            named = {"first_run": one.first, "second_run": one.second}
            rows += [
                named | {"relation": name} | asdict(own) | {"significant": own.is_significant}
                for name, own in differences.items()
            ]
        return pl.DataFrame(rows)

    @cached_property
    def changed(self) -> pl.DataFrame:
        """Return the rows won and lost of each comparison, with the fields of a `ChangedRow`."""
        import polars as pl

        from lmkbc.evaluation.comparison import ChangedRow

        rows = [(one.first, one.second, *row, row.is_won) for one in self.comparisons for row in one.changed]
        scores = {"first": pl.Float64, "second": pl.Float64, "won": pl.Boolean}
        types = scores | dict.fromkeys(("first_answer", "second_answer", "gold"), pl.List(pl.String))
        columns = ("first_run", "second_run", *ChangedRow._fields, "won")
        return pl.DataFrame(rows, schema={name: types.get(name, pl.String) for name in columns}, orient="row")

    @property
    def html(self) -> str:
        """Return the comparison as an HTML page that needs no network."""
        from lmkbc.evaluation.comparison import shown_p
        from lmkbc.report.figures import drawable, forest
        from lmkbc.report.page import render
        from lmkbc.report.rows import LONGEST_TEXT, cut

        draws = drawable()
        pairs = [(one, draws and forest(one, f"forest{place}")) for place, one in enumerate(self.comparisons)]
        title = f"{self.title}: runs beside {' and '.join(dict.fromkeys(one.first for one in self.comparisons))}"
        return render(
            "compare.html",
            title=title,
            pairs=pairs,
            remarks=self.remarks,
            shown_p=shown_p,
            most_rows=MOST_ROWS,
            most_objects=MOST_OBJECTS,
            cut=partial(cut, most=LONGEST_TEXT),
        )

    def write(self, path: Path | str) -> Path:
        """Write the page, and return its path."""
        from lmkbc.report.page import check_page

        place = Path(path)
        check_page(place)
        write_bytes(place, self.html.encode())
        return place

    def __repr__(self) -> str:
        return f"<Comparisons on {self.title}: {' '.join([*self.verdicts, *self.remarks])}>"

    def _repr_html_(self) -> str:
        return shown(self.title, *self.verdicts, *self.remarks, self.table)


@keywords
def compare(
    *runs: Annotated[
        Path | str | HasRun,
        Meta(description="Run directories, zips or predictions files.", extra={"argument": True, "metavar": "RUN..."}),
    ],
    split: OneSplit = None,
    edition: EditionName = None,
    relation: OneRelation = None,
    limit: Limit = None,
    gold: Gold = None,
    baselines: Annotated[
        int, Meta(ge=1, description="Number of first runs that are baselines: every later run is compared with each.")
    ] = 1,
    data: DataDir = None,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
) -> Comparisons:
    """Compare runs with the first one, or with several baselines, on the same queries.

    A run may also be a result of `lmkbc.predict`. If a run answered a subset of its split, that subset is compared.
    InputError for fewer than two runs, or for runs that are not comparable.
    """
    from lmkbc.evaluation.comparison import compare as compared  # here, since it loads numpy
    from lmkbc.evaluation.comparison import distinct_names

    space, opened = Workspace(workspace, data, trust=trust), [open_run(run) for run in runs]
    if len(opened) < 2:
        raise InputError("compare needs two runs at least: give their directories, zips or predictions files")
    if not 0 < baselines < len(opened):
        raise OptionError("baselines", f"is {baselines} of {len(opened)} runs: give more runs than baselines")
    chosen, subset, named_split, path = scored_on(space, opened, edition, split, gold, relation, limit)
    truth = dict(subset.rows(read_gold(path, chosen).items(), lambda row: row[0][1]))
    if not (truth or subset.is_whole):
        raise InputError(f"{path} has no query of {subset.words} that all runs asked: give runs of the same queries")
    named = [*zip(distinct_names(opened), opened, strict=True)]
    remarks = [f"{name}: {seen.of(subset, chosen).remark}." for name, run in named if (seen := run.in_sample)]
    remarks += _failures(named, truth.keys(), chosen)
    asked = "" if gold is not None else chosen.split_named(named_split)
    for name, run in named:
        there = {(subject_key(subject), relation) for subject, relation in run.answers(chosen)}
        if missing := sum((subject_key(subject), relation) not in there for subject, relation in truth):
            if 2 * missing > len(truth) and (error := other_split(space, run.predictions, chosen, asked)):
                raise error
            remarks.append(f"{name}: {missing} of {len(truth)} queries are missing, which counts as nothing answered.")
    try:
        names = _names(path, chosen, opened)
        return Comparisons(chosen, compared(chosen, truth, opened, names, baselines), remarks, asked, subset.words)
    except InputError as error:
        others = (other_split(space, run.predictions, chosen, asked) for run in opened)
        raise next(filter(None, others), error) from None


def _failures(named: Sequence[tuple[str, SavedRun]], asked: Set[Pair], edition: Edition) -> list[str]:
    """Return sentences on how runs count failed queries: one if they differ in it, since scores then differ too."""
    as_empty = [f"{name}: {remark}" for name, run in named for remark in run.remarks]
    counts = {name: len((asked & run.unreadable) - run.predicted(edition).keys()) for name, run in named}
    wrong = [
        f"{name}: {counted(count, 'query has', 'queries have')} no readable answer, counted as wrong"
        for name, count in counts.items()
        if count
    ]
    if wrong and as_empty and not any(run.changed for _, run in named):
        return [f"{'; '.join([*wrong, *as_empty])}: a difference may be of that alone; predict both in one way."]
    return [f"{remark}." for remark in wrong + as_empty]


def _names(gold: Path, edition: Edition, runs: Sequence[SavedRun]) -> dict[str, str]:
    """Return id -> name from a gold file, else as the runs call it; {} for an edition without ids."""
    if edition.target != "id":
        return {}
    answered = {one for run in runs for objects in run.predicted(edition).values() for one in objects}
    files = (path for run in runs if (path := run.path / CANDIDATES).is_file())
    proposed = (one for path in files for row in each_row(path, edition) for one in row.candidates or ())
    names = {one.id: one.object for one in proposed if one.id and one.id in answered}
    examples = read_examples(gold, edition)
    return names | {one.id: one.name for example in examples for one in example.objects if one.id}
