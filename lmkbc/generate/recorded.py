"""RecordedFile that were recorded elsewhere: completions and candidates from files, matched to queries.

A completions row holds raw texts, one per draw; a candidates row holds scored objects. Rows are matched by subject and
relation, and by SubjectEntityID where row and query have one; rows that repeat a query are further draws of it.

Each draw of a model is a source; a candidates row speaks with one source. A draw that abstains proposes to answer
nothing, a draw without an answer, or whose objects were all dropped, contributes nothing but its state. A model's own
probability p that an object exists is a NIL probability of 1 - p, and never a draw.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec

from lmkbc.answer.clean import UNWRITABLE, sifted
from lmkbc.answer.reply import candidates, united
from lmkbc.ask.style import PromptStyle
from lmkbc.edition import Edition, misfit
from lmkbc.errors import InputError
from lmkbc.generate.recorded_rows import EXISTENCE, CandidateRow, RecordedRow, read_rows
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.groups import grouped
from lmkbc.models.base import Reply
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.run.base import RecordedFile, Run
from lmkbc.scoring.matchers import number
from lmkbc.types import Candidate, CandidateSet, Dropped, Generator, Nil, Query, Source, State, together

log = logging.getLogger(__name__)

Score = Callable[..., CandidateSet]
"""From a query, its row of scored objects, what their model is called and the relation, to candidates."""
Read = Callable[[Query, Sequence[Sequence[Reply | None]], str], CandidateSet]
"""From a query's replies, part -> draw -> reply, and what their model is called, to candidates."""


@dataclass(frozen=True, kw_only=True)
class RecordedSpec(GeneratorSpec):
    """The table of `Recorded`, one generator per file. clean: bring names into the relation's shape."""

    clean: bool = True

    @property
    def reads_files(self) -> bool:
        """It reads nothing else."""
        return True

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator over all files. InputError if no file is named."""
        if not run.files:
            raise InputError("this system reads recorded answers: name at least one file with --from")
        return replayed(run.files, run, notes, clean=self.clean)

    def sources(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """Yield a generator for each file, named after the file where there are several."""
        if len(run.files) < 2:
            yield from super().sources(run, notes)
        else:
            for path in run.files:
                yield from (
                    (path.name, candidates) for _, candidates in super().sources(replace(run, files=(path,)), notes)
                )


class Recorded:
    """A generator that asks nobody: it replays files.

    paths: completions or candidates files, plain or gzipped; what each lacks of what is asked, `ended` tells. clean:
    bring names into the relation's shape. read: what reads a query's replies, called by a name. scored: what reads a
    row of scores in place of `clean`. name: of the one model whose draws all files hold. models: of a file that holds
    those of several, the names whose rows count. InputError names file, line and field.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        edition: Edition,
        relations: Mapping[str, Relation],
        *,
        clean: bool = True,
        read: Read | None = None,
        scored: Score | None = None,
        name: str = "",
        models: Mapping[Path, frozenset[str]] | None = None,
    ) -> None:
        self._scored = scored or partial(_scored, clean=clean)
        self._edition, self._relations = edition, relations
        self._clean, self._read = clean, read or self._plainly
        given = Counter(map(Path, paths))
        if not given:
            raise InputError("no recorded file was given: name a completions or a candidates file")
        if repeated := [path for path, count in given.items() if count > 1]:
            raise InputError(f"{repeated[0]} is given twice: its answers would count twice; name it once")
        every = {path: read_rows(path, edition) for path in given}
        for path, own in (models or {}).items():
            every[path] = [row for row in every[path] if row.asked in own]
        self._files = {path: _Rows(rows) for path, rows in every.items()}
        if name:
            first, *_ = self._files
            self._files = {first: _Rows([row for rows in self._files.values() for row in rows.all])}
        self._names = {first: name} if name else _source_names({path: rows.model for path, rows in self._files.items()})

    @property
    def models(self) -> list[str]:
        """The models that the files name, in their order."""
        return list(dict.fromkeys(name for rows in self._files.values() for name in rows.models))

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the answers of all files, a set per distinct query, in order and not yet pooled."""
        distinct = list(dict.fromkeys(queries))
        for query, *sets in zip(distinct, *self.sources(distinct).values(), strict=True):
            yield together(query, sets)

    def sources(self, queries: Sequence[Query]) -> dict[str, list[CandidateSet]]:
        """Return the sets of each file apart, by the file's source name, for pooling that weighs files."""
        return {self._names[path]: self._replay(path, queries) for path in self._files}

    def ended(self) -> None:
        """Say what each file lacked of all that was asked. InputError for a file that answers none of it."""
        for path, rows in self._files.items():
            if rows.missing == rows.asked and (first := rows.first) is not None:
                raise InputError(
                    f"{path} answers none of the {rows.missing} queries of edition {self._edition.name}, first "
                    f"({first.subject!r}, {first.relation!r}): its answers are of another edition or split; name one "
                    "of this"
                )
            if rows.missing:
                log.warning(
                    "%s lacks %d of %d queries: those that nothing else answers are failed, not empty",
                    path,
                    rows.missing,
                    rows.asked,
                )

    def _replay(self, path: Path, queries: Sequence[Query]) -> list[CandidateSet]:
        rows = self._files[path]
        rows.asked += len(queries)
        rows.missing += sum(not rows.of(query) for query in queries)
        rows.first = rows.first or next((query for query in queries if query.relation in rows.relations), None)
        return [self._answer(path, query) for query in queries]

    def _answer(self, path: Path, query: Query) -> CandidateSet:
        name, relation, rows = self._names[path], self._relations[query.relation], self._files[path].of(query)
        replies: list[CandidateSet] = []
        for row in rows:
            if row.candidates is not None:
                scored = _pooled if row.pooled else self._scored
                replies.append(scored(query, self._with_ids(row), name, relation))
            if row.existence is not None:
                nil = Nil(1 - row.existence, (Source(name),))
                replies.append(CandidateSet(query, draws=(), nil_probabilities=(nil,)))
        if any(row.completions for row in rows):
            replies.append(self._read(query, _parts(rows), name))
        for row in rows:
            nils = tuple(Nil(share, (Source(name, step),)) for step, share in row.nil_probabilities.items())
            replies += [CandidateSet(query, draws=(), nil_probabilities=nils)] if nils else []
        answer = _with_verification(
            together(query, replies), {k: v for row in rows for k, v in row.verification.items()}
        )
        return answer if answer.draws else replace(answer, draws=(State.MISSING,))

    def _plainly(self, query: Query, parts: Sequence[Sequence[Reply | None]], name: str) -> CandidateSet:
        """Return the candidates of replies whose prompt is not known."""
        relation = self._relations[query.relation]
        return united([candidates(query, relation, PromptStyle(), one, name, clean=self._clean) for one in parts])

    def _with_ids(self, row: RecordedRow) -> RecordedRow:
        """Return the row without ids that no submission could name. The names of those candidates are linked."""
        for candidate in row.candidates or ():
            if candidate.id and misfit(self._edition, self._relations[row.Relation], candidate.id):
                candidate.id = None
        return row


def replayed(
    files: Iterable[Path | RecordedFile],
    run: Run,
    notes: Notes,
    *,
    clean: bool = True,
    read: Read | None = None,
    scored: Score | None = None,
    name: str = "",
) -> Recorded:
    """Open files of recorded answers; notes take their models, and the answers that they lack in the end."""
    answers = [one if isinstance(one, RecordedFile) else RecordedFile(one) for one in files]
    models = {one.path: one.models for one in answers if one.models is not None}
    paths = [one.path for one in answers]
    recorded = Recorded(
        paths, run.edition, run.relations, clean=clean, read=read, scored=scored, name=name, models=models
    )
    notes.asked(*recorded.models)
    notes.at_end.append(recorded.ended)
    return recorded


class _Rows:
    """The rows of one file by query, how many queries were asked of it, and how many of these it lacks.

    first: the first that was asked of a relation that the file tells of.
    """

    def __init__(self, rows: Sequence[RecordedRow]) -> None:
        self.all, self.asked, self.missing = rows, 0, 0
        self.first: Query | None = None
        models = dict.fromkeys(row.model for row in rows)
        self.models = [model for model in models if model]
        self.model = next(iter(models)) if len(models) == 1 else None
        self.relations = frozenset(row.Relation for row in rows)
        self._rows = grouped(((row.SubjectEntity, row.Relation), row) for row in rows)

    def of(self, query: Query) -> list[RecordedRow]:
        """Return the rows of a query; an identifier counts only where both sides have an identifier."""
        ids = (None, "", query.subject_id) if query.subject_id else None
        rows = self._rows.get((query.subject, query.relation), [])
        return rows if ids is None else [row for row in rows if row.SubjectEntityID in ids]


def _parts(rows: Sequence[RecordedRow]) -> list[list[Reply | None]]:
    """Return part -> draw -> reply of all rows of a query, whose draws follow each other.

    A row of fewer parts than others has a reply that says nothing in their place.
    """
    each = [row.replies for row in rows if row.completions]
    parts: list[list[Reply | None]] = [[] for _ in range(max(map(len, each)))]
    for replies in each:
        for place, draws in enumerate(parts):
            draws.extend(replies[place] if place < len(replies) else [one and Reply("") for one in replies[0]])
    return parts


def _with_verification(found: CandidateSet, scores: Mapping[str, float]) -> CandidateSet:
    """Return the set with the verification scores of its objects."""
    if not scores:
        return found
    judged = (msgspec.structs.replace(one, verification=scores.get(one.text)) for one in found.candidates)
    return replace(found, candidates=tuple(judged))


def _scored(query: Query, row: RecordedRow, model: str, relation: Relation, *, clean: bool) -> CandidateSet:
    """Return the scored objects of a row, each once per source with its best score, and a state for each source.

    An object that has an id is no spelling left to clean, except that a number is its own id.
    """
    best: dict[tuple[str, Source], Candidate] = {}
    nothing: dict[Source, Nil] = {}
    dropped: list[Dropped] = []
    for given in row.candidates or ():
        source = Source(model, given.source or "")
        if not given.object:
            nothing[source] = max(nothing.get(source, Nil(-1.0)), Nil(given.score, (source,)), key=_score)
            continue
        known = given.id if given.id and (relation.kind != "number" or number(given.id) is not None) else None
        texts: tuple[str, ...] = (given.object,)
        if clean and not known:
            texts, losses = sifted(texts, relation, row.SubjectEntity)
            dropped += losses
        for text in texts:
            key = known or text.casefold(), source
            if key not in best or best[key].score < given.score:
                best[key] = Candidate(text, given.score, (source,), known, verification=given.verification)
    state = State.ANSWERED if best else State.DROPPED if dropped else State.ABSTAINED
    if state is State.DROPPED and all(loss.rule == UNWRITABLE for loss in dropped):
        state = State.UNPARSED
    sources = 1 if state is State.ABSTAINED else max(len({source for _, source in best} | set(nothing)), 1)
    silence = tuple(nothing.values()) or ((Nil(1.0, (Source(model),)),) if state is State.ABSTAINED else ())
    return CandidateSet(query, tuple(best.values()), (state,) * sources, tuple(dropped), silence)


def _pooled(query: Query, row: RecordedRow, model: str, _: Relation) -> CandidateSet:
    """Return the candidates of an earlier run unchanged, with a single score for all sources and their names."""
    proposals = row.candidates or ()
    objects = tuple(
        Candidate(
            proposal.object, proposal.score, _sources(proposal, model), proposal.id, verification=proposal.verification
        )
        for proposal in proposals
        if proposal.object
    )
    nils = [proposal for proposal in proposals if not proposal.object]
    nil_probabilities = [proposal for proposal in nils if _is_nil_probability(proposal)]
    return CandidateSet(
        query,
        objects,
        (State.ANSWERED if objects else row.silence,),
        nothing=tuple(
            Nil(proposal.score, _sources(proposal, model)) for proposal in nils if proposal not in nil_probabilities
        ),
        nil_probabilities=tuple(Nil(proposal.score, _sources(proposal, model)) for proposal in nil_probabilities),
    )


def _is_nil_probability(row: CandidateRow) -> bool:
    """Return whether a row without an object holds only a NIL probability."""
    return bool(row.source) and all(source.endswith(EXISTENCE) for source in str(row.source).split("; "))


def _sources(row: CandidateRow, model: str) -> tuple[Source, ...]:
    """Return the sources that a pooled row names."""
    if not row.source:
        return (Source(model),)
    return tuple(Source.read(text.removesuffix(EXISTENCE)) for text in row.source.split("; "))


def _score(nil: Nil) -> float:
    return nil.score


def _source_names(models: Mapping[Path, str | None]) -> dict[Path, str]:
    """Return each file's source name: its model, or the file's own name where it has no model or shares its model."""
    shared = Counter(models.values())
    names = {path: model if model and shared[model] == 1 else _stem(path) for path, model in models.items()}
    if len(set(names.values())) < len(names):
        names = {path: f"{path.parent.name}/{path.name}" for path in models}
    if repeated := [name for name, count in Counter(names.values()).items() if count > 1]:
        raise InputError(f"two recorded files are both called {repeated[0]!r}: rename one")
    return names


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".candidates")
