"""Causal models are loaded from directories, with adapters, precision and four bits; their identity tells all that."""

import json
from pathlib import Path

import pytest
import tiny_causal
import torch
from transformers import LlamaConfig

from lmkbc import InputError
from lmkbc.local.checkpoint import identity, load
from lmkbc.local.decode import Decoding
from lmkbc.local.model import CausalModel


def test_identity_changes_with_the_weights(tmp_path: Path) -> None:
    first, again, other = (
        tiny_causal.save(tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    names = [identity(str(path), load(str(path))[0]) for path in (first, again, other)]
    assert names[0] == names[1] != names[2]


def test_identity_tells_precision_and_an_adapter_s_base(tmp_path: Path) -> None:
    base, adapter = tiny_causal.save(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    model = load(str(base))[0]
    first = identity(str(adapter), model)
    assert identity(str(adapter), model.bfloat16()) != first
    tiny_causal.save(base, seed=1)
    assert identity(str(adapter), load(str(base))[0]) != first
    far = identity("owner/model", model), identity("owner/model", load(str(base))[0])
    assert len(set(far)) == 2


@pytest.mark.parametrize(
    ("config", "said"),
    [("{", "cannot be read"), ("[]", "cannot be read"), ("{}", "missing"), (None, "does not fit its base")],
)
def test_broken_adapters_are_refused(tmp_path: Path, config: str | None, said: str) -> None:
    pytest.importorskip("peft", reason="peft is not installed: install lmkbc[lora]")
    base, adapter = tiny_causal.save(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    fine = {"base_model_name_or_path": str(base), "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 2}
    (adapter / "adapter_config.json").write_text(config or json.dumps(fine | {"target_modules": ["q_proj"]}))
    (adapter / "adapter_model.safetensors").write_bytes(b"{}" * 9)
    with pytest.raises(InputError, match=said):
        load(str(adapter))


def test_four_bits_need_what_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.local.checkpoint.find_spec", lambda name: None)
    with pytest.raises(InputError, match="quantise = '4bit' needs bitsandbytes and accelerate: install"):
        load(str(tiny_causal.save(tmp_path)), quantise="4bit")


def test_four_bits(tmp_path: Path) -> None:
    for name in ("bitsandbytes", "accelerate"):
        pytest.importorskip(name, reason=f"four-bit weights need {name}")
    wide = LlamaConfig(
        vocab_size=tiny_causal.SIZE, hidden_size=128, intermediate_size=256, num_hidden_layers=1, num_attention_heads=4
    )
    tiny_causal.save(tmp_path, "wide", config=wide)
    plain, packed = (load(str(tmp_path), quantise=how)[0] for how in ("none", "4bit"))  # type: ignore[arg-type]
    assert packed.get_memory_footprint() < plain.get_memory_footprint()
    assert identity(str(tmp_path), packed) != identity(str(tmp_path), plain)
    told = dict(CausalModel(packed, tiny_causal.tokenizer()).complete(["Peru"], Decoding(max_tokens=5)))
    assert told[0][0].text


def test_an_unknown_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dtype is 'float99'"):
        load(str(tiny_causal.save(tmp_path)), dtype="float99")


@pytest.mark.parametrize(("native", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_native_is_bf16_only_where_the_hardware_multiplies_it(
    native: bool, expected: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.local.checkpoint.multiplies_bf16", lambda _: native)
    assert load(str(tiny_causal.save(tmp_path)), dtype="native")[0].dtype == expected
