"""Vocabulary expansion: one new token per entity, with vectors composed from its pieces (Yang et al. 2023).

External entity vectors, such as Wikipedia2Vec's, may replace them, mapped into the model's space (as in E-BERT, and
GESIS 2023).
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from transformers import AddedToken, PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.files import reader
from lmkbc.masked.backbone import Backbone

Floats = npt.NDArray[np.float64]
ENTITY = "ENTITY/"
"""Prefix of an entity's title in Wikipedia2Vec's text format; its underscores stand for spaces."""

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
    compose: Literal["mean", "frequency"] = "mean",
    counts: Mapping[int, int] | None = None,
    vectors: Mapping[str, npt.NDArray[np.float64]] | None = None,
) -> Backbone:
    """Return a copy of a backbone in which each name is one token. Input vector, output row and bias are composed.

    Names that are one token already, or that hold an unknown one, are not changed. The new rows can be trained. counts:
    frequency of each vocabulary id, for "frequency". vectors: name -> vector that replaces the composed one; the bias
    is still composed.
    """
    words = Words(backbone.tokenizer)
    pieces = {name: words.ids(name) for name in sorted(set(names))}
    unknown = backbone.tokenizer.unk_token_id
    new = {name: ids for name, ids in pieces.items() if len(ids) > 1 and unknown not in ids}
    tokenizer, model = copy.deepcopy(backbone.tokenizer), copy.deepcopy(backbone.model)
    spaced = words.mark != PIECE  # the space before a word belongs to it
    tokenizer.add_tokens([AddedToken(name, single_word=True, normalized=True, lstrip=spaced) for name in new])
    rows = [tokenizer.convert_tokens_to_ids(name) for name in new]
    rows_now = len(_tables(model)[0])  # the table may have unused rows
    model.resize_token_embeddings(max(len(tokenizer), rows_now), mean_resizing=False)
    weights = [_weights(ids, compose, counts or {}) for ids in new.values()]
    with torch.no_grad():
        for table in _tables(model):
            composed = [weight.to(table) @ table[list(ids)] for ids, weight in zip(new.values(), weights, strict=True)]
            if composed:
                table[rows] = torch.stack(composed)
            for name, row in zip(new, rows, strict=True):
                if vectors and name in vectors and table.ndim == 2:
                    table[row] = torch.from_numpy(vectors[name]).to(table)
    return Backbone(backbone.name, model, tokenizer)


def piece_counts(backbone: Backbone, texts: Iterable[str]) -> Counter[int]:
    """Return the frequency of each vocabulary id in texts."""
    words = Words(backbone.tokenizer)
    return Counter(index for text in texts for index in words.ids(text))


def _tables(model: Any) -> list[Tensor]:
    """Return input vectors, output rows and output biases; tied ones once."""
    decoder = model.get_output_embeddings()
    tables = [model.get_input_embeddings().weight, decoder.weight, decoder.bias]
    return list({table.data_ptr(): table for table in tables if table is not None}.values())


def _weights(ids: Sequence[int], compose: str, counts: Mapping[int, int]) -> Tensor:
    frequencies = torch.tensor([float(counts.get(index) or UNSEEN) for index in ids])
    weights = frequencies**-POWER if compose == "frequency" else torch.ones(len(ids))
    return weights / weights.sum()


def read_vectors(path: Path, wanted: Collection[str]) -> dict[str, Floats]:
    """Return the vectors of the wanted names, from Wikipedia2Vec's text format (plain or gzipped).

    The file has a header "count dimensions", then a line per word or entity. An entity's vector precedes a word's.
    Raise InputError with the wrong line.
    """
    names = set(wanted)
    words, entities = dict[str, Floats](), dict[str, Floats]()
    with reader.stream(path) as file:
        lines = (line.decode("utf-8", "replace") for line in file)
        dimensions = _header(path, next(lines, ""))
        for number, line in enumerate(lines, start=2):
            name, *values = line.rstrip("\n").rsplit(" ", dimensions)
            entity = name.startswith(ENTITY)
            name = name.removeprefix(ENTITY).replace("_", " ") if entity else name
            if name not in names:
                continue
            try:
                vector = np.array(values, dtype=np.float64)
            except ValueError:
                vector = np.array([])
            if len(vector) != dimensions or not np.isfinite(vector).all():
                raise InputError(f"{path}, line {number}: needs a name and {dimensions} numbers; fetch the file again")
            (entities if entity else words)[name] = vector
    return words | entities


def linear_map(source: Floats, target: Floats, ridge: float = 1e-3) -> Callable[[Floats], Floats]:
    """Return a map fitted to n pairs of vectors, (n, d) and (n, h), both centred first: (m, d) -> (m, h).

    Least squares with an L2 penalty, relative to the source's variance.
    """
    middle, goal = source.mean(axis=0), target.mean(axis=0)
    x, y = source - middle, target - goal
    gram = x.T @ x
    matrix = np.linalg.solve(gram + ridge * np.trace(gram) / len(gram) * np.eye(len(gram)), x.T @ y)
    shift = goal - middle @ matrix
    return lambda vectors: vectors @ matrix + shift


def mapped(path: Path, backbone: Backbone, names: Collection[str]) -> dict[str, Floats]:
    """Return the vectors of the names that a file has, in the model's space of input vectors.

    The map is fitted to the words shared by the file and the model's vocabulary. Raise InputError if they are too few.
    """
    words = Words(backbone.tokenizer).plain
    vectors = read_vectors(path, {*words.values(), *names})
    embeddings: Any = backbone.model.get_input_embeddings()
    table = embeddings.weight.detach().double().cpu().numpy()
    pairs = [(vectors[word], table[index]) for index, word in words.items() if word in vectors]
    if len(pairs) < 2:
        raise InputError(f"{path} and {backbone.name} share {len(pairs)} words: they are of another language or casing")
    source, target = map(np.stack, zip(*pairs, strict=True))
    onto = linear_map(source, target)
    return {name: onto(vectors[name]) for name in names if name in vectors}


def _header(path: Path, line: str) -> int:
    found = re.fullmatch("[0-9]+ ([0-9]{1,5})", line.strip())
    if found is None:
        raise InputError(f"{path}, line 1: needs the number of vectors and of dimensions, such as '4530030 500'")
    return int(found[1])
