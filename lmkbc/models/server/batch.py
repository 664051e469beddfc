"""The Batch API: all missing calls as jobs, which the server answers within a day at a lower price.

A job is noted in the store before the wait, so that a killed run finds it again and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from lmkbc.errors import LmkbcError
from lmkbc.files.jsonl import UNDECODABLE
from lmkbc.http import CallError
from lmkbc.models.answers import Store
from lmkbc.models.base import Call, Reply
from lmkbc.models.server.limits import estimate, tokens_of
from lmkbc.models.server.openai_client import ChatClient, Job
from lmkbc.models.server.refusal import SHOWN, error_in, words
from lmkbc.models.server.session import Session

MOST = 50_000
"""Maximum number of requests of one job."""

LARGEST = 100_000_000
"""Maximum number of bytes of one job's file: half of the API's limit."""

LONGEST = 25 * 3600.0
"""Seconds after which the run stops waiting for a job; the server has a day for it."""

ENDED = ("completed", "failed", "expired", "cancelled")

log = logging.getLogger(__name__)


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None


class _Request(NamedTuple):
    """Line of a job: the call, its path, its bytes, and its estimated tokens."""

    call: Call
    path: str
    line: bytes
    guess: tuple[int, int]


class _SentJob(NamedTuple):
    """A job that was sent: its id at the server, its key in the store, its estimated tokens, and its calls."""

    id: str
    note: str
    guess: tuple[int, int]
    calls: Mapping[str, Call]


async def run(session: Session, store: Store, calls: Iterable[Call]) -> None:
    """Send all calls that the store lacks as jobs, and commit the answers. Calls that a job leaves out stay missing."""
    if not isinstance(client := session.client, ChatClient):
        raise LmkbcError(f"{client.server.base_url} offers no Batch API: use executor 'calls'")
    missing = {call.key: call for call in calls if session.kept([call]).missing}
    jobs: list[_SentJob] = []
    try:
        for requests in _jobs([missing[key] for key in sorted(missing)], session):
            guess = sum(request.guess[0] for request in requests), sum(request.guess[1] for request in requests)
            if limit := session.budget.exhausted_by(*guess):
                session.stopped = f"a batch of {len(requests)} requests might overrun {limit}"
                break
            jobs.append(await _sent(client, store, requests, guess))
        for job in jobs:
            session.budget.settle(*job.guess, await _answered(session, client, store, job))
    except CallError as error:
        raise LmkbcError(f"the batch failed ({error}): run again to go on, or use executor 'calls'") from None
    why = next((f": {reason}" for reason, _ in session.failures.most_common(1)), "")
    session.stopped = session.stopped or f"the batch left them out{why}"


def _jobs(calls: Sequence[Call], session: Session) -> Iterator[list[_Request]]:
    """Yield the requests of each job; all requests of a job have the same path."""
    portion: list[_Request] = []
    size = 0
    for call in sorted(calls, key=lambda call: isinstance(call.prompt, str)):
        body = session.body(call, 1)
        path = "/v1/completions" if "prompt" in body else "/v1/chat/completions"
        line = msgspec.json.encode({"custom_id": call.key, "method": "POST", "url": path, "body": body})
        if portion and (portion[0].path != path or len(portion) == MOST or size + len(line) > LARGEST):
            yield portion
            portion, size = [], 0
        portion.append(_Request(call, path, line, estimate(body)))
        size += len(line) + 1
    if portion:
        yield portion


async def _sent(client: ChatClient, store: Store, requests: Sequence[_Request], guess: tuple[int, int]) -> _SentJob:
    """Return the job of some requests: the one noted by a killed run, else a new one."""
    note = "batch " + hashlib.sha256("".join(request.call.key for request in requests).encode()).hexdigest()
    identifier: Any = store.note(note)
    if identifier is None:
        identifier = await client.send_job(b"\n".join(one.line for one in requests), requests[0].path)
        store.set_note(note, identifier)
    return _SentJob(identifier, note, guess, {request.call.key: request.call for request in requests})


async def _answered(session: Session, client: ChatClient, store: Store, job: _SentJob) -> tuple[int, int]:
    """Wait for a job's end, commit its answers, and return their tokens."""
    ended = await _ended(client, job.id)
    if ended is None:
        store.set_note(job.note, None)
        raise LmkbcError(f"the server no longer knows the batch job {job.id!r}: run again to send it anew")
    log.info("batch %s: %s", job.id, ended.status)
    if ended.status != "completed":
        session.failures[f"it {ended.status} ({client.server.hidden(ended.why or 'no reason given')})"] += 1
    replies: list[Reply] = []
    for file in ended.files:
        replies += _commit(session, client, job.calls, await client.job_output(file))
    store.set_note(job.note, None)
    return tokens_of(replies, job.guess[0]) if replies else (0, 0)


async def _ended(client: ChatClient, identifier: str) -> Job | None:
    """Wait for a job's end, and return it; None if the server does not know it."""
    clock = asyncio.get_running_loop()
    start = clock.time()
    while (job := await client.job(identifier)) is not None and job.status not in ENDED:
        if clock.time() - start > LONGEST:
            raise LmkbcError(f"the batch job {identifier!r} is {job.status} after a day: run again to go on waiting")
        await asyncio.sleep(client.limits.poll)
    return job


def _commit(session: Session, client: ChatClient, calls: Mapping[str, Call], raw: bytes) -> list[Reply]:
    """Commit the answers in a job's output, and return all replies. Different answers to one call are not committed."""
    replies: list[tuple[Call, Reply]] = []
    for written in dict.fromkeys(raw.splitlines()):
        try:
            line = msgspec.json.decode(written, type=_Line)
            call = calls[line.custom_id]
            if line.response is None or line.response.status_code != 200:
                status = line.response.status_code if line.response else "nothing"
                why = words(error_in(bytes(line.response.body)))[:SHOWN] if line.response else ""
                raise CallError(f"it answered {status}" + (f" ({why})" if why else ""))
            reply = client.read(bytes(line.response.body))[0]
        except (CallError, *UNDECODABLE, KeyError) as error:
            reason = error if isinstance(error, CallError) else "a line of its output is broken"
            session.failures[str(reason)] += 1
            continue
        if not reply.is_answer:
            session.failures[f"an answer says nothing, and ended with {reply.finish!r}"] += 1
        replies.append((call, reply))
    times = Counter(call.key for call, _ in replies)
    if doubles := sum(count > 1 for count in times.values()):
        session.failures["its output answers a call more than once"] += doubles
    unique = [(call, reply) for call, reply in replies if times[call.key] == 1]
    session.kept([call for call, _ in unique]).keep(dict(enumerate(reply for _, reply in unique)))
    return [reply for _, reply in replies]
