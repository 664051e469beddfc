"""The back end over a server: conversations and short questions, each answer looked up in the store and kept there."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from lmkbc.models.answers import Store
from lmkbc.models.base import Answered, Key, Prompt, Reply, Request, Result, Talk, answer_of, resumed
from lmkbc.models.budget import Budget
from lmkbc.models.call import Call
from lmkbc.models.server.address import Server
from lmkbc.models.server.batch import run as run_batch
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.option_scorer import OptionScorer
from lmkbc.models.server.request import calls
from lmkbc.models.server.session import Session
from lmkbc.notes import Notes

log = logging.getLogger(__name__)


class ServerModel:
    """A server's model. Whatever it is asked stays in the store, so that a run, killed or not, can be gone on with.

    completion: plain questions go on as texts, else they are one message each. extra: further fields of every plain
    question, such as what keeps a model from thinking aloud. batch: send what conversations begin with as one job of
    the Batch API. notes: where usage goes, and what was not to be had.
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
        """Why answers of the last conversation are missing."""
        return self._last.why("") if self._last else ""

    def converse(self, talks: Mapping[Key, Talk[Result]]) -> Iterator[tuple[Key, Result]]:
        """Answer many talks at a time, each at its own pace. ServerError when asking is in vain."""
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
        """Yield what a person should know of the last conversation."""
        if (session := self._last) is None:
            return
        offers, refused = session.offers, " and ".join(sorted(session.offers.refused))
        remarks = (
            (True, session.account),
            (session.dropped, f"{session.dropped} rows of {self.place} were no answers: dropped, and asked for again"),
            *((True, remark) for remark in self._store.remarks),
            (refused, f"the server takes no {refused}: asked without"),
            (not refused and not offers.several, "the server ignores n: each draw was asked for alone"),
            (session.shortened, f"{session.shortened} prompts were shown fewer examples, to fit the server's context"),
            (
                session.too_long,
                f"{session.too_long} prompts exceed the server's context: say fit = true in the recipe's table shots, "
                "so that they are shown fewer examples, or have the server read more tokens",
            ),
        )
        yield from (remark for applies, remark in remarks if applies)

    def texts(
        self,
        prompts: Sequence[str],
        max_tokens: int,
        draws: int = 1,
        temperature: float = 0.0,
        seed: int = 0,  # noqa: ARG002 -- a server draws as it likes
    ) -> list[list[str]]:
        """Return the first line of each draw of each prompt; draws that cannot be had are left out."""
        drawn = self._ask(prompts, {"temperature": temperature, "max_tokens": max_tokens} | self._stop("\n"), draws)
        answers = [[reply.text for reply in replies if reply and reply.is_answer] for replies in drawn]
        return [[(answer_of(text) or "").partition("\n")[0] for text in texts] for texts in answers]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 256, stop: str = "\n\n") -> list[str | None]:
        """Return the whole answer to each prompt; None where no answer can be had."""
        ends = self._stop(stop) if stop else {}
        replies = self._ask(prompts, {"temperature": 0.0, "max_tokens": max_tokens} | ends)
        return [answer_of(reply.text) if reply and reply.is_answer else None for (reply,) in replies]

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:
        """Return, for each prompt, the log-probability that the answer begins with each word, as the server tells.

        A request asks for as many alternatives as the API's own definition allows. A word that is not among them gets
        the most that it may have; if none is, all get -inf. A server that tells no alternatives is taken by its word:
        0 for the one it wrote, -inf for the others.
        """
        most = {"logprobs": 5} if self._completion else {"logprobs": True, "top_logprobs": 20}
        replies = [reply for (reply,) in self._ask(prompts, {"temperature": 0.0, "max_tokens": 4} | most)]
        if any(reply is not None and reply.first is None for reply in replies):
            self.notes.remark(
                f"{self._server.base_url} tells no log-probabilities: what it writes is taken for certain"
            )
        return [_first_word(reply, options) if reply else [-math.inf] * len(options) for reply in replies]

    def option_scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float] | None]:
        """Return the log-probability that each prompt is answered by each of its own options; see `OptionScorer`."""
        return self._scorer.option_scores(prompts, options)

    def lengths(self, options: Sequence[str]) -> list[int]:
        """Return of how many tokens each option is, as it stood after a prompt; 1 where it never stood after one."""
        return self._scorer.lengths(options)

    async def _answered(self, session: Session, request: Request) -> Answered:
        shown = [request.prompt]  # the last of them is what is answered

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
    )  # an option that is not reported has no more than the least that is, and than the rest
    return [math.log(p) if p > 0 else -math.inf for p in (mass[option] or least for option in options)]


def _named(token: str, options: Sequence[str]) -> str | None:
    """Return the word that a token is, or is the beginning of; None for no word or several."""
    bare = token.strip().strip("\u2581\u0120.,:;!*\"'").casefold()
    words = [option for option in options if bare and option.casefold().startswith(bare)]
    return words[0] if len(words) == 1 else None
