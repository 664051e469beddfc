"""Audits of a knowledge base: a sample to label, precision by labels, and a comparison with known facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords
from lmkbc.errors import InputError, OptionError
from lmkbc.files.atomic import staged, writing
from lmkbc.files.tables import comma_separated
from lmkbc.files.writable import check_directory, check_new
from lmkbc.kb.audit import known as known_facts
from lmkbc.kb.audit.known import Known, Mark, MarkedFact
from lmkbc.kb.audit.labels_file import LABELS, MOST, LabelsFile
from lmkbc.kb.audit.precision import (
    COLUMNS,
    KnownCounts,
    KnownPrecision,
    LabelledPrecision,
    Recalibration,
    by_labels,
    compared_rows,
    listed,
    recalibrated,
)
from lmkbc.kb.audit.sample import draw, facts_of, page, rows_of
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import About
from lmkbc.kb.base.schemas import frames
from lmkbc.kinds.kind import kind_of
from lmkbc.link.search import wikidata
from lmkbc.progress import Report, silent
from lmkbc.session.options import ApiUrl, Contact, DataDir, KnowledgeDir, Trust, WorkspaceDir
from lmkbc.workspace import Workspace

if TYPE_CHECKING:
    import polars as pl

PAGE = "audit.html"
SAMPLE = 200
"""Default number of facts in a sample."""
SPLITS, WIKIDATA = ("train", "val", "dev"), "wikidata"
"""Values of `known` in place of a file: a labelled split of a base's edition, and what Wikidata answers."""


@dataclass(frozen=True)
class Audit:
    """Result of an audit.

    page, labels: files of a new sample. precision: precision by labels; the last row is the whole base. known:
    comparison with known facts, by relation and bin of confidence. unstated: relations of which nothing is known.
    uncovered: subjects, with QIDs, that the known facts do not cover in other relations. recalibration: recalibration
    by labels, else by known facts. written: the file of compared facts.
    """

    directory: Path
    page: Path | None = None
    labels: Path | None = None
    precision: Sequence[LabelledPrecision] = ()
    known: Sequence[KnownPrecision] = ()
    unstated: Sequence[str] = ()
    uncovered: Sequence[str] = ()
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
            description="Facts that are known: wikidata, which is asked about the base's subjects; a table of subject, "
            "property, object, by ids or by names; N-Triples, truthy or full; Wikidata's JSON dump (.gz and .bz2 too); "
            "a base, or its CSV; or the edition's split train or val. Repeatable, for the pieces of a dump.",
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
    contact: Contact = None,
    api_url: ApiUrl = None,
    offline: Annotated[bool, Meta(description="With --known wikidata: use the answers in the cache alone.")] = False,
    refresh: Annotated[bool, Meta(description="With --known wikidata: ask again for answers in the cache.")] = False,
    data: DataDir = None,
    workspace: WorkspaceDir = None,
    trust: Trust = False,
    progress: Report = silent,
) -> Audit:
    """Audit a knowledge base: draw a sample to label, estimate precision from labels, or compare with known facts.

    contact, api_url, offline, refresh: of `known="wikidata"`. Its answers are cached, so a run that failed goes on.

    InputError for labels of another base, and for files that are damaged or cut off.
    """
    path, files = Path(knowledge), [known] if isinstance(known, str | Path) else [*(known or ())]
    place = None if out is None else Path(out)
    asked: dict[str, Any] = {"contact": contact, "api_url": api_url, "offline": offline, "refresh": refresh}
    if given := [name for name, value in asked.items() if value and WIKIDATA not in map(str, files)]:
        raise OptionError(given[0], "is of questions to Wikidata, and none is asked: give --known wikidata too")
    if labels is None and not files:
        return _sampled(
            path, SAMPLE if sample is None else sample, seed, place, Workspace(workspace, data, trust=trust), progress
        )
    for name, value in (("sample", sample), ("seed", seed or None)):
        if value is not None:
            raise OptionError(name, "draws a new sample, and labels or known facts are given too: give one of the two")
    if place is not None and not files:
        raise OptionError("out", "names a file for facts beside what is known: give --known too")
    check_new(place)
    precision, recalibration = _labelled(path, Path(labels), progress) if labels is not None else ([], None)
    if not files:
        return Audit(path, precision=precision, recalibration=recalibration or Recalibration())
    base = Knowledge(path, report=progress)
    found = _known(base, files, Workspace(workspace, data, trust=trust), asked, progress)
    return _beside(base, known_facts.with_shared_names(found, base), place, precision, recalibration)


def _sampled(path: Path, size: int, seed: int, out: Path | None, space: Workspace, report: Report) -> Audit:
    place = out or Path(f"{path.resolve().name}-audit")
    check_directory(place)
    if place.is_dir() and any(place.iterdir()):
        raise InputError(f"--out {place} holds files already, perhaps labels: name a directory that is new or empty")
    if size > MOST:
        raise OptionError("sample", f"is {size}: give {MOST} facts or fewer")
    base = Knowledge(path, as_built=True, report=report)
    base.describe(space.relations)
    sample = draw(base, size, seed)
    facts = facts_of(base, sample)
    rows = rows_of(sample, facts)
    replies = base.replies({chosen.row for chosen in sample.drawn.values()})
    with staged(place) as stage:
        (stage / PAGE).write_text(page(path.resolve().name, sample, facts, rows, replies), encoding="utf-8")
        (stage / LABELS).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return Audit(path, page=place / PAGE, labels=place / LABELS)


def _labelled(place: Path, path: Path, report: Report) -> tuple[list[LabelledPrecision], Recalibration]:
    base, labels = Knowledge(place, as_built=True, report=report), LabelsFile(path)
    labels.check_base(base.checksum, base.path)
    sample = draw(base, labels.name.sample, labels.name.seed)
    given = labels.of(sample.drawn)
    made = recalibrated(sample, given)
    selection = base.inputs.get("selection")
    promised = selection.get("precision") if isinstance(selection, dict) else None
    return by_labels(sample, given, made, promised if isinstance(promised, float) else None), made


def _beside(
    base: Knowledge,
    known: Known,
    out: Path | None,
    precision: Sequence[LabelledPrecision],
    labelled: Recalibration | None,
) -> Audit:
    counts, uncovered = KnownCounts(), dict[str, None]()

    def compared() -> Iterator[MarkedFact]:
        for marked in map(known.marked, base.facts()):
            fact = marked.fact
            if marked.mark is Mark.UNCOVERED and fact.about.property in known.properties:
                item = fact.subject_id or ("" if known.named else "no QID")
                uncovered[f"{fact.subject} ({item})" if item else fact.subject] = None
            yield marked

    marked = counts.counted(compared())
    if out is None:
        for _ in marked:
            pass
        made = labelled or counts.recalibrated()
    else:
        parts = [*frames(compared_rows(marked), COLUMNS)]
        made = labelled or counts.recalibrated()
        with writing(out, new=True) as file:
            file.write(comma_separated(listed(parts, made)).encode())
    unstated = [name for name, about in base.relations.items() if about.property not in known.properties]
    return Audit(base.path, None, None, precision, counts.rows(), unstated, [*uncovered], made, out)


def _known(base: Knowledge, files: Sequence[Any], space: Workspace, asked: Mapping[str, Any], report: Report) -> Known:
    base.describe(space.relations)
    split = next((name for name in map(str, files) if name in (*SPLITS, WIKIDATA)), None)
    if split is not None and len(files) > 1:
        raise OptionError("known", f"names {split} and more: give {split} alone, or files")
    folders = [path for path in map(Path, files) if path.is_dir()] if split is None else []
    if folders and len(files) > 1:
        raise OptionError("known", f"names the base {folders[0]} and more: give the base alone, or files")
    if folders:
        return known_facts.of_base(folders[0])
    if split is None:
        return known_facts.read([*map(Path, files)], base)
    if split == WIKIDATA:
        properties = known_facts.wikidata_relations(base)
        if not properties:
            lacks = "asks for properties of Wikidata, and no relation of this base is of one"
            raise OptionError("known", f"{lacks}: give a table of facts, a labelled split, or another base")
        subjects, keys = known_facts.items_of(base)
        linked = [key for key in keys if key[2]]
        client = wikidata(**asked)
        entities = {name for name, about in properties.items() if kind_of(about).is_entity}
        unlinked = [(subject, name) for subject, name, item in keys if not item and name in entities]
        return known_facts.of_wikidata(client, properties, subjects, unlinked, linked, report)
    edition = space.edition(str(base.inputs.get("edition")))
    return known_facts.of_split(
        space.examples(edition, edition.split_named(split)), lambda name: About.of(space.relations[name])
    )
