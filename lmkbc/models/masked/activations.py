"""Activations of frozen layers for prompts, computed once, and layers that compute only the mask's position.

Training the layers above this way costs a fiftieth of training all of them at every position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor
from torch.nn import functional as fn

from lmkbc.groups import grouped
from lmkbc.models.precision import half_precision
from lmkbc.progress import Report, silent

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

CACHED = 4096
"""Tokens per batch while the lower layers are computed."""


def buckets(inputs: Sequence[Sequence[int]], mask_id: int, tokens: int) -> Iterator[list[int]]:
    """Yield indices of inputs that can share a batch: equal lengths and numbers of masks, at most `tokens` tokens."""
    masks = [sum(token == mask_id for token in ids) for ids in inputs]
    if not all(masks):
        raise ValueError(f"input {masks.index(0)} holds no mask")
    alike = grouped(((len(ids), masks[index]), index) for index, ids in enumerate(inputs))
    for (length, _), indices in sorted(alike.items()):
        size = max(1, tokens // length)
        for start in range(0, len(indices), size):
            yield indices[start : start + size]


def bert_layer(
    layer: Any, hidden: Tensor, queried: Tensor | None = None, keep: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """Compute a BERT layer: (b, t, h) -> (b, t, h), or only at the positions of `queried`, (b, m, h).

    keep: (b, t), False for padding; None without padding.
    """
    queried = hidden if queried is None else queried
    attention, heads = layer.attention.self, layer.attention.self.num_attention_heads

    def split(x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

    mixed = fn.scaled_dot_product_attention(
        split(attention.query(queried)),
        split(attention.key(hidden)),
        split(attention.value(hidden)),
        attn_mask=None if keep is None else keep[:, None, None],
    )
    out = layer.attention.output
    seen = out.LayerNorm(fn.dropout(out.dense(mixed.transpose(1, 2).flatten(-2)), dropout) + queried)
    wide = layer.intermediate.intermediate_act_fn(layer.intermediate.dense(seen))
    return cast(Tensor, layer.output.LayerNorm(fn.dropout(layer.output.dense(wide), dropout) + seen))


@dataclass(frozen=True, eq=False)
class Activations:
    """Activations of the frozen layers for n prompts.

    vectors: vectors of all tokens, one prompt after the other, in fp16.
    starts: index of each prompt's first vector.
    masks: position of the mask within each prompt.
    """

    vectors: Tensor
    starts: Tensor
    lengths: Tensor
    masks: Tensor

    def batch(self, numbers: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Return vectors (b, t, h) in fp32, which of them are tokens (b, t), and the masks' positions (b,)."""
        chosen = torch.as_tensor(numbers)
        lengths = self.lengths[chosen]
        steps = torch.arange(int(lengths.max()))
        keep = steps < lengths[:, None]
        rows = (self.starts[chosen][:, None] + steps).clamp(max=len(self.vectors) - 1)
        return self.vectors[rows].float(), keep, self.masks[chosen]


def activations(
    model: BertForMaskedLM, prompts: Sequence[Sequence[int]], mask_id: int, top: int, report: Report = silent
) -> Activations:
    """Run all layers except the `top` last ones on n prompts of token ids with one mask each. Results are in fp16."""
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    starts = torch.cumsum(lengths, 0) - lengths
    vectors = torch.empty(int(lengths.sum()), model.config.hidden_size, dtype=torch.float16)
    masks = torch.tensor([list(prompt).index(mask_id) for prompt in prompts])
    done = 0
    for same in buckets(prompts, mask_id, CACHED):
        ids = torch.tensor([list(prompts[number]) for number in same], device=model.device)
        keep = torch.ones_like(ids, dtype=torch.bool)
        with torch.inference_mode(), half_precision(model.device):
            hidden = model.bert.embeddings(input_ids=ids)
            for layer in model.bert.encoder.layer[: len(model.bert.encoder.layer) - top]:
                hidden = bert_layer(layer, hidden, keep=keep)
        rows = starts[torch.tensor(same)][:, None] + torch.arange(ids.shape[1])
        vectors[rows] = hidden.cpu().half()
        done += len(same)
        report("lower layers", done, len(prompts))
    return Activations(vectors, starts, lengths, masks)
