"""Both loaders take sound models saved as safetensors, and refuse everything else in one sentence with its reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from lmkbc.errors import InputError
from lmkbc.models.local import checkpoint
from lmkbc.models.masked import backbone

LOADERS: dict[str, Callable[..., Any]] = {"causal": checkpoint.load, "masked": backbone.load}
SMALL: dict[str, Any] = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    tiny_masked.save(folder / "masked", ["rome"])
    tiny_causal.save(folder / "causal")
    return folder


@pytest.fixture(params=LOADERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def copied(models: Path, kind: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(models / kind, tmp_path / "model"))


def refusal(kind: str, model: Path | str, **how: Any) -> str:
    with pytest.raises(InputError) as caught:
        LOADERS[kind](str(model), offline=True, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def configure(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def pickled(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")


def torn(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    own = {name: weight for name, weight in weights.items() if "layer.1" not in name and "layers.1" not in name}
    save_file(own, model / "model.safetensors", metadata={"format": "pt"})


def cut(model: Path) -> None:
    content = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (pickled, "pytorch_model.bin, which is pickled"),
        (torn, "weights"),
        (cut, "fetch or save its files again"),
        (lambda model: (model / "model.safetensors").write_bytes(b""), "fetch or save its files again"),
        (lambda model: (model / "model.safetensors").write_bytes(b"\xff" * 200), "fetch or save its files again"),
        (lambda model: (model / "model.safetensors").unlink(), "no weights"),
        (lambda model: (model / "config.json").unlink(), "holds no config.json, so it is no model"),
        (shutil.rmtree, "is no model directory"),
    ],
)
def test_a_spoilt_directory_is_refused(kind: str, copied: Path, spoil: Callable[[Path], object], said: str) -> None:
    spoil(copied)
    assert said in refusal(kind, copied)


@pytest.mark.parametrize("name", ["nowhere/model", "no-such-model-anywhere"])
def test_a_name_that_leads_nowhere_is_told(kind: str, name: str) -> None:
    assert "not on this machine; run once without --offline" in refusal(kind, name)


def test_code_of_a_model_runs_only_where_it_may(
    kind: str, copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}[kind]
    configure(copied, model_type="own", auto_map={"AutoConfig": "own.Own", own: "own.OwnModel"})
    (copied / "own.py").write_text("raise SystemExit('ran')\n")
    assert "trust_remote_code = true" in refusal(kind, copied)
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    with pytest.raises(SystemExit, match="ran"):
        LOADERS[kind](str(copied), offline=True, trust_remote_code=True)


def test_models_of_another_kind_are_refused(models: Path, tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=60, n_embd=8, n_layer=1, n_head=2)).save_pretrained(tmp_path / "gpt2")
    assert "is a gpt2 model, which fills no masks" in refusal("masked", tmp_path / "gpt2")
    assert "BertForMaskedLM, which does not continue a text" in refusal("causal", models / "masked")
    T5ForConditionalGeneration(
        T5Config(vocab_size=300, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0)
    ).save_pretrained(tmp_path / "t5")
    assert "encoder-decoder" in refusal("causal", tmp_path / "t5")
    decoder = Path(shutil.copytree(models / "masked", tmp_path / "decoder"))
    configure(decoder, is_decoder=True)
    assert "reads left to right" in refusal("masked", decoder)


@pytest.mark.parametrize(
    ("change", "said"), [({"hidden_size": 64}, "other shapes"), ({"vocab_size": 20}, "tokens, its model 20")]
)
def test_files_of_two_masked_models_are_told_apart(
    models: Path, tmp_path: Path, change: dict[str, int], said: str
) -> None:
    model = Path(shutil.copytree(models / "masked", tmp_path / "model"))
    configure(model, **change)
    if "vocab_size" in change:
        BertForMaskedLM(BertConfig.from_pretrained(model)).save_pretrained(model)
    assert said in refusal("masked", model)


@pytest.mark.parametrize("device", ["cuda", "gpu please"])
def test_a_device_that_is_not_here_is_refused(
    kind: str, models: Path, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert "use cpu" in refusal(kind, models / kind, device=device)


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["[]", "null", "1", '"x"', "{", '{"added_tokens": 1}'])
def test_damaged_settings_are_loaded_or_refused(kind: str, copied: Path, file: str, content: str) -> None:
    (copied / file).write_text(content)
    try:
        assert LOADERS[kind](str(copied), offline=True, device="cpu")
    except InputError as error:  # any other error is a defect
        assert copied.name in str(error)  # noqa: PT017
