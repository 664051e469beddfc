"""Tiny random masked LMs of several families, saved as a user would have them: a directory with safetensors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_masked
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AlbertConfig,
    AutoModelForMaskedLM,
    BertConfig,
    DistilBertConfig,
    ElectraConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

from lmkbc.masked.backbone import load

WORDS = (
    "paris rome berlin lima oslo france italy germany peru norway dead alive person state province city river the of "
    "is in a borders capital died shares with . , new york ice land ##land ##s ##ia no ##r guinea papua yes has region "
    "department"
).split()
SIZES: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
POSITIONS = 40


def word_pieces() -> PreTrainedTokenizerFast:
    return tiny_masked.tokenizer(WORDS, POSITIONS, lowercase=True)


def byte_pairs() -> PreTrainedTokenizerFast:
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*special, *letters])}
    merges = []
    for word in ("Paris", "Rome", "Zürich"):
        coded = pre_tokenizers.ByteLevel(add_prefix_space=True).pre_tokenize_str(word)[0][0]
        for end in range(2, len(coded) + 1):
            merges.append((coded[: end - 1], coded[end - 1]))
            vocabulary.setdefault(coded[:end], len(vocabulary))
    backend = Tokenizer(models.BPE(vocabulary, list(dict.fromkeys(merges))))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>"}
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return PreTrainedTokenizerFast(tokenizer_object=backend, mask_token=mask, model_max_length=POSITIONS, **names)


def sentence_pieces() -> PreTrainedTokenizerFast:
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [(token, 0.0) for token in special] + [("▁" + word, -2.0) for word in ("Paris", "Rome", "is", "in")]
    pieces += [("▁", -4.0), *((chr(c), -6.0) for c in range(33, 127))]
    backend = Tokenizer(models.Unigram(pieces, unk_id=1))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    mask = AddedToken("[MASK]", lstrip=True, special=True)
    return PreTrainedTokenizerFast(tokenizer_object=backend, mask_token=mask, model_max_length=POSITIONS, **names)


def _config(family: str, size: int) -> Any:
    common = {**SIZES, "vocab_size": size, "max_position_embeddings": POSITIONS, "initializer_range": 0.5}
    if family == "roberta":
        return RobertaConfig(**{**common, "max_position_embeddings": POSITIONS + 2}, pad_token_id=1)
    if family == "albert":
        return AlbertConfig(**common, embedding_size=8)
    if family == "distilbert":
        return DistilBertConfig(vocab_size=size, dim=16, n_layers=2, n_heads=2, hidden_dim=32, initializer_range=0.5)
    if family == "electra":
        return ElectraConfig(**common, embedding_size=8)
    return BertConfig(**common)


TOKENIZERS = {"roberta": byte_pairs, "albert": sentence_pieces}


@pytest.fixture(scope="session")
def save_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Save a random model of a family; the same family is saved once."""
    saved: dict[str, Path] = {}

    def save(family: str = "bert") -> Path:
        if family not in saved:
            torch.manual_seed(0)
            tokenizer = TOKENIZERS.get(family, word_pieces)()
            model = AutoModelForMaskedLM.from_config(_config(family, len(tokenizer)))
            for name, weights in model.named_parameters():
                if name.endswith("bias"):
                    torch.nn.init.normal_(weights, std=0.3)
            saved[family] = tmp_path_factory.mktemp(family)
            model.save_pretrained(saved[family])
            tokenizer.save_pretrained(saved[family])
        return saved[family]

    return save


@pytest.fixture(scope="session")
def backbone(save_model: Callable[..., Path]) -> Any:
    """A tiny random BERT with word pieces."""
    return load(save_model(), offline=True)


def probabilities(backbone: Any, text: str) -> torch.Tensor:
    """Return what the model itself gives every token at a text's mask, (vocabulary,)."""
    ids = backbone.tokenizer(text)["input_ids"]
    with torch.inference_mode():
        logits = backbone.model(input_ids=torch.tensor([ids])).logits[0, ids.index(backbone.mask_id)]
    return logits.softmax(-1)
