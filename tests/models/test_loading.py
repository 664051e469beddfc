"""Both loaders take sound models saved as safetensors, and refuse everything else in one sentence with its reason."""

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    CLIPVisionConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from lmkbc import InputError
from lmkbc.local import checkpoint
from lmkbc.local.decode import Decoding
from lmkbc.local.model import CausalModel
from lmkbc.masked import backbone

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


def test_code_of_a_model_is_not_run(kind: str, copied: Path) -> None:
    own = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}[kind]
    configure(copied, model_type="own", auto_map={"AutoConfig": "own.Own", own: "own.OwnModel"})
    (copied / "own.py").write_text("raise SystemExit('ran')\n")
    assert "it needs code of its own, which is not run here; serve the model" in refusal(kind, copied)


def index(model: Path) -> None:
    (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (model / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))


def pointer(name: str) -> Callable[[Path], object]:
    text = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    return lambda model: (model / name).write_text(text)


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
        (index, "lacks model-00002-of-00002.safetensors, which model.safetensors.index.json lists"),
        (pointer("model.safetensors"), "model.safetensors is a pointer of Git LFS, not the file itself"),
        (pointer("tokenizer.json"), "tokenizer.json is a pointer of Git LFS, not the file itself"),
        (
            lambda model: (model / "model.safetensors").rename(model / "consolidated.safetensors"),
            "holds consolidated.safetensors, and no model.safetensors",
        ),
        (
            lambda model: (model / "config.json").write_text("{'model_type': 'llama'}"),
            "config.json cannot be read as JSON",
        ),
        (lambda model: (model / "tokenizer_config.json").write_text("<html>"), "tokenizer_config.json cannot be read"),
        (lambda model: (model / "config.json").write_text("{}"), "names no model_type"),
    ],
)
def test_a_spoilt_directory_is_refused(kind: str, copied: Path, spoil: Callable[[Path], object], said: str) -> None:
    spoil(copied)
    assert said in refusal(kind, copied)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"seed": 0, "outputs": {"config.json": "0" * 64}}, "config.json is not what the training wrote"),
        ({"outputs": {"lost.json": "0" * 64}}, "lost.json is not what the training wrote"),
        ({"outputs": {"a": 1}}, "training.json cannot be read"),
        ([], "training.json cannot be read"),
        ({"training": "other"}, ""),
    ],
)
def test_a_trained_directory_is_what_its_record_says(kind: str, copied: Path, record: object, said: str) -> None:
    (copied / "training.json").write_text(json.dumps(record))
    if said:
        assert said in refusal(kind, copied)
    else:
        assert LOADERS[kind](str(copied), offline=True)


def test_a_directory_around_a_model_names_the_model(models: Path, tmp_path: Path) -> None:
    inside = shutil.copytree(models / "causal", tmp_path / "models--owner--name" / "snapshots" / "abc")
    assert f"name {inside}, which is inside" in refusal("causal", tmp_path / "models--owner--name")
    assert "is no file: name a GGUF file" in refusal("causal", tmp_path / "absent.gguf", weights=False)


def without_tokenizer(model: Path) -> None:
    for file in model.glob("*token*"):
        file.unlink()


def of_pieces(model: Path) -> None:
    (model / "tokenizer.json").rename(model / "tokenizer.model")
    (model / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}')


def quantised(**table: object) -> Callable[[Path], object]:
    return lambda model: configure(model, quantization_config=table)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (without_tokenizer, "holds no tokenizer, such as a tokenizer.json: fetch or save the model with it"),
        (lambda model: (model / "tokenizer.json").unlink(), "holds no tokenizer, such as a tokenizer.json"),
        (of_pieces, "to read it, or save a tokenizer.json"),
        (
            lambda model: configure(model, model_type="superllama9"),
            f"transformers {transformers.__version__} does not know its architecture, superllama9; update transformers",
        ),
        (quantised(quant_method="gptq", bits=4), "install what its quantisation (gptq) needs, or name the model unq"),
        (quantised(quant_method="awq", bits=4), "install what its quantisation (awq) needs"),
        (quantised(quant_method="bitsandbytes", load_in_4bit=True), "its quantisation (bitsandbytes) needs"),
        (quantised(load_in_4bit=True), "its quantisation (bitsandbytes) needs"),
        (quantised(quant_method="compressed-tensors", config_groups={}), "its quantisation (compressed-tensors) needs"),
        (quantised(quant_method="hqq", quant_config={}), "its quantisation (hqq) needs"),
        (quantised(quant_method="exl2", bits=4.0), "is quantised with exl2, which transformers does not read"),
        (quantised(group_size=64, bits=4), "is quantised with an unknown method, which transformers does not read"),
    ],
)
def test_what_a_causal_model_lacks_is_named(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], object], said: str
) -> None:
    found = importlib.util.find_spec
    absent = "sentencepiece", "tiktoken"
    monkeypatch.setattr(checkpoint, "find_spec", lambda name: None if name in absent else found(name))
    model = Path(shutil.copytree(models / "causal", tmp_path / "model"))
    spoil(model)
    told = refusal("causal", model)
    assert said in told
    assert "save its files again" not in told


def test_an_adapter_names_the_base_that_is_not_here(tmp_path: Path) -> None:
    (tmp_path / checkpoint.ADAPTER).write_text(json.dumps({"base_model_name_or_path": "/data/models/Llama-3-8B"}))
    told = refusal("causal", tmp_path)
    assert told.startswith(f"{tmp_path} is an adapter: /data/models/Llama-3-8B is no model directory")


def test_a_model_that_reads_pictures_too_answers(tmp_path: Path) -> None:
    text = LlamaConfig(vocab_size=tiny_causal.SIZE, initializer_range=0.3, **SMALL)
    sight = CLIPVisionConfig(image_size=28, patch_size=14, **SMALL)
    torch.manual_seed(0)
    LlavaForConditionalGeneration(LlavaConfig(text_config=text, vision_config=sight)).save_pretrained(tmp_path)
    tiny_causal.tokenizer().save_pretrained(tmp_path)
    model, tokenizer = checkpoint.load(str(tmp_path))
    ((draw,),) = dict(CausalModel(model, tokenizer).complete(["Peru"], Decoding(max_tokens=4))).values()
    asked = tokenizer("Peru", return_tensors="pt")
    plain: Any = model.generate(**asked, max_new_tokens=4, do_sample=False)
    assert draw.text == tokenizer.decode(plain[0, asked["input_ids"].shape[1] :])


def test_models_of_another_kind_are_refused(models: Path, tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=60, n_embd=8, n_layer=1, n_head=2)).save_pretrained(tmp_path / "gpt2")
    assert "is a gpt2 model, which fills no masks" in refusal("masked", tmp_path / "gpt2")
    assert "BertForMaskedLM, which does not continue a text" in refusal("causal", models / "masked")
    BertModel(BertConfig(vocab_size=60, **SMALL)).save_pretrained(tmp_path / "encoder")
    assert "BertModel, which does not continue a text" in refusal("causal", tmp_path / "encoder")
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


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "meta", "xpu", "gpu please"])
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
