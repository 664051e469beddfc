"""Vocabulary expansion: one new token per entity, with vectors composed from its pieces (Yang et al. 2023)."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from transformers import AddedToken, PreTrainedTokenizerBase

from lmkbc.masked.backbone import Backbone

PIECE, BYTES, SPACE = "##", "Ġ", "▁"
"""Marks of WordPiece before a continuation, and of byte-level BPE and SentencePiece before a word."""

_RESERVED = re.compile(r"[\[<].*[\]>]")


class Words:
    """The whole words of a vocabulary: no continuations, no special or reserved tokens, no mere punctuation."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer, self.unknown = tokenizer, tokenizer.unk_token_id
        pieces = tokenizer.get_vocab()
        counts = {mark: sum(piece.startswith(mark) for piece in pieces) for mark in (PIECE, BYTES, SPACE)}
        self.mark = max(counts, key=lambda mark: counts[mark]) if any(counts.values()) else ""

    @cached_property
    def plain(self) -> dict[int, str]:
        """Return vocabulary id -> its word, in order of ids."""
        special = set(self._tokenizer.all_special_ids)
        added = set(self._tokenizer.get_added_vocab().values())
        ids = {}
        for piece, index in sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1]):
            word = piece if index in added else self._word(piece)
            if index not in special and any(char.isalnum() for char in word) and not _RESERVED.fullmatch(word):
                ids[index] = word
        return ids

    def ids(self, name: str) -> list[int]:
        """Return the tokens of a name within a sentence."""
        return self.pieces([name])[0]

    def pieces(self, names: Sequence[str]) -> list[list[int]]:
        """Return the tokens of names, each within a sentence."""
        texts = list(names) if self.mark == PIECE else [f" {name}" for name in names]
        return list(self._tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]) if texts else []

    def single(self, name: str) -> int | None:
        """Return the id of a name that is one known token; else None."""
        ids = self.ids(name)
        return ids[0] if len(ids) == 1 and ids[0] != self.unknown else None

    def text(self, ids: list[int]) -> str:
        """Return the plain text of tokens."""
        return self._tokenizer.convert_tokens_to_string(list(self._tokenizer.convert_ids_to_tokens(ids))).strip()

    def _word(self, piece: str) -> str:
        if self.mark == PIECE:
            return "" if piece.startswith(PIECE) else piece
        if self.mark and not piece.startswith(self.mark):
            return ""
        if self.mark == BYTES:
            return self._tokenizer.convert_tokens_to_string([piece]).strip()
        return piece.removeprefix(self.mark)


POWER = 1 / 8
"""The weight of a piece is count ** -POWER (code of Yang et al. 2023; the formulas in the paper disagree)."""
UNSEEN = 1_000_000
"""Count of a piece without a known count (their code)."""


def expand(
    backbone: Backbone,
    names: Iterable[str],
    counts: Mapping[int, int] | None = None,
) -> Backbone:
    """Return a copy of a backbone in which each name is one token. Input vector, output row and bias are composed.

    Names that are one token already, or that hold an unknown one, are not changed. The new rows can be trained. They
    are the mean of their pieces', weighted by inverse frequency if counts are given: vocabulary id -> frequency.
    """
    words = Words(backbone.tokenizer)
    pieces = {name: words.ids(name) for name in sorted(set(names))}
    unknown = backbone.tokenizer.unk_token_id
    new = {name: ids for name, ids in pieces.items() if len(ids) > 1 and unknown not in ids}
    tokenizer, model = copy.deepcopy(backbone.tokenizer), copy.deepcopy(backbone.model)
    spaced = words.mark != PIECE  # the space before a word belongs to it
    tokenizer.add_tokens([AddedToken(name, single_word=True, normalized=True, lstrip=spaced) for name in new])
    rows = [tokenizer.convert_tokens_to_ids(name) for name in new]
    # the table may have unused rows
    model.resize_token_embeddings(max(len(tokenizer), len(tables(model)[0])), mean_resizing=False)
    weights = [_weights(ids, counts) for ids in new.values()]
    with torch.no_grad():
        for table in tables(model):
            composed = [weight.to(table) @ table[list(ids)] for ids, weight in zip(new.values(), weights, strict=True)]
            if composed:
                table[rows] = torch.stack(composed)
    return Backbone(backbone.name, model, tokenizer)


def piece_counts(backbone: Backbone, texts: Iterable[str]) -> Counter[int]:
    """Return the frequency of each vocabulary id in texts."""
    return Counter(index for ids in map(Words(backbone.tokenizer).ids, texts) for index in ids)


def tables(model: Any) -> list[Tensor]:
    """Return input vectors, output rows and output biases; tied ones once."""
    decoder = model.get_output_embeddings()
    tables = [model.get_input_embeddings().weight, decoder.weight, decoder.bias]
    return list({table.data_ptr(): table for table in tables if table is not None}.values())


def _weights(ids: Sequence[int], counts: Mapping[int, int] | None) -> Tensor:
    frequencies = (
        torch.ones(len(ids)) if counts is None else torch.tensor([float(counts.get(one) or UNSEEN) for one in ids])
    )
    weights = frequencies**-POWER
    return weights / weights.sum()
