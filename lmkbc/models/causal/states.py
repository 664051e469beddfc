"""What a causal model has made of a prompt before it answers: the hidden states behind the last token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any

import torch
from transformers import PreTrainedModel

from lmkbc.models.causal.branches import Batched
from lmkbc.models.causal.prefixes import Tokens, of_one_length, portions
from lmkbc.models.causal.trees import COLUMNS, Tree, beginning


def last_states(
    model: PreTrainedModel, shared: int, prompts: Sequence[Tokens], depth: float, *, packs: bool
) -> Iterator[tuple[int, torch.Tensor]]:
    """The state of each prompt's last token, (d,), at a share of the layers, by the prompt's place.

    shared: how many tokens all begin with, less than any has. packs: whether prompts can stand in one row.
    """
    layer = max(round(depth * model.config.get_text_config().num_hidden_layers), 1)
    own = [prompt[shared:] for prompt in prompts]
    sizes = [len(tokens) for tokens in own]
    with torch.inference_mode(), _hidden(model, layer) as hidden:
        if packs:
            cache = beginning(model, prompts[0][:shared])
            for portion in portions(range(len(own)), sizes, COLUMNS):
                tree = Tree()
                last = [tree.path(place, own[place])[-1] for place in portion]
                tree.read(model, cache, last[-1:])
                yield from zip(portion, hidden[-1][0, last], strict=True)
            return
        branches = Batched(model, prompts[0][:shared])
        for portion in of_one_length(sizes, 0, COLUMNS):
            rows = [prompts[place] for place in portion]
            branches.read(rows, [prompts[0][:shared]] * len(rows), [1] * len(rows))
            ends = list(accumulate(sizes[place] for place in portion))
            yield from zip(portion, hidden[-1].flatten(0, 1)[[end - 1 for end in ends]], strict=True)


@contextmanager
def _hidden(model: PreTrainedModel, layer: int) -> Iterator[list[torch.Tensor]]:
    """The states behind a layer, (rows, tokens, d), of the latest forward pass within."""
    config, latest = model.config.get_text_config(), list[torch.Tensor]()

    def take(_: torch.nn.Module, __: Any, output: Any) -> None:
        latest[:] = [output.hidden_states[layer]]

    hook = model.base_model.register_forward_hook(take)
    before, config.output_hidden_states = config.output_hidden_states, True
    try:
        yield latest
    finally:
        config.output_hidden_states = before
        hook.remove()
