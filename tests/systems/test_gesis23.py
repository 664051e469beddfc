"""Entities as new tokens, whose vectors are mapped from a file of Wikipedia2Vec's."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from opened import part
from tiny_families import save_model

from lmkbc import InputError
from lmkbc.masked.backbone import load
from lmkbc.masked.forward import Forward
from lmkbc.masked.vocabulary import Words
from lmkbc.train import prompt_vectors

__all__ = ["save_model"]


@pytest.fixture
def model(save_model: Callable[..., Path]) -> Any:
    """A model with a soft prompt."""
    folder = save_model()
    backbone = load(folder, offline=True)
    prompts = {"home": prompt_vectors.random_prompt(backbone, 2)}
    (folder / "soft_prompts.safetensors").write_bytes(prompt_vectors.to_bytes(prompts, "model"))
    return backbone


def prepared(backbone: Any, path: Path, names: Sequence[str]) -> Any:
    probe = part("probe", component="gesis23/probe").opened([path])
    wide: Any = probe.prepared(backbone, names)
    return wide


def tables(backbone: Any) -> tuple[Any, Any]:
    """The input vectors and the output biases."""
    model: Any = backbone.model
    inputs, outputs = model.get_input_embeddings().weight, model.get_output_embeddings().bias
    return inputs.detach().double().numpy(), outputs.detach().double().numpy()


def test_vectors_are_mapped_by_the_words_that_both_know_and_an_entity_s_comes_first(model: Any, tmp_path: Path) -> None:
    random, (own, biases) = np.random.default_rng(0), tables(model)
    words = Words(model.tokenizer)
    matrix, _ = np.linalg.qr(random.normal(size=(own.shape[1], own.shape[1])))
    wanted = random.normal(size=own.shape[1])
    theirs = {name: own[place] @ matrix + 2.0 for place, name in words.plain.items()}
    theirs |= {"ENTITY/new_guinea": wanted @ matrix + 2.0, "new guinea": wanted}
    lines = [f"{name} {' '.join(map(str, vector))}" for name, vector in theirs.items()]
    with gzip.open(tmp_path / "vectors.txt.gz", "wt") as file:
        file.write("\n".join([f"{len(lines)} {len(wanted)}", *lines]) + "\n")
    wide = prepared(model, tmp_path / "vectors.txt.gz", ["new guinea", "new rome", "rome"])
    row, other = (Words(wide.tokenizer).single(name) for name in ("new guinea", "new rome"))
    now, its_biases = tables(wide)
    np.testing.assert_allclose(now[row], wanted, atol=0.05)
    np.testing.assert_allclose(now[other], own[words.ids("new rome")].mean(axis=0), rtol=1e-5)  # it is in no file
    np.testing.assert_allclose(now[: len(own)], own)
    np.testing.assert_allclose(its_biases[row], biases[words.ids("new guinea")].mean(), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("paris 1 0\n", "line 1: needs the number"),
        ("1 2\nparis 1 x\n", "line 2"),
        ("1 2\nparis 1 nan\n", "line 2"),
        ("1 2\nelsewhere 1 2\n", "share 0 words"),
    ],
)
def test_a_malformed_line_is_named(model: Any, tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=reason):
        prepared(model, path, ["paris"])


def test_the_nearest_of_the_listed_entities_has_the_largest_share(model: Any) -> None:
    probe = part("probe", component="gesis23/probe")
    ids = [list(model.tokenizer("rome is [MASK].")["input_ids"])]
    ((_, logits),) = probe.forward(model).logits(ids)
    ((_, products),) = Forward(model).logits(ids)
    decoder: Any = model.model.get_output_embeddings()
    rows, bias = decoder.weight.detach(), decoder.bias.detach()
    wanted = rows.square().sum(-1) - 2 * (products - bias)  # |h - v|^2 - |h - w|^2 = |v|^2 - |w|^2 - 2 h (v - w)
    squares = logits.square()
    torch.testing.assert_close(squares - squares[..., :1], wanted - wanted[..., :1], rtol=1e-3, atol=1e-3)
    assert (logits < 0).all()
    listed = logits[0, 0].topk(5).indices
    ((_, shares),) = probe.shares(probe.forward(model), ids, listed)
    assert float(shares.sum()) == pytest.approx(1.0)
    assert shares.argmax() == 0
