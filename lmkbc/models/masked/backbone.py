"""A masked language model with its tokenizer, loaded safely from a directory or the hub.

Only safetensors are read. No code of the model's repository runs unless the user allows it. A model that cannot fill a
mask is refused with the reason. Any architecture that transformers loads for masked language modelling is supported.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from lmkbc.errors import InputError
from lmkbc.models.hardware import device_of
from lmkbc.models.loading import check_files, explained
from lmkbc.models.located import local_only

Dtype = Literal["float32", "bfloat16"]


@dataclass(frozen=True, eq=False)
class Backbone:
    """A masked LM, in evaluation mode, and its tokenizer. name: its id or directory as the user gave it."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def mask_id(self) -> int:
        """Return the vocabulary id of the model's mask token."""
        return cast(int, self.tokenizer.mask_token_id)

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.model.device

    @property
    def longest(self) -> int:
        """Return the most tokens of one input, special ones included."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        for name, module in self.model.named_modules():
            if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
                positions -= module.padding_idx + 1  # RoBERTa's positions start after the padding index
                break
        return int(min(positions, self.tokenizer.model_max_length))


def load(
    model: str | Path,
    *,
    revision: str | None = None,
    offline: bool = False,
    trust_remote_code: bool = False,
    new_head: bool = False,
    device: str | None = None,
    dtype: Dtype = "float32",
) -> Backbone:
    """Load a masked LM from a directory, or by its id on the hub (from the cache alone if offline).

    new_head: whether to add an untrained head, tied to the input embeddings, to an encoder without one. device: None
    for CUDA if available. dtype: of the weights; bfloat16 is for accelerators. Raise InputError for a model that is
    missing, damaged or pickled, or that needs its own code. Raise it also for a model without a mask token or a trained
    head, and for one that generates left to right.
    """
    name, place = str(model), device_of(device)
    check_files(name)
    with explained(name):
        where: dict[str, Any] = {
            "revision": revision,
            "local_files_only": local_only(name, revision=revision, offline=offline),
            "trust_remote_code": trust_remote_code,
        }
        _check_config(name, where)
        tokenizer = AutoTokenizer.from_pretrained(name, **where)
        loaded, report = AutoModelForMaskedLM.from_pretrained(
            name, use_safetensors=True, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **where
        )
    if tokenizer.mask_token_id is None:
        raise InputError(f"the tokenizer of {name} has no mask token: name a masked language model, such as BERT's")
    missing = sorted(report["missing_keys"])
    if missing and not new_head:
        raise InputError(
            f"{name} holds no weights for {missing[0]}: it has no trained masked-LM head; "
            "train one with 'lmkbc train mlm', or name a model that has one"
        )
    rows, known = len(loaded.get_input_embeddings().weight), max(tokenizer.get_vocab().values(), default=0) + 1
    if report["mismatched_keys"] or known > rows:
        what = (
            f"its tokenizer has {known} tokens, its model {rows}" if known > rows else "its weights have other shapes"
        )
        raise InputError(f"the files of {name} do not belong together ({what}): fetch or save the model again")
    loaded.train(mode=False)
    return Backbone(name, loaded.to(place), tokenizer)


def _check_config(name: str, where: dict[str, Any]) -> None:
    """Raise InputError for a model that is no bidirectional masked LM, before weights are read."""
    config = AutoConfig.from_pretrained(name, **where)
    if "AutoModelForMaskedLM" in (getattr(config, "auto_map", None) or {}):
        return
    kind = config.model_type
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING or getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{name} is a {kind} model, which fills no masks: name a masked language model, such as BERT")
    if getattr(config, "is_decoder", False):
        raise InputError(f"{name} reads left to right (is_decoder in its config.json): name a masked language model")
