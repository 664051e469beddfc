"""Objects of several tokens: new tokens, composed of their pieces or mapped from vectors of elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lmkbc.masked.backbone import Clozes, load
from lmkbc.masked.forward import Forward
from lmkbc.masked.vocabulary import Words, expand, piece_counts


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
    wide = expand(backbone, ["new guinea"], {new: 256, guinea: 1})
    before, after = tables(backbone)[0], tables(wide)[0]
    torch.testing.assert_close(after[-1], (0.5 * before[new] + before[guinea]) / 1.5)
    unseen = expand(backbone, ["new guinea"], {new: 1000000})
    torch.testing.assert_close(tables(unseen)[0][-1], before[[new, guinea]].mean(dim=0))
    assert piece_counts(backbone, ["new guinea", "new york"])[new] == 2
