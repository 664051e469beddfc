"""Function `ask`: one question to a system, with objects, confidence, links and evidence as its answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Unpack

from msgspec import Meta

from lmkbc.commands.data_frames import shown
from lmkbc.commands.keywords import keywords, opened_relation
from lmkbc.errors import InputError, LmkbcError, OptionError
from lmkbc.names import as_qid
from lmkbc.progress import Report, silent
from lmkbc.session.options import SelectedRunOptions, Selection, settled
from lmkbc.types import Candidate, CandidateSet, Query

if TYPE_CHECKING:
    from lmkbc.link.linker import Linking
    from lmkbc.session.quotes import Quote
    from lmkbc.session.run import Run

MOST_OTHERS = 5
"""Most candidates that are shown in addition to the answer."""
LONGEST = 500
"""Most characters of a reply that are shown."""


@dataclass(frozen=True, slots=True)
class AnswerObject:
    """An object that was proposed.

    id: QID or literal, None without a link. confidence: in [0, 1]. kept: whether it is part of the answer. sources:
    sources that proposed it. link: why it has its id, None for an edition without ids. quote: a sentence of the user's
    documents in which it stands.
    """

    object: str
    id: str | None
    confidence: float
    kept: bool
    sources: tuple[str, ...]
    link: str | None = None
    quote: Quote | None = None


@dataclass(frozen=True)
class Answer:
    """Answer to one question. Iterate over it for the names of its objects. An empty answer is possible.

    title: the edition's, for headings. objects: kept objects, then the likeliest others.
    nothing: score for "no object", None if no source gives one.
    calibrated: whether confidences are probabilities (see `lmkbc.select.selector.Confidence`).
    selection: description of the rule that selected the objects.
    replies: texts of the models, one per sample.
    seconds: duration.
    """

    subject: str
    relation: str
    edition: str
    title: str
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

        objects = pl.DataFrame(map(asdict, self.objects))
        return shown(f"{self.subject}: {self.relation}", f"{self.system}, {self.title}", objects)


@keywords
def ask(
    subject: Annotated[str, Meta(description="The subject's name.", extra={"argument": True})],
    relation: Annotated[
        str,
        Meta(
            description="A relation, by any of its names; see 'lmkbc relations list'.",
            extra={"argument": True},
        ),
    ],
    *,
    subject_id: Annotated[str | None, Meta(description="The subject's QID, as in Q419.")] = None,
    progress: Report = silent,
    **options: Unpack[SelectedRunOptions],
) -> Answer:
    """Ask a system one question, in the same way as `lmkbc.predict` asks those of a split.

    The default edition is the newest one with data here that has the relation. InputError for an empty subject, for an
    unknown relation, and for an id that is no QID; LmkbcError if no model answered.
    """
    from lmkbc.run.pipeline import propose
    from lmkbc.select.selector import confidences
    from lmkbc.tune.chooser import selector_for

    start = time.monotonic()
    if not subject.strip():
        raise InputError("the subject has no name: give one, as in lmkbc ask Peru country-borders")
    if subject_id is not None and as_qid(subject_id) is None:
        raise OptionError("subject_id", f"is {subject_id!r}, which is no QID: give one as in Q419, or leave it out")
    plan, name = opened_relation(options, relation)
    run, recipe = plan.run, plan.recipe
    selector, provenance = selector_for(plan, settled(Selection, options), [name])
    query = Query(subject.strip(), name, as_qid(subject_id or ""))
    found = propose(plan, [query], progress)
    (candidates,) = found.sets
    (prediction,) = selector.select_all([candidates])
    written = [reply.text for one in found.replies.get(query, ()) for part in one.parts for reply in part if reply]
    if prediction.failed:
        reasons = ", ".join(dict.fromkeys(candidates.draws)) or "not asked"
        hint = "the reason stands above" if candidates.lacks_replies or run.files else "--fresh asks anew"
        wrote = f", but wrote {quoted(written[0])}" if written else ""
        raise LmkbcError(f"{recipe.name} gave no usable answer about {query.subject!r} ({reasons}){wrote}: {hint}")
    (sure,) = confidences(selector, [candidates])
    others = [one for one in _likeliest(candidates, sure.p) if one not in prediction.objects]
    rows = [*prediction.objects, *others[:MOST_OTHERS]]
    links = _links(run, recipe.link, query, rows) if run.edition.target == "id" else [None] * len(rows)
    objects = tuple(
        AnswerObject(
            object=one.text,
            id=one.id,
            confidence=round(sure.of(one), 6),
            kept=place < len(prediction.objects),
            sources=tuple(map(str, one.sources)),
            link=link,
            quote=texts.quote(query, run.relations[name], (one.text,)) if (texts := run.documents) else None,
        )
        for place, (one, link) in enumerate(zip(rows, links, strict=True))
    )
    return Answer(
        subject=query.subject,
        relation=name,
        edition=run.edition.name,
        title=run.edition.title,
        system=recipe.name,
        objects=objects,
        nothing=max((nil.score for nil in candidates.nothing), default=None),
        calibrated=sure.calibrated,
        selection=provenance["how"],
        replies=tuple(written),
        seconds=round(time.monotonic() - start, 3),
    )


def quoted(text: str) -> str:
    """Return what a model wrote as a quoted text: without what is not printable, and cut after `LONGEST` characters."""
    return repr(text.strip()[:LONGEST]) + f" ... ({len(text)} characters)" * (len(text) > LONGEST)


def _likeliest(candidates: CandidateSet, p: Sequence[float]) -> list[Candidate]:
    """Return the candidates of a set, the most confident first."""
    ranked = sorted(zip(candidates.candidates, p, strict=True), key=lambda pair: -pair[1])
    return [one for one, _ in ranked]


def _links(run: Run, linking: Linking, query: Query, rows: Sequence[Candidate]) -> list[str | None]:
    """Return for each object why it has its link; None for a literal."""
    from lmkbc.report.links import Evidence, Tracer

    evidence = Evidence.of(run.index, run.search_table, offline=run.offline)
    tracer = Tracer(run.workspace, run.edition, linking, evidence)
    (traces,) = tracer.traces([(query, [(one.text, one.id) for one in rows])])
    return [None if trace is None else trace.how for trace in traces]
