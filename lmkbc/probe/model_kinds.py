"""The kind of a model: whether it fills masks or continues a text."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from lmkbc.errors import InputError
from lmkbc.local.named import located
from lmkbc.models.loading import ADAPTER, check_files, explained, fills_masks
from lmkbc.models.located import local_only

ModelKind = Literal["masked", "causal"]


def model_kind(name: str, *, offline: bool = False) -> ModelKind:
    """Return the kind of a model by id or directory. Raise InputError if it is of neither kind, or does not exist."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

    source = located(name)
    directory = Path(source)
    check_files(source, weights=False)
    if (directory / ADAPTER).is_file():
        return "causal"
    with explained(name):
        config = AutoConfig.from_pretrained(source, local_files_only=local_only(source, offline=offline))
    called = (config.architectures or ["model"])[0]
    if fills_masks(config):
        return "masked"
    if not config.is_encoder_decoder and type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        return "causal"
    raise InputError(
        f"the model {name!r} is a {called}, which neither fills masks nor continues a text: name a masked language "
        "model, such as BERT, or a causal one, such as GPT-2"
    )
