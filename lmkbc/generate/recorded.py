"""Answers that were recorded elsewhere: completions and candidates from files, matched to queries.

A completions row holds raw texts, one per draw; a candidates row holds scored objects. Rows are matched by subject and
relation, and by SubjectEntityID where row and query have one; rows that repeat a query are further draws of it.

Voices: draw k of a model is the voice "model#k"; a candidates row speaks with one voice. A draw that abstains
contributes Candidate("", 1.0, (voice,)), a draw without an answer, or whose objects were all dropped, contributes
nothing but its state. A model's own probability p that an object exists becomes Candidate("", 1 - p,
("model?existence",)): a gate, and never a draw.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from lmkbc.answer.clean import sifted
from lmkbc.answer.parse import parse
from lmkbc.edition import Edition, misfit
from lmkbc.errors import InputError
from lmkbc.generate.recorded_rows import RecordedRow, read_rows
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.relation import Relation
from lmkbc.run import Run
from lmkbc.scoring.matchers import number
from lmkbc.select.pool import EXISTENCE
from lmkbc.types import (
    Candidate,
    CandidateSet,
    Dropped,
    Generator,
    Notes,
    Query,
    State,
)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RecordedSpec(GeneratorSpec):
    """The table of `Recorded`, one generator per file."""

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it has nothing to note
        """The generator over all files."""
        if not run.files:
            raise InputError("this system reads recorded answers: name at least one file with --from")
        return Recorded(run.files, run.edition, run.relations)

    def voices(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """A generator for each file, called by the file's name where there are several."""
        if len(run.files) < 2:
            yield from super().voices(run, notes)
        else:
            for path in run.files:
                yield from ((path.name, one) for _, one in super().voices(replace(run, files=(path,)), notes))


class Recorded:
    """A generator that asks nobody: it replays files.

    paths: completions or candidates files, plain or gzipped. missing: path -> queries that the file lacks; states:
    path -> how many draws came to what; both filled by `generate` and `voices`. InputError names file, line and field.
    """

    def __init__(self, paths: Iterable[Path], edition: Edition, relations: Mapping[str, Relation]) -> None:
        self.missing: dict[Path, int] = {}
        self.states: dict[Path, Counter[State]] = {}
        self._edition, self._relations = edition, relations
        given = Counter(map(Path, paths))
        if not given:
            raise InputError("no recorded file was given: name a completions or a candidates file")
        if repeated := [path for path, count in given.items() if count > 1]:
            raise InputError(f"{repeated[0]} is given twice: its answers would count twice; name it once")
        self._files = {path: _Rows(read_rows(path, edition)) for path in given}
        self._names = _voice_names({path: rows.model for path, rows in self._files.items()})

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """One set per distinct query, in order: what all files say, not yet pooled."""
        distinct = list(dict.fromkeys(queries))
        for query, *sets in zip(distinct, *self.voices(distinct).values(), strict=True):
            candidates = tuple(candidate for one in sets for candidate in one.candidates)
            draws = tuple(state for one in sets for state in one.draws)
            yield CandidateSet(query, candidates, draws, tuple(loss for one in sets for loss in one.dropped))

    def voices(self, queries: Sequence[Query]) -> dict[str, list[CandidateSet]]:
        """The sets of each file apart, by the name that the file speaks under, for pooling that weighs files."""
        return {self._names[path]: self._replay(path, queries) for path in self._files}

    def _replay(self, path: Path, queries: Sequence[Query]) -> list[CandidateSet]:
        answers = [self._answer(path, query) for query in queries]
        states = self.states[path] = Counter(state for answer in answers for state in answer.draws)
        missing = self.missing[path] = sum(not self._files[path].of(query) for query in queries)
        log.info("%s: %s", path, ", ".join(f"{count} {state}" for state, count in sorted(states.items())))
        if missing:
            log.warning(
                "%s lacks %d of %d queries: those that nothing else answers are failed, not empty",
                path,
                missing,
                len(queries),
            )
        return answers

    def _answer(self, path: Path, query: Query) -> CandidateSet:
        name, relation = self._names[path], self._relations[query.relation]
        candidates: list[Candidate] = []
        draws: list[State] = []
        dropped: list[Dropped] = []
        for row in self._files[path].of(query):
            replies = []
            if row.completions is None:
                replies.append((_pooled if row.pooled else _scored)(self._with_ids(row), name, relation))
            for draw, completion in enumerate(row.completions or (), start=len(draws)):
                replies.append(_said(completion, f"{name}#{draw}", relation, query.subject))
            for reply in replies:
                candidates += reply.candidates
                draws += reply.draws
                dropped += reply.dropped
            if row.existence is not None:
                candidates.append(Candidate("", 1 - row.existence, (name + EXISTENCE,)))
        return CandidateSet(query, tuple(candidates), tuple(draws) or (State.MISSING,), tuple(dropped))

    def _with_ids(self, row: RecordedRow) -> RecordedRow:
        """The row without ids that no submission could name, such as a model's own marks: their names are linked."""
        for one in row.candidates or ():
            if one.id and misfit(self._edition, self._relations[row.Relation], one.id):
                one.id = None
        return row


class _Rows:
    """The rows of one file by query."""

    def __init__(self, rows: Sequence[RecordedRow]) -> None:
        models = {row.model for row in rows}
        self.model = models.pop() if len(models) == 1 else None
        self._rows: defaultdict[tuple[str, str], list[RecordedRow]] = defaultdict(list)
        for row in rows:
            self._rows[row.SubjectEntity, row.Relation].append(row)

    def of(self, query: Query) -> list[RecordedRow]:
        """The rows of a query; an identifier counts only where both sides have one."""
        ids = (None, "", query.subject_id) if query.subject_id else None
        rows = self._rows.get((query.subject, query.relation), [])
        return rows if ids is None else [row for row in rows if row.SubjectEntityID in ids]


class _Reply(NamedTuple):
    """What a row or one of its draws comes to."""

    draws: list[State]
    candidates: list[Candidate]
    dropped: Sequence[Dropped] = ()


def _said(completion: str | None, voice: str, relation: Relation, subject: str) -> _Reply:
    """What one draw says; an answer whose objects are all cleaned away stays an answer."""
    if completion is None:  # the call behind it failed
        return _Reply([State.MISSING], [])
    parsed = parse(completion, relation, subject)
    if parsed.state is State.ABSTAINED:
        return _Reply([parsed.state], [Candidate("", 1.0, (voice,))])
    kept, dropped = sifted(parsed.objects, relation, subject)
    state = State.DROPPED if dropped and not kept else parsed.state
    return _Reply([state], [Candidate(text, 1.0, (voice,)) for text in kept], (*parsed.dropped, *dropped))


def _scored(row: RecordedRow, voice: str, relation: Relation) -> _Reply:
    """The scored objects of a row, each once per source with its best score; and a state for each source.

    An object that has an id is no spelling left to clean, except that a number is its own id.
    """
    best: dict[tuple[str, str], Candidate] = {}
    dropped: list[Dropped] = []
    for given in row.candidates or ():
        source = f"{voice}#{given.source}" if given.source else voice
        known = given.id if given.id and (relation.kind != "number" or number(given.id) is not None) else None
        texts: tuple[str, ...] = (given.object,)
        if given.object and not known:
            texts, losses = sifted(texts, relation, row.SubjectEntity)
            dropped += losses
        for text in texts:
            key = known or text.casefold(), source
            if key not in best or best[key].score < given.score:
                best[key] = Candidate(text, given.score, (source,), known, truth=given.truth)
    voices = max(len({source for _, source in best}), 1)
    if any(candidate.text for candidate in best.values()):
        return _Reply([State.ANSWERED] * voices, list(best.values()), dropped)
    if dropped:
        return _Reply([State.DROPPED] * voices, list(best.values()), dropped)
    return _Reply([State.ABSTAINED], list(best.values()) or [Candidate("", 1.0, (voice,))])


def _pooled(row: RecordedRow, voice: str, _: Relation) -> _Reply:
    """The candidates of an earlier run as they are: cleaned, with the scores of all voices as one, and their names."""
    found = [
        Candidate(one.object, one.score, tuple((one.source or voice).split("; ")), one.id, truth=one.truth)
        for one in row.candidates or ()
    ]
    state = State.ANSWERED if any(one.text for one in found) else row.silence
    return _Reply([state], found)


def _voice_names(models: Mapping[Path, str | None]) -> dict[Path, str]:
    """The name each file speaks under: its model, or the file's own name where it has none or shares its model."""
    shared = Counter(models.values())
    names = {path: model if model and shared[model] == 1 else _stem(path) for path, model in models.items()}
    if len(set(names.values())) < len(names):
        names = {path: f"{path.parent.name}/{path.name}" for path in models}
    if repeated := [name for name, count in Counter(names.values()).items() if count > 1]:
        raise InputError(f"two recorded files are both called {repeated[0]!r}: rename one")
    return names


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".candidates")
