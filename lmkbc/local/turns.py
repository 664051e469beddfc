"""Turns of a chat, from a model's files: the tokens that end an answer, and what a prompt has already opened.

No single file names all ends of an answer. They are the union of what the generation config, the model's config, the
tokenizer and the chat template say. The template is rendered with a small conversation, to see what stands around its
turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from lmkbc.errors import InputError
from lmkbc.models.thoughts import THOUGHT_NAMES

CONVERSATION = ("user", "Lima7"), ("assistant", "Oslo8"), ("user", "Rome9")
"""Roles and contents of a conversation whose contents no template changes."""

_TAG = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z][A-Z_]+\]|◁[^◁▷\s]{1,40}▷")
_THOUGHT = re.compile(rf"{THOUGHT_NAMES}|inner_|channel", re.IGNORECASE)
_INSIDE = re.compile(rf"{_THOUGHT.pattern}|message|response|answer|box|tool|constrain", re.IGNORECASE)
"""Parts of tags within an answer: of its thoughts, of its final part, and of its calls of tools."""
_CLOSES = re.compile(r"/|end|suffix|<channel\|>", re.IGNORECASE)
_OF_MESSAGES = {"<|channel|>": {"<|start|>", "<|end|>"}}
"""Tag of a format whose answers consist of several messages -> its other tags within an answer."""


@dataclass(frozen=True)
class Turns:
    """Beginning and end of a model's answers.

    ends: tokens that end an answer.
    control: tokens that end an answer, but not at its beginning, with their texts.
    marks: texts that do the same, such as a tag that is no token.
    heads: texts that a model may repeat at the beginning, longest first: the end of its prompt.
    header: what follows the question in a prompt.
    opened: the part of the header that belongs to the answer, such as "<think>"; "" for none.
    """

    ends: frozenset[int]
    control: Mapping[int, str] = field(default_factory=dict)
    marks: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    header: str = ""
    opened: str = ""

    def begun(self, prompt: str) -> str:
        """Return the beginning of the answer that a prompt ends with, such as the tag of a thought."""
        return self.opened if self.opened and prompt.endswith(self.header) else ""

    def closed(self, prompt: str) -> str:
        """Return a prompt with its open thought closed, so that options can follow as answers."""
        tag = re.match(r"([<\[])([^<>\[\]|\s]+)([>\]])", self.begun(prompt))
        return f"{prompt.rstrip()}\n\n{tag[1]}/{tag[2]}{tag[3]}\n\n" if tag else prompt

    def read(self, tokens: Sequence[int], decode: Callable[[list[int]], str]) -> tuple[str, bool]:
        """Return the text of an answer, without control tokens and what follows its end, and whether it ended."""
        own = list(takewhile(lambda token: token not in self.ends, tokens))
        text, marks = decode(own), {self.control[token] for token in own if token in self.control}.union(self.marks)
        while head := next((head for head in (*self.heads, *marks) if text.lstrip().startswith(head)), None):
            text = text.lstrip()[len(head) :]
        places = [place for mark in marks if (place := text.find(mark)) >= 0]
        return (text[: min(places)], True) if places else (text, len(own) < len(tokens))


def holds_thought(text: str) -> bool:
    """Return whether a text holds the tag of a thought."""
    return any(map(_THOUGHT.search, _TAG.findall(text)))


def turns(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, render: Callable[[Sequence[Mapping[str, str]]], str]
) -> Turns:
    """Return how a model's answers begin and end.

    render: returns a chat as text, up to where the answer begins; raises InputError if the template refuses it.
    """
    between, header = _between(render)
    added = {token.content: token.special for token in tokenizer.added_tokens_decoder.values()}
    inside = set[str]().union(*(tags for tag, tags in _OF_MESSAGES.items() if tag in added))
    parts = [part for part in (*between, header) if part]
    tags = {tag for tag, special in added.items() if special or any(tag in part for part in parts)}
    tags |= {tag for part in parts for tag in _TAG.findall(part)}
    tags = {tag for tag in tags if not (tag.isalnum() or tag.isspace() or tag in inside or _INSIDE.search(tag))}
    tags.discard(str(tokenizer.unk_token))
    control = {place: token.content for place, token in tokenizer.added_tokens_decoder.items() if token.content in tags}
    marks, ends, after = tags - added.keys(), _ends(model, tokenizer, added), between[-1] if between else ""
    if first := min((tag for tag in tags if tag in after), key=after.index, default=""):
        ends |= {place for place, tag in control.items() if tag == first}
    elif any(map(str.isalnum, after)):  # turns that have names alone, such as "User:"
        marks.add(after.rstrip())
    opened = _opened(header)
    head = header.removesuffix(opened)
    heads = sorted((head[head.index(tag) :] for tag in tags if tag in head), key=len, reverse=True)
    return Turns(frozenset(ends), control, tuple(sorted(marks)), tuple(heads), header, opened)


def _between(render: Callable[[Sequence[Mapping[str, str]]], str]) -> tuple[list[str], str]:
    """Return what a template writes between turns, and after the last one; nothing where it refuses them."""
    contents = "|".join(content for _, content in CONVERSATION)
    for asked in (CONVERSATION, CONVERSATION[-1:]):
        try:
            text = render([{"role": role, "content": content} for role, content in asked])
        except InputError:
            continue
        _, *between, header = re.split(contents, text)
        return between if len(between) == len(CONVERSATION) - 1 else [], header
    return [], ""


def _ends(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, added: Collection[str]) -> set[int]:
    """Return the end tokens that the configurations and the tokenizer name.

    A config without an end has its class's, which may be any word of the tokenizer: only an added token counts.
    """
    generation: Any = model.generation_config
    named: list[Any] = [generation.eos_token_id if generation else None, tokenizer.eos_token_id]
    named += [tokenizer.convert_tokens_to_ids(tokenizer.special_tokens_map.get(f"eo{of}_token") or []) for of in "tm"]
    for config in (model.config, model.config.get_text_config()):
        ids = getattr(config, "eos_token_id", None)
        ids = ids if isinstance(ids, list) else [ids]
        named += [token for token in ids if token is not None and tokenizer.convert_ids_to_tokens(token) in added]
    flat = [token for ids in named for token in (ids if isinstance(ids, list) else [ids])]
    return {int(token) for token in flat if token is not None}


def _opened(header: str) -> str:
    """Return the end of a header from the tag of a thought that it leaves open; "" if it leaves none open."""
    opened: int | None = None
    for tag in _TAG.finditer(header):
        if _CLOSES.search(tag[0]):
            opened = None
        elif opened is None and _THOUGHT.search(tag[0]):
            opened = tag.start()
    return "" if opened is None else header[opened:]
