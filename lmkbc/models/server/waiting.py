"""Calls that wait for a server: said once they wait long, and given up if the first ones all get no answer in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from lmkbc.errors import counted
from lmkbc.http import LateError
from lmkbc.models.server.address import Server
from lmkbc.models.server.limits import TIMEOUT, Limits
from lmkbc.models.server.refusal import ServerError

LONG = 20.0
"""Seconds after which a call waits long, if a sixth of the time for one attempt is not less. Each report doubles it."""

ROUNDS = 2
"""Number of late attempts for each call in flight, without any answer of the server, after which a run ends."""

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)


class Waiting:
    """Watches the requests in flight of one session."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self._server, self._limits = server, limits
        self._sent: dict[object, float] = {}  # time of each request, the oldest first
        self._long = min(LONG, limits.timeout / 6)
        self._late = self._most = 0
        self._timer: asyncio.TimerHandle | None = None

    async def over(self, request: Awaitable[Answer]) -> Answer:
        """Return the result of a request. Raise ServerError if the first ones of the run are all late."""
        key = object()
        self._sent[key] = asyncio.get_running_loop().time()
        self._most = max(self._most, len(self._sent))
        self._timer = self._timer or self._in(self._long)
        try:
            return await request
        except LateError:
            self._late += 1
            if self._late >= ROUNDS * self._most and not self._server.seen.answered:
                raise ServerError(
                    f"{self._server.base_url} answered none of {self._late} calls within {self._limits.timeout:g} s "
                    f"each: check that it runs and how busy it is, give it longer by {TIMEOUT}, or ask it less at a "
                    "time by --concurrency; nothing is lost, and the same command goes on"
                ) from None
            raise
        finally:
            del self._sent[key]

    def _in(self, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Report calls that wait long, and look again when the oldest of them waits twice as long."""
        waited = [asyncio.get_running_loop().time() - sent for sent in self._sent.values()]
        if waited and waited[0] >= self._long:
            log.warning(
                "%s: %s without an answer, the longest for %.0f s; each attempt ends after %g s (%s sets it)",
                self._server.base_url,
                counted(len(waited), "call"),
                waited[0],
                self._limits.timeout,
                TIMEOUT,
            )
            self._long *= 2
        self._timer = self._in(self._long - waited[0]) if waited else None
