"""The one pump: many items at a time are asked of a server, and each is handed on as soon as it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from lmkbc.models.server.session import Session

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def pumped(
    session: Session,
    items: Sequence[Item],
    answer: Callable[[Item], Awaitable[Answer]],
    before: Callable[[], Awaitable[object]] | None = None,
) -> Iterator[Answer]:
    """The answer to each item, as answers come; the session's limits say how many are in flight.

    answer, before: run on one event loop, `before` ahead of the first item. What they raise is raised here. However
    this ends, nothing is in flight afterwards, and the session is closed.
    """
    done: asyncio.Queue[Answer | Exception] = asyncio.Queue()
    todo = iter(items)

    async def work() -> None:
        try:
            for item in todo:
                await asyncio.sleep(0)  # answers from the store alone would hold up all others
                done.put_nowait(await answer(item))
        except Exception as error:  # raised where the answers are read
            done.put_nowait(error)

    async def start() -> list[asyncio.Task[None]]:
        if before is not None:
            await before()
        return [asyncio.create_task(work()) for _ in range(session.limits.concurrency)]

    with asyncio.Runner() as runner:
        workers: list[asyncio.Task[None]] = []
        try:
            workers = runner.run(start())
            for _ in items:
                result = runner.run(done.get())
                if isinstance(result, Exception):
                    raise result
                yield result
        finally:
            runner.run(_end(session, workers))


async def _end(session: Session, workers: Sequence[asyncio.Task[None]]) -> None:
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await session.close()
