"""Loading of a causal model from the hub, a directory or a GGUF file, without pickles and without code from the model.

For a directory with a LoRA adapter, the base model is loaded and the adapter is merged into it.
"""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

from lmkbc.errors import InputError
from lmkbc.local.named import located
from lmkbc.models.base import Quantise
from lmkbc.models.eight_bits import METHOD, pack, prepare
from lmkbc.models.hardware import device_of, multiplies_bf16
from lmkbc.models.identity import file_digest
from lmkbc.models.loading import ADAPTER, check_files, explained, fills_masks
from lmkbc.models.located import gguf_digest, gguf_file, local_only
from lmkbc.progress import Report, silent

VOCABULARIES = ("tokenizer.json", "tekken.json", "*.model", "*.tiktoken", "*vocab*", "*bpe*", "*token*.py")
"""Names of the files of which every tokenizer needs one."""


def load(
    name: str,
    *,
    revision: str | None = None,
    dtype: str = "auto",
    device: str | None = None,
    offline: bool = False,
    quantise: Quantise = "none",
    weights: bool = True,
    report: Report = silent,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return the model, ready to use, and its tokenizer.

    dtype: "auto" (float32 on a CPU, else as saved), "native" (bfloat16 if the hardware multiplies it, else float32), or
    the name of a torch type.
    quantise: "4bit" stores linear layers in four bits (NF4, doubly quantised; Dettmers et al. 2023), "8bit" in eight
    (`lmkbc.models.eight_bits`).
    weights: False for a model without weights, which has only settings.
    report: callback for progress.

    Raise InputError if the name leads to no causal model, or only to pickled weights. Raise it also if the model needs
    its own code.
    """
    if not weights and (packed_file := gguf_file(name, revision)) is not None:
        from lmkbc.local.gguf.convert import write_settings

        with TemporaryDirectory() as folder:  # a folder without weights does not belong in the cache
            write_settings(packed_file, Path(folder))
            return load(folder, dtype=dtype, device=device, offline=True, weights=False)
    source = located(name, revision, quantise, report)
    directory = Path(source)
    check_files(source, weights=weights)
    if (directory / ADAPTER).is_file():
        try:
            plain, tokens = load(
                _base(directory),
                revision=revision,
                dtype=dtype,
                device=device,
                offline=offline,
                quantise="none" if quantise == METHOD else quantise,
                weights=weights,
                report=report,
            )
        except InputError as error:
            raise InputError(f"{directory} is an adapter: {error}") from None
        merged = adapted(plain, directory) if weights else plain
        return prepare(pack(merged)) if quantise == METHOD else merged, tokens
    place = device_of(device)
    how: dict[str, Any] = {
        "revision": revision,
        "local_files_only": local_only(source, revision=revision, offline=offline),
        "trust_remote_code": False,
    }
    packed = _four_bits(place) if quantise == "4bit" else {}
    with explained(name):
        config = AutoConfig.from_pretrained(source, **how)
        family = _family(name, config)
        advice = _of_quantised(name, config) if weights else ""
    kind = _dtype(dtype, place)
    packs = quantise == METHOD and getattr(config, "quantization_config", None) is None
    if directory.is_dir() and not any(path for form in VOCABULARIES for path in directory.glob(form)):
        raise InputError(f"{name} holds no tokenizer, such as a tokenizer.json: fetch or save the model with it")
    absent = [reader for reader in ("sentencepiece", "tiktoken") if find_spec(reader) is None]
    reader = f"install {' or '.join(absent)} to read it, or save a tokenizer.json" if absent else ""
    with explained(name, "the tokenizer of the model", reader if any(directory.glob("*.model")) else ""):
        tokenizer = AutoTokenizer.from_pretrained(source, **how)
    report("read weights (models)", 0, 1)
    with explained(name, advice=advice):
        if not weights:
            with torch.device("meta"):  # weights with the right type but without memory
                hollow = family.from_config(config, dtype=config.dtype if kind == "auto" else kind)
            return cast(PreTrainedModel, hollow), tokenizer
        loaded: Any = family.from_pretrained(
            source,
            config=config,
            use_safetensors=True,
            dtype="auto" if packs else kind,
            output_loading_info=True,
            adapter_kwargs={"local_files_only": how["local_files_only"]},  # peft does not inherit it
            **how,
            **packed,
        )
        model, info = loaded
        if packs:
            model = pack(model).to(model.dtype if kind == "auto" else kind)
        prepare(model if packed else model.to(place)).eval()
        report("read weights (models)", 1, 1)
        if gguf_digest(name):
            model.name_or_path = name  # an adapter that is trained on it must name the GGUF file
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])[0]
        raise InputError(f"the model {name!r} lacks weights, such as {missing}: name a causal model's full checkpoint")
    return cast(PreTrainedModel, model), tokenizer


def library_of_adapters(what: str) -> Any:
    """Return peft. Raise InputError, with what needs it, if it is not installed."""
    try:
        return import_module("peft")
    except ModuleNotFoundError:
        raise InputError(f"{what} needs peft: install lmkbc[lora]") from None


def adapted(model: PreTrainedModel, adapter: Path) -> PreTrainedModel:
    """Return the model with a LoRA adapter merged into its weights.

    Raise InputError unless it is saved as safetensors.
    """
    peft = library_of_adapters(f"{adapter} is a LoRA adapter, which")
    if not (adapter / "adapter_model.safetensors").is_file():
        raise InputError(f"{adapter} holds no adapter_model.safetensors: save the adapter as safetensors")
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # peft uses an old name
            merged: Any = peft.PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    except Exception as error:  # damaged files may raise any error
        reason = " ".join(str(error).split())[:200].rstrip(". ")
        raise InputError(f"the adapter {adapter} does not fit its base model: {reason}; train it anew") from None
    return cast(PreTrainedModel, merged.eval())


def identity(name: str, model: PreTrainedModel, quantise: Quantise = "none") -> str:
    """Return what distinguishes models of the same name: content and precision.

    The content is the hub's commit, or the SHA-256 of a GGUF file or of a directory's files; for an adapter, its base's
    follows. Quantisation is marked too.
    """
    precise = str(model.dtype).removeprefix("torch.")
    other = "+quantised" if quantise != "none" or getattr(model, "is_quantized", False) else ""
    return f"{_files_of(name, model)}+{precise}{f'+{METHOD}' if quantise == METHOD else other}"


def _files_of(name: str, model: PreTrainedModel) -> str:
    directory = Path(name)
    if not directory.is_dir():
        return gguf_digest(name) or str(getattr(model.config, "_commit_hash", None) or name)
    base = f"+{_files_of(_base(directory), model)}" if (directory / ADAPTER).is_file() else ""
    return file_digest(name) + base


def _base(adapter: Path) -> str:
    """Return the name of an adapter's base model."""
    try:
        base = json.loads((adapter / ADAPTER).read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{adapter / ADAPTER} cannot be read ({error}): save the adapter anew") from None
    if not base:
        raise InputError(f"{adapter / ADAPTER}, field base_model_name_or_path: missing; name the base model")
    return str(base)


def _four_bits(place: torch.device) -> dict[str, Any]:
    """Return the arguments for from_pretrained that quantise weights to four bits while they are read."""
    lacking = [name for name in ("bitsandbytes", "accelerate") if find_spec(name) is None]
    if lacking:
        raise InputError(f"quantise = '4bit' needs {' and '.join(lacking)}: install lmkbc[quantise], or leave it out")
    kind = torch.bfloat16 if place.type != "cpu" else torch.float32
    made = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=kind
    )
    return {"quantization_config": made, "device_map": {"": str(place)}}


def _family(name: str, config: Any) -> Any:
    """Return the class that loads a model: a causal model, or one that reads pictures too.

    Raise InputError for another kind of model. BERT can be loaded as a causal model, with useless answers.
    """
    own = "AutoModelForCausalLM" in (getattr(config, "auto_map", None) or {})
    if not config.is_encoder_decoder and not fills_masks(config):
        if own or type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
            return AutoModelForCausalLM
        if type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
            return AutoModelForImageTextToText
    kind = "encoder-decoder" if config.is_encoder_decoder else (config.architectures or [config.model_type])[0]
    raise InputError(
        f"the model {name!r} is of type {kind}, which does not continue a text: name a causal language model, "
        "or use a component for masked models"
    )


def _of_quantised(name: str, config: Any) -> str:
    """Return advice about a quantised model that cannot be loaded; "" for a model that is not quantised.

    Raise InputError for a quantisation that transformers would ignore.
    """
    table = getattr(config, "quantization_config", None)
    if table is None:
        return ""
    method = str(table.get("quant_method", "") or ("bitsandbytes" if "load_in_4bit" in table else "an unknown method"))
    advice = f"install what its quantisation ({method}) needs, or name the model unquantised or as a GGUF file"
    if not any(known.startswith(method.rpartition("/")[2]) for known in AUTO_QUANTIZATION_CONFIG_MAPPING):
        raise InputError(
            f"the model {name!r} is quantised with {method}, which transformers does not read: name it unquantised or "
            "as a GGUF file, or serve it and name the server with --base-url"
        )
    return advice


def _dtype(name: str, place: torch.device) -> Any:
    if name == "auto":
        return torch.float32 if place.type == "cpu" else "auto"
    if name == "native":
        return torch.bfloat16 if multiplies_bf16(place) else torch.float32
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise InputError(f"dtype is {name!r}: use 'auto', 'native', 'float32', 'bfloat16' or 'float16'")
    return found
