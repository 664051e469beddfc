"""Trees of options: the log-probability that a prompt goes on with each of many, read together.

The options of a prompt are a tree of tokens: what several begin with is read once, and the last token of an option is
never read, since its probability stands where the token before it ends. The trees of all prompts hang on the key/value
cache of the beginning that the prompts share, and only places where an option goes on are compared with the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from transformers import PreTrainedModel

from lmkbc.models.causal.options import Option
from lmkbc.models.causal.prefixes import Group, Tokens
from lmkbc.models.causal.trees import Beginnings, Tree, parts_of
from lmkbc.models.parallel import side_by_side


class Read(NamedTuple):
    """A prompt that was read with its options: their log-probabilities, and the state of its last token, (d,)."""

    logs: list[float]
    state: torch.Tensor | None


def read_options(
    model: PreTrainedModel,
    beginnings: Beginnings,
    groups: Sequence[Group],
    prompts: Sequence[Sequence[Option]],
    layer: int | None = None,
) -> Iterator[tuple[int, Read]]:
    """Read prompts with their options, and yield what was found by the prompt's place, in any order.

    Log-probabilities are natural logarithms of the probability that a prompt goes on with an option. groups: prompts
    by beginning, which is shorter than any prompt. layer: behind which states are read, if they are asked for.
    """
    parts = parts_of(model, groups, lambda member, shared: _size(prompts[member], shared))
    starts = ((prompts[part[0]][0].whole[: group.shared], part) for group, part in parts)
    jobs = [partial(_read, model, beginnings, start, prompts, part, layer) for start, part in starts]
    for found in side_by_side(model, jobs):
        yield from found


def _size(options: Sequence[Option], shared: int) -> int:
    """Return how many tokens a prompt's tree has."""
    tree = Tree()
    for option in options:
        tree.path(0, option.whole[shared:-1])
    return len(tree.tokens)


def _read(
    model: PreTrainedModel,
    beginnings: Beginnings,
    shared: Tokens,
    prompts: Sequence[Sequence[Option]],
    part: Sequence[int],
    layer: int | None,
) -> list[tuple[int, Read]]:
    tree, before = Tree(), len(shared)
    steps: list[tuple[int, int]] = []  # where an option's token is predicted, and the token
    ends: dict[int, int] = {}  # prompt -> where its last token is
    for number in part:
        for whole, first in prompts[number]:
            path = tree.path(number, whole[before:-1])
            ends[number] = min(path[first - before - 1], ends.get(number, len(tree.tokens)))
            steps += zip(path[first - before - 1 :], whole[first:], strict=True)
    read = sorted({place for place, _ in steps})
    row_of = {place: row for row, place in enumerate(read)}
    with torch.inference_mode():
        logits, states = tree.read(model, beginnings.cache(shared), read, layer)
        rows = torch.tensor([row_of[place] for place, _ in steps], device=logits.device)
        tokens = torch.tensor([token for _, token in steps], device=logits.device)
        logs = iter((logits[rows, tokens] - logits.logsumexp(-1)[rows]).tolist())
    found = []
    for number in part:
        own = [math.fsum(next(logs) for _ in whole[first:]) for whole, first in prompts[number]]
        found.append((number, Read(own, None if states is None else states[ends[number]].clone())))
    return found
