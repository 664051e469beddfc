"""Side information of a step: usage, remarks, passages, replies."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from lmkbc.types import CandidateSet, Query

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Passage:
    """A text passage and its title. score: its similarity to the question; 1 if it was looked up."""

    title: str
    text: str
    score: float = 1.0


class Written(Protocol):
    """Text that a model wrote, why it ended, and the log-probabilities of its tokens, if known."""

    @property
    def text(self) -> str: ...  # noqa: D102
    @property
    def finish(self) -> str: ...  # noqa: D102
    @property
    def logprobs(self) -> list[tuple[str, float]] | None: ...  # noqa: D102


class Replies(NamedTuple):
    """Replies of a model about a query.

    source: the model's name in the recipe.
    parts: for each prompt of the query, one reply per draw; None for a failed call.
    nil_probabilities: probability of no object, by the step that estimated it.
    verification: object -> verification score.
    model: name that the server reports; "" if it is the same.
    """

    source: str
    parts: tuple[tuple[Written | None, ...], ...]
    nil_probabilities: Mapping[str, float] = {}
    verification: Mapping[str, float] = {}
    model: str = ""


Live = Callable[[Query, str], None]
"""Callback that gets each text that a model wrote about a query, as soon as it is read."""


def unheard(query: Query, text: str) -> None:
    """Ignore a text."""


@dataclass(slots=True)
class Notes:
    """Side information that a run passes in and a step fills.

    usage: tokens, calls and cost.
    remarks: sentences for the user.
    passages: the passages in a query's prompt.
    replies: replies to the query itself.
    at_end: checks that run after the last query.
    files, lacking: number of files of recorded answers that are read; query -> how many of them lack it.
    models: models whose answers the step uses.
    stopped: whether a limit, failures or --offline kept back requests whose answers are wanted.
    answers, tokens: number of new answers so far, and their tokens, if known. waiting: number of calls that wait for a
    server. retried: number of further attempts of calls. on_change: called when one of these numbers has changed.
    live: gets each text.
    """

    usage: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    passages: dict[Query, tuple[Passage, ...]] = field(default_factory=dict)
    replies: dict[Query, Replies] = field(default_factory=dict)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    files: int = 0
    lacking: Counter[Query] = field(default_factory=Counter)
    models: list[str] = field(default_factory=list)
    stopped: bool = False
    answers: int = 0
    tokens: int = 0
    waiting: int = 0
    retried: int = 0
    on_change: Callable[[], None] = field(default=lambda: None, repr=False)
    live: Live = field(default=unheard, repr=False)

    def received(self, answers: Iterable[Any]) -> None:
        """Count new answers, and report them."""
        for answer in answers:
            self.answers += 1
            self.tokens += getattr(answer, "completion_tokens", 0)
        self.on_change()

    def waits(self, calls: int, retries: int) -> None:
        """Take the number of calls that wait for a server and of new retries, and report them."""
        self.waiting, self.retried = calls, self.retried + retries
        self.on_change()

    def remark(self, sentence: str) -> None:
        """Record and log a sentence, once."""
        if sentence not in self.remarks:
            self.remarks.append(sentence)
            log.warning(sentence)

    def used(self, **counts: int) -> None:
        """Add counts to the usage."""
        self.usage |= {name: self.usage.get(name, 0) + count for name, count in counts.items()}

    def asked(self, *models: str) -> None:
        """Record the models whose answers a step uses, each once."""
        self.models += [model for model in models if model not in self.models]

    def replied(self, query: Query, replies: Replies) -> None:
        """Record the replies of a model about a query."""
        self.replies[query] = replies

    def verified(self, found: CandidateSet) -> None:
        """Record the verification scores of a query's objects beside its replies."""
        if found.query in self.replies:
            scores = {one.text: one.verification for one in found.candidates if one.verification is not None}
            self.replies[found.query] = self.replies[found.query]._replace(verification=scores)
