"""Conversion of a GGUF file into a model directory in the user's cache: its weights, and the tokenizer.

The weights are exact, in float32, or those of linear layers are in eight bits. The directory's name holds the file's
SHA-256 and VERSION, so the file may lie anywhere. The directory holds the SHA-256 of its files; if one is damaged, it
is made again. One process converts at a time, and others wait for it.

A tokenizer is byte-level BPE (Sennrich et al. 2016; Radford et al. 2019), or Gemma's. The file names the pattern that
splits a text before its merges; the patterns are llama.cpp's for that name. An unknown name is refused: another split
gives other tokens, and worse answers. Gemma's file lists tokens without merges. A token is a merge of any two other
tokens, in the order of the tokens, as in transformers; the order of the scores differs. Blanks are handled as in
SentencePiece (Kudo and Richardson 2018).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
import torch

from lmkbc.errors import InputError
from lmkbc.files.atomic import staged
from lmkbc.files.checksum import damaged, file_sha256
from lmkbc.files.places import cache_dir
from lmkbc.files.writable import in_turn
from lmkbc.local.gguf import header
from lmkbc.local.gguf.header import ELSEWHERE, GEMMA, Header, Placed, config_of, placed
from lmkbc.models.base import Quantise
from lmkbc.models.eight_bits import METHOD, eight_bits
from lmkbc.models.identity import file_digest
from lmkbc.progress import Report, silent, tracked

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

BLANK = "▁"
_CONTROL, _OWN = 3, 4
"""Types of tokens that are never split: control tokens, and tokens that the model's makers added."""

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace("{1,3}", "")
_DIGITS, _PLAIN = "digits", ""
SPLITS = {
    "gpt-2": _PLAIN,
    "phi-2": _PLAIN,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "refact": _DIGITS,
    "command-r": _DIGITS,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
}
"""`tokenizer.ggml.pre` -> pattern: GPT-2's split, the same with single digits, or another pattern."""


def tokenizer(header: Header, window: int) -> PreTrainedTokenizerFast:
    """Return the tokenizer with its chat template. Raise InputError for an unsupported one."""
    from transformers import PreTrainedTokenizerFast

    kind, split = header.value("tokenizer.ggml.model", str), header.value("tokenizer.ggml.pre", str, "default")
    pieces = header.architecture == GEMMA
    prefixed = header.value("tokenizer.ggml.add_space_prefix", bool, False)
    if not (kind == "llama" and not prefixed if pieces else kind == "gpt2" and split in SPLITS):
        raise InputError(
            f"{header.path} has a tokenizer of the kind {kind!r}, {split!r}, and 'gpt2' is read with "
            f"{', '.join(SPLITS)}, 'llama' of a Gemma: {ELSEWHERE}"
        )
    tokens = _strings(header, "tokenizer.ggml.tokens")
    if pieces:  # the file holds tokens of mere blanks as blanks
        tokens = [BLANK * len(token) if token and not token.strip(" ") else token for token in tokens]
    template = header.value("tokenizer.chat_template", str, "")
    places = {f"{end}_token": token_id(header, key) for end, key in _ENDS.items()}
    ends: dict[str, Any] = {name: tokens[place] for name, place in places.items() if place is not None}
    return PreTrainedTokenizerFast(
        tokenizer_object=_raw(header, tokens, split, ends.get("bos_token")),
        model_max_length=window,
        clean_up_tokenization_spaces=False,
        chat_template=template or None,
        **ends,
    )


_ENDS = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}


def _raw(header: Header, tokens: list[str], split: str, bos: str | None) -> Tokenizer:
    from tokenizers import AddedToken, processors

    words = {token: place for place, token in enumerate(tokens)}
    pieces = header.architecture == GEMMA
    raw = _sentence_pieces(header, words) if pieces else _byte_level(header, words, split)
    if bos is not None and header.value("tokenizer.ggml.add_bos_token", bool, pieces):
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, words[bos])]
        )
    kinds = header.metadata.get("tokenizer.ggml.token_type", ())
    whole = [(token, int(kind)) for token, kind in zip(tokens, kinds, strict=False) if kind in (_CONTROL, _OWN)]
    raw.add_special_tokens(
        [AddedToken(token, normalized=False, special=True) for token, kind in whole if kind == _CONTROL]
    )
    raw.add_tokens([AddedToken(token, normalized=False, special=False) for token, kind in whole if kind == _OWN])
    return raw


def _byte_level(header: Header, words: dict[str, int], split: str) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    lines = _strings(header, "tokenizer.ggml.merges")
    merges = [(left, right) for left, _, right in (merge.partition(" ") for merge in lines)]
    raw = Tokenizer(models.BPE(vocab=words, merges=merges, ignore_merges=SPLITS[split] is _LLAMA3))
    pattern = SPLITS[split]
    steps: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern in (_DIGITS, _PLAIN))]
    if pattern is _DIGITS:
        steps.insert(0, pre_tokenizers.Digits(individual_digits=True))
    elif pattern is not _PLAIN:
        steps.insert(0, pre_tokenizers.Split(Regex(pattern), behavior="isolated"))
    raw.pre_tokenizer = pre_tokenizers.Sequence(steps)
    raw.decoder = decoders.ByteLevel()
    return raw


def _sentence_pieces(header: Header, words: dict[str, int]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers

    unknown = token_id(header, "unknown")
    unknown_token = None if unknown is None else list(words)[unknown]
    raw = Tokenizer(
        models.BPE(vocab=words, merges=list(_merges(words)), unk_token=unknown_token, fuse_unk=True, byte_fallback=True)
    )
    raw.normalizer = normalizers.Replace(" ", BLANK)
    raw.decoder = decoders.Sequence([decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()])
    return raw


def _merges(words: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield all pairs of tokens that form a third token, in the order of the third."""
    for token in words:
        for cut in range(len(token) - 1, 0, -1):
            if (left := token[:cut]) in words and (right := token[cut:]) in words:
                yield left, right


def _strings(header: Header, key: str) -> list[str]:
    return cast(list[str], header.value(key, list))


def token_id(header: Header, name: str) -> int | None:
    """Return the id of a special token, such as "eos"; None if there is none."""
    key = f"tokenizer.ggml.{name}_token_id"
    return int(header.value(key, int)) if key in header.metadata else None


logger = logging.getLogger("lmkbc")
VERSION = 1
"""Version of the conversion; each version makes its own directory."""
RECORD = "unpacked.json"
"""Name of the file that lists the others with their SHA-256."""
SHARD = 1 << 30
"""Maximum number of bytes of weights in memory at a time, and in one file."""
PORTION = 1 << 20
"""Number of bytes of a tensor that are converted at a time, which a processor's cache holds."""


def unpacked(path: Path, quantise: Quantise = "none", report: Report = silent) -> Path:
    """Return the directory of a GGUF file's model; it is made if it does not exist.

    quantise: METHOD for linear layers in eight bits; any other for exact weights. report: callback for progress.

    Raise InputError for a damaged or unsupported file, LmkbcError if the cache cannot be written.
    """
    _check_file(path)
    eight = quantise == METHOD
    target = cache_dir() / "models" / f"{file_digest(str(path))}-{VERSION}{f'-{METHOD}' * eight}"
    if not _sound(target):
        with in_turn(target):
            if not _sound(target):
                _unpack(path, target, eight, report)
    return target


def write_settings(path: Path, folder: Path, *, eight: bool = False) -> Sequence[Placed]:
    """Write all files of a GGUF file's model except the weights; return the tensors.

    eight: whether linear layers are in eight bits.

    Raise InputError for a damaged or unsupported file.
    """
    _check_file(path)
    try:
        parsed = header.read(path)
        config = config_of(parsed)
        read = tokenizer(parsed, config["max_position_embeddings"])
        places = placed(parsed, config)
    except InputError:
        raise
    except Exception as error:  # a damaged file may raise any error
        reason = " ".join(str(error).split())[:200].rstrip(". ") or type(error).__name__
        raise InputError(f"{path} cannot be read ({reason}): it is cut short or damaged, fetch it again") from None
    tasks = {name: token_id(parsed, name) for name in ("bos", "eos", "padding", "eot", "eom")}
    special = {"bos_token_id": tasks["bos"], "eos_token_id": tasks["eos"], "pad_token_id": tasks["padding"]}
    stops = [token for token in dict.fromkeys(tasks[end] for end in ("eos", "eot", "eom")) if token is not None]
    how = {"quantization_config": {"quant_method": METHOD}} if eight else {}
    tables = {"config.json": {**config, **special, **how}, "generation_config.json": special | {"eos_token_id": stops}}
    for name, table in tables.items():
        (folder / name).write_text(json.dumps(table, indent=2), encoding="utf-8")
    with _disk_errors():
        read.save_pretrained(folder)
    return places


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path} is no file: name a GGUF file, a model directory or a model of the hub")


def _unpack(path: Path, target: Path, eight: bool, report: Report) -> None:
    rmtree(target, ignore_errors=True)  # of a damaged model
    with staged(target) as stage:
        places = write_settings(path, stage, eight=eight)
        logger.info(f"{path.name}: its weights are unpacked into the user's cache, which is done once")
        _write_weights(places, stage, eight, report)
        files = {file.name: file_sha256(file) for file in sorted(stage.iterdir())}
        (stage / RECORD).write_text(json.dumps(files, indent=2), encoding="utf-8")


def _write_weights(placed: Sequence[Placed], stage: Path, eight: bool, report: Report) -> None:
    from huggingface_hub import split_state_dict_into_shards_factory
    from safetensors.numpy import save_file

    by_name = {part.name: part for part in placed}
    split = split_state_dict_into_shards_factory(
        by_name,
        get_storage_size=lambda part: 4 * int(np.prod(part.tensor.shape)),
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=SHARD,
    )
    files: dict[str, str] = {}
    for name, inside in tracked(split.filename_to_tensors.items(), "unpack weights (files)", report):
        weights = {key: value for part in inside for key, value in _values(by_name[part], eight).items()}
        files |= dict.fromkeys(weights, name)
        with _disk_errors():
            save_file(weights, stage / name, metadata={"format": "pt"})
    if split.is_sharded:
        index = {"metadata": split.metadata, "weight_map": files}
        (stage / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turn all write errors into OSError, since tokenizers and safetensors raise types of their own."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(str(error)) from None


def _values(placed: Placed, eight: bool) -> dict[str, np.ndarray[Any, Any]]:
    """Return a tensor's numbers by name, in the order of transformers: in float32, or in eight bits with scales."""
    from gguf.constants import GGMLQuantizationType
    from gguf.quants import dequantize

    tensor = placed.tensor
    packed = eight and len(tensor.shape) > 1 and "embed_tokens" not in placed.name  # which is never multiplied
    raw = np.fromfile(tensor.path, np.uint8, tensor.size, offset=tensor.start).reshape(*tensor.shape[:-1], -1)
    portions = np.array_split(raw, -(-4 * prod(tensor.shape) // PORTION))
    try:
        values = (torch.from_numpy(dequantize(rows, GGMLQuantizationType[tensor.kind])) for rows in portions)
        parts = [eight_bits(rows) if packed else (rows,) for rows in values]
    except NotImplementedError:
        raise InputError(
            f"{tensor.path}: tensor {tensor.name} is quantised as {tensor.kind}, which cannot be unpacked: name the "
            "model in another quantisation, such as Q4_1 or Q8_0"
        ) from None
    whole = [torch.cat(part).numpy() for part in zip(*parts, strict=True)]
    if placed.heads:  # rows r0 i0 r1 i1 ... of each head become r0 r1 ... i0 i1 ..., as in transformers
        whole = [
            part.reshape(placed.heads, -1, 2, *part.shape[1:]).swapaxes(1, 2).reshape(part.shape) for part in whole
        ]
    if placed.raised:
        whole = [part - np.float32(1) for part in whole]
    names = placed.name, placed.name.removesuffix("weight") + "scale"
    return {name: np.ascontiguousarray(part) for name, part in zip(names, whole, strict=False)}


def _sound(target: Path) -> bool:
    """Return whether a directory holds exactly the files that were written."""
    try:
        files = msgspec.json.decode((target / RECORD).read_bytes(), type=dict[str, str])
        return bool(files) and not any(damaged(target, files))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return False
