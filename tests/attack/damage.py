"""Damage to files: name -> what becomes of the bytes of a file."""

import random
from collections.abc import Callable


def flipped(raw: bytes, draw: random.Random) -> bytes:
    """Return the bytes with another bit."""
    at = draw.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ 1 << draw.randrange(8)]) + raw[at + 1 :]


def overwritten(raw: bytes, draw: random.Random) -> bytes:
    """Return the bytes with a page of others, as after a torn write."""
    at, size = draw.randrange(len(raw)), draw.choice((1, 64, 4096))
    return raw[:at] + draw.randbytes(min(size, len(raw) - at)) + raw[at + size :]


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "a flipped bit": flipped,
    "many flipped bits": lambda raw, draw: flipped(flipped(flipped(raw, draw), draw), draw),
    "other bytes": overwritten,
    "cut": lambda raw, draw: raw[: draw.randrange(len(raw))],
    "cut in half": lambda raw, draw: raw[: len(raw) // 2],
    "empty": lambda raw, draw: b"",
    "zeros": lambda raw, draw: bytes(len(raw)),
    "longer": lambda raw, draw: raw + draw.randbytes(4096),
    "twice": lambda raw, draw: raw + raw,
    "no file of its kind": lambda raw, draw: b"PK\x03\x04" + draw.randbytes(500),
    "JSON null": lambda raw, draw: b"null\n",
    "a JSON list": lambda raw, draw: b'[{"x": []}]\n',
    "a JSON object": lambda raw, draw: draw.choice((b"{}", b'{"version": 99}')),
    "deep JSON": lambda raw, draw: b"[" * 10**5,
    "a JSON number": lambda raw, draw: b"1e999\n",
    "broken gzip": lambda raw, draw: b"\x1f\x8b\x08\x00" + draw.randbytes(500),
    "no UTF-8": lambda raw, draw: raw.replace(b"a", b"\xff"),
}
