"""Loading refuses, with the reason, whatever cannot safely fill a mask."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_masked
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, BertModel, GPT2Config, GPT2LMHeadModel

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import load


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


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no directory .*nowhere"):
        load(tmp_path / "nowhere", offline=True)


@pytest.mark.parametrize("share", [0, 2])
def test_a_download_that_broke_off_is_explained(copied: Path, share: int) -> None:
    whole = (copied / "model.safetensors").read_bytes()
    (copied / "model.safetensors").write_bytes(whole[: len(whole) // share] if share else b"junk")
    with pytest.raises(InputError, match=r"cannot be loaded: .*; fetch or save its files again"):
        load(copied, offline=True)


@pytest.mark.parametrize(
    ("change", "reason"), [({"hidden_size": 32}, "other shapes"), ({"vocab_size": 20}, "98 tokens, its model 20")]
)
def test_files_of_two_models_are_told_apart(copied: Path, change: dict[str, int], reason: str) -> None:
    configure(copied, **change)
    if "vocab_size" in change:
        BertForMaskedLM(BertConfig.from_pretrained(copied)).save_pretrained(copied)
    with pytest.raises(InputError, match=f"do not belong together.*{reason}"):
        load(copied, offline=True)


@pytest.mark.parametrize("device", ["cuda", "gpu please"])
def test_a_device_that_is_not_here_is_refused(copied: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match=r"device is .*: use cpu|no CUDA device"):
        load(copied, offline=True, device=device)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["[]", "null", "1", '"x"', "{", '{"added_tokens": 1}'])
def test_damaged_settings_are_loaded_or_refused(tmp_path: Path, file: str, content: str) -> None:
    folder = tiny_masked.save(tmp_path / "model", ["rome"])
    (folder / file).write_text(content)
    try:
        assert load(folder, offline=True, device="cpu")
    except InputError as error:  # any other error is a defect
        assert folder.name in str(error)  # noqa: PT017
