"""A tiny random BERT and a toy relation that it can learn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from lmkbc.models.masked.backbone import Backbone
from lmkbc.relation import EntityType, Relation
from lmkbc.types import Fact

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
NAMES = "ada bob cid dot eve fay gus hal".split()
PLACES = "paris rome oslo lima".split()
CLOZES = ("{subject} lives in {mask}.", "the home of {subject} is {mask}.")


def _tokenizer() -> PreTrainedTokenizerFast:
    words = [*SPECIAL, *NAMES, *PLACES, *"lives in the home of is none new york . a b c d e".split()]
    vocabulary = {word: number for number, word in enumerate(words)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]", model_max_length=40, **names)


def make_backbone(seed: int = 0) -> Backbone:
    tokenizer = _tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
        initializer_range=0.2,
    )
    torch.manual_seed(seed)
    return Backbone("tiny", BertForMaskedLM(config).eval(), tokenizer)


def make_facts() -> list[Fact]:
    return [Fact(name, "home", CLOZES, (PLACES[n % 4],), ("",)) for n, name in enumerate(NAMES)]


@pytest.fixture(autouse=True)
def _single(one_thread: None) -> None:
    """Everything here is small."""


@pytest.fixture
def backbone() -> Backbone:
    return make_backbone()


@pytest.fixture
def another() -> Callable[[int], Backbone]:
    return make_backbone


@pytest.fixture
def facts() -> list[Fact]:
    return make_facts()


@pytest.fixture
def home(facts: list[Fact]) -> Relation:
    return Relation(
        name="home",
        names=("Home",),
        property="P1",
        subject_type=EntityType("person", "Q5"),
        kind="entity",
        object_type=EntityType("place", "Q1"),
        may_be_empty=True,
        definition="d",
        clozes=facts[0].clozes,
        question="{subject}?",
        triple="lives in",
        statement="{subject} {object}",
    )
