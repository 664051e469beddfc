"""A masked model comes back as it was saved; one without a head or a mask is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from lmkbc import InputError
from lmkbc.masked.backbone import load


@pytest.fixture
def copied(save_model: Callable[..., Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(save_model(), tmp_path / "model"))


@pytest.mark.parametrize("family", ["roberta", "albert", "distilbert", "electra"])
def test_every_family_reads_its_longest_input(save_model: Callable[..., Path], family: str) -> None:
    backbone = load(save_model(family), offline=True)
    assert backbone.longest == 40
    with torch.inference_mode():
        backbone.model(input_ids=torch.full((1, backbone.longest), 10))


def test_an_encoder_without_a_head_needs_training_first(copied: Path) -> None:
    config = BertConfig.from_json_file(copied / "config.json")
    BertModel(config).save_pretrained(copied)
    with pytest.raises(InputError, match="no trained masked-LM head"):
        load(copied, offline=True)
    backbone = load(copied, offline=True, new_head=True)
    decoder = backbone.model.get_output_embeddings()
    assert decoder.weight.data_ptr() == backbone.model.get_input_embeddings().weight.data_ptr()


def test_a_tokenizer_without_a_mask_is_refused(copied: Path) -> None:
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        if (path := copied / name).is_file():
            settings = json.loads(path.read_text())
            settings.pop("mask_token", None)
            path.write_text(json.dumps(settings))
    with pytest.raises(InputError, match="has no mask token"):
        load(copied, offline=True)
