"""Templates, subjects and vocabularies of every sub-word scheme."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import InputError
from lmkbc.masked.backbone import Clozes, load
from lmkbc.masked.vocabulary import Words

TEMPLATE = "The capital of {subject} is {mask}."


@pytest.mark.parametrize("family", ["bert", "roberta", "albert"])
@pytest.mark.parametrize("subject", ["France", "[MASK]", "<mask> [SEP] </s>", "{mask}", "", "Zürich\n東京 🎉"])
def test_one_mask_whatever_the_subject(save_model: Callable[..., Path], family: str, subject: str) -> None:
    backbone = load(save_model(family), offline=True)
    (ids,) = Clozes(backbone).fill(TEMPLATE, [subject])
    special = [token for token in ids if token in backbone.tokenizer.all_special_ids]
    unknown = backbone.tokenizer.unk_token_id
    assert ids.count(backbone.mask_id) == 1
    assert len([token for token in special if token != unknown]) == 3


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{subject} is.", "each exactly once"),
        ("{subject} is {mask} or {mask}.", "each exactly once"),
        ("The capital is {mask}.", "each exactly once"),
        ("{subject} is {mask} {object}.", "each exactly once"),
        ("{subject} is {mask", "malformed"),
        ("{subject} is {mask} [MASK].", "holds the token"),
    ],
)
def test_a_wrong_template_is_refused(backbone: Any, template: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Clozes(backbone).fill(template, ["France"])


def test_a_subject_of_600_tokens_is_cut_and_counted(backbone: Any) -> None:
    clozes = Clozes(backbone)
    long, short = clozes.fill(TEMPLATE, ["rome " * 600, "france"])
    assert len(long) == backbone.longest
    assert long.count(backbone.mask_id) == 1
    assert long[-3:] == short[-3:]
    assert clozes.cut == 1


def test_a_template_that_leaves_no_room_is_refused(backbone: Any) -> None:
    with pytest.raises(InputError, match="longer than the 40 tokens"):
        Clozes(backbone).fill("paris " * 50 + "{subject} {mask}", ["France"])


@given(st.text(max_size=60))
def test_any_subject_fits(backbone: Any, subject: str) -> None:
    (ids,) = Clozes(backbone).fill(TEMPLATE, [subject])
    assert ids.count(backbone.mask_id) == 1
    assert len(ids) <= backbone.longest


def test_words_of_word_pieces(backbone: Any) -> None:
    words = Words(backbone.tokenizer)
    plain = set(words.plain.values())
    assert {"paris", "new", "x"} <= plain
    assert not plain & {"[MASK]", "##land", "land##", ".", ","}
    assert words.single("Paris") is not None
    assert words.single("Norland") is None
    assert words.single("東") is None
    assert words.text(words.ids("iceland")) == "iceland"


@pytest.mark.parametrize(("family", "mark"), [("roberta", "Ġ"), ("albert", "▁")])
def test_words_of_other_schemes(save_model: Callable[..., Path], family: str, mark: str) -> None:
    tokenizer = load(save_model(family), offline=True).tokenizer
    words = Words(tokenizer)
    assert words.mark == mark
    assert {"Paris", "Rome"} <= set(words.plain.values())
    assert not any(mark in word or word.startswith(("<", "[")) for word in words.plain.values())
    index = words.single("Paris")
    assert index is not None
    assert words.plain[index] == "Paris"
    assert words.text([index]) == "Paris"


def test_bytes_become_letters(save_model: Callable[..., Path]) -> None:
    assert "Zürich" in Words(load(save_model("roberta"), offline=True).tokenizer).plain.values()
