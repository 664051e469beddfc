"""The recipe's table of the embedded default, and the construction of its generator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmkbc.generate.embedded.generator import EmbeddedGenerator, array_store
from lmkbc.generate.embedded.other_sources import OtherSources
from lmkbc.generate.spec import GeneratorQuestions, GeneratorSpec, Relations, specs
from lmkbc.models.encoder import find_encoder
from lmkbc.models.reference import flat
from lmkbc.notes import Notes
from lmkbc.run.base import Run
from lmkbc.settings import checked
from lmkbc.types import Generator, Query

if TYPE_CHECKING:
    from lmkbc.generate.states import States


@dataclass(frozen=True, kw_only=True)
class Embedded(GeneratorSpec):
    """The recipe's table of this generator.

    use_train_features: whether to use features of train's words, names and links, and of the sentence encoder. Without
    them, the stack has models' scores and train frequencies.
    encoder: whether to use the sentence encoder, if it is installed.
    features: tables of generators whose scores are features; they are asked about labelled rows too.
    hidden_states: table of a probe on a local model's hidden states (`lmkbc.generate.states.States`).
    """

    use_train_features: bool = True
    encoder: bool = True
    features: tuple[Mapping[str, Any], ...] = ()
    hidden_states: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if there are no features."""
        if not self.use_train_features and not self.features and self.hidden_states is None:
            raise ValueError("use_train_features = false leaves nothing to learn from: give features or hidden_states")

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
    def learns(self) -> bool:
        """Return True."""
        return True

    def whole(self) -> Iterator[GeneratorSpec]:
        """Yield the table itself and the tables of its features."""
        yield self
        for spec in self._specs:
            yield from spec.whole()

    def questions(self, run: Run, notes: Notes) -> Iterator[GeneratorQuestions]:
        """Yield the questions for its hidden states and features, also about labelled rows; nothing is stored."""
        labelled = [row.query for row in run.labelled]
        reading = self._reading
        reader = reading.open(run, notes, array_store(run.cache, dry=True)) if reading else None
        for spec in self._specs:
            for question in spec.questions(run, notes):
                yield question._replace(ask=_with_first(labelled, question.ask))
        if reading and reader:
            yield GeneratorQuestions("states", reading, _with_first(labelled, lambda queries: [reader.read(queries)]))

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator."""
        encoder = find_encoder() if self.use_train_features and self.encoder else None
        reading, kept = self._reading, array_store(run.cache)
        reader = reading.open(run, notes, kept) if reading else None
        generators = dict(source for spec in self._specs for source in spec.opened(run, notes))
        sources = OtherSources(generators, run.report)
        return EmbeddedGenerator(
            run.edition,
            run.relations,
            run.labelled,
            encoder,
            kept,
            report=run.report,
            reader=reader,
            sources=sources,
            train_features=self.use_train_features,
        )


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
