"""A probe's prompts answered by an OpenAI-compatible server, many at a time, within limits, resumed from the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmkbc.errors import LmkbcError, counted
from lmkbc.models.answers import Store
from lmkbc.models.base import WITHHELD, Prompt
from lmkbc.models.budget import Budget
from lmkbc.models.server.address import Server
from lmkbc.models.server.limits import Limits
from lmkbc.models.server.session import Session


class Served:
    """Asks a server: chat prompts as messages, others as a text to go on with.

    sampling: the request's further fields. offline: answers of the store only. remarks: what a person should know of a
    run, once it is over.
    """

    def __init__(
        self,
        server: Server,
        store: Store,
        sampling: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        budget: Budget | None = None,
        offline: bool = False,
    ) -> None:
        self.remarks: list[str] = []
        self._server, self._store, self._sampling = server, store, sampling
        self._limits, self._budget, self._offline = limits or Limits(), budget or Budget(), offline
        self._withheld = self._blank = 0

    def answers(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, str | None]]:
        """Yield (place, text) as answers come; what a model refuses to answer is answered with "".

        LmkbcError at the end where answers are missing: they are failures, no wrong answers.
        """
        session = Session(self._server, self._store, self._limits, self._budget, offline=self._offline)
        unanswered = 0

        async def ask(place: int) -> tuple[int, str | None]:
            nonlocal unanswered
            text = await self._answer(session, prompts[place])
            unanswered += text is None
            return place, text

        yield from session.answers(range(len(prompts)), ask)
        self.remarks = list(self._remarks_of(session))
        if unanswered:
            raise LmkbcError(
                f"{unanswered} of {len(prompts)} prompts have no answer ({session.why()}): "
                f"run the same command again to go on from {self._store.place}"
            )

    async def _answer(self, session: Session, prompt: Prompt) -> str | None:
        request = prompt.text if prompt.form == "completion" else prompt.messages()
        call = self._server.call(request, self._sampling)
        (reply,) = await session.draws([call])
        if reply is not None and reply.finish in WITHHELD:
            self._withheld += 1
            return ""
        if reply is None or reply.failed:
            return None
        self._blank += not reply.is_answer
        return reply.text

    def _remarks_of(self, session: Session) -> Iterator[str]:
        yield f"{self._server.name}: {session.account}"
        if self._withheld:
            refused = counted(self._withheld, "prompt was", "prompts were")
            yield f"{self._server.name}: {refused} refused: counted as wrong"
        if self._blank:
            yield (
                f"{self._server.name}: {counted(self._blank, 'prompt was', 'prompts were')} answered with nothing: "
                "counted as wrong, and as nothing is not kept, the next run asks again"
            )
        yield from self._store.remarks
