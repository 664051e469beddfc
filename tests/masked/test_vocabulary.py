"""Objects of several tokens: new tokens, composed of their pieces or mapped from vectors of elsewhere."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmkbc import InputError
from lmkbc.masked.backbone import Clozes, load
from lmkbc.masked.forward import Forward
from lmkbc.masked.vocabulary import Words, expand, mapped, piece_counts, read_vectors


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


def tables(backbone: Any) -> list[torch.Tensor]:
    decoder: Any = backbone.model.get_output_embeddings()
    every = [backbone.model.get_input_embeddings().weight, decoder.weight, decoder.bias]
    return [table.detach() for table in every]


def test_rare_pieces_weigh_more(backbone: Any) -> None:
    words = Words(backbone.tokenizer)
    new, guinea = words.ids("new guinea")
    wide = expand(backbone, ["new guinea"], "frequency", {new: 256, guinea: 1})
    before, after = tables(backbone)[0], tables(wide)[0]
    torch.testing.assert_close(after[-1], (0.5 * before[new] + before[guinea]) / 1.5)
    unseen = expand(backbone, ["new guinea"], "frequency", {new: 1000000})
    torch.testing.assert_close(tables(unseen)[0][-1], before[[new, guinea]].mean(dim=0))
    assert piece_counts(backbone, ["new guinea", "new york"])[new] == 2


def test_given_vectors_replace_the_composed(backbone: Any) -> None:
    vector = np.arange(16, dtype=np.float64)
    wide = expand(backbone, ["new guinea"], vectors={"new guinea": vector})
    assert tables(wide)[0][-1].tolist() == vector.tolist()
    assert float(tables(wide)[2][-1]) == pytest.approx(
        float(tables(backbone)[2][Words(backbone.tokenizer).ids("new guinea")].mean())
    )


def test_vectors_are_read_and_mapped(backbone: Any, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt.gz"
    lines = ["4 2", "paris 1 0", "rome 0 1", "ENTITY/New_Guinea 1 1", "new guinea 9 9", "other 5 5"]
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")
    assert {name: vector.tolist() for name, vector in read_vectors(path, ["paris", "New Guinea"]).items()} == {
        "paris": [1, 0],
        "New Guinea": [1, 1],
    }


def test_vectors_are_mapped_by_the_words_that_both_know(backbone: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words, own = Words(backbone.tokenizer).plain, tables(backbone)[0].double().numpy()
    matrix, _ = np.linalg.qr(random.normal(size=(own.shape[1], own.shape[1])))
    wanted = random.normal(size=own.shape[1])
    theirs = {name: own[place] @ matrix + 2.0 for place, name in words.items()}
    theirs["ENTITY/New_Guinea"] = wanted @ matrix + 2.0
    lines = [f"{name} {' '.join(map(str, vector))}" for name, vector in theirs.items()]
    (tmp_path / "vectors.txt").write_text("\n".join([f"{len(lines)} {len(wanted)}", *lines]) + "\n")
    (found,) = mapped(tmp_path / "vectors.txt", backbone, ["New Guinea", "Nowhere"]).values()
    np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("paris 1 0\n", "line 1: needs the number"), ("1 2\nparis 1 x\n", "line 2"), ("1 2\nparis 1 nan\n", "line 2")],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        read_vectors(path, ["paris"])
