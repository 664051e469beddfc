"""A stand-in for any OpenAI-compatible server, on loopback, that can fail in every way a real one does.

Answers depend on the prompt alone, so that two runs can be compared byte by byte. `python loopback.py` serves until
killed and prints its URL; in a test, `with Loopback(...) as server:` serves from a thread.
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

Body = dict[str, Any]
FAULTS = (
    "429-seconds",
    "429-date",
    "429-none",
    "429-huge",
    "500",
    "503",
    "reset",
    "drip",
    "broken-json",
    "no-choices",
    "wrong-model",
    "no-content",
    "html",
)
NAMES = ("France", "Spain", "Italy", "Chile", "Kenya", "Japan", "Nepal", "Ghana")


def prompt_of(body: Body) -> str:
    return body["prompt"] if "prompt" in body else "\n".join(turn["content"] for turn in body["messages"])


def some_names(body: Body) -> str:
    """One to three names, by the prompt and the seed alone."""
    digest = hashlib.sha256(f"{prompt_of(body)}{body.get('seed')}".encode()).digest()
    return json.dumps([NAMES[byte % len(NAMES)] for byte in digest[: 1 + digest[31] % 3]])


class Loopback:
    """answer: body -> text, or a dictionary that overrides fields of the choice. faults: one per request, then none.

    In the dictionary, "first" tells what the first token could have been: token -> log-probability.
    ignores: what the server does not know ("n", "response_format", "logprobs"); rejects: what it answers with 400.
    port: where it listens; 0 for one that is free.
    """

    def __init__(
        self,
        answer: Callable[[Body], str | Body] = some_names,
        faults: Iterable[str | None] = (),
        ignores: tuple[str, ...] = (),
        rejects: tuple[str, ...] = (),
        delay: float = 0.0,
        keep: bool = True,
        port: int = 0,
    ) -> None:
        self.tells: dict[str, Any] = {}
        """What it tells of itself, at "models", "props", "tokenize" ...; these are no requests that are counted."""
        self.requests: list[Body] = []
        self.headers: list[str] = []
        self.starts: list[float] = []
        self.served = self.at_once = self.most_at_once = 0
        self.files: dict[str, bytes] = {}
        self._answer = answer
        self._faults = iter(faults)
        self._ignores = ignores
        self._rejects = rejects
        self._delay = delay
        self._keep = keep
        self._port = port

    def __enter__(self) -> Loopback:
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
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        tasks: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                while await self._one(reader, writer):
                    pass
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                tasks.discard(task)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", self._port, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, path = head.split(" ", 2)[:2]
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        raw = await reader.readexactly(int(fields.get("content-length", 0)))
        if path.endswith(("/models", "/props", "/tokenize", "/apply-template")):
            told = self.tells.get(path.rsplit("/", 1)[-1])
            answer = told(json.loads(raw or b"{}")) if callable(told) else told
            return await _send(writer, 404 if told is None else 200, answer or {"error": {"message": f"no {path}"}})
        if self._keep:
            self.headers.append(head)
        self.served += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            if self._delay:
                await asyncio.sleep(self._delay)
            if path.endswith("/completions"):
                return await self._complete(json.loads(raw), writer)
            return await self._batch(method, path, raw, writer)
        finally:
            self.at_once -= 1

    async def _complete(self, body: Body, writer: asyncio.StreamWriter) -> bool:
        if self._keep:
            self.requests.append(body)
            self.starts.append(time.monotonic())
        fault = next(self._faults, None)
        if fault is not None and fault not in ("no-choices", "wrong-model", "no-content"):
            return await self._fail(fault, writer)
        status, answer = self.reply(body)
        if status == 200 and fault == "no-choices":
            answer["choices"] = []
        if status == 200 and fault == "wrong-model":
            answer["model"] = "some-other-model"
        if status == 200 and fault == "no-content":
            answer["choices"][0] = {"index": 0, "finish_reason": "stop"}
        return await _send(writer, status, answer)

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
        return 200, {"id": "x", "object": "o", "created": 0, "model": body["model"], "choices": choices, "usage": usage}

    async def _fail(self, fault: str, writer: asyncio.StreamWriter) -> bool:
        if fault == "reset":
            writer.write(
                b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{"choices": ['
            )
            await writer.drain()
            writer.transport.abort()
            return False
        if fault == "drip":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n")
            for _ in range(5000):
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
            return False
        if fault == "broken-json":
            return await _send(writer, 200, b'{"choices": [{"message": {"content": "[\\"Fra')
        if fault == "html":
            return await _send(writer, 200, b"<html>Welcome to the proxy</html>")
        status, _, kind = fault.partition("-")
        waits = {
            "seconds": "0.01",
            "huge": "86400",
            "date": email.utils.formatdate(time.time() + 1, usegmt=True),
        }
        extra = f"Retry-After: {waits[kind]}\r\n" if kind in waits else ""
        return await _send(writer, int(status), {"error": {"message": f"fault {fault}"}}, extra)

    async def _batch(self, method: str, path: str, raw: bytes, writer: asyncio.StreamWriter) -> bool:
        """Files and batches, as far as a client needs them; a batch is done at the second look."""
        name = path.rstrip("/").split("/")[-1]
        if method == "POST" and name == "files":
            identifier = f"file-{len(self.files)}"
            start = raw.index(b'{"custom_id"')
            self.files[identifier] = raw[start : raw.rindex(b"\r\n--")]
            return await _send(writer, 200, {"id": identifier, "object": "file"})
        if method == "POST" and name == "batches":
            source = json.loads(raw)["input_file_id"]
            answers = []
            for line in self.files[source].splitlines():
                asked = json.loads(line)
                if next(self._faults, None):
                    continue
                status, answer = self.reply(asked["body"])
                answers.append({"custom_id": asked["custom_id"], "response": {"status_code": status, "body": answer}})
            self.files[f"out-{source}"] = "\n".join(map(json.dumps, answers)).encode()
            self.requests.append({"batch": source})
            return await _send(writer, 200, self._status(source, "validating"))
        if name == "content":
            return await _send(writer, 200, self.files[path.split("/")[-2]])
        if name.startswith("batch-"):
            return await _send(writer, 200, self._status(name.removeprefix("batch-"), "completed"))
        return await _send(writer, 404, {"error": {"message": f"no {path}"}})

    def _status(self, source: str, status: str) -> Body:
        done = f"out-{source}" if status == "completed" else None
        return {
            "id": f"batch-{source}",
            "object": "batch",
            "status": status,
            "output_file_id": done,
            "input_file_id": source,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "created_at": 0,
        }


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


async def _send(writer: asyncio.StreamWriter, status: int, body: Body | bytes, extra: str = "") -> bool:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{extra}Content-Length: {len(raw)}\r\n\r\n"
    writer.write(head.encode() + raw)
    await writer.drain()
    return True


if __name__ == "__main__":
    with Loopback(keep=False, delay=float(sys.argv[1]) if len(sys.argv) > 1 else 0.0) as alone:
        print(alone.url, flush=True)
        threading.Event().wait()
