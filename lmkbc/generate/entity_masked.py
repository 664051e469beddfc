"""Candidates from a model that `lmkbc train` made: it answers a cloze with an object it was trained on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch

from lmkbc.errors import InputError
from lmkbc.generate.masked.backbone import Backbone
from lmkbc.generate.masked.forward import Forward
from lmkbc.train.entities import Entities
from lmkbc.train.wording import masked
from lmkbc.types import Candidate, CandidateSet, Query, Relation

SOURCE = "entity-masked"


class EntityMasked:
    """Scores a relation's known objects, and no object, by the mean log-odds of its clozes, soft-maxed over them.

    relations: by the edition's spelling. top_k: candidates of a query. A relation without training facts proposes
    nothing for no query: InputError names it.
    """

    def __init__(
        self, backbone: Backbone, entities: Entities, relations: Mapping[str, Relation], top_k: int = 40
    ) -> None:
        self._tokenizer, self._forward = backbone.tokenizer, Forward(backbone)
        self._entities, self._relations, self._top_k = entities, relations, top_k

    @classmethod
    def read(cls, directory: Path, relations: Mapping[str, Relation], top_k: int = 40) -> EntityMasked:
        """From a trained directory."""
        from lmkbc.generate.masked.backbone import load

        return cls(load(directory, offline=True), Entities.read(directory), relations, top_k)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield one candidate set per query, best first, relation by relation."""
        grouped: defaultdict[str, list[Query]] = defaultdict(list)
        for query in queries:
            grouped[query.relation].append(query)
        for name, asked in grouped.items():
            yield from self._answered(self._relations[name], asked)

    def _answered(self, relation: Relation, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        known = self._entities.relations.get(relation.name)
        if known is None:
            raise InputError(f"the model was trained on no fact of {relation.name}: train it on this edition too")
        columns = torch.tensor([self._entities.rows[number] for number in known])
        clozes = [cloze for _ in queries for cloze in relation.clozes]
        prompts = masked(self._tokenizer, clozes, [query.subject for query in queries for _ in relation.clozes])
        logits = torch.empty(len(prompts), len(known))
        for indices, found in self._forward.logits(prompts, columns):
            logits[indices] = found[:, 0].cpu()
        shares = logits.view(len(queries), len(relation.clozes), -1).mean(1).softmax(-1)
        best, which = shares.topk(min(self._top_k, len(known)), dim=-1)
        for query, scores, numbers in zip(queries, best.tolist(), which.tolist(), strict=True):
            yield CandidateSet(query, tuple(map(self._candidate, scores, (known[number] for number in numbers))))

    def _candidate(self, score: float, number: int) -> Candidate:
        return Candidate(self._entities.names[number], score, (SOURCE,), self._entities.ids[number] or None)
