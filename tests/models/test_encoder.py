"""The sentence encoder: found without a network, checked, and free of the padded tokenizer's trap."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lmkbc import LmkbcError
from lmkbc.models import encoder
from lmkbc.models.encoder import Encoder, find_encoder
from lmkbc.models.identity import file_digest
from lmkbc.models.located import ENCODER, Packaged

pytestmark = pytest.mark.floats


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of the real one's shape in miniature, with a tokenizer that pads everything to 128 tokens."""
    import torch
    from safetensors.torch import save_file
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import BertConfig, BertModel

    directory = tmp_path_factory.mktemp("small")
    torch.manual_seed(0)
    config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    (directory / "config.json").write_text(json.dumps(config.to_dict()))
    save_file(BertModel(config).state_dict(), directory / "model.safetensors")
    vocabulary = {"[PAD]": 0, "[UNK]": 1} | {letter: index for index, letter in enumerate("abcdefghijklmnopqrst", 2)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(128)
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


def known(directory: Path) -> Packaged:
    return replace(ENCODER, sha256=file_digest(str(directory / "model.safetensors")))


def test_wrong_weights_are_refused_by_name(small: Path) -> None:
    with pytest.raises(LmkbcError, match=r"model\.safetensors has SHA-256"):
        Encoder(small)


def test_a_text_alone_has_the_vector_it_has_in_a_batch(small: Path) -> None:
    found = Encoder(small, known(small))
    texts = ["a", "b c d e f g h", "a b", "t s r q p o n m l k j i h g f e d c b a " * 8]
    together = found.encode(texts)
    assert together.shape == (4, 16)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(found.encode([text])[0], vector, atol=1e-5)


def test_no_encoder_is_said_and_is_no_error(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(
        encoder,
        "ENCODER",
        replace(ENCODER, files=("no_such_package/model/model.safetensors",), hub="nobody/no-such-model"),
    )
    with caplog.at_level(logging.INFO, logger="lmkbc"):
        assert find_encoder() is None
    assert "no sentence encoder" in caplog.text


def test_the_real_encoder_knows_what_is_alike() -> None:
    found = find_encoder()
    if found is None:
        pytest.skip("the sentence encoder is absent: install lmkbc[encoder]")
    river, stream, violin = found.encode(["the river Rhine", "a stream in Germany", "a violin"])
    assert river @ stream > river @ violin + 0.1
