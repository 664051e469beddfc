"""Closed lists over a server: how likely it is to go on with each option of a prompt, kept in the store as it comes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from lmkbc.http import CallError
from lmkbc.models.answers import Call, Store
from lmkbc.models.base import Prompt
from lmkbc.models.dry import DryStore
from lmkbc.models.server.address import Server
from lmkbc.models.server.client import ServerError, TooLongError
from lmkbc.models.server.likelihood import Scored, Way, way_of
from lmkbc.models.server.limits import estimate
from lmkbc.models.server.pump import pumped
from lmkbc.models.server.session import Session
from lmkbc.types import Notes


class _Templated(msgspec.Struct):
    prompt: str


class _Asked(NamedTuple):
    call: Call
    prompt: Prompt
    options: list[str]
    """As they stand after the prompt."""


class ServerOptionScorer:
    """Asks a server that tells log-probabilities, several prompts at a time.

    notes: where usage goes, and what was lost. ServerError for a server that tells none, before anything is kept.
    """

    def __init__(
        self, server: Server, store: Store, open_session: Callable[[], Session], notes: Notes | None = None
    ) -> None:
        self._server, self._store, self._open_session = server, store, open_session
        self._notes = notes or Notes()
        self._way: Way | None = None
        self._stopped: str | None = None
        self._lengths: dict[str, int] = {}

    def option_scores(self, prompts: Sequence[Prompt], options: Sequence[Sequence[str]]) -> list[list[float] | None]:
        """The log-probability that each prompt is answered by each of its own options.

        -inf for an option that the server has no room for; None for a prompt whose call failed.
        """
        asked = [self._asking(prompt, row) for prompt, row in zip(prompts, options, strict=True)]
        found = {one.call.key: self._stored(one) for one in asked}
        stored = [scored for scored in found.values() if scored is not None]
        self._count(stored, from_store=len(stored))
        if missing := [one for one in {one.call.key: one for one in asked}.values() if found[one.call.key] is None]:
            fresh = self._answers(missing)
            self._count(list(fresh.values()))
            found |= fresh
        rows: list[list[float] | None] = []
        for one, row in zip(asked, options, strict=True):
            scored = found[one.call.key]
            rows.append([-math.inf if log is None else log for log in scored.logs] if scored else None)
            self._lengths |= zip(row, scored.lengths if scored else (), strict=False)
        return rows

    def lengths(self, options: Sequence[str]) -> list[int]:
        """Of how many tokens each option is, as it stood after a prompt; 1 where it never stood after one."""
        return [self._lengths.get(option, 1) for option in options]

    def _asking(self, prompt: Prompt, row: Sequence[str]) -> _Asked:
        plain = prompt.form == "completion"
        call = self._server.call(prompt.text if plain else prompt.messages(), {"options": list(row)})
        return _Asked(call, prompt, [f" {text}" if plain else text for text in row])

    def _stored(self, asked: _Asked) -> Scored | None:
        scored: Scored | None = self._store.get(asked.call, Scored)
        whole = scored is not None and len(scored.logs) == len(scored.lengths) == len(asked.options)
        return scored if whole else None

    def _answers(self, missing: Sequence[_Asked]) -> dict[str, Scored]:
        """What the server tells, by the calls' keys: each is kept as soon as it is there."""
        if isinstance(self._store, DryStore):
            for one in missing:
                requests = 1 + len(one.options)  # as a server is asked that echoes what it is given
                given = requests * estimate({"prompt": one.prompt.text})[0] + len("".join(one.options)) // 4
                self._store.foreseen.add(one.call.key, given, requests, requests=requests, estimated=True)
            return {}
        session = self._open_session()
        session.stopped = session.stopped or self._stopped
        texts: dict[str, str] = {}
        found: dict[str, Scored] = {}

        async def before() -> None:
            if session.stopped is None:
                try:
                    texts.update([(one.call.key, await self._text(session, one.prompt)) for one in missing])
                    self._way = self._way or await way_of(session, min(texts.values(), key=len))
                    await self._way.prepare(session, list(texts.values()), [one.options for one in missing])
                except TooLongError as error:  # even of the shortest
                    session.failed(error)
                    session.too_long = len(missing)
                except CallError as error:  # of the server, not of a prompt
                    session.failed(error)
                    session.stopped = session.stopped or str(error)

        async def ask(one: _Asked) -> None:
            if session.stopped is None and self._way is not None:
                try:
                    scored = await self._way.scores(session, texts[one.call.key], one.options)
                except CallError as error:
                    session.failed(error)
                else:
                    self._store.put([(one.call, msgspec.to_builtins(scored))])
                    found[one.call.key] = scored

        try:
            for _ in pumped(session, missing, ask, before):
                pass
        finally:
            self._stopped = session.stopped
            self._notes.usage |= session.budget.spent
        if session.too_long:
            self._notes.remark(
                f"prompts of a closed list exceed the context of {self._server.base_url} ({session.why()}): show fewer "
                "examples, or have it read more tokens"
            )
        if len(found) + session.too_long < len(missing):
            self._notes.remark(
                f"{self._server.base_url} has not told the log-probabilities of all prompts ({session.why()}); run "
                "again to go on"
            )
        return found

    async def _text(self, session: Session, prompt: Prompt) -> str:
        """What the server's model reads of a prompt: turns as its chat template makes them, where it tells that."""
        if prompt.form == "completion":
            return prompt.text
        asks: Mapping[str, Any] = {
            "messages": prompt.messages(),
            "chat_template_kwargs": {"enable_thinking": False},
        }
        if templated := await session.client.metadata("../apply-template", _Templated, asks):
            return templated.prompt
        raise ServerError(
            f"{self._server.base_url} does not tell what its chat template makes of a prompt, which a closed list "
            "needs: use form = 'completion'"
        )

    def _count(self, answers: Sequence[Scored], from_store: int = 0) -> None:
        counts = {
            "prompt_tokens": sum(one.prompt_tokens for one in answers),
            "completion_tokens": sum(one.completion_tokens for one in answers),
            "from_store": from_store,
        }
        self._notes.usage |= {name: self._notes.usage.get(name, 0) + count for name, count in counts.items()}
