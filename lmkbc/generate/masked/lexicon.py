"""Possible answers to clozes (the model's words, train objects, or a list) and their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from lmkbc.errors import InputError
from lmkbc.generate.masked.settings import ProbeSettings, for_relation
from lmkbc.models.masked.clozes import Clozes
from lmkbc.models.masked.forward import Forward
from lmkbc.models.masked.vocabulary import Words
from lmkbc.relation import Relation
from lmkbc.types import Example

Request = tuple[str, str, Relation]
"""A template, a subject, and the relation."""
TOP_K = 100
"""Answers per cloze if a table does not name the relation."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Names, each with the id of its token; a token may have several names."""

    names: tuple[str, ...]
    ids: tuple[int, ...]

    @classmethod
    def of_words(cls, words: Words) -> Lexicon:
        """Return all whole words of the vocabulary."""
        if not words.plain:
            raise InputError("the model's vocabulary holds no whole word: nothing is left to propose")
        return cls(tuple(words.plain.values()), tuple(words.plain))

    @classmethod
    def of_names(cls, words: Words, names: Iterable[str]) -> Lexicon:
        """Return the names that are a single token."""
        known = {name: single for name in names if (single := words.single(name)) is not None}
        return cls(tuple(known), tuple(known.values()))

    def answers(
        self, probe: ProbeSettings, forward: Forward, clozes: Clozes, requests: Sequence[Request]
    ) -> list[dict[str, float]]:
        """Return the most probable names at the mask of each cloze, best first, with their probabilities.

        Probabilities of tokens with the same name are summed.
        """
        answers: list[dict[str, float]] = [{} for _ in requests]
        if not self.names:
            return answers
        ids = torch.tensor(self.ids, dtype=torch.int64)
        most = min(max(for_relation(probe.top_k, relation, TOP_K) for *_, relation in requests), len(ids))
        inputs = clozes.inputs([template for template, *_ in requests], [subject for _, subject, _ in requests])
        subset = probe.softmax == "subset"
        for indices, logits in forward.logits(inputs, ids if subset else None):
            probabilities = logits[:, 0].softmax(dim=-1)
            best = (probabilities if subset else probabilities[:, ids.to(logits.device)]).topk(most)
            for index, scores, places in zip(indices, best.values.tolist(), best.indices.tolist(), strict=True):
                for score, place in zip(scores, places, strict=True):
                    name = self.names[place]
                    answers[index][name] = answers[index].get(name, 0.0) + score
        return answers


def names_of_type(rows: Sequence[Example], relations: Mapping[str, Relation], qid: str) -> list[str]:
    """Return all names that labelled rows give to entities of a Wikidata class, as subjects or as objects."""
    names: dict[str, None] = {}
    for row in rows:
        relation = relations[row.query.relation]
        if relation.subject_type.qid == qid:
            names[row.query.subject] = None
        if relation.object_type.qid == qid:
            names |= dict.fromkeys(name for gold in row.objects for name in gold.names)
    return list(names)
