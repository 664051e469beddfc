"""A masked-LM head with the layers below it and its objects, separated from its model, and the reassembly of both.

The activations of the frozen layers are computed once per prompt, and the layers above learn from them. The last layer
computes only the mask's position. This takes a fiftieth of the time of training all layers at every position.
"""

from __future__ import annotations

import copy
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional as fn
from transformers import BertForMaskedLM, PreTrainedTokenizerBase

from lmkbc.errors import InputError, OptionError
from lmkbc.models.hardware import half_precision
from lmkbc.models.masked.backbone import Backbone
from lmkbc.models.masked.forward import buckets, word_vectors
from lmkbc.models.masked.vocabulary import Words
from lmkbc.names import name_key
from lmkbc.progress import Report, silent
from lmkbc.types import Fact

FILE = "entities.json"
NOTHING = "none"


@dataclass(frozen=True, slots=True, eq=False)
class Entities:
    """n objects, the first of which is "no object", spelled "".

    ids: QIDs, "" if unknown.
    rows: vocabulary rows.
    pieces: token ids of each object.
    relations: relation -> indices of its objects.
    folds: normal form of a training subject -> the fold whose head was trained without it.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    rows: tuple[int, ...]
    pieces: tuple[tuple[int, ...], ...]
    relations: Mapping[str, tuple[int, ...]]
    folds: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
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
        relations = {
            name: (0, *sorted({number[key] for key in keys if key in number})) for name, keys in answers.items()
        }
        ids_by_name = tuple(ids.get(name_key(name), "") for name in names)
        return cls(tuple(names), ids_by_name, tuple(rows), tuple(pieces), relations)

    def some(self) -> Entities:
        """Return self. Raise InputError if there is only "no object"."""
        if len(self.names) == 1:
            raise InputError("no object is left to train on: give more facts, or expand the vocabulary")
        return self

    @property
    def expanded(self) -> bool:
        """Return whether objects have additional rows after the vocabulary."""
        return self.rows[0] > max((piece for pieces in self.pieces for piece in pieces), default=0)

    def numbers(self, facts: Iterable[Fact]) -> list[list[int]]:
        """Return the indices of each fact's objects: [0] for a fact without objects, [] if none of them is known."""
        index = {name_key(name): number for number, name in enumerate(self.names)}
        return [
            sorted({index[key] for key in map(name_key, fact.objects) if key in index}) if fact.objects else [0]
            for fact in facts
        ]

    def to_json(self) -> bytes:
        """Return the content of the file beside the weights."""
        return json.dumps(
            {
                "names": self.names,
                "ids": self.ids,
                "rows": self.rows,
                "pieces": self.pieces,
                "relations": self.relations,
                "folds": self.folds,
            },
            ensure_ascii=False,
        ).encode()

    @classmethod
    def read(cls, directory: Path) -> Entities:
        """Read the objects from a trained directory. Raise InputError if the file is missing or broken."""
        path = directory / FILE
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            raise InputError(f"{path} is no list of objects ({error}); train the model again") from error


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


CACHED = 4096
"""Tokens per batch while the lower layers are computed."""


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


class Top(nn.Module):
    """Layers above the frozen ones, the head's transform, and n objects' output rows and biases."""

    def __init__(self, model: BertForMaskedLM, entities: Entities, top: int) -> None:
        super().__init__()
        layers = model.bert.encoder.layer
        if not 1 <= top <= len(layers):
            raise OptionError("top", f"is {top}: the model has {len(layers)} layers, of which one to all can learn")
        self.layers = copy.deepcopy(layers[len(layers) - top :])
        self.transform = copy.deepcopy(model.cls.predictions.transform)
        words = model.bert.embeddings.word_embeddings.weight.detach()
        rows = torch.stack([words[list(pieces)].mean(0) for pieces in entities.pieces])
        self.rows = nn.Parameter(rows, requires_grad=entities.expanded)
        self.bias = nn.Parameter(rows.new_zeros(len(rows)))

    def forward(self, cached: Activations, numbers: Sequence[int], dropout: float = 0.0) -> Tensor:
        """Return logits over the n objects at the masks of cached prompts, (b, n)."""
        hidden, keep, at = (part.to(self.bias.device) for part in cached.batch(numbers))
        for layer in self.layers[:-1]:
            hidden = bert_layer(layer, hidden, keep=keep, dropout=dropout)
        queried = hidden[torch.arange(len(at), device=at.device), at][:, None]
        hidden = bert_layer(self.layers[-1], hidden, queried, keep, dropout)[:, 0]
        return cast(Tensor, self.transform(hidden) @ self.rows.T + self.bias)


def assemble(backbone: Backbone, head: Top, entities: Entities) -> BertForMaskedLM:
    """Return the whole model with the trained parts; expanded objects are rows after the vocabulary."""
    model = cast(BertForMaskedLM, copy.deepcopy(backbone.model))
    rows = torch.tensor(entities.rows)
    if entities.expanded:
        model.resize_token_embeddings(int(rows.max()) + 1, mean_resizing=False)
    layers = model.bert.encoder.layer
    with torch.no_grad():
        for old, new in zip(layers[len(layers) - len(head.layers) :], head.layers, strict=True):
            old.load_state_dict(new.state_dict())
        model.cls.predictions.transform.load_state_dict(head.transform.state_dict())
        if entities.expanded:
            word_vectors(model)[rows] = head.rows
        model.cls.predictions.bias[rows] = head.bias
    model.train(mode=False)
    return model


def fold_file(fold: int, head: Top) -> tuple[str, bytes]:
    """Return name and content of the file with the head of one fold."""
    return f"fold-{fold}.safetensors", save({name: value.contiguous() for name, value in head.state_dict().items()})


def fold_model(directory: Path, fold: int, backbone: Backbone, entities: Entities) -> Backbone:
    """Return the model of a trained directory with the head of one fold. Raise InputError if that head is missing."""
    path = directory / f"fold-{fold}.safetensors"
    try:
        values = load_file(path)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} holds no head of a fold ({error}): train the model again") from error
    layers = {name.split(".")[1] for name in values if name.startswith("layers.")}
    head = Top(cast(BertForMaskedLM, backbone.model), entities, len(layers))
    try:
        head.load_state_dict(values)
    except RuntimeError:
        raise InputError(f"{path} is a head of another model: train the model again") from None
    return Backbone(backbone.name, assemble(backbone, head, entities), backbone.tokenizer)
