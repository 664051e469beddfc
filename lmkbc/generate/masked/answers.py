"""The ways to answer a cloze: one token of a vocabulary, several masks, or a closed list scored as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from lmkbc.errors import InputError
from lmkbc.generate.masked.lexicon import Lexicon
from lmkbc.generate.masked.settings import ProbeSettings
from lmkbc.models.masked.clozes import Clozes
from lmkbc.models.masked.forward import Forward
from lmkbc.models.masked.multi_token import fill_masks, pseudo_log_likelihood
from lmkbc.models.masked.words import Words
from lmkbc.relation import Relation

Scores = Mapping[str, float]
Request = tuple[str, str, Relation]
"""A template, a subject, and the relation."""
Answering = Callable[[Sequence[Request]], Iterator[Scores]]
"""One mapping of objects to probabilities, best first, for each cloze asked."""


def answering(
    probe: ProbeSettings, forward: Forward, clozes: Clozes, words: Words, lexicon: Lexicon | None
) -> Answering:
    """How the settings want clozes answered: a function of requests. lexicon: possible answers, None for any."""

    def masks(requests: Sequence[Request]) -> Iterator[Scores]:
        inputs = _inputs(clozes, requests, probe.masks - 1)
        filled = fill_masks(forward, words, inputs, most=probe.masks, beam=probe.beam, order=probe.order)
        return (dict(sorted(scores.items(), key=lambda item: -item[1])) for scores in filled)

    if lexicon is None:
        return masks
    if not lexicon.names:
        return lambda requests: ({} for _ in requests)
    if probe.objects == "pll":
        return _Whole(probe, forward, clozes, lexicon)
    return _Tokens(probe, forward, clozes, lexicon)


class _Tokens:
    """The most probable tokens of a vocabulary at the mask."""

    def __init__(self, probe: ProbeSettings, forward: Forward, clozes: Clozes, lexicon: Lexicon) -> None:
        self._probe, self._forward, self._clozes, self._lexicon = probe, forward, clozes, lexicon
        self._ids = torch.tensor([ids[0] for ids in lexicon.ids], dtype=torch.int64)
        self._neutral: dict[tuple[str, str], Tensor] = {}

    def __call__(self, requests: Sequence[Request]) -> Iterator[Scores]:
        answers: list[Scores] = [{}] * len(requests)
        most = min(max(self._probe.most(relation) for *_, relation in requests), len(self._ids))
        for indices, probabilities in self._probabilities(_inputs(self._clozes, requests)):
            best = probabilities.topk(most)
            for index, scores, places in zip(indices, best.values.cpu(), best.indices.cpu(), strict=True):
                if self._probe.prior_correction:
                    template, _, relation = requests[index]
                    scores, places = self._corrected(scores, places, self._prior(template, relation))  # noqa: PLW2901
                names = [self._lexicon.names[place] for place in places.tolist()]
                answers[index] = _summed(names, scores.tolist())
        yield from answers

    def _probabilities(self, inputs: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Tensor]]:
        """Of the vocabulary, (b, v), in batches."""
        subset = self._probe.softmax == "subset"
        for indices, logits in self._forward.logits(inputs, self._ids if subset else None):
            probabilities = logits[:, 0].softmax(dim=-1)
            yield indices, probabilities if subset else probabilities[:, self._ids.to(logits.device)]

    def _prior(self, template: str, relation: Relation) -> Tensor:
        """The probabilities with a subject that says no more than its type, (v,)."""
        key = template, relation.name
        if key not in self._neutral:
            neutral = _inputs(self._clozes, [_neutral(template, relation)])
            self._neutral[key] = next(self._probabilities(neutral))[1][0].cpu()
        return self._neutral[key]

    def _corrected(self, scores: Tensor, places: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Divided by the prior, rescaled to the mass that they had, and ranked again."""
        lifted = scores / prior[places].clamp(min=1e-12)
        lifted *= scores.sum() / lifted.sum().clamp(min=1e-12)
        order = lifted.argsort(descending=True, stable=True)
        return lifted[order], places[order]


class _Whole:
    """A softmax over a closed list's pseudo-log-likelihoods, less those with a neutral subject where it is wanted."""

    def __init__(self, probe: ProbeSettings, forward: Forward, clozes: Clozes, lexicon: Lexicon) -> None:
        self._probe, self._forward, self._clozes, self._lexicon = probe, forward, clozes, lexicon
        self._neutral: dict[tuple[str, str], Tensor] = {}

    def __call__(self, requests: Sequence[Request]) -> Iterator[Scores]:
        for template, subject, relation in requests:
            logs = self._logs((template, subject, relation))
            if self._probe.prior_correction:
                key = template, relation.name
                if key not in self._neutral:
                    self._neutral[key] = self._logs(_neutral(template, relation))
                logs = logs - self._neutral[key]
            scores = logs.softmax(dim=0)
            order = scores.argsort(descending=True, stable=True).tolist()
            yield _summed([self._lexicon.names[place] for place in order], scores[order].tolist())

    def _logs(self, request: Request) -> Tensor:
        """Of every name of the list, (c,)."""
        inputs = _inputs(self._clozes, [request], self._lexicon.longest - 1)
        return pseudo_log_likelihood(self._forward, inputs, self._lexicon.ids)[0]


def _neutral(template: str, relation: Relation) -> Request:
    """A cloze about a subject that says no more than its type."""
    return template, f"the {relation.subject_type.noun}", relation


def _inputs(clozes: Clozes, requests: Sequence[Request], spare: int = 0) -> list[list[int]]:
    """Token ids of all clozes; those of one template are tokenised together."""
    places: dict[str, list[int]] = {}
    for place, (template, *_) in enumerate(requests):
        places.setdefault(template, []).append(place)
    inputs: list[list[int]] = [[]] * len(requests)
    for template, group in places.items():
        for place, ids in zip(
            group, clozes.fill(template, [requests[place][1] for place in group], spare), strict=True
        ):
            if ids.count(clozes.mask_id) != 1:
                raise InputError(f"cloze {template!r} does not hold one mask once tokenised: reword it")
            inputs[place] = ids
    return inputs


def _summed(names: Sequence[str], scores: Sequence[float]) -> dict[str, float]:
    """Scores by name, summed where tokens share one."""
    total: dict[str, float] = {}
    for name, score in zip(names, scores, strict=True):
        total[name] = total.get(name, 0.0) + score
    return total
