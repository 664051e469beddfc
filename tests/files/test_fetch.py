"""Fetching against a server on loopback: resumes, checks, replaces only when complete."""

import asyncio
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from loopback import Fault, Files, Sent, response
from space import SPACE

from lmkbc import Download, Edition, LmkbcError
from lmkbc.files.fetch import _arrived, fetch

CONTENT = b'{"SubjectEntity": "Rhine"}\n' * 2000


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    """/cut breaks off half-way the first time, /busy answers 503 once, /wrong serves other bytes."""
    half = response(CONTENT[: len(CONTENT) // 2], length=len(CONTENT), end="close")
    files: dict[str, bytes | Fault] = {
        **dict.fromkeys(("/good", "/cut", "/busy"), CONTENT),
        "/wrong": b"other",
        "/moved": lambda _: response(b"", 302, "Location: /good"),
    }
    first = {"/cut": half, "/busy": response(b"", 503)}
    with Files(files, first) as http:
        yield http.url, http.seen


def edition(url: str) -> Edition:
    source = Download(url, hashlib.sha256(CONTENT).hexdigest())
    return replace(SPACE.edition("2024"), splits={"train": source, "val": source, "test": source})


def test_all_splits_arrive_and_right_files_are_not_fetched_again(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path
) -> None:
    url, seen = server
    steps: list[int] = []
    paths = fetch(edition(url + "/good"), tmp_path, lambda split, done, total: steps.append(done))
    assert [path.read_bytes() for path in paths] == [CONTENT] * 3
    assert steps[-1] == len(CONTENT)
    fetch(edition(url + "/good"), tmp_path)
    assert len(seen) == 3
    assert sorted(path.name for path in (tmp_path / "lmkbc2024").iterdir()) == [
        "test.jsonl",
        "train.jsonl",
        "val.jsonl",
    ]
    assert not any(path.stat().st_mode & 0o111 for path in paths)


def test_a_broken_line_resumes_where_it_stopped(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path
) -> None:
    url, seen = server
    assert fetch(edition(url + "/cut"), tmp_path)[0].read_bytes() == CONTENT
    assert seen[0] == ("/cut", None)
    assert seen[1] == ("/cut", f"bytes={len(CONTENT) // 2}-")


def test_a_busy_server_is_asked_again_an_absent_file_is_not(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path
) -> None:
    url, seen = server
    assert fetch(edition(url + "/busy"), tmp_path)[0].read_bytes() == CONTENT
    with pytest.raises(LmkbcError, match="cannot be fetched"):
        fetch(edition(url + "/absent"), tmp_path / "other")
    assert [path for path, _ in seen].count("/absent") == 1


def test_wrong_bytes_are_discarded_and_what_was_there_stays(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path
) -> None:
    url, _ = server
    old = tmp_path / "lmkbc2024" / "train.jsonl"
    old.parent.mkdir()
    old.write_bytes(b"old")
    with pytest.raises(LmkbcError, match=r"has SHA-256 .* it was discarded"):
        fetch(edition(url + "/wrong"), tmp_path)
    assert old.read_bytes() == b"old"
    assert [path.name for path in old.parent.iterdir()] == ["train.jsonl"]


def test_redirects_are_followed_but_never_from_https_to_http(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path
) -> None:
    url, seen = server
    assert fetch(edition(url + "/moved"), tmp_path)[0].read_bytes() == CONTENT
    assert [path for path, _ in seen][:2] == ["/moved", "/good"]


def followed(hops: list[str]) -> int:
    """Return the status at the end of redirects from https://example.org."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(302, headers={"Location": hops.pop(0)}) if hops else httpx2.Response(200)

    async def ask() -> int:
        client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
        async with client:
            return (await _arrived(client, client.build_request("GET", "https://example.org/a"))).status_code

    return asyncio.run(ask())


def test_redirects_are_few_and_encrypted_and_their_bodies_are_not_read(tmp_path: Path) -> None:
    assert followed(["https://elsewhere.example.org/b"] * 5) == 200
    with pytest.raises(LmkbcError, match="not encrypted"):
        followed(["http://example.org/b"])
    with pytest.raises(httpx2.TooManyRedirects, match="more than 5 times"):
        followed(["https://example.org/b"] * 6)
    endless = itertools.repeat(bytes(1 << 16))
    loops = Sent(b"HTTP/1.1 302 Found\r\nLocation: /good\r\nConnection: close\r\n\r\n", "close", endless)
    with Files({"/good": CONTENT, "/loops": lambda _: loops}) as http:
        assert fetch(edition(http.url + "/loops"), tmp_path)[0].read_bytes() == CONTENT
