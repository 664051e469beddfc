"""Ranks of gold objects by masked models on LAMA's clozes, in the vocabulary that the models share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

import torch

from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.clozes import Clozes
from lmkbc.models.masked.forward import Forward
from lmkbc.models.masked.vocabulary import Words
from lmkbc.probe.lama.lama_data import GUESSES, NAMES, SENTENCE, SENTENCE_MASK, Rank, RelationFacts


class MaskedRanks:
    """Masked model over a vocabulary of whole words. ids: word -> its token in the model; each word is one token."""

    def __init__(self, backbone: Backbone, vocabulary: Sequence[str], ids: Mapping[str, int] | None = None) -> None:
        ids = known_words(backbone) if ids is None else ids
        self._clozes, self._forward = Clozes(backbone), Forward(backbone)
        self._places = {word: place for place, word in enumerate(vocabulary)}
        self._columns = torch.tensor([ids[word] for word in vocabulary])

    def ranks(self, relation: RelationFacts) -> list[Rank]:
        """Return the rank of each fact's object. Words of equal probability do not lower it."""
        inputs = self._inputs(relation)
        gold = torch.tensor([self._places[object_] for _, object_ in relation.facts])
        ranks: dict[int, Rank] = {}
        for indices, logits in self._forward.logits(inputs, self._columns):
            logs = logits[:, 0].log_softmax(-1).cpu()
            own = logs.gather(1, gold[indices][:, None])
            places = (logs > own).sum(1) + 1
            ranks |= zip(indices, zip(places.tolist(), own[:, 0].tolist(), strict=True), strict=True)
        return [ranks[index] for index in range(len(inputs))]

    def _inputs(self, relation: RelationFacts) -> list[list[int]]:
        subjects = [subject for subject, _ in relation.facts]
        if relation.cloze != SENTENCE:
            return self._clozes.fill(relation.cloze, subjects)
        parts = [sentence.replace("{", "{{").replace("}", "}}").split(SENTENCE_MASK) for sentence in subjects]
        return [self._clozes.fill(f"{before}{{subject}}{{mask}}{after}", [""])[0] for before, after in parts]

    def guesses(self, relations: Sequence[RelationFacts]) -> Callable[[str, str], Collection[str]]:
        """Return a function from relation and word of a person's name to the likeliest objects, for LAMA-UHN."""
        words, likeliest = list(self._places), dict[tuple[str, str], frozenset[str]]()
        for relation in relations:
            names = list(dict.fromkeys(chain.from_iterable(subject.split() for subject, _ in relation.facts)))
            inputs = self._clozes.fill(NAMES[relation.name], names) if relation.name in NAMES else []
            for indices, logits in self._forward.logits(inputs, self._columns):
                tops = logits[:, 0].topk(min(GUESSES, len(words))).indices.tolist()
                for index, top in zip(indices, tops, strict=True):
                    likeliest[relation.name, names[index]] = frozenset(words[place] for place in top)
        return lambda relation, name: likeliest.get((relation, name), frozenset())


def known_words(backbone: Backbone) -> Mapping[str, int]:
    """Return the whole words of a model's vocabulary with their ids. A word with several ids has the first."""
    ids: dict[str, int] = {}
    for index, word in Words(backbone.tokenizer).plain.items():
        ids.setdefault(word, index)
    return ids
