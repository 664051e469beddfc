"""Shared steps of loading a model with transformers: only safe files, an existing device, errors in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path

import msgspec
import torch
import transformers

from lmkbc.errors import InputError
from lmkbc.models.directory import check_damage, check_fetched, read_json
from lmkbc.models.files import is_path

ADAPTER = "adapter_config.json"
"""File that marks a directory as a LoRA adapter."""


def check_files(name: str, *, weights: bool = True) -> None:
    """Raise InputError for a path without a model in safetensors, since unpickling can run any code."""
    directory = Path(name)
    if not directory.is_dir():
        if is_path(name):
            raise InputError(f"{name} is no model directory: name a directory or a model of the hub")
        return
    check_fetched(directory)
    if weights:
        check_damage(directory)
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
        shards = set(read_json(index, _Index).weight_map.values())
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


def device_of(device: str | None) -> torch.device:
    """Return the device for weights: by default CUDA if available. Raise InputError for an unavailable device."""
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.ones(1, device=place).item()  # the meta device holds no numbers
    except Exception:  # each kind of device has errors of its own
        raise InputError(f"device is {device!r}, and no such device computes here: use cpu or cuda") from None
    return place


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
            reason = "it needs code of its own, which runs only where the recipe says trust_remote_code = true"
            advice = "say so, or serve the model and name the server with --base-url"
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
