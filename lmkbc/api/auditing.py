"""Audits of a knowledge base: a sample to label, precision by labels, and a comparison with known facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from lmkbc.api.data_frames import shown
from lmkbc.api.keywords import keywords
from lmkbc.errors import InputError, OptionError
from lmkbc.files.atomic import staged, writing
from lmkbc.files.writable import check_directory, check_new
from lmkbc.kb.audit import known as known_facts
from lmkbc.kb.audit.known import Known
from lmkbc.kb.audit.precision import (
    KnownCounts,
    KnownPrecision,
    LabelledPrecision,
    Recalibration,
    by_labels,
    frames,
    listed,
    recalibrated,
)
from lmkbc.kb.audit.sample import LABELS, MOST, LabelsFile, draw, facts_of, page, rows_of
from lmkbc.kb.build.knowledge import Knowledge
from lmkbc.progress import Report, silent
from lmkbc.run.options import DataDir, KnowledgeDir, WorkspaceDir
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

PAGE = "audit.html"
SAMPLE = 200
"""Default number of facts in a sample."""
SPLITS = "train", "val", "dev"
"""Values of `known` for a labelled split of a base's edition, in place of a file."""


@dataclass(frozen=True)
class Audit:
    """Result of an audit.

    page, labels: files of a new sample. precision: precision by labels; the last row is the whole base. known:
    comparison with known facts, by relation and bin of confidence. recalibration: recalibration by labels, else by
    known facts. written: the file of compared facts.
    """

    directory: Path
    page: Path | None = None
    labels: Path | None = None
    precision: Sequence[LabelledPrecision] = ()
    known: Sequence[KnownPrecision] = ()
    recalibration: Recalibration = field(default_factory=Recalibration)
    written: Path | None = None

    @property
    def table(self) -> pl.DataFrame:
        """Return a row per relation from labels, else a row per relation and bin from known facts."""
        import polars as pl

        return pl.DataFrame(msgspec.to_builtins([*(self.precision or self.known)]), infer_schema_length=None)

    def _repr_html_(self) -> str:
        return shown(
            f"Audit of {self.directory}", *([self.table] if self.precision or self.known else [str(self.page)])
        )


@keywords
def audit(
    knowledge: KnowledgeDir,
    *,
    sample: Annotated[
        int | None,
        Meta(description=f"Draw N facts for a person to label. Default: {SAMPLE}, without --labels and --known."),
    ] = None,
    seed: Annotated[int, Meta(description="Seed of the draw.")] = 0,
    labels: Annotated[
        Path | str | None,
        Meta(description="Labels of a sample of this base: print its precision.", extra={"metavar": "FILE"}),
    ] = None,
    known: Annotated[
        Path | str | Sequence[Path | str] | None,
        Meta(
            description="Facts that are known: a table of subject, property, object, truthy N-Triples, Wikidata's JSON "
            "dump (.gz and .bz2 too), or the edition's split train or val. Repeatable, for the pieces of a dump.",
            extra={"metavar": "FILE"},
        ),
    ] = None,
    out: Annotated[
        Path | str | None,
        Meta(
            description="New directory of a sample. Default: the base's name with -audit, here. With --known: new CSV "
            "file of all facts, the new ones first, by expected gain."
        ),
    ] = None,
    data: DataDir = None,
    workspace: WorkspaceDir = None,
    progress: Report = silent,
) -> Audit:
    """Audit a knowledge base: draw a sample to label, estimate precision from labels, or compare with known facts.

    InputError for labels of another base, and for files that are damaged or cut off.
    """
    path, files = Path(knowledge), [known] if isinstance(known, str | Path) else [*(known or ())]
    place = None if out is None else Path(out)
    if labels is None and not files:
        return _sampled(path, SAMPLE if sample is None else sample, seed, place, Workspace(workspace, data), progress)
    for name, value in (("sample", sample), ("seed", seed or None)):
        if value is not None:
            raise OptionError(name, "draws a new sample, and labels or known facts are given too: give one of the two")
    if place is not None and not files:
        raise OptionError("out", "names a file for facts beside what is known: give --known too")
    check_new(place)
    base = Knowledge(path, report=progress)
    precision, recalibration = _labelled(base, Path(labels)) if labels is not None else ([], None)
    if not files:
        return Audit(path, precision=precision, recalibration=recalibration or Recalibration())
    return _beside(base, files, place, Workspace(workspace, data), precision, recalibration)


def _sampled(path: Path, size: int, seed: int, out: Path | None, space: Workspace, report: Report) -> Audit:
    place = out or Path(f"{path.resolve().name}-audit")
    check_directory(place)
    if place.is_dir() and any(place.iterdir()):
        raise InputError(f"--out {place} holds files already, perhaps labels: name a directory that is new or empty")
    if size > MOST:
        raise OptionError("sample", f"is {size}: give {MOST} facts or fewer")
    base = Knowledge(path, report=report)
    sample = draw(base, size, seed)
    facts = facts_of(base, sample)
    rows = rows_of(sample, facts)
    about = {name: space.relations[name].definition for name in base.relations if name in space.relations}
    replies = base.replies({chosen.row for chosen in sample.drawn.values()})
    with staged(place) as stage:
        (stage / PAGE).write_text(page(path.resolve().name, sample, facts, rows, about, replies), encoding="utf-8")
        (stage / LABELS).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return Audit(path, page=place / PAGE, labels=place / LABELS)


def _labelled(base: Knowledge, path: Path) -> tuple[list[LabelledPrecision], Recalibration]:
    labels = LabelsFile(path)
    labels.check_base(base.checksum, base.path)
    sample = draw(base, labels.name.sample, labels.name.seed)
    given = labels.of(sample)
    made = recalibrated(sample, given)
    selection = base.inputs.get("selection")
    promised = selection.get("precision") if isinstance(selection, dict) else None
    return by_labels(sample, given, made, promised if isinstance(promised, float) else None), made


def _beside(
    base: Knowledge,
    files: Sequence[Any],
    out: Path | None,
    space: Workspace,
    precision: Sequence[LabelledPrecision],
    labelled: Recalibration | None,
) -> Audit:
    known, counts = _known(base, files, space), KnownCounts()
    single = {
        name: space.relations[name].has_one_object() if name in space.relations else about.kind == "number"
        for name, about in base.relations.items()
    }
    marked = counts.counted(known.marked(fact, single[fact.relation]) for fact in base.facts())
    if out is None:
        for _ in marked:
            pass
        made = labelled or counts.recalibrated()
    else:
        parts = [*frames(marked)]
        made = labelled or counts.recalibrated()
        with writing(out) as file:
            listed(parts, made).write_csv(file)
    return Audit(base.path, None, None, precision, counts.rows(), made, out)


def _known(base: Knowledge, files: Sequence[Any], space: Workspace) -> Known:
    split = next((name for name in map(str, files) if name in SPLITS), None)
    if split is None:
        subjects = frozenset(fact.subject_id for fact in base.facts() if fact.subject_id)
        properties = {about.property: about for about in base.relations.values()}
        return known_facts.read([*map(Path, files)], properties, subjects)
    if len(files) > 1:
        raise OptionError("known", f"names {split} and more: give a split alone, or files")
    edition = space.edition(str(base.inputs.get("edition")))
    return known_facts.of_split(
        space.examples(edition, edition.split_named(split)), lambda name: space.relations[name].property
    )
