"""Plain questions to a server: what verification and recall ask. Every answer is kept in the store."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmkbc.models.base import Reply
from lmkbc.models.server.address import Server
from lmkbc.models.server.pump import pumped
from lmkbc.models.server.session import Session
from lmkbc.types import Notes

ALTERNATIVES = {"chat": 20, "completion": 5}
"""Tokens that a server is asked to tell at a place: the most that the API's own definition allows."""


class ChatScorer:
    """Asks a server for short texts and for the probabilities of words.

    completion: prompts go on as texts, else they are one message each. draws, temperature: of `texts`; the rest is
    greedy. extra: further fields of every request, such as what keeps a model from thinking aloud. notes: where usage
    goes, and what was not to be had.
    """

    def __init__(
        self,
        server: Server,
        open_session: Callable[[], Session],
        *,
        completion: bool,
        draws: int = 1,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
        notes: Notes | None = None,
    ) -> None:
        self.notes = notes or Notes()
        self._server = server
        self._open_session = open_session
        self._completion = completion
        self._draws, self._temperature, self._extra = draws, temperature, dict(extra or {})

    def texts(self, prompts: Sequence[str], max_tokens: int) -> list[list[str]]:
        """The first line of each draw of each prompt; draws that cannot be had are left out."""
        how = {"temperature": self._temperature, "max_tokens": max_tokens} | self._stop("\n")
        drawn = self._run(prompts, how, self._draws)
        answers = [[reply.text for reply in replies if reply and reply.is_answer] for replies in drawn]
        return [[text.strip().partition("\n")[0] for text in texts] for texts in answers]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 256) -> list[str | None]:
        """The whole answer to each prompt; None where no answer can be had."""
        replies = self._run(prompts, {"temperature": 0.0, "max_tokens": max_tokens} | self._stop("\n\n"))
        return [reply.text if reply and reply.is_answer else None for (reply,) in replies]

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """For each prompt, the log-probability that the answer begins with each word, as far as the server tells.

        A word that is not among the alternatives told gets the most that it may have; none of them, all -inf. A server
        that tells no alternatives is taken by its word: 0 for the one it wrote, -inf for the others.
        """
        sampling: dict[str, Any] = {"temperature": 0.0, "max_tokens": 4}
        if self._completion:
            sampling["logprobs"] = ALTERNATIVES["completion"]
        else:
            sampling |= {"logprobs": True, "top_logprobs": ALTERNATIVES["chat"]}
        replies = [reply for (reply,) in self._run(prompts, sampling)]
        if any(reply is not None and reply.first is None for reply in replies):
            self.notes.remark(
                f"{self._server.base_url} tells no log-probabilities: what it writes is taken for certain"
            )
        return [_first_word(reply, options) if reply else [-math.inf] * len(options) for reply in replies]

    def _stop(self, end: str) -> dict[str, Any]:
        return {"stop": [end]} if self._completion else {}

    def _run(self, prompts: Sequence[str], sampling: Mapping[str, Any], draws: int = 1) -> list[list[Reply | None]]:
        if not prompts:
            return []
        session = self._open_session()
        answers: list[list[Reply | None]] = [[None] * draws for _ in prompts]

        async def ask(place: int) -> tuple[int, list[Reply | None]]:
            text = prompts[place]
            prompt = text if self._completion else [{"role": "user", "content": text}]
            first = self._server.call(prompt, self._extra | dict(sampling))
            return place, await session.draws([replace(first, draw=draw) for draw in range(draws)])

        try:
            for place, replies in pumped(session, range(len(prompts)), ask):
                answers[place] = replies
        finally:
            self.notes.usage |= session.budget.spent
        if lost := sum(None in replies for replies in answers):
            self.notes.remark(
                f"{lost} of {len(prompts)} questions have no answer ({session.why()}); run again to go on"
            )
        return answers


def _first_word(reply: Reply, options: Sequence[str]) -> list[float]:
    if reply.first is None:
        named = _named(reply.text.strip().partition(" ")[0], options)
        return [0.0 if option == named else -math.inf for option in options]
    mass = dict.fromkeys(options, 0.0)
    for token, logprob in reply.first:
        if option := _named(token, options):
            mass[option] += math.exp(min(logprob, 0.0))
    if not any(mass.values()):
        return [-math.inf] * len(options)
    listed = [math.exp(min(logprob, 0.0)) for _, logprob in reply.first]
    least = min(
        1 - math.fsum(listed), *listed
    )  # what is not told has no more than the least that is, and than the rest
    return [math.log(p) if p > 0 else -math.inf for p in (mass[option] or least for option in options)]


def _named(token: str, options: Sequence[str]) -> str | None:
    """The word that a token is, or is the beginning of; None for no word or several."""
    bare = token.strip().strip("\u2581\u0120.,:;!*\"'").casefold()
    words = [option for option in options if bare and option.casefold().startswith(bare)]
    return words[0] if len(words) == 1 else None
