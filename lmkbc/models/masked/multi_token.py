"""Objects of several tokens: masks filled one after another, or a closed list scored by pseudo-log-likelihood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from lmkbc.models.masked.forward import Forward
from lmkbc.models.masked.words import Words

Order = Literal["left", "confidence"]


@dataclass(frozen=True, slots=True)
class _Partial:
    """An input whose masks are filled in part. total: the sum of the log-probabilities of what was filled in."""

    ids: tuple[int, ...]
    total: float


def fill_masks(
    forward: Forward, words: Words, inputs: Sequence[Sequence[int]], *, most: int, beam: int, order: Order = "left"
) -> Iterator[dict[str, float]]:
    """For each input with one mask: texts of 1 to `most` tokens -> probability, the geometric mean over tokens.

    At each step a mask is filled, the leftmost or the one that the model is surest of, and the best `beam` stay.
    The first token begins a word; no token is a special one.
    """
    mask, starts, inner = forward.backbone.mask_id, _columns(words.plain), _columns(words.ordinary)
    answers: list[dict[str, float]] = [{} for _ in inputs]
    for size in range(1, most + 1):
        spans = [ids.index(mask) for ids in inputs]
        beams = [[_Partial(tuple(_inserted(ids, [mask] * size, mask)), 0.0)] for ids in inputs]
        for _ in range(size):
            beams = _step(forward, beams, spans, starts, inner, beam, order)
        for texts, span, partials in zip(answers, spans, beams, strict=True):
            for partial in partials:
                text = words.text(list(partial.ids[span : span + size]))
                score = float(torch.tensor(partial.total / size).exp())
                texts[text] = max(score, texts.get(text, 0.0))
    yield from answers


def _step(
    forward: Forward,
    beams: Sequence[Sequence[_Partial]],
    spans: Sequence[int],
    starts: Tensor,
    inner: Tensor,
    beam: int,
    order: Order,
) -> list[list[_Partial]]:
    mask = forward.backbone.mask_id
    flat = [(owner, partial) for owner, partials in enumerate(beams) for partial in partials]
    grown: list[dict[tuple[int, ...], float]] = [{} for _ in beams]
    for indices, logits in forward.logits([partial.ids for _, partial in flat]):
        scores = logits.log_softmax(dim=-1).cpu()
        for index, rows in zip(indices, scores, strict=True):  # rows: (masks left, v)
            owner, partial = flat[index]
            places = [place for place, token in enumerate(partial.ids) if token == mask]
            allowed = [starts if place == spans[owner] else inner for place in places]
            choice = 0
            if order == "confidence":
                choice = int(torch.stack([row[ids].max() for row, ids in zip(rows, allowed, strict=True)]).argmax())
            ids = allowed[choice]
            best = rows[choice][ids].topk(min(beam, len(ids)))
            for score, token in zip(best.values.tolist(), ids[best.indices].tolist(), strict=True):
                filled = (*partial.ids[: places[choice]], token, *partial.ids[places[choice] + 1 :])
                total = partial.total + score
                grown[owner][filled] = max(total, grown[owner].get(filled, total))
    return [
        [_Partial(ids, total) for ids, total in sorted(each.items(), key=lambda item: -item[1])[:beam]]
        for each in grown
    ]


def pseudo_log_likelihood(
    forward: Forward, inputs: Sequence[Sequence[int]], candidates: Sequence[Sequence[int]]
) -> Tensor:
    """How well each candidate's tokens fit each input's mask: (n, c), the mean over tokens of log P(token | the rest).

    Each token is masked in turn while the others of the candidate stand (Salazar et al. 2020); the mean, not the sum,
    so that short names have no advantage. Costs as many inputs as there are tokens in all candidates, per input.
    """
    mask = forward.backbone.mask_id
    scores = torch.zeros(len(inputs), len(candidates))
    for row, ids in enumerate(inputs):
        masked, wanted = [], []
        for column, candidate in enumerate(candidates):
            for place, token in enumerate(candidate):
                holed = [*candidate[:place], mask, *candidate[place + 1 :]]
                masked.append(_inserted(ids, holed, mask))
                wanted.append((column, token))
        for indices, logits in forward.logits(masked):
            logs = logits[:, 0].log_softmax(dim=-1).cpu()
            for index, log in zip(indices, logs, strict=True):
                column, token = wanted[index]
                scores[row, column] += log[token] / len(candidates[column])
    return scores


def _inserted(ids: Sequence[int], tokens: Sequence[int], mask: int) -> list[int]:
    """An input whose one mask is replaced by tokens."""
    place = ids.index(mask)
    return [*ids[:place], *tokens, *ids[place + 1 :]]


def _columns(ids: Sequence[int] | dict[int, str]) -> Tensor:
    return torch.tensor(sorted(ids), dtype=torch.int64)
