"""A masked language model with its tokenizer, loaded safely from a directory or the hub.

Only safetensors are read, no code of the model's repository runs unless the user says so, and a model that cannot fill
a mask is refused with the reason. Any architecture that transformers can load for masked language modelling will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging import ERROR
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lmkbc.errors import InputError
from lmkbc.models.directory import check_damage, check_sizes
from lmkbc.models.hub import local_only

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True, eq=False)
class Backbone:
    """A masked LM, in evaluation mode, and its tokenizer. name: its id or directory as the user gave it."""

    name: str
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    @property
    def mask_id(self) -> int:
        """The vocabulary id of the model's own mask token."""
        return cast(int, self.tokenizer.mask_token_id)

    @property
    def device(self) -> torch.device:
        """Where the weights lie."""
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        """The number format of the weights."""
        return self.model.dtype

    @property
    def longest(self) -> int:
        """Most tokens of one input, special ones included."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        for name, module in self.model.named_modules():
            if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
                positions -= module.padding_idx + 1  # RoBERTa counts positions from behind the padding index
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
) -> Backbone:
    """Load a masked LM in fp32 from a directory, or by its id on the hub (from the cache alone when offline).

    new_head: put a fresh head, tied to the input embeddings, on an encoder that has none (to be trained). device: a
    CUDA device where there is one, if None. InputError for a model that is not there, is damaged, has no mask or no
    trained head, generates left to right, is only a pickle, or wants to run its own code.
    """
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    name, place = str(model), _place(device)
    check_sizes(Path(name))
    check_damage(Path(name))
    with _explained(name), quiet():
        here = local_only(name, revision=revision, offline=offline)
        where: dict[str, Any] = {
            "revision": revision,
            "local_files_only": here,
            "trust_remote_code": trust_remote_code,
        }
        _check_config(name, where)
        _check_weights(name, revision, here)
        tokenizer = AutoTokenizer.from_pretrained(name, **where)
        loaded, report = AutoModelForMaskedLM.from_pretrained(
            name, use_safetensors=True, dtype="float32", output_loading_info=True, ignore_mismatched_sizes=True, **where
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


def _place(device: str | None) -> torch.device:
    """Where weights go. InputError for a device that is not here."""
    import torch

    try:
        place = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise InputError(f"device is {device!r}: use cpu or cuda") from None
    if place.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device is {device!r}, but no CUDA device is usable here: use cpu")
    return place


def _check_config(name: str, where: dict[str, Any]) -> None:
    """Refuse what is no bidirectional masked LM, before any weight is read."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_MASKED_LM_MAPPING, AutoConfig, PreTrainedConfig

    place = {key: where[key] for key in ("revision", "local_files_only")}
    raw, _ = PreTrainedConfig.get_config_dict(name, **place)
    kind = raw.get("model_type", "")
    own_code = "auto_map" in raw and kind not in CONFIG_MAPPING
    if own_code and where["trust_remote_code"]:
        return
    if own_code:
        raise InputError(
            f"{name} wants to run code of its own repository: name another model, or read that code "
            "and set trust_remote_code = true in the recipe"
        )
    config = AutoConfig.from_pretrained(name, **place)
    if type(config) not in MODEL_FOR_MASKED_LM_MAPPING or getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{name} is a {kind} model, which fills no masks: name a masked language model, such as BERT")
    if getattr(config, "is_decoder", False):
        raise InputError(f"{name} reads left to right (is_decoder in its config.json): name a masked language model")


def _check_weights(name: str, revision: str | None, offline: bool) -> None:
    """Refuse a model without safetensors: a pickle can run any code when it is read."""
    from transformers.utils.hub import cached_file

    for file in WEIGHTS:
        path = cached_file(
            name,
            file,
            revision=revision,
            local_files_only=offline,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=not offline,
        )
        if path is not None:
            return
    raise InputError(
        f"{name} has no {WEIGHTS[0]}: weights that are only a pickle are refused, since reading one can run any "
        "code; convert them to safetensors, or name another model"
    )


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn the library's long errors about a missing or malformed model into one sentence."""
    if (name.startswith((".", "/", "~")) or name.count("/") > 1) and not Path(name).is_dir():
        raise InputError(f"there is no directory {name}: name one that holds a masked language model, or a model's id")
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged files fail in any way, the tokenizers' with a bare Exception
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        advice = "fetch or save its files again" if Path(name).is_dir() else "check its name"
        raise InputError(f"the masked language model {name} cannot be loaded: {reason}; {advice}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Without the libraries' progress bars and reports on standard error; what matters is checked here."""
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
