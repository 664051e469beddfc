"""Prompts read with their options: log-probabilities of options, and hidden states after a prompt.

The options of a prompt form a tree of tokens, so a common beginning is read once. The last token of an option is never
read, since its probability is known after the token before it. The trees of all prompts continue the key/value cache of
the common prefix. Logits are computed only where an option continues. A model without attention masks reads one row for
each prompt and option instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from transformers import PreTrainedModel

from lmkbc.local.branches import Batched
from lmkbc.local.caches import PrefixCaches, read_row
from lmkbc.models.hardware import capacity, side_by_side
from lmkbc.models.prefixes import Group, Option, Tokens, of_one_length, portions

MOST_VALUES = 1 << 26
"""Maximum number of logits at a time if a row is read for each option: a quarter of a GiB."""

Scores = tuple[list[float], torch.Tensor | None]
"""Scores of a prompt: the log-probabilities of its options, and the state of its last token, (d,)."""


def layer_at(model: PreTrainedModel, depth: float) -> int:
    """Return the number of the layer at a share of the layers; layer 0 is the embeddings."""
    layers: int = model.config.get_text_config().num_hidden_layers
    return max(round(depth * layers), 1)


def alone(prompt: Tokens) -> list[Option]:
    """Return an option with which a prompt is read for its state alone; its token is never read."""
    return [Option((*prompt, 0), len(prompt))]


@dataclass(slots=True)
class _Tree:
    """Tree of tokens after a common prefix.

    parents: index of each token's parent, -1 for the prefix. depths: from 0.
    """

    tokens: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    _places: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def path(self, prompt: int, tokens: Sequence[int]) -> list[int]:
        """Return the indices of a sequence of tokens of a prompt, and add missing tokens. Prompts share no tokens."""
        parent, places = -1, []
        for depth, token in enumerate(tokens):
            place = self._places.setdefault((prompt, parent, token), len(self.tokens))
            if place == len(self.tokens):
                self.tokens.append(token)
                self.parents.append(parent)
                self.depths.append(depth)
            places.append(parent := place)
        return places

    def seen(self, before: int, device: torch.device) -> torch.Tensor:
        """Return which tokens each token sees, (tokens, before + tokens): the prefix, its ancestors, and itself."""
        count = len(self.tokens)
        seen = torch.eye(count + 1, count, dtype=torch.bool, device=device)  # the last row, of the prefix, sees none
        above = torch.tensor([*(parent % (count + 1) for parent in self.parents), count], device=device)
        for _ in range(max(self.depths, default=0).bit_length()):  # each round doubles how far up a token sees
            seen |= seen[above]
            above = above[above]
        return torch.cat([torch.ones(count, before, dtype=torch.bool, device=device), seen[:count]], 1)


def read_packed(
    model: PreTrainedModel,
    prefix_caches: PrefixCaches,
    groups: Sequence[Group],
    prompts: Sequence[Sequence[Option]],
    layer: int | None = None,
) -> Iterator[tuple[int, Scores]]:
    """Read prompts with their options, many in one row, and yield each prompt's place and scores, in any order.

    Scores are the natural log-probabilities that a prompt continues with an option. groups: prompts by prefix, which is
    shorter than any prompt. layer: layer whose states are returned; None for no states.
    """
    most, parts = capacity(model.device).columns, []
    for group in groups:
        sizes = [_size(prompts[member], group.shared) for member in group.members]
        parts += [(number, group, part) for number, part in enumerate(portions(group.members, sizes, most))]
    parts.sort(key=lambda part: part[0])  # the first part of every group comes first, since it reads the prefix
    starts = ((prompts[part[0]][0].whole[: group.shared], part) for _, group, part in parts)
    jobs = [partial(_read, model, prefix_caches, start, prompts, part, layer) for start, part in starts]
    for found in side_by_side(model, jobs):
        yield from found


def _size(options: Sequence[Option], shared: int) -> int:
    """Return the number of tokens in a prompt's tree."""
    tree = _Tree()
    for option in options:
        tree.path(0, option.whole[shared:-1])
    return len(tree.tokens)


def _read(
    model: PreTrainedModel,
    prefix_caches: PrefixCaches,
    shared: Tokens,
    prompts: Sequence[Sequence[Option]],
    part: Sequence[int],
    layer: int | None,
) -> list[tuple[int, Scores]]:
    tree, before = _Tree(), len(shared)
    steps: list[tuple[int, int]] = []  # position that predicts a token of an option, and the token
    ends: dict[int, int] = {}  # prompt -> position of its last token
    for number in part:
        for whole, first in prompts[number]:
            path = tree.path(number, whole[before:-1])
            ends[number] = min(path[first - before - 1], ends.get(number, len(tree.tokens)))
            steps += zip(path[first - before - 1 :], whole[first:], strict=True)
    read = sorted({place for place, _ in steps})
    row_of = {place: row for row, place in enumerate(read)}
    with torch.inference_mode():
        at = [*range(before), *(before + depth for depth in tree.depths)]
        cache, seen = prefix_caches.cache(shared), tree.seen(before, model.device)
        logits, states = read_row(model, cache, tree.tokens, at, seen, read, layer)
        rows = torch.tensor([row_of[place] for place, _ in steps], device=logits.device)
        tokens = torch.tensor([token for _, token in steps], device=logits.device)
        logs = iter((logits[rows, tokens] - logits.logsumexp(-1)[rows]).tolist())
    found = []
    for number in part:
        scores = [math.fsum(next(logs) for _ in whole[first:]) for whole, first in prompts[number]]
        found.append((number, (scores, None if states is None else states[ends[number]].clone())))
    return found


def read_batched(
    model: PreTrainedModel,
    find_groups: Callable[[Sequence[Tokens], int], list[Group]],
    prompts: Sequence[Sequence[Option]],
    most: int,
    layer: int | None = None,
    *,
    grows: bool = True,
) -> Iterator[tuple[int, Scores]]:
    """Return the same as `read_packed`, from one row for each prompt and option, for a model without attention masks.

    find_groups: groups sequences by prefix, with a number of tokens left outside it. most: maximum tokens at a time.
    grows: see `Batched`.
    """
    asked: dict[Tokens, dict[Option, None]] = {}  # tokens to read -> the options that they predict
    for option in (option for options in prompts for option in options):
        asked.setdefault(option.whole[:-1], {})[option] = None
    rows, spare = list(asked), max((_length(option) for options in prompts for option in options), default=1)
    most = min(most, max(MOST_VALUES // model.config.get_text_config().vocab_size, 1))
    logs: dict[Option, float] = {}
    states: dict[Tokens, torch.Tensor] = {}  # of the predicting tokens
    for group in find_groups(rows, spare):
        members = [rows[member] for member in group.members]
        with torch.inference_mode():
            branches = Batched(model, members[0][: group.shared], grows=grows)
            for places in of_one_length([len(tokens) - group.shared for tokens in members], 0, most):
                some = [members[place] for place in places]
                logits, hidden = branches.read_all(some, layer, keep=spare)
                for number, (tokens, row) in enumerate(zip(some, logits, strict=True)):
                    logs |= {option: _continued(row, option) for option in asked[tokens]}
                    if hidden is not None:
                        states[tokens] = hidden[number, -spare:].clone()
    for number, options in enumerate(prompts):
        (read, first), *_ = [(whole[:-1], first) for whole, first in options]
        state = states[read][first - 1 - len(read)] if states else None
        yield number, ([logs[option] for option in options], state)


def _length(option: Option) -> int:
    return len(option.whole) - option.first


def _continued(logits: torch.Tensor, option: Option) -> float:
    """Return an option's log-probability from the logits of the positions up to its last token but one."""
    last = logits[len(logits) - _length(option) :]
    wanted = torch.tensor(option.whole[option.first :], device=logits.device)
    return float((last.gather(-1, wanted[:, None])[:, 0] - last.logsumexp(-1)).sum())
