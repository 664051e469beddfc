"""What a causal model has made of a prompt before it answers: the hidden states behind the last token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from lmkbc.models.causal.prefixes import Tokens

COLUMNS = 2048
"""Tokens that are read at a time."""


def last_states(model: PreTrainedModel, prompts: Sequence[Tokens], depth: float) -> npt.NDArray[np.float32]:
    """The hidden state of each prompt's last token, (n, d), behind a share `depth` of the layers, 1 being all."""
    layer = max(round(depth * model.config.get_text_config().num_hidden_layers), 1)
    device = next(model.parameters()).device
    by_length = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
    states: dict[int, npt.NDArray[np.float32]] = {}
    while by_length:
        rows = max(COLUMNS // len(prompts[by_length[-1]]), 1)
        batch, by_length = by_length[-rows:], by_length[:-rows]
        width = len(prompts[batch[-1]])
        last = torch.tensor([len(prompts[place]) - 1 for place in batch], device=device)
        # right-hand padding comes after all that is read here, so that it changes nothing, whatever its token
        tokens = torch.tensor([[*prompts[place], *([0] * (width - len(prompts[place])))] for place in batch])
        mask = torch.arange(width, device=device)[None, :] <= last[:, None]
        with torch.inference_mode():
            seen = model.base_model(
                input_ids=tokens.to(device), attention_mask=mask, output_hidden_states=True, use_cache=False
            )
        read = seen.hidden_states[layer][torch.arange(len(batch), device=device), last].float().cpu().numpy()
        states |= zip(batch, read, strict=True)
    return np.stack([states[place] for place in range(len(prompts))])
