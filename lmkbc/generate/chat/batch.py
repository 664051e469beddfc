"""The Batch API: all missing calls as one file, answered by the server in its own time, at a lower price.

The job is noted in the store before it is waited for, so that a killed run finds it again and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence

import msgspec
import openai

from lmkbc.errors import LmkbcError
from lmkbc.generate.chat.client import CallError
from lmkbc.generate.chat.limits import Limits, estimate
from lmkbc.generate.chat.request import Offers
from lmkbc.generate.chat.session import Session
from lmkbc.store import Call, Store
from lmkbc.types import Query

MOST = 50_000
"""Requests that one job may hold."""

WINDOW = "24h"
ENDED = ("completed", "failed", "expired", "cancelled")

log = logging.getLogger(__name__)


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None


async def run(
    session: Session, store: Store, calls: Callable[[Query], list[Call]], queries: Iterable[Query], limits: Limits
) -> None:
    """Answer, through jobs, all calls that the store lacks. What a job leaves out stays missing."""
    missing = {call.key: call for query in queries for call in calls(query) if store.get(call) is None}
    keys = sorted(missing)
    for start in range(0, len(keys), MOST):
        await _job(session, store, [missing[key] for key in keys[start : start + MOST]], limits)
        if session.stopped:
            return
    session.stopped = "the batch left them out"


async def _job(session: Session, store: Store, calls: Sequence[Call], limits: Limits) -> None:
    bodies = [Offers().body(call, 1) for call in calls]
    guesses = [estimate(body) for body in bodies]
    guess = sum(prompt for prompt, _ in guesses), sum(answer for _, answer in guesses)
    if limit := session.budget.exhausted_by(*guess):
        session.stopped = f"a batch of {len(calls)} requests might overrun {limit}"
        return
    used = (0, 0)
    try:
        used = await _answered(session, store, calls, bodies, limits)
    except openai.APIError as error:
        said = session.client.server.without_key(str(error))
        raise LmkbcError(f"the batch failed ({said}): run again to go on, or use executor 'calls'") from None
    finally:
        session.budget.settle(*guess, used)


async def _answered(
    session: Session, store: Store, calls: Sequence[Call], bodies: Sequence[dict[str, object]], limits: Limits
) -> tuple[int, int]:
    """Send or find again the job of some calls, wait for its end, and commit what it answered. Returns the tokens."""
    sdk = session.client.sdk
    note = "batch " + hashlib.sha256("".join(call.key for call in calls).encode()).hexdigest()
    identifier = store.note(note)
    if identifier is None:
        path = "/v1/chat/completions" if "messages" in bodies[0] else "/v1/completions"
        lines = [
            msgspec.json.encode({"custom_id": call.key, "method": "POST", "url": path, "body": body})
            for call, body in zip(calls, bodies, strict=True)
        ]
        sent = await sdk.files.create(file=("calls.jsonl", b"\n".join(lines)), purpose="batch")
        made = await sdk.batches.create(input_file_id=sent.id, endpoint=path, completion_window=WINDOW)  # type: ignore[arg-type]
        identifier = made.id
        store.set_note(note, identifier)
    job = await sdk.batches.retrieve(identifier)
    while job.status not in ENDED:
        await asyncio.sleep(limits.poll)
        job = await sdk.batches.retrieve(identifier)
    log.info("batch %s: %s", identifier, job.status)
    raw = (await sdk.files.content(job.output_file_id)).content if job.output_file_id else b""
    used = _commit(session, store, {call.key: call for call in calls}, raw)
    store.set_note(note, None)
    return used


def _commit(session: Session, store: Store, calls: dict[str, Call], raw: bytes) -> tuple[int, int]:
    answers, prompt, completion = [], 0, 0
    for line in map(msgspec.json.Decoder(_Line).decode, raw.splitlines()):
        if line.custom_id not in calls or line.response is None or line.response.status_code != 200:
            continue
        try:
            reply = session.client.read(bytes(line.response.body))[0]
        except CallError as error:
            session.failures[str(error)] += 1
            continue
        answers.append((calls[line.custom_id], msgspec.to_builtins(reply)))
        prompt, completion = prompt + reply.prompt_tokens, completion + reply.completion_tokens
    store.put(answers)
    return prompt, completion
