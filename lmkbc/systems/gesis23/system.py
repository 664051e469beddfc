"""Ask for the entities whose vectors of Wikipedia2Vec are nearest to the mask (Biswas et al., GESIS, LM-KBC 2023).

Each entity is a new token. Its vector is mapped into the model's space of input vectors, as in E-BERT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lmkbc.errors import InputError
from lmkbc.files import reader
from lmkbc.masked.backbone import Backbone
from lmkbc.masked.cloze_settings import ProbeSettings
from lmkbc.masked.forward import Forward, Ids
from lmkbc.masked.soft_prompts import FILE, read_prompts
from lmkbc.masked.vocabulary import Words, expand, tables

Floats = npt.NDArray[np.float64]
ENTITY = "ENTITY/"
"""Prefix of an entity's title in Wikipedia2Vec's text format; its underscores stand for spaces."""


class Nearest(Forward):
    """Scores words by the negative Euclidean distance between the state at a mask and their output vectors."""

    def scored(self, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # noqa: ARG002
        """Return the logits of words, (b, m, v)."""
        return -torch.cdist(states, weight)


@dataclass(frozen=True, kw_only=True)
class EntityProbe(ProbeSettings):
    """Asks soft prompts for entities that have vectors. vectors: file in Wikipedia2Vec's text format; "": by --from."""

    REPLACES: ClassVar[tuple[str, ...]] = ("softmax",)

    vectors: str = ""

    reads_files: ClassVar[bool] = True

    def opened(self, files: Sequence[Path]) -> Self:
        """Return the settings with the file of vectors. Raise InputError unless there is one."""
        if len(files) != 1:
            raise InputError("this system reads entity vectors: name one file in Wikipedia2Vec's format with --from")
        return replace(self, vectors=str(files[0]))

    def prepared(self, backbone: Backbone, names: Collection[str]) -> Backbone:
        """Return the model with a token for each name. Raise InputError for a model without soft prompts."""
        if not read_prompts(Path(backbone.name)):
            raise InputError(
                f"{backbone.name} holds no {FILE}: name a directory that 'lmkbc train soft-prompt' made with --model"
            )
        wide = expand(backbone, names)
        size = len(tables(backbone.model)[0])
        words = Words(wide.tokenizer)
        for name, vector in mapped(Path(self.vectors), backbone, names).items():
            row = words.single(name)
            for table in tables(wide.model) if row is not None and row >= size else ():
                if table.ndim == 2:  # the bias stays composed
                    table.data[row] = torch.from_numpy(vector).to(table)
        return wide

    def forward(self, backbone: Backbone) -> Forward:
        """Return the forward pass."""
        return Nearest(backbone)

    def shares(self, forward: Forward, inputs: Sequence[Ids], listed: Tensor) -> Iterator[tuple[list[int], Tensor]]:
        """Yield batches with the shares of the listed words among each other."""
        for indices, logits in forward.logits(inputs, listed):
            yield indices, logits[:, 0].softmax(dim=-1)


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


COMPONENTS = {"gesis23/probe": EntityProbe}
