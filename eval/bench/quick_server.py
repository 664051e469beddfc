"""A server of a simulated model with almost no cost: it answers each request after a delay, from the prompt alone.

Run: python eval/bench/quick_server.py [SECONDS]. It prints its URL. When its input ends, it prints the number of
answered requests, and the seconds from the first request to the last.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

NAMES = ("France", "Spain", "Italy", "Chile", "Kenya", "Japan", "Nepal", "Ghana")
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def answer(body: bytes) -> bytes:
    """Return a response of one to three names that depend only on the request."""
    digest = hashlib.sha256(body).digest()
    text = json.dumps([NAMES[byte % len(NAMES)] for byte in digest[: 1 + digest[31] % 3]])
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    made = json.dumps({"object": "chat.completion", "model": "stand-in", "choices": [choice], "usage": USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(made), made)


class Connection(asyncio.Protocol):
    """Connection of a client that waits for each answer before its next request. times: times of all requests."""

    def __init__(self, delay: float, times: list[float]) -> None:
        self._delay, self._times, self._read = delay, times, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request after the delay, when it is complete. Requests other than POST get status 404."""
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if not end or len(body) < int(fields.get(b"content-length", 0)):
            return
        self._read = b""
        if head.startswith(b"POST"):
            self._times.append(time.monotonic())
            asyncio.get_running_loop().call_later(self._delay, self._answer, body)
        else:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer(body))


@dataclass
class QuickServer:
    """A server process. requests: number of answers, set at its end. seconds: from the first request to the last."""

    url: str
    requests: int = 0
    seconds: float = 0.0


@contextmanager
def quick_server(delay: float) -> Iterator[QuickServer]:
    """Yield a server that runs in a process of its own until the block ends."""
    command = [sys.executable, __file__, str(delay)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        served = QuickServer(process.stdout.readline().strip())
        try:
            yield served
        finally:
            requests, seconds = process.communicate()[0].split()
            served.requests, served.seconds = int(requests), float(seconds)


async def main(delay: float) -> None:
    times: list[float] = []
    server = await asyncio.get_running_loop().create_server(lambda: Connection(delay, times), "127.0.0.1", backlog=512)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(len(times), times[-1] - times[0] if times else 0.0)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.2))
