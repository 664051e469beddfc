"""A tiny random BERT and a toy relation that it can learn."""

from collections.abc import Callable

import pytest
import tiny_masked
import torch
from small import small_relation
from transformers import BertConfig, BertForMaskedLM

from lmkbc import EntityType, Relation
from lmkbc.masked.backbone import Backbone
from lmkbc.types import Fact

NAMES = "ada bob cid dot eve fay gus hal".split()
PLACES = "paris rome oslo lima".split()
CLOZES = ("{subject} lives in {mask}.", "the home of {subject} is {mask}.")


def make_backbone(seed: int = 0) -> Backbone:
    words = [*NAMES, *PLACES, *"lives in the home of is none new york".split()]
    tokenizer = tiny_masked.tokenizer(words, 40, lowercase=True)
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
    types = {"subject_type": EntityType("person", "Q5"), "object_type": EntityType("place", "Q1")}
    return small_relation("home", names=("Home",), clozes=facts[0].clozes, triple="lives in", **types)
