"""Loading refuses, with the reason, whatever cannot safely fill a mask."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

from lmkbc.errors import InputError
from lmkbc.generate.masked.backbone import load


@pytest.fixture
def copied(save_model: Callable[..., Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(save_model(), tmp_path / "model"))


def configure(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_saved_model_comes_back(save_model: Callable[..., Path]) -> None:
    backbone = load(save_model(), offline=True)
    assert backbone.tokenizer.convert_ids_to_tokens(backbone.mask_id) == "[MASK]"
    assert (backbone.dtype, backbone.device.type, backbone.longest) == (torch.float32, "cpu", 40)
    assert not backbone.model.training


@pytest.mark.parametrize("family", ["roberta", "albert", "distilbert", "electra"])
def test_every_family_reads_its_longest_input(save_model: Callable[..., Path], family: str) -> None:
    backbone = load(save_model(family), offline=True)
    assert backbone.longest == 40
    with torch.inference_mode():
        backbone.model(input_ids=torch.full((1, backbone.longest), 10))


def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere/model cannot be loaded.*without --offline"):
        load("nowhere/model", offline=True)


def test_a_causal_model_is_refused(copied: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=60, n_embd=8, n_layer=1, n_head=2)).save_pretrained(copied)
    with pytest.raises(InputError, match="is a gpt2 model, which fills no masks"):
        load(copied, offline=True)


def test_a_decoder_is_refused(copied: Path) -> None:
    configure(copied, is_decoder=True)
    with pytest.raises(InputError, match="reads left to right"):
        load(copied, offline=True)


def test_a_pickle_is_refused_unread(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(InputError, match="only a pickle are refused"):
        load(copied, offline=True)


def test_remote_code_is_refused_unless_wanted(copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(copied, model_type="mine", auto_map={"AutoConfig": "mine.Config", "AutoModelForMaskedLM": "mine.Model"})
    (copied / "mine.py").write_text("raise SystemExit('ran')\n")
    with pytest.raises(InputError, match="wants to run code of its own repository"):
        load(copied, offline=True)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    with pytest.raises(SystemExit, match="ran"):
        load(copied, offline=True, trust_remote_code=True)


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


def test_torn_weights_are_explained(copied: Path) -> None:
    weights = load_file(copied / "model.safetensors")
    save_file({name: weight for name, weight in weights.items() if "layer.1" not in name}, copied / "model.safetensors")
    with pytest.raises(InputError, match="holds no weights for"):
        load(copied, offline=True)
