"""Controls that separate what was learned from training facts from recall (OptiPrompt, section 4).

A model with random weights, or random embeddings, is trained like the real one. The majority and naive Bayes controls
need no model. Facts that a control answers are easy; the others are hard. Only the score on hard facts shows what the
model knew before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, cast

import numpy as np
import torch
from transformers import PreTrainedModel

from lmkbc.generate.baselines import log_posterior
from lmkbc.masked.forward import word_vectors
from lmkbc.names import folded_key
from lmkbc.select.ranking import Floats
from lmkbc.types import grouped


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


class LearnedControls:
    """Answers from train facts, (subject, relation, object), alone; "" for a relation without facts."""

    def __init__(self, facts: Iterable[tuple[str, str, str]]) -> None:
        by_relation = grouped((relation, (subject, answer)) for subject, relation, answer in facts)
        self._counts = {relation: _Counts(pairs) for relation, pairs in by_relation.items()}

    def majority(self, _: str, relation: str) -> str:
        """Return the relation's most frequent object; on a tie, the first by name."""
        counts = self._counts.get(relation)
        return "" if counts is None else counts.objects[int(np.argmax(counts.prior))]

    def naive_bayes(self, subject: str, relation: str) -> str:
        """Return the best object by P(object | relation) P(word | object, relation) over the words of the subject.

        Smoothing is add-one, with one more word for unseen words. On a tie, the object is the last by name.
        """
        if (counts := self._counts.get(relation)) is None:
            return ""
        words = folded_key(subject).split()
        (logs,) = log_posterior(counts.prior, counts.of(words), counts.totals, size=len(counts.seen) + 1)
        return counts.objects[len(logs) - 1 - int(np.argmax(logs[::-1]))]


class _Counts:
    """Objects of a relation by name (c), the share of facts of each, and counts of words per object."""

    def __init__(self, facts: Sequence[tuple[str, str]]) -> None:
        self.objects = sorted({answer for _, answer in facts})
        columns = {answer: column for column, answer in enumerate(self.objects)}
        counts = Counter(answer for _, answer in facts)
        self.prior = np.array([counts[answer] / len(facts) for answer in self.objects])
        self.totals = np.zeros(len(columns))
        self.seen: defaultdict[str, Counter[int]] = defaultdict(Counter)
        for name, answer in facts:
            for word in folded_key(name).split():
                self.seen[word][columns[answer]] += 1
                self.totals[columns[answer]] += 1

    def of(self, words: Sequence[str]) -> Floats:
        """Return the count of each word with each object, (words, c); 0 for an unknown word."""
        counts = np.zeros((len(words), len(self.objects)))
        for row, word in enumerate(words):
            for column, count in self.seen.get(word, {}).items():
                counts[row, column] = count
        return counts
