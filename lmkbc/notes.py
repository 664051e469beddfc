"""Side information of a step: usage, remarks, passages, replies."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lmkbc.types import Query

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of text and its title. score: its similarity to the question, 1 if looked up."""

    title: str
    text: str
    score: float = 1.0


class Replies(NamedTuple):
    """Texts of a model about a query, one per draw; None for a call that failed. source: the model's name."""

    source: str
    texts: tuple[str | None, ...]


@dataclass(slots=True)
class Notes:
    """Side information that a run passes in, and a step fills.

    usage: tokens, calls and cost. remarks: what a person should know, in sentences. passages: what a prompt held.
    replies: what was answered to the query itself. at_end: checks that run once all queries were asked.
    models: whose answers they are.
    """

    usage: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    passages: dict[Query, tuple[Passage, ...]] = field(default_factory=dict)
    replies: dict[Query, Replies] = field(default_factory=dict)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    models: list[str] = field(default_factory=list)

    def remark(self, sentence: str) -> None:
        """Note and log a sentence, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)
            log.warning(sentence)

    def used(self, **counts: int) -> None:
        """Add to the usage."""
        self.usage |= {name: self.usage.get(name, 0) + count for name, count in counts.items()}

    def asked(self, *models: str) -> None:
        """Note whose answers a step takes, each model once."""
        self.models += [model for model in models if model not in self.models]

    def replied(self, query: Query, source: str, texts: Iterable[str | None]) -> None:
        """Note what a model wrote about a query."""
        self.replies[query] = Replies(source, tuple(texts))
