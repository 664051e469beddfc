"""A masked language model with its tokenizer, loaded safely from a directory or the hub, and clozes as its token ids.

Only safetensors are read. No code of the model's repository runs unless the user allows it. A model that cannot fill a
mask is refused with the reason. Any architecture that transformers loads for masked language modelling is supported.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
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
from lmkbc.types import grouped

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


ON_ACCELERATOR = {"device": "an accelerator is used if there is one; set CUDA_VISIBLE_DEVICES to none or another"}
"""Setting of earlier releases -> what to do in place of it."""


def load(
    model: str | Path,
    *,
    revision: str | None = None,
    offline: bool = False,
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
            "trust_remote_code": False,
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


Layout = tuple[int, ...]
"""A template as token ids, with SUBJECT, MASK and SOFT as placeholders."""
SUBJECT, MASK, SOFT = -1, -2, -3
"""Placeholders in a layout; any other number is a token id."""
WORDS, LETTERS = 16, 80
"""Maximum number of words and letters of a subject's name, so that there is always room for the cloze."""


def subject_of(name: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a name for a prompt: on one line, without the model's special tokens, cut if it is very long."""
    for special in tokenizer.all_special_tokens:
        name = name.replace(special, " ")
    return " ".join(name.split()[:WORDS])[:LETTERS]


def subject_pieces(prompt: Layout, subjects: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Return the tokens of each subject within a prompt: after a space, or at the start of the text."""
    space = "" if set(prompt[: prompt.index(SUBJECT)]) <= set(tokenizer.all_special_ids) else " "
    names = [space + subject_of(subject, tokenizer) for subject in subjects]
    return list(tokenizer(names, add_special_tokens=False, verbose=False)["input_ids"])


NONE: Mapping[str, Layout] = {}


class Clozes:
    """Fills templates for one backbone. cut: number of subjects that were too long and lost their end.

    layouts: name -> template as token ids, for soft prompts. A subject that holds the text of a special token, such as
    "[MASK]", is read as plain text.
    """

    def __init__(self, backbone: Backbone, layouts: Mapping[str, Layout] = NONE) -> None:
        self._backbone, self.mask_id, self._layouts = backbone, backbone.mask_id, layouts
        self.cut = 0

    def inputs(self, templates: Sequence[str], subjects: Sequence[str]) -> list[list[int]]:
        """Return the token ids of n templates with their subjects; subjects of one template are tokenised at once.

        Raise InputError if a tokenised template does not have exactly one mask.
        """
        inputs: list[list[int]] = [[]] * len(templates)
        for template, group in grouped((template, at) for at, template in enumerate(templates)).items():
            for place, ids in zip(group, self.fill(template, [subjects[place] for place in group]), strict=True):
                if ids.count(self.mask_id) != 1:
                    raise InputError(f"cloze {template!r} does not hold one mask once tokenised: reword it")
                inputs[place] = ids
        return inputs

    def fill(self, template: str, subjects: Sequence[str]) -> list[list[int]]:
        """Return one input with one mask per subject.

        Raise InputError for a wrong template, or one that is too long.
        """
        room = self._backbone.longest
        if template in self._layouts:
            return [self._laid_out(self._layouts[template], subject, room) for subject in subjects]
        check_template(template, self._backbone.tokenizer.all_special_tokens)
        filled = self._encode(template, subjects)
        for index, subject in enumerate(subjects):
            kept = subject
            while len(filled[index]) > room and kept:  # a token has at least one character
                kept = kept[: room - len(filled[index])]
                (filled[index],) = self._encode(template, [kept])
            if len(filled[index]) > room:
                raise InputError(
                    f"cloze {template!r} is longer than the {room} tokens that {self._backbone.name} reads"
                )
            self.cut += kept != subject
        return filled

    def _encode(self, template: str, subjects: Sequence[str]) -> list[list[int]]:
        tokenizer = self._backbone.tokenizer
        texts = [template.format(subject=self._plain(subject), mask=tokenizer.mask_token) for subject in subjects]
        return list(tokenizer(texts, verbose=False)["input_ids"]) if texts else []

    def _laid_out(self, layout: Layout, subject: str, room: int) -> list[int]:
        """Return the token ids of a layout with a subject, as in training."""
        (name,) = subject_pieces(layout, [subject], self._backbone.tokenizer)
        fits = max(room - len(layout) + 1, 0)
        self.cut += len(name) > fits
        standing = {SUBJECT: name[:fits], MASK: [self.mask_id]}
        return [token for place in layout for token in standing.get(place, [place])]

    def _plain(self, subject: str) -> str:
        for token in self._backbone.tokenizer.all_special_tokens:
            subject = subject.replace(token, f"{token[0]} {token[1:]}")
        return subject


def check_template(template: str, special: Sequence[str] = ()) -> None:
    """Raise InputError unless a template holds {subject} and {mask} exactly once each, and no special token."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InputError(f"cloze {template!r} is malformed: {error}") from None
    named = [slot for _, slot, _, _ in parts if slot is not None]
    if sorted(named) != ["mask", "subject"]:
        raise InputError(f"cloze {template!r} needs {{subject}} and {{mask}}, each exactly once")
    for token in special:
        if any(token in literal for literal, *_ in parts):
            raise InputError(f"cloze {template!r} holds the token {token!r}: write {{mask}} where the object stands")
