"""The embedded default: answers from the edition's labelled rows, without a language model or a network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lmkbc.edition import Edition
from lmkbc.errors import InputError, LmkbcError, refuse
from lmkbc.files import places
from lmkbc.files.arrays import ArrayStore, key
from lmkbc.generate.embedded.features import ASKING, OtherSources
from lmkbc.generate.embedded.stack import BOOST, FOLDS, ITERATIONS, ROUNDS, SIGNALS, Stack, Trees, folds
from lmkbc.generate.spec import GeneratorQuestions, GeneratorSpec, Relations, specs
from lmkbc.models.encoder import Encoder, find_encoder
from lmkbc.models.reference import flat
from lmkbc.notes import Notes
from lmkbc.progress import ExpectedStep, Report, silent
from lmkbc.relation import Relation
from lmkbc.select.ranking import Floats
from lmkbc.session.run import Run
from lmkbc.settings import checked
from lmkbc.types import CandidateSet, Example, Generator, Query, State, grouped

if TYPE_CHECKING:
    from lmkbc.generate.states import StateReader, States

LARGE = 600
"""Rows of train that suffice for the options of features.

Half of train's rows in place of all cost F1 on train, out of fold, mean of both halves: 600 rows of 2022 and 970 of
2023 .002 each, 190 of 2024 .003, 240 of 2025 .005.
"""
VERSION = 8
"""Part of every stored file's name; raise it with each change of the fit or the file format."""


class EmbeddedGenerator:
    """Scores a closed set of candidates, the train objects, by stacked signals fitted on train.

    relations: by the edition's spelling.
    splits: the rows to learn from, by split. Each relation of a split is read apart, as are other queries. So its
    results are those of any run, and what one run kept serves the next.
    encoder: None to use strings alone.
    kept: store of fitted trees and vectors; the user's cache if None.
    report: callback for progress, also during fitting, which precedes the first answer.
    reader: reads a language model's states.
    sources: other generators, whose scores are further signals.
    train_features: whether words, names and links of train are signals.

    Scores are probabilities. The empty candidate has the probability of "no object". A query in train is scored by a
    stack fitted without the fold of its subject. A query that a source failed to answer fails. Raise InputError without
    train rows, LmkbcError if a source fails on a train query.
    """

    def __init__(
        self,
        edition: Edition,
        relations: Mapping[str, Relation],
        splits: Sequence[Sequence[Example]],
        encoder: Encoder | None,
        kept: ArrayStore | None = None,
        seed: int = 0,
        report: Report = silent,
        reader: StateReader | None = None,
        sources: OtherSources | None = None,
        train_features: bool = True,
    ) -> None:
        train = [*chain.from_iterable(splits)]
        if not train:
            raise InputError(f"edition {edition.name} has no train rows here: the embedded default learns from them")
        self._edition, self._relations, self._splits, self._train = edition, relations, splits, train
        self._encoder, self._seed, self._report = encoder, seed, report
        self._reader, self._sources = reader, sources or OtherSources({})
        self._train_features = train_features
        self._store = kept or array_store(None)
        self._fold = folds(train, FOLDS, seed)
        self._known = {pair: int(f) for row, f in zip(train, self._fold, strict=True) for pair in row.query.pairs}
        self._split_of = {row.query: number for number, rows in reversed([*enumerate(splits)]) for row in rows}
        self._vectors: dict[str, Floats] = {}
        self._states: dict[Query, Floats] = {}
        self._fitted: dict[int | None, tuple[Stack, Trees]] = {}

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first, relation by relation."""
        by_fold = grouped((self._fold_of(query), query) for query in dict.fromkeys(queries))
        asked = list(dict.fromkeys([*(row.query for row in self._train), *queries]))
        self._announce(asked, [fold for fold in by_fold if fold not in self._fitted])
        with threadpool_limits(1):  # for small arrays, several threads are slower than one
            for rows in self._splits:
                self._embed_all([row.query.subject for row in rows])
                self._embed_all(_labels(rows))
            self._embed_all([query.subject for query in queries])
        groups = grouped(((self._split_of.get(query), query.relation), query) for query in asked).values()
        self._sources.ask(*groups)
        self._read_all(*groups)  # after the sources, whose prompts may be the same
        if lost := next((row.query for row in self._train if row.query in self._sources.failed), None):
            raise LmkbcError(
                f"the train query ({lost.subject!r}, {lost.relation!r}) was not answered, so that signals cannot be "
                "weighed: run again, and only what is missing is asked"
            )
        for fold, group in by_fold.items():
            yield from (CandidateSet(query, draws=(State.MISSING,)) for query in group if query in self._sources.failed)
            yield from self._scored(fold, [query for query in group if query not in self._sources.failed])
        self._forget(queries)

    def _fold_of(self, query: Query) -> int | None:
        """Return the fold of a query in train; None for another query."""
        return next((self._known[pair] for pair in query.pairs if pair in self._known), None)

    def _announce(self, asked: Sequence[Query], fits: Sequence[int | None]) -> None:
        """Report all steps in advance."""
        texts = {query.subject for query in asked} | set(_labels(self._train))
        lacking = sum(query not in self._states for query in asked)
        unknown = len(texts - self._vectors.keys()) if self._encoder else 0
        for step, total in (
            (ExpectedStep("sentence vectors (texts)"), unknown),
            (ExpectedStep(ASKING), self._sources.lacking(asked)),
            (ExpectedStep("states (queries)"), lacking if self._reader else 0),
            (ExpectedStep(SIGNALS), sum(FOLDS * _rounds(fold) for fold in fits)),
            (ExpectedStep(BOOST), ITERATIONS * len(fits)),
        ):
            if total:
                self._report(step, 0, total)

    def _scored(self, fold: int | None, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        for relation, group in grouped((query.relation, query) for query in queries).items():
            with threadpool_limits(1):
                if fold not in self._fitted:
                    self._fitted[fold] = self._fit(fold)
                stack, trees = self._fitted[fold]
                sets = stack.candidates(trees, relation, group)
            yield from sets

    def _fit(self, held_out: int | None) -> tuple[Stack, Trees]:
        train = [row for row, fold in zip(self._train, self._fold, strict=True) if fold != held_out]
        read = self._read if self._reader else None
        stack = Stack(
            self._edition, self._relations, train, self._embed, read, self._sources, train_features=self._train_features
        )
        rounds = _rounds(held_out)
        name = key(*self._fingerprint(), rounds, train, *self._model_outputs([row.query for row in train]))
        return stack, Trees.of(
            self._store.get("trees", name, lambda: stack.learn(self._seed, rounds, self._report).arrays())
        )

    def _model_outputs(self, queries: Sequence[Query]) -> Iterator[Any]:
        """Yield the scores of sources and the hash of states on which a fit depends."""
        if self._sources:
            yield self._sources.scores(queries)
        if self._reader:
            yield hashlib.sha256(self._read(queries).tobytes()).hexdigest()

    def _fingerprint(self) -> list[Any]:
        import sklearn

        relations = [
            (name, self._relations[name].kind, self._relations[name].symmetric) for name in self._edition.relations
        ]
        return [
            VERSION,
            (np.__version__, sklearn.__version__),
            self._seed,
            self._train_features,
            None if self._encoder is None else self._encoder.digest,
            self._edition.target,
            type(self._edition.metric.scorer).__name__,
            relations,
        ]

    def _embed(self, texts: Sequence[str]) -> Floats:
        if self._encoder is None:
            return np.zeros((len(texts), 0))
        return np.stack([self._vectors[text] for text in texts]).astype(np.float64)

    def _read(self, queries: Sequence[Query]) -> Floats:
        return np.stack([self._states[query] for query in queries])

    def _read_all(self, *groups: Sequence[Query]) -> None:
        """Read the states of queries that are not read yet, each group separately."""
        new = [[query for query in group if query not in self._states] for group in groups]
        if self._reader and any(new):
            self._states.update(zip(chain.from_iterable(new), self._reader.read(*new), strict=True))

    def _forget(self, queries: Sequence[Query]) -> None:
        """Delete the vectors, states and scores that train does not need, so that memory does not grow."""
        known = {"", *(query.subject for query in self._split_of), *_labels(self._train)}
        for text in {query.subject for query in queries} - known:
            self._vectors.pop(text, None)
        others = [query for query in queries if query not in self._split_of]
        for query in others:
            self._states.pop(query, None)
        self._sources.forget(others)

    def _embed_all(self, texts: Sequence[str]) -> None:
        """Look up or compute the missing vectors, as one block."""
        if self._encoder and (new := sorted({*texts, ""} - self._vectors.keys())):
            encode, name = self._encoder.encode, key(VERSION, self._encoder.digest, new)
            block = self._store.get("vectors", name, lambda: {"vectors": encode(new, self._report)})
            self._vectors.update(zip(new, block["vectors"], strict=True))


def array_store(cache: Path | None) -> ArrayStore:
    """Return the store of fitted arrays, below a run's cache or the user's."""
    return ArrayStore(cache or places.cache_dir() / "embedded")


def _rounds(held_out: int | None) -> int:
    """Return the number of splits of train into folds.

    A held-out fit for tuning has one, which halves the time at equal score.
    """
    return ROUNDS if held_out is None else 1


def _labels(rows: Sequence[Example]) -> list[str]:
    return [gold.name or gold.id or "" for row in rows for gold in row.objects]


@dataclass(frozen=True, kw_only=True)
class Embedded(GeneratorSpec):
    """The recipe's table of this generator.

    evidence: features of "train"'s words, names and links, and of the sentence "encoder", if it is installed. Without
    them, the stack has models' scores and train frequencies.
    features: tables of generators whose scores are features; they are asked about labelled rows too.
    hidden_states: table of a probe on a local model's hidden states (`lmkbc.generate.states.States`).
    """

    evidence: tuple[Literal["train", "encoder"], ...] = ("train", "encoder")
    features: tuple[Mapping[str, Any], ...] = ()
    hidden_states: Mapping[str, Any] | None = None

    REMOVED: ClassVar[Mapping[str, str]] = {
        "use_train_features": "write evidence = [] for false",
        "encoder": 'write evidence = ["train"] for false',
    }

    def __post_init__(self) -> None:
        """Raise ValueError if there are no features."""
        refuse(
            ("train" not in self.evidence and "encoder" in self.evidence, 'evidence "encoder" needs "train" beside it'),
            (
                not (self.evidence or self.features or self.hidden_states),
                "evidence = [] leaves nothing to learn from: give features or hidden_states",
            ),
        )

    @cached_property
    def _specs(self) -> tuple[GeneratorSpec, ...]:
        return specs(self.features)

    @cached_property
    def _reading(self) -> States | None:
        if self.hidden_states is None:
            return None
        from lmkbc.generate.states import States  # loads torch

        return checked(States, flat(self.hidden_states), "hidden_states")

    def check(self, relations: Relations) -> None:
        """Raise InputError for an unknown relation, and for a wrong table within."""
        super().check(relations)
        _ = self._reading
        for spec in self._specs:
            spec.check(relations)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the model whose hidden states it reads."""
        return () if self.hidden_states is None else (flat(self.hidden_states).get("model") or "",)

    @property
    def learns(self) -> bool:
        """Return True."""
        return True

    def whole(self) -> Iterator[GeneratorSpec]:
        """Yield the table itself and the tables of its features."""
        yield self
        for spec in self._specs:
            yield from spec.whole()

    def questions(self, run: Run, notes: Notes) -> Iterator[GeneratorQuestions]:
        """Yield the questions for its features, also about labelled rows; hidden states need no request."""
        labelled, for_features = [row.query for row in run.labelled], _for_features(run)
        for spec in self._specs:
            for question in spec.questions(for_features, notes):
                yield question._replace(ask=_with_first(labelled, question.ask))

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator."""
        encoder = find_encoder() if "encoder" in self.evidence else None
        reading, kept, for_features = self._reading, array_store(run.cache), _for_features(run)
        reader = reading.open(run, notes, kept) if reading else None
        generators = dict(source for spec in self._specs for source in spec.opened(for_features, notes))
        sources = OtherSources(generators, run.report)
        return EmbeddedGenerator(
            run.edition,
            run.relations,
            [*run.labelled_rows.values()],
            encoder,
            kept,
            report=run.report,
            reader=reader,
            sources=sources,
            train_features="train" in self.evidence,
        )


def _for_features(run: Run) -> Run:
    """Return the run as features see it. They learn from a large train alone, so that a run of val serves that of test.

    With a list of options that does not grow, no labelled query is asked again.
    """
    return replace(run, learn_from=("train",)) if len(run.train) >= LARGE else run


def _with_first(
    labelled: Sequence[Query], ask: Callable[[Sequence[Query]], Iterable[object]]
) -> Callable[[Sequence[Query]], Iterable[object]]:
    """Return a function that asks about the labelled queries before the first others, and about no query twice."""
    asked: dict[Query, None] = {}

    def after(queries: Sequence[Query]) -> Iterator[object]:
        for some in (labelled if not asked else (), queries):
            new = [query for query in dict.fromkeys(some) if query not in asked]
            asked.update(dict.fromkeys(new))
            yield from ask(new) if new else ()

    return after
