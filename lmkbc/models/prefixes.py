"""Tokens of prompts: groups with a common prefix, which is encoded once per group, and options that follow a prompt.

Tokens are compared, not texts, so that every prompt keeps the tokens that it has alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")
Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Prompts with a common prefix. shared: number of its tokens. members: indices of the prompts."""

    shared: int
    members: tuple[int, ...]

    @property
    def saved(self) -> int:
        """Return the number of tokens that need not be encoded, since they are shared."""
        return self.shared * (len(self.members) - 1)


def common(first: Sequence[object], second: Sequence[object]) -> int:
    """Return the number of equal leading tokens."""
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))


def groups(prompts: Sequence[Tokens], spare: int = 1) -> list[Group]:
    """Return prompts grouped by prefix, with at least `spare` tokens of every member outside the prefix.

    The tree of prefixes is traversed from its leaves. At each branching, the groups below are joined if that does not
    increase the number of tokens to encode.
    """
    heads = [prompt[: max(len(prompt) - spare, 0)] for prompt in prompts]
    order = sorted(range(len(heads)), key=heads.__getitem__)
    open_nodes: list[tuple[int, list[Group]]] = [(0, [])]  # length of the common prefix, and the groups below
    for place, index in enumerate(order, start=1):
        below = [Group(len(heads[index]), (index,))]
        alike = common(heads[index], heads[order[place]]) if place < len(order) else 0
        while open_nodes[-1][0] > alike:
            shared, others = open_nodes.pop()
            below = _joined(shared, [*others, *below])
        if open_nodes[-1][0] == alike:
            open_nodes[-1][1].extend(below)
        else:
            open_nodes.append((alike, below))
    return _joined(*open_nodes[0])


def _joined(shared: int, parts: list[Group]) -> list[Group]:
    """Join groups with a common prefix if that saves more tokens than their separate prefixes."""
    near = [group for group in parts if shared * len(group.members) >= group.saved]
    whole = Group(shared, tuple(member for group in near for member in group.members))
    if len(near) < 2 or whole.saved < sum(group.saved for group in near):
        return parts
    return [*(group for group in parts if group not in near), whole]


def portions(items: Sequence[Item], sizes: Sequence[int], most: int) -> Iterator[list[Item]]:
    """Yield runs of items whose sizes sum to at most `most`, or single items that are larger."""
    portion: list[Item] = []
    total = 0
    for item, size in zip(items, sizes, strict=True):
        if portion and total + size > most:
            yield portion
            portion, total = [], 0
        portion.append(item)
        total += size
    if portion:
        yield portion


def of_one_length(lengths: Sequence[int], added: int, most: int) -> Iterator[list[int]]:
    """Yield the places of equal lengths, in portions of at most `most` with `added` per place."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for length, run in groupby(order, lengths.__getitem__):
        places = list(run)
        yield from portions(places, [length + added] * len(places), most)


class Option(NamedTuple):
    """Continuation of a prompt: the tokens of both, and the number of tokens of the prompt alone."""

    whole: Tokens
    first: int


def with_options(
    encode: Callable[[Sequence[str]], list[Tokens]], prompts: Sequence[str], options: Sequence[Sequence[str]]
) -> list[list[Option]]:
    """Return the tokens of each prompt with each option.

    No token crosses the beginning of a word. The tokens that an option adds are therefore equal for all prompts with
    the same last word. They are computed for the shortest of these prompts.
    """
    starts = encode(prompts)
    shortest: dict[str, int] = {}
    texts: dict[str, dict[str, None]] = {}
    for place, (prompt, choices) in enumerate(zip(prompts, options, strict=True)):
        last = _last_word(prompt)
        if last not in shortest or len(prompt) < len(prompts[shortest[last]]):
            shortest[last] = place
        texts.setdefault(last, {}).update(dict.fromkeys(choices))
    tails: dict[tuple[str, str], Tokens | None] = {}
    for last, place in shortest.items():
        start = starts[place]
        wholes = encode([prompts[place] + text for text in texts[last]])
        for text, whole in zip(texts[last], wholes, strict=True):
            tails[last, text] = whole[len(start) :] if whole[: len(start)] == start else None
    found: list[list[Option]] = []
    for prompt, start, choices in zip(prompts, starts, options, strict=True):
        added = [tails[_last_word(prompt), text] for text in choices]
        ends = [
            start + tail if tail is not None else encode([prompt + text])[0]
            for tail, text in zip(added, choices, strict=True)
        ]
        found.append([Option(whole, common(start, whole)) for whole in ends])
    return found


def beginnings(encode: Callable[[Sequence[str]], list[Tokens]], prompt: str, options: Sequence[str]) -> list[str]:
    """Return the shortest beginning of each option, in whole tokens after a prompt, that no other option has.

    An option is returned whole if no text alone has the tokens of its beginning, such as half a character.
    """
    word = _last_word(prompt)  # the tokens of an option depend on no more
    (wholes,) = with_options(encode, [word], [options])
    texts = [option[:end] for option in options for end in range(1, len(option) + 1) if option[:end].strip()]
    by_tokens = dict(zip(encode([word + text for text in texts]), texts, strict=True))
    return [by_tokens.get(part, option) for part, option in zip(told_apart(wholes), options, strict=True)]


def told_apart(options: Sequence[Option]) -> list[Tokens]:
    """Return the shortest beginning of each option that no other option has, its prompt included."""
    shared = Counter(whole[:end] for whole, first in set(options) for end in range(first + 1, len(whole) + 1))
    return [
        next((whole[:end] for end in range(first + 1, len(whole)) if shared[whole[:end]] == 1), whole)
        for whole, first in options
    ]


def _last_word(text: str) -> str:
    """Return the last word of a text, with the blank before it and the white space after it."""
    words = text.rstrip()
    return text[max(words.rfind(" "), words.rfind("\n"), 0) :]
