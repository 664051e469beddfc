"""Answers that were recorded elsewhere: completions and candidates from files, matched to queries.

A completions row holds raw texts, one per draw. A candidates row holds scored objects. Rows are matched by subject and
relation, and by SubjectEntityID if both row and query have one. Further rows of a query are further draws.

Each draw of a model is a source; a candidates row is one source. A draw that abstains proposes NIL. A draw without an
answer, or without any kept object, contributes only its state. A model's probability p that an object exists is a NIL
probability of 1 - p, and never a draw.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, starmap

from msgspec import structs

from lmkbc.answer.clean import Clean
from lmkbc.ask.style import PromptStyle
from lmkbc.edition import Edition, misfit
from lmkbc.errors import InputError, counted
from lmkbc.files.columns import log_respelled
from lmkbc.files.places import RecordedFile, given_as, name_of
from lmkbc.generate.guard import guarded
from lmkbc.generate.recorded_candidates import pooled, scored
from lmkbc.generate.recorded_file import EXAMPLES, RowsByQuery, is_blank, or_empty
from lmkbc.generate.recorded_rows import RecordedRow, by_model, each_row, models_of, stem_of
from lmkbc.generate.reply import candidates, united, unread
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.models.base import NOTHING, Reply
from lmkbc.names import subject_key
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import CandidateSet, Generator, Nil, Query, Source, State, together
from lmkbc.workspace import Workspace

log = logging.getLogger(__name__)

Score = Callable[[Query, RecordedRow, str, Relation], CandidateSet]
"""Function from a query, its row of scored objects, the model's name and the relation to candidates."""
Read = Callable[[Query, Sequence[Sequence[Reply | None]], str], CandidateSet]
"""Function from a query, its replies as part -> draw -> reply, and the model's name to candidates."""


@dataclass(frozen=True, kw_only=True)
class RecordedSpec(GeneratorSpec):
    """The table of `Recorded`, one generator per file. clean: whether to bring names into the relation's shape."""

    clean: Clean = True

    @property
    def reads_files(self) -> bool:
        """Return True: it reads nothing else."""
        return True

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator over all files, which are of one model."""
        files = run.answers or [*map(RecordedFile, run.files)]
        name = "+".join(models_of(files[0], run.edition)) or stem_of(files[0].path) if len(files) > 1 else ""
        if name:
            log.info("%s are one source, of one model: %s", " and ".join(map(str, files)), name)
        return replayed(files, run, notes, clean=self.clean, name=name)

    def sources(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """Yield a generator for the answers of each model; if there are several, each is called as its first file.

        Raise InputError if no file is named.
        """
        if not run.files:
            raise InputError("this system reads recorded answers: name at least one file with --from")
        models = by_model(run.files, run.edition) if run.answers is None else {run.model: [*run.answers]}
        for files in models.values():
            ((name, generator),) = super().sources(replace(run, answers=tuple(files)), notes)
            yield name if len(models) < 2 else str(files[0]), generator


class Recorded:
    """Generator that reads recorded files instead of asking a model.

    files: completions or candidates, plain or gzipped; `ended` reports missing answers.
    clean: whether to bring names into the relation's shape.
    read: reads a query's replies.
    score: reads a row of scores.
    name: name of the model, if all files hold draws of one model.
    empty: what an empty text means, of `EMPTY_TEXTS`.
    notes: get the queries that files lack, also those of other generators.

    Raise InputError with file, line and field.
    """

    def __init__(
        self,
        files: Iterable[RecordedFile],
        edition: Edition,
        relations: Mapping[str, Relation],
        *,
        clean: Clean = True,
        read: Read | None = None,
        score: Score | None = None,
        name: str = "",
        empty: str | None = None,
        notes: Notes | None = None,
    ) -> None:
        self._is_none, self._is_plain = empty == "none", read is None
        self._score = score or partial(scored, clean=clean)
        self._edition, self._relations = edition, relations
        self._clean, self._read = clean, read or self._plainly
        given = Counter(files)
        if not given:
            raise InputError("no recorded file was given: name a completions or a candidates file")
        if repeated := [file.path for file, count in given.items() if count > 1]:
            raise InputError(f"{repeated[0]} is given twice: its answers would count twice; name it once")
        rows = {file: _rows(file, edition) for file in given}
        if name:
            first, *_ = rows
            rows = {first: chain.from_iterable(starmap(_draws_of, enumerate(rows.values())))}
        self._files = {file: RowsByQuery(own) for file, own in rows.items()}
        self._notes = notes or Notes()
        self._notes.files += len(self._files)
        models = {file: rows.models or models_of(file, edition) for file, rows in self._files.items()}
        self._names = {first: name} if name else _source_names(models)

    @property
    def models(self) -> list[str]:
        """Return the models that the files name, in order."""
        return list(dict.fromkeys(name for rows in self._files.values() for name in rows.models))

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the answers of all files, a set per distinct query, in order and not yet pooled."""
        distinct = list(dict.fromkeys(queries))
        for query, *sets in zip(distinct, *self.sources(distinct).values(), strict=True):
            yield together(query, sets)

    def sources(self, queries: Sequence[Query]) -> dict[str, list[CandidateSet]]:
        """Return the sets of each file separately, by the file's source name, for pooling that weights files."""
        return {self._names[file]: self._replay(file, queries) for file in self._files}

    def ended(self, space: Workspace | None = None, split: str = "") -> None:
        """Warn about queries that a file lacks. Raise InputError for a file that answers no query.

        space: has the splits of which one may be that of the file. split: the one that is asked, if any; answers to
        other queries are named.
        """
        asked = (
            {(subject_key(one.subject), one.relation) for one in space.queries(self._edition, split)}
            if space and split
            else None
        )
        for file, rows in self._files.items():
            if rows.missing == rows.asked and (first := rows.first) is not None:
                found = space and space.split_of(rows.pairs(), self._edition)
                other = f"{found[1]} of edition {found[0].name}" if found else "another edition or split"
                raise InputError(
                    f"{file} answers none of the {rows.missing} queries of edition {self._edition.name}, first "
                    f"({first.subject!r}, {first.relation!r}): its answers are of {other}; name one of this"
                )
            if rows.texts.unread:
                log.warning("%s: %s", file, rows.texts)
            log_respelled(given_as(file.path), rows.respelled)
            if asked and (others := sorted(one for one in rows.pairs() if (subject_key(one[0]), one[1]) not in asked)):
                named = [*dict.fromkeys(repr(subject) for subject, _ in others)]
                log.warning(
                    "%s: %s of %s are not in %s of edition %s, and are left out: %s",
                    file,
                    f"{len(others):,}",
                    counted(len(rows.pairs()), "answered query", "answered queries"),
                    split,
                    self._edition.name,
                    ", ".join(named[:EXAMPLES]) + " ..." * (len(named) > EXAMPLES),
                )
            if 2 * rows.missing > rows.asked and self._notes.files > 1:
                log.warning(
                    "%s answers %d of %d queries%s",
                    file,
                    rows.asked - rows.missing,
                    rows.asked,
                    "" if rows.models else ", as a source of its own: to fill gaps of another file, name its model",
                )
        if lacking := sum(count == self._notes.files for count in self._notes.lacking.values()):
            log.warning(
                "%s %d of %d queries: those that nothing else answers are failed, not empty",
                "no file answers" if self._notes.files > 1 else f"{file} lacks",
                lacking,
                rows.asked,
            )
            self._notes.lacking.clear()

    def _replay(self, file: RecordedFile, queries: Sequence[Query]) -> list[CandidateSet]:
        rows = self._files[file]
        rows.asked += len(queries)
        lacking = [query for query in queries if not rows.of(query)]
        rows.missing += len(lacking)
        self._notes.lacking.update(lacking)
        rows.first = rows.first or next((query for query in queries if query.relation in rows.relations), None)
        return [self._answer(file, query) for query in queries]

    def _answer(self, file: RecordedFile, query: Query) -> CandidateSet:
        name, relation, rows = self._names[file], self._relations[query.relation], self._files[file].of(query)
        replies: list[CandidateSet] = []
        for row in rows:
            if row.candidates is not None:
                score = partial(pooled if row.pooled else self._score, query, self._with_ids(row), name, relation)
                text = "\n".join(given.object for given in row.candidates)
                replies.append(guarded(score, text, partial(unread, query)))
                self._files[file].texts.all += len(replies[-1].draws)
            if row.existence is not None:
                replies.append(
                    CandidateSet(query, (), (), nil_probabilities=(Nil(1 - row.existence, (Source(name),)),))
                )
        if any(row.completions for row in rows):
            parts = _parts_of(rows, self._is_none)
            read = self._read(query, parts, name)
            if self._is_plain:  # a recipe's steps leave an empty text where they could not go on
                read = replace(read, draws=tuple(map(or_empty, read.draws, parts[0])))
            self._files[file].texts.count(read.draws, parts[0])
            replies.append(read)
        for row in rows:
            nils = tuple(Nil(share, (Source(name, step),)) for step, share in row.nil_probabilities.items())
            replies += [CandidateSet(query, draws=(), nil_probabilities=nils)] if nils else []
        verification = {text: share for row in rows for text, share in row.verification.items()}
        answer = _with_verification(together(query, replies), verification)
        return answer if answer.draws else replace(answer, draws=(State.MISSING,))

    def _plainly(self, query: Query, parts: Sequence[Sequence[Reply | None]], name: str) -> CandidateSet:
        """Return the candidates of replies whose prompt is unknown."""
        relation = self._relations[query.relation]
        return united([candidates(query, relation, PromptStyle(), one, name, clean=self._clean) for one in parts])

    def _with_ids(self, row: RecordedRow) -> RecordedRow:
        """Return the row without ids that no submission may contain. Candidates without id are linked by name."""
        for candidate in row.candidates or ():
            if candidate.id and misfit(self._edition, self._relations[row.Relation], candidate.id):
                candidate.id = None
        return row


def _parts_of(rows: Sequence[RecordedRow], is_none: bool) -> list[list[Reply | None]]:
    """Return part -> draw -> reply of all rows of a query, with the draws of all rows in order.

    is_none: whether a text without characters that ended as usual says that there is no object. If a row has fewer
    parts than others, empty replies fill its missing parts.
    """
    each = [row.replies for row in rows if row.completions]
    for reply in filter(None, chain.from_iterable(chain.from_iterable(each)) if is_none else ()):
        if is_blank(reply):
            reply.finish = NOTHING
    parts: list[list[Reply | None]] = [[] for _ in range(max(map(len, each)))]
    for replies in each:
        for place, draws in enumerate(parts):
            draws.extend(replies[place] if place < len(replies) else [one and Reply("") for one in replies[0]])
    return parts


def _with_verification(found: CandidateSet, scores: Mapping[str, float]) -> CandidateSet:
    """Return the set with the verification scores of its objects."""
    if not scores:
        return found
    judged = (structs.replace(one, verification=scores.get(one.text)) for one in found.candidates)
    return replace(found, candidates=tuple(judged))


def replayed(
    files: Iterable[RecordedFile],
    run: Run,
    notes: Notes,
    *,
    clean: Clean = True,
    read: Read | None = None,
    score: Score | None = None,
    name: str = "",
) -> Recorded:
    """Open files of recorded answers. notes: get their models, and the check for missing answers at the end."""
    recorded = Recorded(
        files,
        run.edition,
        run.relations,
        clean=clean,
        read=read,
        score=score,
        name=name,
        empty=run.empty,
        notes=notes,
    )
    notes.asked(*recorded.models)
    notes.at_end.append(partial(recorded.ended, run.workspace, run.split))
    return recorded


def _rows(file: RecordedFile, edition: Edition) -> Iterator[RecordedRow]:
    """Yield the rows of a file that hold answers of its models, by their names or those of their sources."""
    rows = each_row(file.path, edition)
    return (row for row in rows if file.models is None or {row.source, row.model or ""} & file.models)


def _draws_of(file: int, rows: Iterable[RecordedRow]) -> Iterator[RecordedRow]:
    """Yield the rows of one of a model's files, whose scored draws have other names than those of the first file."""
    for row in rows:
        for candidate in row.candidates or () if file and not row.pooled else ():
            candidate.source = f"{candidate.source or ''}.{file}"
        yield row


def _source_names(models: Mapping[RecordedFile, Sequence[str]]) -> dict[RecordedFile, str]:
    """Return each file's source name: its model, or the file's name if it has several, or another file has it too."""
    shared = Counter(own[0] for own in models.values() if len(own) == 1)
    names = {file: own[0] if len(own) == 1 == shared[own[0]] else stem_of(file.path) for file, own in models.items()}
    if len(set(names.values())) < len(names):
        names = {file: f"{name_of(file.path.parent)}/{name_of(file.path)}" for file in models}
    if repeated := [name for name, count in Counter(names.values()).items() if count > 1]:
        raise InputError(f"two recorded files are both called {repeated[0]!r}: rename one")
    return names
