"""Shared steps of loading a model with transformers: only safe files, an existing device, errors in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from logging import ERROR
from pathlib import Path

import torch

from lmkbc.errors import InputError
from lmkbc.models.directory import check_damage, check_sizes
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
    check_sizes(directory)
    if weights:
        check_damage(directory)
    if (directory / ADAPTER).is_file():
        return
    if not (directory / "config.json").is_file():
        raise InputError(f"{directory} holds no config.json, so it is no model: save one with save_pretrained")
    if weights and not any(directory.glob("*.safetensors")):
        pickled = [path.name for pattern in ("*.bin", "*.pt", "*.pth") for path in sorted(directory.glob(pattern))]
        found = f"only {pickled[0]}, which is pickled and can run code" if pickled else "no weights"
        raise InputError(f"{directory} holds {found}: save the model as safetensors")


def device_of(device: str | None) -> torch.device:
    """Return the device for weights: by default CUDA if available. Raise InputError for an unavailable device."""
    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise InputError(f"device is {device!r}: use cpu or cuda") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}, but no CUDA device is usable here: use cpu")
    return place


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn errors about a missing or malformed model into one sentence, and silence the libraries."""
    try:
        with quiet():
            yield
    except Exception as error:  # an unusable name, or damaged files, which may raise any error
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        advice = "fetch or save its files again, as safetensors" if Path(name).is_dir() else "check its name"
        if "custom code" in reason or "trust_remote_code" in reason:
            advice = "it needs code of its own, which runs only where the recipe says trust_remote_code = true"
        raise InputError(f"the model {name!r} cannot be loaded: {reason[:200].rstrip('. ')}; {advice}") from None


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
