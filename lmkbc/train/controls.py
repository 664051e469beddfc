"""Controls that separate what was learned from training facts from recall (OptiPrompt, section 4).

A model with random weights, or random embeddings, is trained like the real one. The majority and naive Bayes controls
need no model. Facts that a control answers are easy; the others are hard. Only the score on hard facts shows what the
model knew before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, cast

import numpy as np
import torch
from scipy import sparse
from transformers import PreTrainedModel

from lmkbc.generate.prior import class_prior, log_posterior
from lmkbc.groups import grouped
from lmkbc.models.masked.tensors import word_vectors
from lmkbc.names import folded_key
from lmkbc.select.ranking import Floats


def randomised(model: PreTrainedModel, what: Literal["all", "embeddings"] = "all", seed: int = 0) -> PreTrainedModel:
    """Return a new model of the same architecture with random weights: all, or only the (tied) word embeddings.

    Save the result. The published code draws new weights before its evaluation, so it scores prompts with another
    random model than the trained one.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh: PreTrainedModel = type(model)(model.config)
    fresh.tie_weights()
    if what == "embeddings":
        drawn = word_vectors(fresh).detach().clone()
        fresh.load_state_dict(model.state_dict())
        with torch.no_grad():
            word_vectors(fresh).copy_(drawn)
    fresh.train(mode=False)
    return cast(PreTrainedModel, fresh.to(model.device))  # type: ignore[arg-type]


class Majority:
    """Every relation's most frequent train object; on a tie, the first by name."""

    def __init__(self, facts: Iterable[tuple[str, str, str]]) -> None:
        counted = _by_relation(facts)
        self._top = {name: counts.objects[int(np.argmax(counts.prior))] for name, counts in counted.items()}

    def answer(self, _: str, relation: str) -> str:
        """Return the object; "" for a relation without train facts."""
        return self._top.get(relation, "")


class NaiveBayesControl:
    """Naive Bayes over the words of a subject: the best object by P(object | relation) P(word | object, relation).

    Smoothing is add-one, with one more word for unseen words. Facts are (subject, relation, object).
    """

    def __init__(self, facts: Iterable[tuple[str, str, str]]) -> None:
        self._counts = _by_relation(facts)

    def answer(self, subject: str, relation: str) -> str:
        """Return the object; on a tie, the last by name; "" for a relation without train facts."""
        if (counts := self._counts.get(relation)) is None:
            return ""
        (logs,) = log_posterior(counts.prior, counts.of(_words(subject)), counts.totals, size=len(counts.places) + 1)
        return counts.objects[len(logs) - 1 - int(np.argmax(logs[::-1]))]


class _Counts:
    """Objects of a relation by name (c), the share of facts of each, and counts of words per object."""

    def __init__(self, facts: Sequence[tuple[str, str]]) -> None:
        self.objects = sorted({answer for _, answer in facts})
        self.places = {word: place for place, word in enumerate(sorted({w for name, _ in facts for w in _words(name)}))}
        columns = {answer: column for column, answer in enumerate(self.objects)}
        hits = _ones([[columns[answer]] for _, answer in facts], len(columns))
        seen = _ones([[self.places[word] for word in _words(name)] for name, _ in facts], len(self.places))
        self.prior = class_prior(hits)
        self._seen = sparse.csr_array(seen.T @ hits)
        self.totals = np.asarray(self._seen.sum(axis=0))

    def of(self, words: Sequence[str]) -> Floats:
        """Return the count of each word with each object, (words, c); 0 for an unknown word."""
        counts = np.zeros((len(words), len(self.objects)))
        known = [(row, self.places[word]) for row, word in enumerate(words) if word in self.places]
        if known:
            rows, places = zip(*known, strict=True)
            counts[list(rows)] = self._seen[list(places)].toarray()
        return counts


def _by_relation(facts: Iterable[tuple[str, str, str]]) -> dict[str, _Counts]:
    by_relation = grouped((relation, (subject, answer)) for subject, relation, answer in facts)
    return {relation: _Counts(pairs) for relation, pairs in by_relation.items()}


def _words(name: str) -> list[str]:
    return folded_key(name).split()


def _ones(rows: Sequence[Sequence[int]], width: int) -> sparse.csr_array:
    """Return the count of each column in each row, (rows, width)."""
    ends = np.cumsum([0, *map(len, rows)])
    places = np.array([place for row in rows for place in row], dtype=np.int64)
    return sparse.csr_array((np.ones(len(places)), places, ends), (len(rows), width))
