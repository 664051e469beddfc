"""Fetching against a server on loopback: resumes, checks, replaces only when complete."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from lmkbc.edition import Download, Edition
from lmkbc.errors import LmkbcError
from lmkbc.files.fetch import _guard, fetch
from lmkbc.workspace import Workspace

CONTENT = b'{"SubjectEntity": "Rhine"}\n' * 2000


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; /cut breaks off half-way the first time, /busy answers 503 once, /wrong serves other bytes."""

    seen: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        first = self.path not in [path for path, _ in self.seen]
        self.seen.append((self.path, wanted))
        if self.path == "/absent" or (self.path == "/busy" and first):
            self.send_error(404 if self.path == "/absent" else 503)
            return
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/good")
            self.end_headers()
            return
        if self.path in ("/endless", "/drip"):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    self.wfile.write(b"x" * (2**16 if self.path == "/endless" else 1))
                    time.sleep(0 if self.path == "/endless" else 0.01)
            return
        body = CONTENT if self.path != "/wrong" else b"other"
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        self.wfile.write(body[start : len(body) // 2] if self.path == "/cut" and first else body[start:])

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str | None]]]]:
    seen: list[tuple[str, str | None]] = []
    handler = type("Counting", (Handler,), {"seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}", seen
        http.shutdown()
        thread.join()


def edition(url: str) -> Edition:
    source = Download(url, hashlib.sha256(CONTENT).hexdigest())
    return replace(Workspace().edition("2024"), splits={"train": source, "val": source, "test": source})


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


def test_an_endless_file_is_cut_off_and_discarded(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.files.fetch.MOST_BYTES", 2**20)
    with pytest.raises(LmkbcError, match="larger than 1 MiB"):
        fetch(edition(server[0] + "/endless"), tmp_path)
    assert list((tmp_path / "lmkbc2024").iterdir()) == []
    assert len(server[1]) == 1


def test_a_file_that_drips_is_given_up_and_what_came_is_kept(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.files.fetch.DEADLINE", 0.2)
    with pytest.raises(LmkbcError, match=r"did not arrive within 0.2 s; run the command again to resume"):
        fetch(edition(server[0] + "/drip"), tmp_path)
    assert 0 < (tmp_path / "lmkbc2024" / "train.jsonl.part").stat().st_size < 1000


def test_redirects_are_followed_but_never_from_https_to_http(
    server: tuple[str, list[tuple[str, str | None]]], tmp_path: Path
) -> None:
    url, seen = server
    assert fetch(edition(url + "/moved"), tmp_path)[0].read_bytes() == CONTENT
    assert [path for path, _ in seen][:2] == ["/moved", "/good"]
    check = _guard("https://example.org/a")
    check(httpx2.Request("GET", "https://elsewhere.example.org/b"))
    with pytest.raises(LmkbcError, match="not encrypted"):
        check(httpx2.Request("GET", "http://example.org/b"))
