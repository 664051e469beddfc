"""One question, answered by a system: the objects, their confidence, their links, and the evidence."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

from lmkbc.api.frames import shown
from lmkbc.api.options import chosen_edition, keywords, opened
from lmkbc.edition import Edition
from lmkbc.errors import InputError, LmkbcError, did_you_mean
from lmkbc.progress import Report, silent
from lmkbc.run.options import RunOptions
from lmkbc.run.subset import Subset
from lmkbc.types import Candidate, CandidateSet, Query
from lmkbc.workspace import Workspace

MOST_OTHERS = 5
"""Candidates beside the answer that are shown."""


@dataclass(frozen=True, slots=True)
class AnswerObject:
    """An object that was proposed.

    id: QID or literal, None where nothing linked. confidence: in [0, 1]. kept: whether it is part of the answer.
    sources: what proposed it. link: why it has its id, None where the edition has no ids.
    """

    object: str
    id: str | None
    confidence: float
    kept: bool
    sources: tuple[str, ...]
    link: str | None = None


@dataclass(frozen=True)
class Answer:
    """Answer to one question. Iterate over it for the names of its objects; none is an answer too.

    objects: kept ones first, then the likeliest others. nothing: the score of answering nothing, None where no source
    gives one. calibrated: whether confidences are probabilities that tuning fitted. selection: what decided.
    replies: what models wrote, one text per sample. seconds: how long it took.
    """

    subject: str
    relation: str
    edition: str
    system: str
    objects: tuple[AnswerObject, ...]
    nothing: float | None
    calibrated: bool
    selection: str
    replies: tuple[str, ...]
    seconds: float

    @property
    def kept(self) -> tuple[AnswerObject, ...]:
        """Return the objects of the answer."""
        return tuple(one for one in self.objects if one.kept)

    def __iter__(self) -> Any:
        return (one.object for one in self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def __bool__(self) -> bool:
        return bool(self.kept)

    def _repr_html_(self) -> str:
        import polars as pl

        rows = pl.DataFrame([asdict(one) for one in self.objects])
        return shown(f"{self.subject}: {self.relation}", f"{self.system}, LM-KBC {self.edition}", rows)


@keywords(RunOptions)
def ask(
    subject: str,
    relation: str,
    *,
    subject_id: str | None = None,
    precision: float | None = None,
    untuned: bool = False,
    any_thresholds: bool = False,
    progress: Report = silent,
    **options: Unpack[RunOptions],
) -> Answer:
    """Ask one question of a system, as `lmkbc.predict` asks those of a split.

    relation: any of its names. Without an edition, the newest one here that asks it. subject_id: the subject's QID.
    precision, untuned, any_thresholds: as of `lmkbc.predict`. InputError for a subject without a name and for an
    unknown relation; LmkbcError where no model answered.
    """
    from lmkbc.pipeline import propose
    from lmkbc.select.confidence import confidences
    from lmkbc.selection import selector_for

    start = time.monotonic()
    if not subject.strip():
        raise InputError("the subject has no name: give one, as in lmkbc ask Peru country-borders")
    space = Workspace(options.get("workspace"), options.get("data"))
    edition = _edition(space, options.get("edition"), relation)
    (name,) = Subset.of(space, edition, relation, None).relations
    run, recipe = opened(RunOptions(**{**options, "edition": edition.name}))
    selector, provenance = selector_for(
        run, recipe, any_thresholds=any_thresholds, untuned=untuned, precision=precision
    )
    query = Query(subject.strip(), name, subject_id)
    found = propose(run, recipe, [query], progress)
    (candidates,) = found.sets
    (prediction,) = selector.select_all([candidates])
    if prediction.failed:
        reasons = ", ".join(dict.fromkeys(candidates.draws)) or "not asked"
        raise LmkbcError(f"{recipe.name} gave no usable answer about {query.subject!r} ({reasons}): ask again")
    (sure,) = confidences(selector, [candidates])
    others = [one for one in _likeliest(candidates, sure.p) if one not in prediction.objects]
    rows = [*prediction.objects, *others[:MOST_OTHERS]]
    objects = tuple(
        AnswerObject(
            object=one.text,
            id=one.id,
            confidence=round(sure.of(one), 6),
            kept=place < len(prediction.objects),
            sources=tuple(map(str, one.sources)),
        )
        for place, one in enumerate(rows)
    )
    if edition.target == "id":
        objects = _with_links(objects, _links(run.workspace, edition, recipe.link, query, rows, options))
    written = [reply.text for one in found.replies.get(query, ()) for part in one.parts for reply in part if reply]
    return Answer(
        subject=query.subject,
        relation=name,
        edition=edition.name,
        system=recipe.name,
        objects=objects,
        nothing=max((nil.score for nil in candidates.nothing), default=None),
        calibrated=sure.calibrated,
        selection=provenance["how"],
        replies=tuple(written),
        seconds=round(time.monotonic() - start, 3),
    )


def _edition(space: Workspace, name: str | None, relation: str) -> Edition:
    """Return the edition named, else the one of highest rank whose data is here and that asks a relation."""
    if name is not None:
        return space.edition(name)
    wanted = space.relation(relation)
    asking = [one for one in space.editions.values() if any(space.relation(own) == wanted for own in one.relations)]
    if not asking:
        raise InputError(f"no edition asks {relation!r}: {did_you_mean(relation, space.relations)}")
    first = chosen_edition(space, None)
    here = [one for one in sorted(asking, key=lambda one: -one.rank) if space.has_data(one)]
    return first if first in asking else (here or asking)[0]


def _likeliest(candidates: CandidateSet, p: Sequence[float]) -> list[Candidate]:
    """Return the candidates of a set, surest first."""
    ranked = sorted(zip(candidates.candidates, p, strict=True), key=lambda pair: -pair[1])
    return [one for one, _ in ranked]


def _links(
    space: Workspace, edition: Edition, linking: Any, query: Query, rows: Sequence[Candidate], options: RunOptions
) -> list[str | None]:
    """Return why each object has its link; None for a literal."""
    from lmkbc.files.places import placed
    from lmkbc.report.links import Evidence, Tracer

    index, table = placed(options.get("index")), placed(options.get("search_table"))
    evidence = Evidence.of(index, table, offline=options.get("offline", False))
    tracer = Tracer(space, edition, linking, evidence)
    (traces,) = tracer.traces([(query, [(one.text, one.id) for one in rows])])
    return [None if trace is None else trace.how for trace in traces]


def _with_links(objects: Sequence[AnswerObject], links: Sequence[str | None]) -> tuple[AnswerObject, ...]:
    return tuple(replace(one, link=link) for one, link in zip(objects, links, strict=True))
