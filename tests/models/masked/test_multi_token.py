"""Objects of several tokens: the beam against brute force, pseudo-log-likelihood, new tokens, and mapped vectors."""

from __future__ import annotations

import gzip
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.clozes import Clozes
from lmkbc.models.masked.entity_space import Map, mapped, read_vectors
from lmkbc.models.masked.forward import Forward
from lmkbc.models.masked.multi_token import fill_masks, pseudo_log_likelihood
from lmkbc.models.masked.vocabulary import UNSEEN, expand, piece_counts
from lmkbc.models.masked.words import Words

TEMPLATE = "the capital of {subject} is {mask}."


class FewWords(Words):
    """A vocabulary small enough to try everything."""

    plain = {8: "lima", 10: "france", 27: "with"}  # noqa: RUF012
    ordinary = [8, 10, 27, 35]  # noqa: RUF012


def logs(backbone: Backbone, ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return backbone.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)


@pytest.mark.parametrize("order", ["left", "confidence"])
def test_a_wide_beam_is_brute_force(backbone: Backbone, order: str) -> None:
    words = FewWords(backbone.tokenizer)
    inputs = Clozes(backbone).fill(TEMPLATE, ["italy", "norway peru"], spare=1)
    found = list(fill_masks(Forward(backbone), words, inputs, most=2, beam=1000, order=order))
    for ids, texts in zip(inputs, found, strict=True):
        place, mask = ids.index(backbone.mask_id), backbone.mask_id
        wanted: dict[str, float] = {}
        single = logs(backbone, ids)[place]
        for one in words.plain:
            wanted[words.text([one])] = math.exp(single[one])
        both = [*ids[:place], mask, mask, *ids[place + 1 :]]
        start = logs(backbone, both)
        first = order == "left" or max(start[place][i] for i in words.plain) >= max(
            start[place + 1][i] for i in words.ordinary
        )
        for one, two in itertools.product(words.plain, words.ordinary):
            done, left, token, other = (place, place + 1, one, two) if first else (place + 1, place, two, one)
            half = list(both)
            half[done] = token
            total = start[done][token] + logs(backbone, half)[left][other]
            text = words.text([one, two])
            wanted[text] = max(math.exp(total / 2), wanted.get(text, 0.0))
        assert texts == pytest.approx(wanted, rel=1e-4)


def test_a_narrow_beam_keeps_the_greedy_path(backbone: Backbone) -> None:
    words = Words(backbone.tokenizer)
    inputs = Clozes(backbone).fill(TEMPLATE, ["italy"], spare=2)
    (greedy,) = fill_masks(Forward(backbone), words, inputs, most=3, beam=1)
    (wide,) = fill_masks(Forward(backbone), words, inputs, most=3, beam=4)
    assert len(greedy) <= 3
    assert max(wide.values()) >= max(greedy.values()) - 1e-6
    assert all(0 < score <= 1 for score in wide.values())


def test_pseudo_log_likelihood_is_the_mean_over_tokens(backbone: Backbone) -> None:
    words, mask = Words(backbone.tokenizer), backbone.mask_id
    names = ["rome", "iceland", "papua new guinea"]
    candidates = [words.ids(name) for name in names]
    inputs = Clozes(backbone).fill(TEMPLATE, ["italy", "peru"], spare=2)
    found = pseudo_log_likelihood(Forward(backbone), inputs, candidates)
    for row, ids in enumerate(inputs):
        place = ids.index(mask)
        for column, candidate in enumerate(candidates):
            total = 0.0
            for offset, token in enumerate(candidate):
                whole = [*ids[:place], *candidate, *ids[place + 1 :]]
                whole[place + offset] = mask
                total += float(logs(backbone, whole)[place + offset][token])
            assert float(found[row, column]) == pytest.approx(total / len(candidate), rel=1e-4)


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "distilbert"])
def test_new_tokens_are_composed(save_model: Callable[..., Path], family: str) -> None:
    backbone = load(save_model(family), offline=True)
    old = Words(backbone.tokenizer)
    names = ["New Guinea", "Paris", "Norland"]
    wide = expand(backbone, names)
    words, model = Words(wide.tokenizer), wide.model
    index = words.single("New Guinea")
    assert index is not None
    assert words.plain[index] == "New Guinea"
    pieces = old.ids("New Guinea")
    for before, after in zip(tables(backbone), tables(wide), strict=True):
        torch.testing.assert_close(after[index], before[pieces].mean(dim=0))
        torch.testing.assert_close(after[: len(before)], before)
    assert words.single("Paris") == old.single("Paris")
    assert len(wide.tokenizer) == len(backbone.tokenizer) + 2
    (ids,) = Clozes(wide).fill("{subject} is {mask}.", ["New Guinea"])
    assert index in ids
    (logits,) = (logits for _, logits in Forward(wide).logits([ids]))
    assert logits.shape[-1] == len(model.get_output_embeddings().weight)


def tables(backbone: Backbone) -> list[torch.Tensor]:
    decoder: Any = backbone.model.get_output_embeddings()
    every = [backbone.model.get_input_embeddings().weight, decoder.weight, decoder.bias]
    return [table.detach() for table in every]


def test_rare_pieces_weigh_more(backbone: Backbone) -> None:
    words = Words(backbone.tokenizer)
    new, guinea = words.ids("new guinea")
    wide = expand(backbone, ["new guinea"], "frequency", {new: 256, guinea: 1})
    before, after = tables(backbone)[0], tables(wide)[0]
    torch.testing.assert_close(after[-1], (0.5 * before[new] + before[guinea]) / 1.5)
    unseen = expand(backbone, ["new guinea"], "frequency", {new: UNSEEN})
    torch.testing.assert_close(tables(unseen)[0][-1], before[[new, guinea]].mean(dim=0))
    assert piece_counts(backbone, ["new guinea", "new york"])[new] == 2


def test_given_vectors_replace_the_composed(backbone: Backbone) -> None:
    vector = np.arange(16, dtype=np.float64)
    wide = expand(backbone, ["new guinea"], vectors={"new guinea": vector})
    assert tables(wide)[0][-1].tolist() == vector.tolist()
    assert float(tables(wide)[2][-1]) == pytest.approx(
        float(tables(backbone)[2][Words(backbone.tokenizer).ids("new guinea")].mean())
    )


@given(st.integers(2, 6), st.integers(0, 3), st.floats(0.1, 10), st.integers(0, 2**31))
def test_an_orthogonal_map_recovers_a_rotation(size: int, more: int, scale: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    rotation = np.linalg.qr(random.normal(size=(size + more, size + more)))[0][:size]
    source = random.normal(size=(30, size))
    target = scale * source @ rotation + random.normal(size=size + more)
    onto = Map.fit(source, target)
    np.testing.assert_allclose(onto(source), target, atol=1e-8)
    np.testing.assert_allclose(onto.matrix, scale * rotation, atol=1e-8)


def test_a_linear_map_recovers_any_matrix() -> None:
    random = np.random.default_rng(0)
    source, matrix = random.normal(size=(200, 5)), random.normal(size=(5, 3))
    onto = Map.fit(source, source @ matrix + 2.0, "linear", ridge=1e-9)
    np.testing.assert_allclose(onto.matrix, matrix, atol=1e-6)


def test_vectors_are_read_and_mapped(backbone: Backbone, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt.gz"
    lines = ["4 2", "paris 1 0", "rome 0 1", "ENTITY/New_Guinea 1 1", "new guinea 9 9", "other 5 5"]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")
    assert {name: vector.tolist() for name, vector in read_vectors(path, ["paris", "New Guinea"]).items()} == {
        "paris": [1, 0],
        "New Guinea": [1, 1],
    }
    found = mapped(path, backbone, ["New Guinea", "Nowhere"])
    assert {name: vector.shape for name, vector in found.items()} == {"New Guinea": (16,)}


@pytest.mark.parametrize(
    ("text", "reason"),
    [("paris 1 0\n", "line 1: needs the number"), ("1 2\nparis 1 x\n", "line 2"), ("1 2\nparis 1 nan\n", "line 2")],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_vectors(path, ["paris"])
