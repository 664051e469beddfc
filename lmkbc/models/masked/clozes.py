"""Templates and subjects as token ids, with the model's mask token."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence

from transformers import PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.models.masked.backbone import Backbone
from lmkbc.types import grouped

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
    first = set(prompt[: prompt.index(SUBJECT)]) <= set(tokenizer.all_special_ids)
    space = "" if first else " "
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
