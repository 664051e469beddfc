"""What a causal model has made of a prompt before it answers: the hidden states behind the last token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from lmkbc.models.causal.branches import Branches
from lmkbc.models.causal.prefixes import Tokens


def last_states(
    model: PreTrainedModel, branches: Branches, suffixes: Sequence[Tokens], depth: float
) -> npt.NDArray[np.float32]:
    """The state of the last token of each prompt that continues a beginning, (n, d), at a share of the layers."""
    config = model.config.get_text_config()
    layer = max(round(depth * config.num_hidden_layers), 1)
    read: list[torch.Tensor] = []

    def take(_: torch.nn.Module, __: Any, output: Any) -> None:
        read.append(output.hidden_states[layer])

    hook = model.base_model.register_forward_hook(take)
    before, config.output_hidden_states = config.output_hidden_states, True
    try:
        with torch.inference_mode():
            branches.read(suffixes, [1] * len(suffixes))
    finally:
        config.output_hidden_states = before
        hook.remove()
    places = [end - 1 for end in accumulate(map(len, suffixes))]  # in one row, or in rows of one length
    states: npt.NDArray[np.float32] = read[-1].flatten(0, 1)[places].float().cpu().numpy()
    return states
