"""The back end over a server: conversations and short questions, with all answers looked up and kept in the store."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from lmkbc.models.base import Answered, Key, Prompt, Reply, Request, Result, Talk, resumed
from lmkbc.models.budget import Budget
from lmkbc.models.call import Call
from lmkbc.models.server.address import Server
from lmkbc.models.server.batch import run as run_batch
from lmkbc.models.server.likelihood import OptionScorer
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.request import LENGTH, calls
from lmkbc.models.server.served import Window
from lmkbc.models.server.session import Session
from lmkbc.models.store import Store
from lmkbc.models.thoughts import answer_of
from lmkbc.notes import Notes

FIT = "say fit = true in the recipe's table shots, so that they are shown fewer examples"

log = logging.getLogger(__name__)


class ServerModel:
    """A server's model. All answers stay in the store, so that an interrupted run can resume.

    completion: whether plain questions are completed as text; else they are one message each.
    extra: further fields of plain questions, such as one that disables reasoning.
    batch: whether to send the first requests of conversations as a job of the Batch API.
    notes: get the usage, and remarks about missing answers.
    """

    def __init__(
        self,
        server: Server,
        store: Store,
        limits: Limits | None = None,
        budget: Budget | None = None,
        *,
        completion: bool = False,
        extra: Mapping[str, Any] | None = None,
        batch: bool = False,
        offline: bool = False,
        notes: Notes | None = None,
    ) -> None:
        self.name, self.place, self.notes = server.name, str(store.place), notes or Notes()
        self._server, self._store, self._offline, self._batch = server, store, offline, batch
        self._completion, self._extra = completion, dict(extra or {})
        self._session = partial(
            Session, server, store, limits or Limits(), budget or Budget(), self.notes, offline=offline
        )
        self._last: Session | None = None
        self._scorer = OptionScorer(server, store, self._session, self.notes)

    @property
    def lost(self) -> str:
        """Return why answers of the last conversation are missing."""
        return self._last.why("") if self._last else ""

    def converse(self, talks: Mapping[Key, Talk[Result]]) -> Iterator[tuple[Key, Result]]:
        """Answer many talks concurrently. Raise ServerError if all further requests would fail."""
        session = self._last = self._session()
        begun = {key: resumed(talk) for key, talk in talks.items()}

        def first() -> Iterator[list[Call]]:
            yield from (calls(self._server, one, one.prompt) for requests, _ in begun.values() for one in requests)

        async def before() -> None:
            if not self._offline:
                over, count = await session.look_ahead(draws[0] for draws in first())
                if over:
                    log.warning(
                        f"{self.name}: {over} of {count} prompts leave no room for an answer in the server's context "
                        f"of {session.window.tokens} tokens: those whose shots say fit = true are shown fewer examples"
                    )
                if self._batch:
                    await run_batch(session, self._store, chain.from_iterable(first()))

        async def answer(key: Key) -> tuple[Key, Result]:
            requests, result = begun.pop(key)
            while requests:
                answered = [await self._answered(session, request) for request in requests]
                requests, result = resumed(talks[key], answered)
            return key, result  # type: ignore[return-value]

        yield from session.answers(list(talks), answer, before)
        prompt, completion = session.tokens
        self.notes.used(prompt_tokens=prompt, completion_tokens=completion, from_store=session.replayed)

    def remarks(self) -> Iterator[str]:
        """Yield sentences for the user about the last conversation."""
        if (session := self._last) is None:
            return
        offers, refused = session.offers, " and ".join(sorted(session.offers.refused))
        remarks = (
            (True, session.account),
            (session.stopped and session.commonest, f"most of the failures: {session.commonest}"),
            (session.window.reduced, _reduced(session.window)),
            (refused, f"the server takes no {refused}: asked {_in_place(session.offers.refused)}"),
            (not refused and not offers.several, "the server ignores n: each draw was asked for alone"),
            (session.shortened, f"{session.shortened} prompts were shown fewer examples, to fit the server's context"),
            (
                session.too_long,
                f"{session.too_long} prompts exceed the server's context"
                + (" even without examples: " if session.shortest else f": {FIT}, or ")
                + "have the server read more tokens",
            ),
        )
        yield from (remark for applies, remark in remarks if applies)

    def texts(
        self,
        prompts: Sequence[str],
        max_tokens: int,
        draws: int = 1,
        temperature: float = 0.0,
        seed: int = 0,  # noqa: ARG002 -- servers draw unseeded here
    ) -> list[list[str]]:
        """Return the first line of each draw of each prompt, without failed draws."""
        drawn = self._ask(prompts, {"temperature": temperature, "max_tokens": max_tokens} | self._stop("\n"), draws)
        answers = [[reply.text for reply in replies if reply and reply.is_answer] for replies in drawn]
        return [[(answer_of(text) or "").partition("\n")[0] for text in texts] for texts in answers]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 256, stop: str = "\n\n") -> list[str | None]:
        """Return the whole answer to each prompt; None for a failed one."""
        ends = self._stop(stop) if stop else {}
        replies = self._ask(prompts, {"temperature": 0.0, "max_tokens": max_tokens} | ends)
        return [answer_of(reply.text) if reply and reply.is_answer else None for (reply,) in replies]

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """Return, for each prompt, the log-probability of each option as the beginning of the answer.

        Requests ask for the most alternatives that the API allows. An option that is not among them gets the largest
        possible value; if no option is, all get -inf. If a server reports no alternatives, the option that it wrote
        gets 0, the others -inf.
        """
        most = {"logprobs": 5} if self._completion else {"logprobs": True, "top_logprobs": 20}
        replies = [reply for (reply,) in self._ask(prompts, {"temperature": 0.0, "max_tokens": 4} | most)]
        if any(reply is not None and reply.first is None for reply in replies):
            self.notes.remark(
                f"{self._server.base_url} returns no log-probabilities: what it writes is taken for certain"
            )
        return [_first_word(reply, options) if reply else [-math.inf] * len(options) for reply in replies]

    def option_scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float] | None]:
        """Return the log-probability of each of its options as the answer to each prompt; see `OptionScorer`."""
        return self._scorer.option_scores(prompts, options)

    async def _answered(self, session: Session, request: Request) -> Answered:
        shown = [request.prompt]  # the last of them is the one that is answered

        def shorter() -> Iterator[list[Call]]:
            for prompt in request.shorter():
                shown.append(prompt)
                yield calls(self._server, request, prompt)

        replies = await session.draws(calls(self._server, request, request.prompt), shorter())
        return Answered(shown[-1], replies)

    def _stop(self, end: str) -> dict[str, Any]:
        return {"stop": [end]} if self._completion else {}

    def _ask(self, prompts: Sequence[str], sampling: Mapping[str, Any], draws: int = 1) -> list[list[Reply | None]]:
        """Return the draws of each plain question."""
        if not prompts:
            return []
        session = self._session()

        async def ask(place: int) -> tuple[int, list[Reply | None]]:
            text = prompts[place]
            prompt = text if self._completion else [{"role": "user", "content": text}]
            first = self._server.call(prompt, self._extra | dict(sampling))
            return place, await session.draws([replace(first, draw=draw) for draw in range(draws)])

        found = dict(session.answers(range(len(prompts)), ask))
        answers = [found[place] for place in range(len(prompts))]
        if lost := sum(None in replies for replies in answers):
            self.notes.remark(
                f"{lost} of {len(prompts)} questions have no answer ({session.why()}); run again to go on"
            )
        return answers


def _reduced(window: Window) -> str:
    asked, least = window.reduced or (0, 0)
    return f"the server accepts no answer of {asked} tokens: max_tokens was reduced, to {least} for the longest prompt"


def _first_word(reply: Reply, options: Sequence[str]) -> list[float]:
    if reply.first is None:
        named = _named((answer_of(reply.text) or "").partition(" ")[0], options)
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
    )  # an unreported option has at most the least reported probability, and at most the rest
    return [math.log(p) if p > 0 else -math.inf for p in (mass[option] or least for option in options)]


def _named(token: str, options: Sequence[str]) -> str | None:
    """Return the option that a token equals or begins; None if there is none or several."""
    bare = token.strip().strip("\u2581\u0120.,:;!*\"'").casefold()
    words = [option for option in options if bare and option.casefold().startswith(bare)]
    return words[0] if len(words) == 1 else None


def _in_place(refused: Collection[str]) -> str:
    """Return how a server is asked that takes no such fields, for a message."""
    if LENGTH[0] not in refused:
        return "without"
    return f"with {LENGTH[1]}" + (", and without the others" if len(refused) > 1 else "")
