"""Candidate ranking over a server: the probability of each option after a prompt, stored as soon as it is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from lmkbc.http import CallError
from lmkbc.models.answers import Store, answered
from lmkbc.models.base import Prompt
from lmkbc.models.call import Call
from lmkbc.models.dry import DryStore
from lmkbc.models.server.address import Server
from lmkbc.models.server.likelihood import Echo, OptionLikelihoods, Walk, way_of
from lmkbc.models.server.refusal import ServerError, TooLongError
from lmkbc.models.server.served import length_of
from lmkbc.models.server.session import Session
from lmkbc.notes import Notes


class _Templated(msgspec.Struct):
    prompt: str


class OptionScorer:
    """Scores options with a server that returns log-probabilities, several prompts at a time.

    notes: get the usage, and remarks about missing scores. Raise ServerError for a server without log-probabilities.
    """

    def __init__(
        self, server: Server, store: Store, open_session: Callable[[], Session], notes: Notes | None = None
    ) -> None:
        self._server, self._store, self._open_session = server, store, open_session
        self._notes = notes or Notes()
        self._way: Echo | Walk | None = None
        self._stopped: str | None = None

    def option_scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float] | None]:
        """Return the log-probability of each of its options as the answer to each prompt.

        It is -inf for an option that exceeds the server's context. None stands for a prompt whose call failed.
        """
        calls = [
            self._server.call(prompt.text if prompt.form == "completion" else prompt.messages(), {"options": list(row)})
            for prompt, row in zip(prompts, options, strict=True)
        ]
        distinct = list({call.key: call for call in calls}.values())
        new: set[int] = set()

        def ask(places: Sequence[int]) -> Iterator[dict[int, OptionLikelihoods]]:
            new.update(places)
            return self._answers(distinct, places)

        found: dict[str, OptionLikelihoods] = {}
        for place, scored in answered(
            self._store, distinct, ask, OptionLikelihoods, lambda one: len(one.logs) == len(one.lengths)
        ):
            found[distinct[place].key] = scored
            self._notes.used(
                prompt_tokens=scored.prompt_tokens,
                completion_tokens=scored.completion_tokens,
                from_store=place not in new,
            )
        rows: list[list[float] | None] = []
        for call in calls:
            scored = found.get(call.key)
            rows.append([-math.inf if log is None else log for log in scored.logs] if scored else None)
        return rows

    def _answers(self, calls: Sequence[Call], places: Sequence[int]) -> Iterator[dict[int, OptionLikelihoods]]:
        """Yield the scores at each place, one by one."""
        missing = [calls[place] for place in places]
        if isinstance(self._store, DryStore):
            for call in missing:
                requests = 1 + len(_options(call))  # as for a server that echoes prompts
                given = requests * length_of(call)[0] + len("".join(_options(call))) // 4
                self._store.counter.add(call.key, given, requests, requests=requests, estimated=True)
            return
        session = self._open_session()
        session.stopped = session.stopped or self._stopped
        texts: dict[str, str] = {}
        found = 0

        async def before() -> None:
            if session.stopped is None:
                try:
                    texts.update([(call.key, await self._text(session, call)) for call in missing])
                    self._way = self._way or await way_of(session, min(texts.values(), key=len))
                    await self._way.prepare(session, list(texts.values()), list(map(_options, missing)))
                except TooLongError as error:  # even the shortest prompt
                    session.failed(error)
                    session.too_long = len(missing)
                except CallError as error:  # an error of the server, not of a prompt
                    session.failed(error)
                    session.stopped = session.stopped or str(error)

        async def ask(place: int) -> tuple[int, OptionLikelihoods | None]:
            if session.stopped is None and self._way is not None:
                try:
                    call = calls[place]
                    return place, await self._way.scores(session, texts[call.key], _options(call))
                except CallError as error:
                    session.failed(error)
            return place, None

        try:
            for place, scored in session.answers(places, ask, before):
                if scored is not None:
                    found += 1
                    yield {place: scored}
        finally:
            self._stopped = session.stopped
        if session.too_long:
            self._notes.remark(
                f"prompts whose candidates are ranked exceed the context of {self._server.base_url} ({session.why()}): "
                "show fewer examples, or have it read more tokens"
            )
        if found + session.too_long < len(missing):
            self._notes.remark(
                f"{self._server.base_url} has not returned the log-probabilities of all prompts ({session.why()}); run "
                "again to go on"
            )

    async def _text(self, session: Session, call: Call) -> str:
        """Return a prompt, rendered by the server's chat template.

        Raise ServerError if the server does not return it.
        """
        if isinstance(call.prompt, str):
            return call.prompt
        asks = {"messages": call.prompt, "chat_template_kwargs": {"enable_thinking": False}}
        if templated := await session.client.metadata("../apply-template", _Templated, asks):
            return templated.prompt
        raise ServerError(
            f"{self._server.base_url} does not return prompts rendered by its chat template, which candidate ranking "
            "needs: use form = 'completion'"
        )


def _options(call: Call) -> list[str]:
    """Return the options of a call as they follow its prompt."""
    return [f" {text}" if isinstance(call.prompt, str) else text for text in call.sampling["options"]]
