"""Only causal models saved as safetensors are loaded, and everything else is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_causal
import torch
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, T5Config, T5ForConditionalGeneration

from lmkbc.errors import InputError
from lmkbc.models.causal.checkpoint import identity, load
from lmkbc.models.causal.decode import Decoding
from lmkbc.models.causal.model import CausalModel


def saved(directory: Path, kind: str = "llama", seed: int = 0) -> Path:
    tiny_causal.model(kind, seed).save_pretrained(directory)
    tiny_causal.tokenizer().save_pretrained(directory)
    return directory


def test_a_directory_is_loaded_and_answers(tmp_path: Path) -> None:
    model, tokenizer = load(str(saved(tmp_path)))
    assert (model.dtype, model.training) == (torch.float32, False)
    told = dict(CausalModel(model, tokenizer).complete(["Peru"], Decoding(max_tokens=5)))
    here = dict(
        CausalModel(tiny_causal.model("llama"), tiny_causal.tokenizer()).complete(["Peru"], Decoding(max_tokens=5))
    )
    assert told == here


def test_identity_changes_with_the_weights(tmp_path: Path) -> None:
    first, again, other = (saved(tmp_path / name, seed=seed) for name, seed in (("a", 0), ("b", 0), ("c", 1)))
    names = [identity(str(path), load(str(path))[0]) for path in (first, again, other)]
    assert names[0] == names[1] != names[2]


def test_identity_tells_precision_and_an_adapter_s_base(tmp_path: Path) -> None:
    base, adapter = saved(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    model = load(str(base))[0]
    first = identity(str(adapter), model)
    assert identity(str(adapter), model.bfloat16()) != first
    saved(base, seed=1)
    assert identity(str(adapter), load(str(base))[0]) != first
    far = identity("owner/model", model), identity("owner/model", load(str(base))[0])
    assert len(set(far)) == 2


@pytest.mark.parametrize(
    ("config", "said"),
    [("{", "cannot be read"), ("[]", "cannot be read"), ("{}", "missing"), (None, "does not fit its base")],
)
def test_broken_adapters_are_refused(tmp_path: Path, config: str | None, said: str) -> None:
    pytest.importorskip("peft", reason="peft is not installed: install lmkbc[lora]")
    base, adapter = saved(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    fine = {"base_model_name_or_path": str(base), "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 2}
    (adapter / "adapter_config.json").write_text(config or json.dumps(fine | {"target_modules": ["q_proj"]}))
    (adapter / "adapter_model.safetensors").write_bytes(b"{}" * 9)
    with pytest.raises(InputError, match=said):
        load(str(adapter))


def test_four_bits_need_what_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.models.causal.checkpoint.find_spec", lambda name: None)
    with pytest.raises(InputError, match="quantise = '4bit' needs bitsandbytes and accelerate: install"):
        load(str(saved(tmp_path)), quantise="4bit")


def test_four_bits(tmp_path: Path) -> None:
    for name in ("bitsandbytes", "accelerate"):
        pytest.importorskip(name, reason=f"four-bit weights need {name}")
    wide = LlamaConfig(
        vocab_size=tiny_causal.SIZE, hidden_size=128, intermediate_size=256, num_hidden_layers=1, num_attention_heads=4
    )
    tiny_causal.model("wide", config=wide).save_pretrained(tmp_path)
    tiny_causal.tokenizer().save_pretrained(tmp_path)
    plain, packed = (load(str(tmp_path), quantise=how)[0] for how in ("none", "4bit"))  # type: ignore[arg-type]
    assert packed.get_memory_footprint() < plain.get_memory_footprint()
    assert identity(str(tmp_path), packed) != identity(str(tmp_path), plain)
    told = dict(CausalModel(packed, tiny_causal.tokenizer()).complete(["Peru"], Decoding(max_tokens=5)))
    assert told[0][0].text


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"pytorch_model\.bin, which is pickled.*safetensors"):
        load(str(tmp_path))


@pytest.mark.parametrize("content", [None, b"", b"{}" * 9, b"\xff" * 200])
def test_broken_weights_and_none_are_refused(tmp_path: Path, content: bytes | None) -> None:
    saved(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    if content is not None:
        (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"safetensors|no weights"):
        load(str(tmp_path))


def test_a_checkpoint_without_all_weights_is_refused(tmp_path: Path) -> None:
    tiny_causal.model("llama").model.save_pretrained(tmp_path)
    tiny_causal.tokenizer().save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"lacks weights, such as lm_head\.weight"):
        load(str(tmp_path))


def test_masked_and_encoder_decoder_models_are_refused(tmp_path: Path) -> None:
    small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    BertForMaskedLM(BertConfig(vocab_size=300, **small)).save_pretrained(tmp_path / "bert")
    with pytest.raises(InputError, match=r"BertForMaskedLM.*causal"):
        load(str(tmp_path / "bert"))
    T5ForConditionalGeneration(
        T5Config(vocab_size=300, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0)
    ).save_pretrained(tmp_path / "t5")
    with pytest.raises(InputError, match="encoder-decoder"):
        load(str(tmp_path / "t5"))


def test_a_model_with_code_of_its_own_is_refused_unless_allowed(tmp_path: Path) -> None:
    saved(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.OwnModel"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "own.py").write_text("raise SystemExit('ran')\n")
    with pytest.raises(InputError, match="trust_remote_code = true"):
        load(str(tmp_path))


@pytest.mark.parametrize("name", ["/no/such/directory", "", "no-such-model-anywhere"])
def test_names_that_lead_nowhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="model"):
        load(name, offline=True)


def test_an_unknown_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="dtype is 'float99'"):
        load(str(saved(tmp_path)), dtype="float99")


@pytest.mark.parametrize("file", ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["[]", "null", "1", '"x"', "{", '{"added_tokens": 1}'])
def test_damaged_settings_are_loaded_or_refused(tmp_path: Path, file: str, content: str) -> None:
    tiny_causal.model("gpt2").save_pretrained(tmp_path)
    tiny_causal.tokenizer().save_pretrained(tmp_path)
    (tmp_path / file).write_text(content)
    try:
        assert load(str(tmp_path), device="cpu")
    except InputError as error:  # any other error is a defect
        assert tmp_path.name in str(error)  # noqa: PT017


@pytest.mark.parametrize(("native", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_native_is_bf16_only_where_the_hardware_multiplies_it(
    native: bool, expected: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.models.causal.checkpoint.multiplies_bf16", lambda _: native)
    assert load(str(saved(tmp_path)), dtype="native")[0].dtype == expected
