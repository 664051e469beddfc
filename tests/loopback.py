"""Servers on loopback: any OpenAI-compatible one, which can fail in every way a real one does, and one of files.

Answers depend on the prompt alone, so that two runs can be compared byte by byte. `python loopback.py` serves until
killed and prints its URL; in a test, `with Loopback(...) as server:` serves from a thread.
"""

import asyncio
import email.utils
import hashlib
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple, Self

Body = dict[str, Any]
OK = "200 OK"


@dataclass(frozen=True)
class Sent:
    """raw: sent at once. pieces: sent after it, one each `pause` seconds, until the client hangs up.

    end: what becomes of the connection: "keep", "close", "reset", or "hang" until the client hangs up.
    """

    raw: bytes
    end: str = "keep"
    pieces: Iterable[bytes] = ()
    pause: float = 0.0


Fault = Callable[[bytes], Sent]
"""The good answer's body -> what is sent in its place."""


def response(body: bytes | Body, status: str | int = OK, *fields: str, length: int | None = None, **how: Any) -> Sent:
    """Return a response with these header fields beside its length. how: fields of Sent."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = [] if any(field.startswith("Content-Type") for field in fields) else ["Content-Type: application/json"]
    told = [*kind, f"Content-Length: {len(raw) if length is None else length}", *fields]
    first = f"{status} {HTTPStatus(status).phrase}" if isinstance(status, int) else status
    return Sent(f"HTTP/1.1 {first}\r\n".encode() + "\r\n".join(told).encode() + b"\r\n\r\n" + raw, **how)


def unbounded(*fields: str, raw: bytes = b"", status: str | int = OK, **how: Any) -> Sent:
    """Return a response without a length, which ends with the connection."""
    head = f"HTTP/1.1 {status}" + "".join(f"\r\n{field}" for field in ("Connection: close", *fields))
    return Sent(head.encode("latin-1") + b"\r\n\r\n" + raw, **{"end": "close", **how})


def status(code: int, *fields: str, text: str = "no") -> Fault:
    """Return a fault: a status and an error."""
    return lambda _: response({"error": {"message": text}}, code, *fields)


def whole(text: str | bytes, *fields: str, **how: Any) -> Fault:
    """Return a fault: the same body for every request."""
    return lambda _: response(text if isinstance(text, bytes) else text.encode(), OK, *fields, **how)


def edited(edit: Callable[[Body], Any]) -> Fault:
    """Return a fault: the good answer, edited in place."""

    def fault(good: bytes) -> Sent:
        answer = json.loads(good)
        edit(answer)
        return response(answer)

    return fault


def chunked(body: bytes, rest: bytes) -> Sent:
    """Return the first half of a body as a chunk, then `rest` as it is."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return Sent(head + b"%x\r\n" % (len(body) // 2) + body[: len(body) // 2] + b"\r\n" + rest, "close")


FAULTS: Mapping[str, Fault] = {
    "429-seconds": status(429, "Retry-After: 0.01"),
    "429-date": lambda _: response(b"", 429, f"Retry-After: {email.utils.formatdate(time.time() + 1, usegmt=True)}"),
    "429-none": status(429),
    "429-huge": status(429, "Retry-After: 86400"),
    "500": status(500, "Retry-After: 0", text="fault 500"),
    "503": status(503, "Retry-After: 0"),
    "reset": lambda _: response(b'{"choices": [', length=5000, end="reset"),
    "drip": lambda _: response(b"", length=5000, pieces=itertools.repeat(b" "), pause=0.02),
    "broken-json": whole('{"choices": [{"message": {"content": "[\\"Fra'),
    "no-choices": edited(lambda good: good.update(choices=[])),
    "wrong-model": edited(lambda good: good.update(model="some-other-model")),
    "no-content": edited(lambda good: good.update(choices=[{"index": 0, "finish_reason": "stop"}])),
    "html": whole("<html>Welcome to the proxy</html>"),
}
NAMES = ("France", "Spain", "Italy", "Chile", "Kenya", "Japan", "Nepal", "Ghana")
TELLS = ("/models", "/props", "/tokenize", "/apply-template")


def prompt_of(body: Body) -> str:
    return body["prompt"] if "prompt" in body else "\n".join(turn["content"] for turn in body["messages"])


def some_names(body: Body) -> str:
    """Return one to three names, chosen by the prompt and the seed alone."""
    digest = hashlib.sha256(f"{prompt_of(body)}{body.get('seed')}".encode()).digest()
    return json.dumps([NAMES[byte % len(NAMES)] for byte in digest[: 1 + digest[31] % 3]])


class Request(NamedTuple):
    """A request. number: of those that were counted. fields: of its head, by their names in lower case."""

    number: int
    method: str
    path: str
    fields: Mapping[str, str]
    body: bytes

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]


class Server:
    """Serves from a thread while it is entered. delay: seconds before each answer. port: 0 for a free one.

    headers: the heads of requests, if they are to be kept.
    """

    def __init__(self, *, delay: float = 0.0, keep: bool = True, port: int = 0) -> None:
        self.headers: list[str] = []
        self.served = self.at_once = self.most_at_once = 0
        self._delay, self._keep, self._port = delay, keep, port

    def respond(self, request: Request) -> Sent:
        """Return what is sent."""
        raise NotImplementedError

    def counts(self, path: str) -> bool:
        """Return whether a request for this path is counted."""
        return True

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        assert started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while await self._one(reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", self._port, backlog=512)
        self.port: int = server.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        self._loop.remove_reader(server.sockets[0])
        await asyncio.sleep(0)  # a connection that was just accepted, and finds its server closed, leaks its socket
        server.close()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0)  # it starts, since a task that is cancelled before that closes nothing
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request, and return whether another may come over the same connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        fields = {name.lower(): value for name, value in pairs}
        method, path = head.split(" ", 2)[:2]
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        counted = self.counts(path)
        self.served += counted
        request = Request(self.served, method, path, fields, body)
        if self._keep and counted:
            self.headers.append(head)
        self.at_once += counted
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self._delay and counted:
                await asyncio.sleep(self._delay)
            sent = self.respond(request)
            writer.write(sent.raw)
            await writer.drain()
            for piece in sent.pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(sent.pause)
            if sent.end == "hang":
                await reader.read()
        finally:
            self.at_once -= counted
        if sent.end == "reset":
            writer.transport.abort()
        return sent.end == "keep"


class Files(Server):
    """Serves files by their path, from wherever it is asked to. pause: seconds between two pieces of 4 KiB.

    A Fault in place of a file is sent instead. first: what is sent instead the first time that a path is asked for.
    seen: the path of each request, and the range that it asks for.
    """

    def __init__(
        self, files: Mapping[str, bytes | Fault], first: Mapping[str, Sent] | None = None, *, pause: float = 0.0
    ) -> None:
        super().__init__()
        self._files, self._first, self._pause = files, dict(first or {}), pause
        self.seen: list[tuple[str, str | None]] = []

    def respond(self, request: Request) -> Sent:
        wanted = request.fields.get("range")
        self.seen.append((request.path, wanted))
        if request.path in self._first:
            return self._first.pop(request.path)
        file = self._files.get(request.path, status(404))
        if callable(file):
            return file(b"")
        rest = file[int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0 :]
        if not rest:
            return response(b"", 416)
        pieces = [rest[start : start + 4096] for start in range(0, len(rest), 4096)]
        return response(b"", 206 if wanted else OK, length=len(rest), pieces=pieces, pause=self._pause)


class Loopback(Server):
    """answer: body -> text, or a dictionary that overrides fields of the choice. faults: one per request, then none.

    In the dictionary, "first" tells what the first token could have been: token -> log-probability.
    fault: what becomes of every good answer.
    change: changes a good answer in its place, or returns a status and an error's message or fields to send instead.
    ignores: what the server does not know ("n", "response_format", "logprobs"); rejects: what it answers with 400.
    """

    def __init__(
        self,
        answer: Callable[[Body], str | Body] = some_names,
        faults: Iterable[str | None] = (),
        ignores: tuple[str, ...] = (),
        rejects: tuple[str, ...] = (),
        fault: Fault | None = None,
        change: Callable[[Body, Body], tuple[int, str | Body] | None] = lambda asked, answer: None,
        **how: Any,
    ) -> None:
        super().__init__(**how)
        self.tells: dict[str, Any] = {}
        """Answers about itself, at "models", "props", "tokenize" ...; these are no requests that are counted."""
        self.requests: list[Body] = []
        self.starts: list[float] = []
        self.fault = fault
        self._answer, self._faults, self._ignores, self._rejects = answer, iter(faults), ignores, rejects
        self._change = change

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def counts(self, path: str) -> bool:
        return not path.endswith(TELLS)

    def respond(self, request: Request) -> Sent:
        if not self.counts(request.path):
            told = self.tells.get(request.name)
            answer = told(json.loads(request.body or b"{}")) if callable(told) else told
            return response(answer or {}, OK if told is not None else 404)
        if request.name == "completions":
            return self._complete(json.loads(request.body))
        return response({"error": {"message": f"no {request.path}"}}, 404)

    def _complete(self, body: Body) -> Sent:
        if self._keep:
            self.requests.append(body)
            self.starts.append(time.monotonic())
        name = next(self._faults, None)
        fault = FAULTS[name] if name else self.fault
        code, answer = self.reply(body)
        return fault(json.dumps(answer).encode()) if fault and code == 200 else response(answer, code)

    def reply(self, body: Body) -> tuple[int, Body]:
        """Status and body of a good answer."""
        for field in self._rejects:
            if field in body and (field != "n" or body["n"] > 1):
                return 400, {"error": {"message": f"{field} is not supported", "param": field}}
        if body["model"] == "absent":
            return 404, {"error": {"message": "the model 'absent' does not exist", "code": "model_not_found"}}
        choices = []
        for index in range(1 if "n" in self._ignores else body.get("n", 1)):
            said = self._answer(body)
            given: Body = said if isinstance(said, dict) else {"content": said}
            choice: Body = {"index": index, "finish_reason": given.get("finish_reason", "stop")}
            if "prompt" in body:
                choice["text"] = given.get("content")
            else:
                message = {"role": "assistant", "content": given.get("content"), "refusal": given.get("refusal")}
                choice["message"] = message
            if body.get("logprobs") and "logprobs" not in self._ignores:
                tell = _completion_logprobs if "prompt" in body else _chat_logprobs
                choice["logprobs"] = tell(given.get("content") or "", given.get("first") or {})
            choices.append(choice)
        usage = {"prompt_tokens": 100, "completion_tokens": 10 * len(choices), "total_tokens": 0}
        made = {"id": "x", "object": "o", "created": 0, "model": body["model"], "choices": choices, "usage": usage}
        if refused := self._change(body, made):
            return refused[0], {"error": {"message": refused[1]} if isinstance(refused[1], str) else refused[1]}
        return 200, made


HALF = -0.6931471805599453


def _pieces(text: str) -> list[str]:
    return [text[start : start + 2] for start in range(0, len(text), 2)]


def _chat_logprobs(text: str, first: dict[str, float]) -> Body:
    """One token per two characters, each of probability one half."""
    content: list[Body] = [{"token": piece, "logprob": HALF, "top_logprobs": []} for piece in _pieces(text)]
    if content:
        content[0]["top_logprobs"] = [{"token": token, "logprob": p, "bytes": None} for token, p in first.items()]
    return {"content": content, "refusal": None}


def _completion_logprobs(text: str, first: dict[str, float]) -> Body:
    pieces = _pieces(text)
    alternatives: list[Any] = [first or None, *[None] * len(pieces)][: len(pieces)]
    return {"tokens": pieces, "token_logprobs": [HALF] * len(pieces), "top_logprobs": alternatives, "text_offset": []}


KEY = "canary-8d2f60b1"


class Reasoning(Loopback):
    """A reasoning model of OpenAI's: it refuses, one field at a time, a limit by the old name and a temperature."""

    SAID = "Unsupported parameter: '{}' is not supported with this model."

    def reply(self, body: Body) -> tuple[int, Body]:
        for field in ("max_tokens", "temperature", "logprobs"):
            if field in body:
                fields = {"type": "invalid_request_error", "param": field, "code": "unsupported_parameter"}
                return 400, {"error": {"message": self.SAID.format(field)} | fields}
        return super().reply(body)


class Anthropic(Loopback):
    """The compatible address of a provider that ignores most fields, wants n to be 1 and clamps a temperature."""

    def __init__(self, answer: Any = some_names, **how: Any) -> None:
        super().__init__(answer, ignores=("logprobs", "response_format", "seed"), **how)

    def reply(self, body: Body) -> tuple[int, Body]:
        if body.get("n", 1) != 1:
            fields = {"type": "invalid_request_error", "message": "n: must be 1, several choices are not offered"}
            return 400, {"type": "error", "error": fields}
        return super().reply(body)


class Gemini(Loopback):
    """The compatible address of a provider whose errors are lists, and which knows no seed. key: the one it takes."""

    def __init__(self, answer: Any = some_names, *, key: str = KEY, **how: Any) -> None:
        super().__init__(answer, **how)
        self._key = key
        self.tells["models"] = {"data": [{"id": "models/gemini-2.5-flash"}, {"id": "models/gemini-2.5-pro"}]}

    def respond(self, request: Request) -> Sent:
        if request.fields.get("authorization") != f"Bearer {self._key}":
            detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
            return self.error(400, "API key not valid. Please pass a valid API key.", detail)
        return super().respond(request)

    def reply(self, body: Body) -> tuple[int, Body]:
        if unknown := [
            f'Unknown name "{field}": Cannot find field.' for field in ("seed", "logprobs") if field in body
        ]:
            said = "\n".join(f"Invalid JSON payload received. {one}" for one in unknown)
            return 400, [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]
        return super().reply(body)

    @staticmethod
    def error(code: int, said: str, *details: Body) -> Sent:
        fields = {"code": code, "message": said, "status": "X", "details": list(details)}
        return response(json.dumps([{"error": fields}]).encode(), code)


if __name__ == "__main__":
    with Loopback(keep=False, delay=float(sys.argv[1]) if len(sys.argv) > 1 else 0.0) as alone:
        print(alone.url, flush=True)
        threading.Event().wait()
