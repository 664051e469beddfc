"""The upper layers of a masked model as they are taught: objects of the facts, cached lower layers, and logits.

The activations of the frozen layers are computed once per prompt, and the layers above learn from them. The last layer
computes only the mask's position. This takes a fiftieth of the time of training all layers at every position.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional as fn
from transformers import BertForMaskedLM, PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.masked.forward import buckets
from lmkbc.masked.heads import NOTHING, Entities, Top
from lmkbc.masked.vocabulary import Words
from lmkbc.names import name_key
from lmkbc.progress import Report, silent
from lmkbc.train.loop import half_precision
from lmkbc.types import Fact

CACHED = 4096
"""Tokens per batch while the lower layers are computed."""


def entities_of(
    facts: Iterable[Fact],
    tokenizer: PreTrainedTokenizerBase,
    size: int,
    *,
    expand: bool,
    always: Sequence[str] = (),
    least: int = 1,
) -> Entities:
    """Return the objects of facts.

    size: size of the model's vocabulary.
    always: relations of which every object is taken.
    least: least number of facts per object of other relations.
    expand: whether to include objects of several tokens.
    """
    counts, spellings, ids, answers = _gather(facts)
    chosen = {key for key, count in counts.items() if count >= least}
    chosen |= {key for name in always for key in answers.get(name, ())}
    names, rows, number = [""], [size if expand else _none(tokenizer)], {"": 0}
    pieces: list[tuple[int, ...]] = [(_none(tokenizer),)]
    ordered = sorted(chosen)
    for key, tokens in zip(ordered, Words(tokenizer).pieces([spellings[key] for key in ordered]), strict=True):
        if not tokens or tokenizer.unk_token_id in tokens or (not expand and len(tokens) > 1):
            continue
        number[key] = len(names)
        rows.append(size + len(names) if expand else tokens[0])
        names.append(spellings[key])
        pieces.append(tuple(tokens))
    relations = {name: (0, *sorted({number[key] for key in keys if key in number})) for name, keys in answers.items()}
    ids_by_name = tuple(ids.get(name_key(name), "") for name in names)
    return Entities(tuple(names), ids_by_name, tuple(rows), tuple(pieces), relations)


def trainable(entities: Entities) -> Entities:
    """Return objects. Raise InputError if there is only "no object"."""
    if len(entities.names) == 1:
        raise InputError("no object is left to train on: give more facts, or expand the vocabulary")
    return entities


def numbers_of(entities: Entities, facts: Iterable[Fact]) -> list[list[int]]:
    """Return the indices of each fact's objects: [0] for a fact without objects, [] if none of them is known."""
    index = {name_key(name): number for number, name in enumerate(entities.names)}
    return [
        sorted({index[key] for key in map(name_key, fact.objects) if key in index}) if fact.objects else [0]
        for fact in facts
    ]


def _none(tokenizer: PreTrainedTokenizerBase) -> int:
    return Words(tokenizer).ids(NOTHING)[0]


def _gather(
    facts: Iterable[Fact],
) -> tuple[Counter[str], dict[str, str], dict[str, str], dict[str, set[str]]]:
    """Return the count, first spelling and QID of each object by normal form, and the objects by relation."""
    counts, spellings, ids = Counter[str](), dict[str, str](), dict[str, str]()
    answers = defaultdict[str, set[str]](set)
    for fact in facts:
        for name, identifier in zip(fact.objects, fact.ids, strict=True):
            if not (key := name_key(name)):
                continue
            counts[key] += 1
            spellings.setdefault(key, name)
            if identifier:
                ids.setdefault(key, identifier)
            answers[fact.relation].add(key)
    return counts, spellings, ids, dict(answers)


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


def head_logits(head: Top, cached: Activations, numbers: Sequence[int], dropout: float = 0.0) -> Tensor:
    """Return logits over the n objects at the masks of cached prompts, (b, n)."""
    hidden, keep, at = (part.to(head.bias.device) for part in cached.batch(numbers))
    for layer in head.layers[:-1]:
        hidden = bert_layer(layer, hidden, keep=keep, dropout=dropout)
    queried = hidden[torch.arange(len(at), device=at.device), at][:, None]
    hidden = bert_layer(head.layers[-1], hidden, queried, keep, dropout)[:, 0]
    return cast(Tensor, head.transform(hidden) @ head.rows.T + head.bias)


def fold_file(fold: int, head: Top) -> tuple[str, bytes]:
    """Return name and content of the file with the head of one fold."""
    return f"fold-{fold}.safetensors", save({name: value.contiguous() for name, value in head.state_dict().items()})
