"""Candidates from a model that `lmkbc train` made: it answers a cloze with an object from its training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from lmkbc.errors import InputError
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.masked.backbone import ON_ACCELERATOR, Backbone, Dtype, load
from lmkbc.masked.forward import Forward, masked
from lmkbc.masked.heads import FILE, Entities, fold_model
from lmkbc.names import folded_key
from lmkbc.notes import Notes
from lmkbc.relation import Relation
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Generator, Query, Source, grouped

SOURCE = Source("entity-masked")
ALL = -1
"""Number of the model that was trained on all folds."""


@dataclass(frozen=True, kw_only=True)
class EntityMaskedSpec(GeneratorSpec):
    """The table of `EntityMasked`."""

    model: str = ""
    top_k: int = 40
    dtype: Dtype = "float32"

    REMOVED: ClassVar[Mapping[str, str]] = ON_ACCELERATOR

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002 -- it has nothing to note
        """Return the generator. Raise InputError if no model is named."""
        directory = run.model or self.model
        if not directory:
            raise InputError("this system reads a model that 'lmkbc train mlm' made: name its directory with --model")
        return EntityMasked.read(Path(directory), run.relations, self.top_k, self.dtype)


class EntityMasked:
    """Scores a relation's known objects, and no object, by a softmax over the mean log-odds of its clozes.

    relations: by the edition's spelling.
    top_k: candidates per query.
    fold: returns the model trained without the subjects of a fold, by its number. It answers for these subjects, so
    that tuning on a train split is unbiased.

    Raise InputError for a relation without training facts.
    """

    def __init__(
        self,
        backbone: Backbone,
        entities: Entities,
        relations: Mapping[str, Relation],
        top_k: int = 40,
        *,
        fold: Callable[[int], Backbone] | None = None,
    ) -> None:
        self._backbone, self._entities, self._relations, self._top_k = backbone, entities, relations, top_k
        self._fold = fold

    @classmethod
    def read(
        cls,
        directory: Path,
        relations: Mapping[str, Relation],
        top_k: int = 40,
        dtype: Dtype = "float32",
    ) -> EntityMasked:
        """Return the generator for a trained model's directory."""
        backbone = load(directory, offline=True, dtype=dtype)
        if not (directory / FILE).is_file():
            raise InputError(f"{directory} holds no {FILE}: name a directory that 'lmkbc train mlm' made")
        entities = Entities.read(directory)
        if max(entities.rows) >= backbone.model.config.vocab_size:
            raise InputError(f"{directory / FILE} is not of the model beside it: train the model again")

        def fold(number: int) -> Backbone:
            return fold_model(directory, number, backbone, entities)

        return cls(backbone, entities, relations, top_k, fold=fold)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first, relation by relation."""
        folds, distinct = self._entities.folds, dict.fromkeys(queries)
        by_fold = grouped((folds.get(folded_key(query.subject), ALL), query) for query in distinct)
        for fold, members in sorted(by_fold.items()):
            forward = Forward(self._backbone if self._fold is None or fold == ALL else self._fold(fold))
            for name, group in grouped((query.relation, query) for query in members).items():
                yield from self._answered(forward, self._relations[name], group)

    def _answered(self, forward: Forward, relation: Relation, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        known = self._entities.relations.get(relation.name)
        if known is None:
            raise InputError(f"the model was trained on no fact of {relation.name}: train it on this edition too")
        columns = torch.tensor([self._entities.rows[number] for number in known])
        clozes = [cloze for _ in queries for cloze in relation.clozes]
        prompts = masked(self._backbone, clozes, [query.subject for query in queries for _ in relation.clozes])
        logits = torch.empty(len(prompts), len(known))
        for indices, batch in forward.logits(prompts, columns):
            logits[indices] = batch[:, 0].cpu()
        shares = logits.view(len(queries), len(relation.clozes), -1).mean(1).softmax(-1)
        best, which = shares.topk(min(self._top_k, len(known)), dim=-1)
        for query, scores, numbers in zip(queries, best.tolist(), which.tolist(), strict=True):
            yield CandidateSet.proposing(query, map(self._candidate, scores, (known[number] for number in numbers)))

    def _candidate(self, score: float, number: int) -> Candidate:
        return Candidate(self._entities.names[number], score, (SOURCE,), self._entities.ids[number] or None)
