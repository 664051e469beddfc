"""What a causal model has made of a prompt before it answers: the hidden states behind the last token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate

import torch
from transformers import PreTrainedModel

from lmkbc.models.causal.branches import Batched
from lmkbc.models.causal.prefixes import Group, Tokens, of_one_length
from lmkbc.models.causal.trees import Beginnings, Tree, columns, parts_of
from lmkbc.models.parallel import side_by_side


def layer_at(model: PreTrainedModel, depth: float) -> int:
    """Return the number of the layer at a share of the layers; 0 would be the embeddings."""
    layers: int = model.config.get_text_config().num_hidden_layers
    return max(round(depth * layers), 1)


def packed_states(
    model: PreTrainedModel, beginnings: Beginnings, groups: Sequence[Group], prompts: Sequence[Tokens], layer: int
) -> Iterator[tuple[int, torch.Tensor]]:
    """Read prompts in rows that hold many of them; yield the state of each one's last token, (d,), by its place.

    groups: prompts by beginning, which is shorter than any prompt.
    """
    parts = parts_of(model, groups, lambda member, shared: len(prompts[member]) - shared)
    jobs = [partial(_read, model, beginnings, group.shared, prompts, part, layer) for group, part in parts]
    for found in side_by_side(model, jobs):
        yield from found


def _read(
    model: PreTrainedModel,
    beginnings: Beginnings,
    shared: int,
    prompts: Sequence[Tokens],
    part: Sequence[int],
    layer: int,
) -> list[tuple[int, torch.Tensor]]:
    tree = Tree()
    last = [tree.path(place, prompts[place][shared:])[-1] for place in part]
    with torch.inference_mode():
        _, states = tree.read(model, beginnings.cache(prompts[part[0]][:shared]), last[-1:], layer)
    if states is None:
        raise ValueError("the model tells no states")
    return [(place, states[at].clone()) for place, at in zip(part, last, strict=True)]


def batched_states(
    model: PreTrainedModel, groups: Sequence[Group], prompts: Sequence[Tokens], layer: int
) -> Iterator[tuple[int, torch.Tensor]]:
    """Do the same for a model that cannot be told what sees what: a row for each prompt."""
    for group in groups:
        members = [prompts[member] for member in group.members]
        sizes = [len(tokens) - group.shared for tokens in members]
        with torch.inference_mode():
            branches = Batched(model, members[0][: group.shared])
            for portion in of_one_length(sizes, 0, columns(model)):
                taken: list[torch.Tensor] = []
                rows = [members[place] for place in portion]
                prefixes, last = [members[0][: group.shared]] * len(rows), [1] * len(rows)
                branches.read(rows, prefixes, last, take_states=lambda hidden, to=taken: to.append(hidden[layer]))
                ends = list(accumulate(sizes[place] for place in portion))
                states = taken[0].flatten(0, 1)[[end - 1 for end in ends]]
                yield from zip([group.members[place] for place in portion], states, strict=True)
