"""Give persons' names a shape, and ask a draw without objects again (jhh25, LM-KBC 2025)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lmkbc.ask.steps import MOST_ROUNDS, Turn
from lmkbc.ask.style import PromptStyle
from lmkbc.errors import refuse
from lmkbc.generate.conversation import Conversation
from lmkbc.link.cleaning import NameShape
from lmkbc.models.base import Prompt, Reply, Request
from lmkbc.names import folded_key
from lmkbc.settings import ReadBy
from lmkbc.types import Query

AGAIN = ReadBy(
    "a temperature above 0", lambda _, spec, *__: any(sampling.temperature != 0 for *_, sampling in spec.variants)
)


@dataclass(frozen=True, kw_only=True)
class WordedShape(NameShape):
    """The shape of a name, with further bounds.

    shortest: fewest characters. word: fewest and most characters of a word. some: fewest characters of its longest one.
    begins: texts, in small letters, with which it never begins, also within a word, as in theirs.
    without: words, in any case, that it never holds.
    """

    shortest: int = 1
    word: tuple[int, int] = (1, 1000)
    some: int = 1
    begins: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def fits(self, name: str) -> bool:
        """Return whether a name has the shape."""
        without, sizes = set(map(folded_key, self.without)), [len(word) for word in name.split()]
        return (
            super().fits(name)
            and len(name) >= self.shortest
            and all(self.word[0] <= size <= self.word[1] for size in sizes)
            and max(sizes, default=0) >= self.some
            and not name.lower().startswith(self.begins)
            and without.isdisjoint(folded_key(name).split())
        )


@dataclass(frozen=True)
class Retry(Turn):
    """Asks a draw that names no object again, as a draw of its own. attempt: number of the retry, from 1."""

    attempt: int
    again = 1

    def request(self, talk: Conversation, query: Query, prompt: Prompt, draw: int, reply: Reply) -> Request | None:
        """Return the request for a further draw; None if the reply names an object."""
        further = draw + self.attempt * talk.asking.plan(query).sampling.samples
        return None if talk.names(query, reply) else talk.request(query, prompt, [further])


@dataclass(frozen=True, kw_only=True)
class RetryingStyle(PromptStyle):
    """A prompt that is asked again. retries: how often a draw that names no object is asked again."""

    retries: Annotated[int, AGAIN]

    def __post_init__(self) -> None:
        """Raise ValueError for a number that makes no sense."""
        PromptStyle.__post_init__(self)
        refuse((not 0 <= self.retries <= MOST_ROUNDS, f"retries is {self.retries}: give 0 to {MOST_ROUNDS}"))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Return the retries."""
        return tuple(Retry(attempt) for attempt in range(1, self.retries + 1))


COMPONENTS = {"jhh25/shape": WordedShape, "jhh25/prompt": RetryingStyle}
