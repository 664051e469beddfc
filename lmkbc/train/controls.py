"""Controls that say what was learned from training facts rather than recalled (OptiPrompt, section 4).

A model with random weights, or random embeddings, is trained like the real one; majority and naive Bayes need none.
What a control answers is easy; the rest is hard, and only there does a score speak of what the model knew before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import TYPE_CHECKING, Literal, cast

import torch

from lmkbc.models.masked.tensors import word_vectors
from lmkbc.names import folded_key

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def randomised(model: PreTrainedModel, what: Literal["all", "embeddings"] = "all", seed: int = 0) -> PreTrainedModel:
    """A new model of the same shape: all weights drawn anew, or the word embeddings (and the output tied to them).

    Save it: the published code draws again before it evaluates, and so scores prompts against another random model.
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
    return cast("PreTrainedModel", fresh.to(model.device))  # type: ignore[arg-type]


class Majority:
    """Every relation's most frequent train object."""

    def __init__(self, facts: Iterable[tuple[str, str, str]]) -> None:
        counts = defaultdict[str, Counter[str]](Counter)
        for _, relation, answer in facts:
            counts[relation][answer] += 1
        self._top = {name: min(found, key=lambda one: (-found[one], one)) for name, found in counts.items()}

    def answer(self, _: str, relation: str) -> str:
        """The object, "" for a relation without train facts."""
        return self._top.get(relation, "")


class NaiveBayes:
    """argmax over objects of P(object | relation) times P(word | object, relation) over the subject's words.

    Add-one smoothing; facts are (subject, relation, object).
    """

    def __init__(self, facts: Iterable[tuple[str, str, str]]) -> None:
        self._words: dict[str, dict[str, Counter[str]]] = {}
        self._counts = defaultdict[str, Counter[str]](Counter)
        self._known = defaultdict[str, set[str]](set)
        for subject, relation, answer in facts:
            words = folded_key(subject).split()
            self._counts[relation][answer] += 1
            self._words.setdefault(relation, {}).setdefault(answer, Counter()).update(words)
            self._known[relation].update(words)

    def answer(self, subject: str, relation: str) -> str:
        """The object, "" for a relation without train facts."""
        words, size = folded_key(subject).split(), len(self._known[relation]) + 1

        def score(answer: str) -> tuple[float, str]:
            seen = self._words[relation][answer]
            total = seen.total() + size
            prior = log(self._counts[relation][answer])
            return prior + sum(log((seen[word] + 1) / total) for word in words), answer

        return max(self._counts[relation], key=score, default="")


def easy(facts: Sequence[tuple[str, str, str]], controls: Sequence[Callable[[str, str], str]]) -> list[bool]:
    """Which facts any control answers; the others are hard."""
    return [any(control(subject, relation) == answer for control in controls) for subject, relation, answer in facts]
