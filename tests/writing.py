"""A language model that writes what it is given to write."""

from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import Any

from lmkbc.models.base import Response, next_requests
from lmkbc.testing import Reply


class Writing:
    """Answers each prompt with the next of its replies, and behind the last one from the first again."""

    name = place = "a stand-in"

    def __init__(self, *replies: str | None) -> None:
        self.asked: list[str] = []
        self.samplings: list[Any] = []
        self._replies = cycle(replies)

    def drawn(self, prompt: str) -> list[str | None]:
        """Return the draws of a prompt."""
        return [next(self._replies)]

    def complete(self, dialogues: Mapping[Any, Any], _: Any = None) -> Iterator[tuple[Any, Any]]:
        for key, dialogue in dialogues.items():
            requests, result = next_requests(dialogue)
            while requests:
                texts = [one.prompt.text for one in requests]
                self.asked += texts
                self.samplings += [one.sampling for one in requests]
                replies = [[None if draw is None else Reply(draw) for draw in self.drawn(text)] for text in texts]
                responses = [Response(one.prompt, its) for one, its in zip(requests, replies, strict=True)]
                requests, result = next_requests(dialogue, responses)
            yield key, result
