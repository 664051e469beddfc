"""Shared steps of loading a model with transformers: only safe files; its kind; errors in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import transformers

from lmkbc.errors import UNDECODABLE, InputError
from lmkbc.files.checksum import damaged, read_record
from lmkbc.models.identity import READ, is_path

ADAPTER = "adapter_config.json"
"""File that marks a directory as a LoRA adapter."""
TRAINING = "training.json"
"""Record of a training; its field `outputs` lists the files with their SHA-256."""
POINTER, SHORT = b"version https://git-lfs", 1024
"""Beginning of a file that stands for another one, and the bytes that it never exceeds."""
JSON = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""Files that a model cannot be loaded without, if they are there."""

Read = TypeVar("Read")


def check_files(name: str, *, weights: bool = True) -> None:
    """Raise InputError for a path without a model in safetensors, since unpickling can run any code."""
    directory = Path(name)
    if not directory.is_dir():
        if is_path(name):
            raise InputError(f"{name} is no model directory: name a directory or a model of the hub")
        return
    _check_whole(directory)
    if weights:
        _check_training(directory)
    if (directory / ADAPTER).is_file():
        return
    if not (directory / "config.json").is_file():
        inside = next((path.parent for deep in ("*", "*/*") for path in directory.glob(f"{deep}/config.json")), None)
        hint = f"name {inside}, which is inside" if inside else "save one with save_pretrained"
        raise InputError(f"{directory} holds no config.json, so it is no model: {hint}")
    if weights:
        _check_weights(directory)


def _check_weights(directory: Path) -> None:
    """Raise InputError for a directory without safetensors of transformers' names, or with some of them missing."""
    index = directory / "model.safetensors.index.json"
    if index.is_file():
        shards = set(_read_json(index, _Index).weight_map.values())
        if lost := sorted(shard for shard in shards if not (directory / shard).is_file()):
            raise InputError(f"{directory} lacks {lost[0]}, which {index.name} lists: fetch or save the model again")
    elif not (directory / "model.safetensors").is_file():
        ends = ("safetensors", "bin", "pt", "pth")
        others = [path.name for end in ends for path in sorted(directory.glob(f"*.{end}"))]
        found = f"{others[0]}, and no model.safetensors or {index.name}" if others else "no weights"
        if others and not others[0].endswith(".safetensors"):
            found = f"only {others[0]}, which is pickled and can run code"
        raise InputError(f"{directory} holds {found}: save the model as safetensors, with save_pretrained")


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def _check_whole(directory: Path) -> None:
    """Raise InputError for a pointer in place of a file, or for damaged JSON."""
    for path in sorted(path for path in directory.iterdir() if path.suffix in READ and path.is_file()):
        if path.stat().st_size < SHORT and path.read_bytes().startswith(POINTER):
            raise InputError(f"{path} is a pointer of Git LFS, not the file itself: fetch it with git lfs pull")
        if path.name in JSON:
            _read_json(path, dict[str, Any])


def _check_training(directory: Path) -> None:
    """Raise InputError if a trained file is missing or has changed. Pass if the training left no record.

    A model with a damaged bit in its weights still answers, but differently, and safetensors does not detect it.
    """
    path = directory / TRAINING
    if path.is_file() and (lost := next(damaged(directory, read_record(path).outputs), None)):
        raise InputError(
            f"{directory / lost} is not what the training wrote: copy it again or train again; or remove {TRAINING} to "
            "take the model as it is"
        )


def _read_json(path: Path, kind: type[Read]) -> Read:
    """Return the content of a JSON file of a model. Raise InputError for a damaged file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except UNDECODABLE as error:
        raise InputError(f"{path} cannot be read as JSON ({error}): fetch or save its model again") from None


def fills_masks(config: Any) -> bool:
    """Return whether a configuration is of a masked language model, which may belong to a class that also continues."""
    from transformers import MODEL_FOR_MASKED_LM_MAPPING

    continues = getattr(config, "is_decoder", False) or any(
        name.endswith(("CausalLM", "LMHeadModel")) for name in config.architectures or ()
    )
    return type(config) in MODEL_FOR_MASKED_LM_MAPPING and not continues and not config.is_encoder_decoder


@contextmanager
def explained(name: str, what: str = "the model", advice: str = "") -> Iterator[None]:
    """Turn errors about a missing or malformed model into one sentence, and silence the libraries.

    what: the part that is loaded. advice: what to do, if that is known.
    """
    try:
        with quiet():
            yield
    except Exception as error:  # an unusable name, or damaged files, which may raise any error
        if isinstance(error, InputError):
            raise
        whole = " ".join(str(error).split()) or type(error).__name__
        reason = whole.partition(". ")[0][:200].rstrip(". ")
        if "custom code" in reason or "trust_remote_code" in reason:
            reason = "it needs code of its own, which is not run here"
            advice = "serve the model and name the server with --base-url, or choose another"
        elif unknown := re.search("model type `(.*?)` but", whole):
            reason = f"transformers {transformers.__version__} does not know its architecture, {unknown[1]}"
            advice = "update transformers, or serve the model and name the server with --base-url"
        elif "Unrecognized model" in reason:
            reason = "its config.json names no model_type"
        elif isinstance(error, ImportError) or "pip install" in whole:
            advice = advice or "install what it needs"
        advice = advice or ("fetch or save its files again" if Path(name).is_dir() else "check its name")
        raise InputError(f"{what} {name!r} cannot be loaded: {reason}; {advice}") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Hide the libraries' progress bars and logs on standard error; relevant problems are checked here."""
    from huggingface_hub.utils import logging as hub
    from transformers.utils import logging

    verbosity, bars, of_hub = logging.get_verbosity(), logging.is_progress_bar_enabled(), hub.get_verbosity()
    logging.set_verbosity(ERROR)
    hub.set_verbosity(ERROR)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        hub.set_verbosity(of_hub)
        if bars:
            logging.enable_progress_bar()
