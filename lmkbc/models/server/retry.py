"""The one layer of retries: bounded in attempts and in time, and as patient as the server asks for within that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import tenacity

from lmkbc.models.server.client import CallError
from lmkbc.models.server.limits import Limits, Throttle

Result = TypeVar("Result")


async def retrying(request: Callable[[], Awaitable[Result]], limits: Limits, throttle: Throttle) -> Result:
    """The result of a request, asked again after transient failures. The last CallError when it stays without."""
    growing = tenacity.wait_exponential(multiplier=limits.first_wait, max=60)
    jitter = tenacity.wait_random(0, limits.first_wait / 2)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        named = error.wait if isinstance(error, CallError) else None
        if named is None:
            return growing(state) + jitter(state)
        if named <= limits.total_wait:
            throttle.hold(named)
        return named + jitter(state)

    attempts = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: isinstance(error, CallError) and error.transient),
        wait=wait,
        stop=tenacity.stop_after_attempt(limits.attempts) | tenacity.stop_before_delay(limits.total_wait),
        reraise=True,
    )
    return await attempts(request)
