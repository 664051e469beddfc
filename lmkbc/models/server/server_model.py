"""The back end over a server: dialogues, with all answers looked up and kept in the store."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from lmkbc.models.answers import KeptAnswers, Store
from lmkbc.models.base import (
    Call,
    Dialogue,
    Key,
    Outcome,
    Prompt,
    Reply,
    Request,
    Response,
    Result,
    Size,
    next_requests,
    single,
)
from lmkbc.models.budget import Budget
from lmkbc.models.plain_questions import FIRST_WORD
from lmkbc.models.server.address import Server
from lmkbc.models.server.client import CompletionClient
from lmkbc.models.server.likelihood import OptionScorer, option_size
from lmkbc.models.server.limits import GUESSED_ANSWER, LENGTH, Limits, Window, length_of, most_tokens
from lmkbc.models.server.offers import MOST_DRAWS
from lmkbc.models.server.openai_client import ChatClient
from lmkbc.models.server.session import CHOICES, Session
from lmkbc.notes import Notes

FIT = "say fit = true in the recipe's table shots, so that they are shown fewer examples"

log = logging.getLogger(__name__)


class ServerModel:
    """A server's model. All answers stay in the store, so that an interrupted run can resume.

    client: class of the client that sends requests.
    completion: whether plain prompts are completed as text; else they are one message each.
    extra: further fields of plain prompts, such as one that disables reasoning.
    notes: get the usage, and remarks about missing answers.
    """

    def __init__(
        self,
        server: Server,
        store: Store,
        limits: Limits | None = None,
        budget: Budget | None = None,
        *,
        client: type[CompletionClient] = ChatClient,
        completion: bool = False,
        extra: Mapping[str, Any] | None = None,
        offline: bool = False,
        notes: Notes | None = None,
    ) -> None:
        self.name, self.place, self.notes = server.name, str(store.place), notes or Notes()
        self._server, self.store, self._offline = server, store, offline
        self._completion, self._extra = completion, dict(extra or {})
        limits = limits or Limits()
        open_client = partial(client, server, limits)
        budget = budget or Budget()
        self._session = partial(Session, open_client, store, limits, budget, self.notes, offline=offline)
        self._scorer = OptionScorer(server, store, self._session, self.notes, budget)

    def complete(
        self, dialogues: Mapping[Key, Dialogue[Result]], outcome: Outcome | None = None
    ) -> Iterator[tuple[Key, Result]]:
        """Hold many dialogues concurrently. Raise ServerError if all further requests would fail."""
        session = self._session()
        begun = {key: next_requests(dialogue) for key, dialogue in dialogues.items()}
        plain = any(request.prompt.form == "plain" for requests, _ in begun.values() for request in requests)
        lost = 0

        async def before() -> None:
            if self._offline or plain:
                return
            first = [request for requests, _ in begun.values() for request in requests]
            over, count = await session.look_ahead(self.calls(request, request.prompt)[0] for request in first)
            if over:
                log.warning(
                    f"{self.name}: {over} of {count} prompts leave no room for an answer in the server's context "
                    f"of {session.window.tokens} tokens: those whose shots say fit = true are shown fewer examples"
                )

        async def answer(key: Key) -> tuple[Key, Result]:
            nonlocal lost
            requests, result = begun.pop(key)
            while requests:
                responses = [await self._response(session, request) for request in requests]
                lost += sum(None in response.replies for response in responses)
                responses = [response.plain() for response in responses]
                requests, result = next_requests(dialogues[key], responses)
            return key, result  # type: ignore[return-value]

        yield from session.answers(list(dialogues), answer, before)
        if lost and session.stopped and not (plain and self._offline):
            self.notes.stopped = True
        if not plain:
            prompt, completion = session.tokens
            self.notes.used(prompt_tokens=prompt, completion_tokens=completion, from_store=session.replayed)
        elif lost:
            self.notes.remark(
                f"{lost} of {len(dialogues)} questions have no answer ({session.why()}); run again to go on"
            )
        if outcome is not None:
            outcome.lost = session.why("")
            outcome.remarks += _remarks(session)

    def score(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float] | None]:
        """Return the log-probability of each of its options as the answer to each prompt; see `OptionScorer`.

        For plain prompts, requests ask for the most alternatives to the first word that the API allows. An option that
        is not among them gets the largest possible value; if no option is, all get -inf. If a server reports no
        alternatives, the option that it wrote gets 0, the others -inf.
        """
        if not any(prompt.form == "plain" for prompt in prompts):
            return self._scorer.scores(self.option_calls(prompts, options))
        asked = {place: single(_first_word(prompt)) for place, prompt in enumerate(prompts)}
        found = {place: reply for place, (reply,) in self.complete(asked)}
        if any(reply is not None and reply.first is None for reply in found.values()):
            self.notes.remark(
                f"{self._server.base_url} returns no log-probabilities: what it writes is taken for certain"
            )
        return [
            None if (reply := found[place]) is None else _word_scores(reply, row) for place, row in enumerate(options)
        ]

    def beginnings(self, prompt: Prompt, options: Sequence[str]) -> list[str]:  # noqa: ARG002 -- all prompts are alike
        """Return the options: the tokens of a server are unknown."""
        return list(options)

    def examine(self, samples: int, request: Request) -> dict[str, Any]:
        """Return what the server offers for a request, with all its fields; see `Session.examine`."""
        session, (call,) = self._session(), self.calls(request, request.prompt)
        (found,) = session.answers([max(samples, CHOICES[0])], partial(session.examine, call))
        return found

    def prompts(self, request: Request) -> Iterator[Prompt]:
        """Yield the prompt, and shorter ones for a server that refuses it."""
        yield request.prompt
        yield from request.shorter()

    def calls(self, request: Request, prompt: Prompt) -> list[Call]:
        """Return a call per draw of a request, for its prompt or a shorter one. Seeds count up from the sampling's.

        Log-probabilities of a plain prompt are those of all words that may come first.
        """
        sampling, plain = request.sampling, prompt.form == "plain"
        text = self._completion if plain else prompt.form == "completion"
        given = {name: getattr(sampling, name) for name in ("temperature", "top_p", "max_tokens", "stop")}
        if given["stop"] is None and text and (request.stops or not plain):
            given["stop"] = request.stops
        if plain:
            given["max_tokens"] = sampling.max_tokens or GUESSED_ANSWER
        fields = {name: value for name, value in given.items() if value is not None}
        fields |= self._extra if plain else sampling.extra
        if request.schema and not text:
            form = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            fields = {"response_format": {"type": "json_schema", "json_schema": form}, **fields}
        if sampling.logprobs:
            fields["logprobs"] = (5 if plain else 1) if text else True
            fields |= {"top_logprobs": 20} if plain and not text else {}
        asked = prompt.text if text else prompt.messages()
        first = None if plain else sampling.seed
        return [
            self._server.call(asked, fields, seed=None if first is None else first + draw, draw=draw)
            for draw in request.draws
        ]

    def option_calls(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[Call]:
        """Return the call of each prompt."""
        return [
            self.calls(_first_word(prompt), prompt)[0]
            if prompt.form == "plain"
            else self._server.call(
                prompt.text if prompt.form == "completion" else prompt.messages(), {"options": list(row)}
            )
            for prompt, row in zip(prompts, options, strict=True)
        ]

    def kept(self, calls: Sequence[Call]) -> list[Reply | None]:
        """Return the stored reply of each call."""
        return KeptAnswers(self.store, calls, Reply, self._server.is_answer).found

    def sizes(self, calls: Sequence[Call]) -> Iterator[tuple[Call, Size]]:
        """Yield the estimated size of each request: one a draw, unless the server is known to give several at once."""
        if "options" in calls[0].sampling:
            yield calls[0], option_size(calls[0])
            return
        together = MOST_DRAWS if calls[0].seed is None and self.store.note(self._server.of_several) else 1
        for start in range(0, len(calls), together):
            prompt, (_, answer) = most_tokens(calls[start].prompt), length_of(calls[start])
            yield calls[start], Size(1, prompt, answer * len(calls[start : start + together]), estimated=True)

    async def _response(self, session: Session, request: Request) -> Response:
        shown: list[Prompt] = []  # the last of them is the one that is answered

        def tried() -> Iterator[list[Call]]:
            for prompt in self.prompts(request):
                shown.append(prompt)
                yield self.calls(request, prompt)

        replies = await session.draws(tried())
        return Response(shown[-1], replies)


def _first_word(prompt: Prompt) -> Request:
    """Return the request for the alternatives at the first word of an answer."""
    return Request(prompt, (0,), FIRST_WORD)


def _remarks(session: Session) -> Iterator[str]:
    """Yield sentences for the user about a session."""
    offers, refused = session.offers, " and ".join(sorted(session.offers.refused))
    remarks = (
        (True, session.account),
        (session.stopped and session.commonest, f"most of the failures: {session.commonest}"),
        (session.window.reduced, _reduced(session.window)),
        (
            offers.seen.streams,
            f"the server was asked for a stream, as it wants ({offers.seen.streams})",
        ),
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


def _reduced(window: Window) -> str:
    asked, least = window.reduced or (0, 0)
    return f"the server accepts no answer of {asked} tokens: max_tokens was reduced, to {least} for the longest prompt"


def _word_scores(reply: Reply, options: Sequence[str]) -> list[float]:
    if reply.first is None:
        named = _named(reply.text.partition(" ")[0], options)
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
