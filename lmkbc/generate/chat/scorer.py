"""Plain questions to a server: what verification and recall ask, with one greedy answer each, kept in the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from lmkbc.errors import InputError
from lmkbc.generate.chat.client import Server
from lmkbc.generate.chat.session import Session
from lmkbc.store import Call


class ChatScorer:
    """Asks a server for short texts. completion: prompts go on as texts, else they are one message each."""

    def __init__(self, server: Server, open_session: Callable[[], Session], *, completion: bool) -> None:
        self._server = server
        self._open_session = open_session
        self._completion = completion

    def texts(self, prompts: Sequence[str], max_tokens: int) -> list[list[str]]:
        """The first line of the answer to each prompt; empty where no answer can be had."""
        answers = asyncio.run(self._asked(prompts, max_tokens, ["\n"] if self._completion else None))
        return [[answer.strip().partition("\n")[0]] for answer in answers]

    def paragraphs(self, prompts: Sequence[str], max_tokens: int = 256) -> list[str]:
        """The whole answer to each prompt; empty where no answer can be had."""
        return asyncio.run(self._asked(prompts, max_tokens, ["\n\n"] if self._completion else None))

    def log_probabilities(self, prompts: Sequence[str], options: Sequence[str]) -> list[list[float]]:  # noqa: ARG002
        """Refused: what servers tell of other words than the one they chose differs too much to be compared."""
        raise InputError("verify: a server is asked for text, not for probabilities: say by = 'text'")

    async def _asked(self, prompts: Sequence[str], max_tokens: int, stop: list[str] | None) -> list[str]:
        session, answers = self._open_session(), [""] * len(prompts)
        sampling = {"temperature": 0.0, "max_tokens": max_tokens} | ({"stop": stop} if stop else {})
        todo = iter(enumerate(prompts))

        async def work() -> None:
            for place, text in todo:
                call = Call(
                    model=self._server.model,
                    revision=self._server.revision,
                    base_url=self._server.base_url,
                    prompt=text if self._completion else [{"role": "user", "content": text}],
                    sampling=sampling,
                )
                (reply,) = await session.draws([call])
                answers[place] = reply.text if reply else ""

        tasks = [asyncio.create_task(work()) for _ in range(session.limits.concurrency)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await session.close()
        return answers
