"""Context: what providers find, how it is cut and told, and which of them a closed book allows."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from command import Command
from hypothesis import given
from hypothesis import strategies as st
from opened import part, recipe_file, recipe_of
from space import MINI, SPACE

from lmkbc import InputError
from lmkbc.ask.context import lines, provider
from lmkbc.testing import Passage, Query

NAME = "CountryBordersCountry"
RELATIONS = {NAME: SPACE.relation(NAME)}
TEXTS = [
    Passage("Chile", "Chile lies along the Pacific and meets Peru, Bolivia and Argentina."),
    Passage("Fiji", "Fiji is an archipelago."),
    Passage("São Tomé and Príncipe", "Two islands in the gulf."),
]
CHILE, FIJI = Query("Chile", NAME), Query("Fiji", NAME)


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


def provided(
    folder: Path,
    texts: Sequence[Passage] = TEXTS,
    *,
    encoder: Words | None = None,
    cache: Path | None = None,
    **how: Any,
) -> Any:
    """Return what a recipe's table opens over a corpus of these texts."""
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps({"title": t.title, "text": t.text}) + "\n" for t in texts), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        if encoder:
            patch.setattr("lmkbc.models.encoder.find_encoder", lambda: encoder)
        return provider(part("context", **{"path": str(path), **how}), RELATIONS, cache)


def test_a_title_is_looked_up_whatever_its_case_and_accents(tmp_path: Path) -> None:
    titles = provided(tmp_path, provider="titles")
    found = titles.find([Query("CHILE", NAME), Query("Sao Tome and Principe", NAME), Query("Atlantis", NAME)])
    assert [[one.title for one in passages] for passages in found] == [["Chile"], ["São Tomé and Príncipe"], []]


def test_no_more_passages_than_asked_for(tmp_path: Path) -> None:
    how = {"provider": "titles", "words": 2, "overlap": 0, "passages": 2}
    titles = provided(tmp_path, [Passage("Chile", "a b c d e f")], **how)
    assert titles.find([CHILE]) == [(Passage("Chile", "a b"), Passage("Chile", "c d"))]


def test_a_relation_may_have_texts_of_another_title(tmp_path: Path) -> None:
    titled = {"component": "llmke23/context", "provider": "titles", "passages": 2}
    how = titled | {"titles": {"country-borders": "Borders of {{ subject }}"}}
    texts = [
        Passage("Chile", "long"),
        Passage("borders of chile", "introduction"),
        Passage("Borders of Chile", "infobox"),
    ]
    assert [one.text for one in provided(tmp_path, texts, **how).find([CHILE])[0]] == ["introduction", "infobox"]
    with pytest.raises(InputError, match=r"titles\.country-borders reads \{\{ object \}\}"):
        provided(tmp_path, **titled, titles={"country-borders": "{{ object }}"})
    table = {
        "component": "chat",
        "context": {**titled, "path": "x", "titles": {"b": "c"}},
    }
    with pytest.raises(InputError, match=r"context\.titles names 'b', which is no relation"):
        recipe_of(table)


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=40), st.integers(1, 9), st.data())
def test_passages_hold_every_word_and_overlap(words: list[str], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    with TemporaryDirectory() as folder:
        how = {"provider": "titles", "words": size, "overlap": overlap, "passages": 99}
        (found,) = provided(Path(folder), [Passage("Chile", " ".join(words))], **how).find([CHILE])
    parts = [one.text.split() for one in found]
    assert all(len(part) <= size for part in parts)
    assert parts[0] + [word for part in parts[1:] for word in part[overlap:]] == words
    assert all(len(part) > overlap or len(parts) == 1 for part in parts)


def test_retrieval_finds_the_nearest_passages(tmp_path: Path) -> None:
    found = provided(tmp_path, encoder=Words(), provider="passages", passages=5).find([CHILE, FIJI])
    assert [passages[0].title for passages in found] == ["Chile", "Fiji"]
    assert all(len(passages) == len(TEXTS) for passages in found)
    assert [one.score for one in found[0]] == sorted((one.score for one in found[0]), reverse=True)
    for few in range(1, len(TEXTS)):
        nearest = provided(tmp_path, encoder=Words(), provider="passages", passages=few)
        assert nearest.find([CHILE, FIJI]) == [passages[:few] for passages in found]
        assert nearest.find([]) == []


def test_vectors_of_passages_are_kept(tmp_path: Path) -> None:
    encoder, cache = Words(), tmp_path / "cache"
    how: dict[str, Any] = {"provider": "passages", "encoder": encoder, "cache": cache}
    first = provided(tmp_path, **how).find([CHILE])
    assert encoder.count == len(TEXTS) + 1
    assert provided(tmp_path, **how).find([CHILE]) == first
    assert encoder.count == len(TEXTS) + 2
    provided(tmp_path, [*TEXTS, Passage("x", "y")], **how)
    assert encoder.count == 2 * len(TEXTS) + 3
    assert sorted(path.suffix for path in cache.iterdir()) == [".npz", ".npz"]


def test_without_the_encoder_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lmkbc.models.encoder.find_encoder", lambda: None)
    with pytest.raises(InputError, match=r"lmkbc\[encoder\]"):
        provided(tmp_path, provider="passages")


def test_what_was_found_is_told_and_kept(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    subject = SPACE.queries(MINI, "val")[0].subject
    path.write_text(json.dumps({"title": subject, "text": "One two three four."}) + "\n")
    context = {"provider": "titles", "path": str(path), "passages": 2, "words": 2, "overlap": 0}
    recipe = recipe_file(tmp_path / "r.toml", {"component": "chat", "model": "m", "context": context})
    words = ("--edition", "mini", "--split", "val", "--system", recipe, "--dry-run", "--show", 1)
    shown, _ = command.done("predict", *words)
    assert f"Context: {subject}: One two\n{subject}: three four.\n\n" in shown
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
        provider(part("context", provider="titles", path=str(path)), RELATIONS)
