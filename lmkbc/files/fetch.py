"""Download of published files: it can be resumed, is checked by SHA-256, and replaces a file only when complete."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import aclosing
from pathlib import Path

import httpx2

from lmkbc.edition import Edition
from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.checksum import file_sha256
from lmkbc.http import CallError, Pace, RequestLimits, by_proxy, connection, event_loop, is_web_address, retry_after
from lmkbc.progress import Report

MOST_REDIRECTS = 5
MOST_BYTES = 1 << 34
"""Largest file in bytes that is downloaded; a body without an end stops there."""


def fetch(edition: Edition, root: Path, progress: Report | None = None) -> list[Path]:
    """Download every split of an edition into root/<folder>/. Files with the right checksum are kept."""
    paths = []
    for split, source in edition.splits.items():
        path = root / edition.folder / f"{split}.jsonl"
        if source is not None and file_sha256(path) != source.sha256:
            path.parent.mkdir(parents=True, exist_ok=True)
            download(source.url, [source.sha256], path, split, progress)
        paths.append(path)
    return paths


def download(url: str, accepted: Collection[str] | None, path: Path, what: str, progress: Report | None = None) -> None:
    """Download a file with an accepted SHA-256. An existing file stays until the new one is complete.

    accepted: hex digests, None for any. what: name for the progress. LmkbcError if the download fails, or if the file
    has another SHA-256.
    """
    if not is_web_address(url):
        raise InputError(f"{url!r} is no http or https address: nothing can be fetched from there")
    part = path.with_name(f"{path.name}.part")
    pace = Pace(RequestLimits(total_wait=60))
    try:
        with event_loop() as (_, run):
            run(pace.retrying(lambda: _stream(what, url, part, progress)))
    except CallError as error:
        how = "run the command again to resume" if error.transient else "it is gone from there, and nothing was changed"
        raise LmkbcError(f"{url} cannot be fetched ({error}); {how}") from None
    if accepted is not None and (actual := file_sha256(part)) not in accepted:
        part.unlink()
        if not accepted:
            raise InputError(f"{url} has SHA-256 {actual}, and none is known of it: look at it, then give that SHA-256")
        raise LmkbcError(
            f"{url} has SHA-256 {actual}, not {' or '.join(accepted)}; it was discarded, nothing was changed"
        )
    os.replace(part, path)


async def _stream(split: str, url: str, part: Path, progress: Report | None) -> None:
    """Append the missing bytes to a file. CallError if that fails."""
    try:
        async with httpx2.AsyncClient(timeout=30, follow_redirects=False, **connection(url)) as client:
            await _append(client, split, url, part, progress)
    except httpx2.HTTPStatusError as error:
        status, busy = error.response.status_code, httpx2.codes.TOO_MANY_REQUESTS
        wait = retry_after(error.response.headers.get("Retry-After"))
        reason = f"{status} {error.response.reason_phrase}"
        raise CallError(reason, transient=status == busy or error.response.is_server_error, wait=wait) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        raise CallError(str(error) + by_proxy(url), transient=isinstance(error, httpx2.TransportError)) from None


async def _append(client: httpx2.AsyncClient, split: str, url: str, part: Path, progress: Report | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    async with aclosing(await _arrived(client, client.build_request("GET", url, headers=headers))) as response:
        if response.status_code == httpx2.codes.RANGE_NOT_SATISFIABLE:
            return  # the file is complete already; its checksum is verified later
        response.raise_for_status()
        resumed = response.status_code == httpx2.codes.PARTIAL_CONTENT
        have = have if resumed else 0
        length = response.headers.get("content-length")
        total = have + int(length) if length else None
        with part.open("ab" if resumed else "wb") as file:
            async for chunk in response.aiter_raw():  # without decompression, since none was requested
                file.write(chunk)
                have += len(chunk)
                if have > MOST_BYTES:
                    raise LmkbcError(f"{url} is longer than {MOST_BYTES >> 30} GiB, as no published file is")
                if progress:
                    progress(split, have, total)
            file.flush()
            os.fsync(file.fileno())


async def _arrived(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Return the open response to a request after at most `MOST_REDIRECTS` redirects, whose bodies are not read.

    Redirects are allowed, since download mirrors use them, but none from https to an unencrypted address. The origin of
    the bytes does not matter, because their SHA-256 is known. No key is sent.
    """
    for _ in range(MOST_REDIRECTS + 1):
        response = await client.send(request, stream=True)
        if response.next_request is None:
            return response
        await response.aclose()
        to = response.next_request.url
        if request.url.scheme == "https" != to.scheme:
            raise LmkbcError(f"{request.url} redirects to {to.scheme}://{to.host}, which is not encrypted")
        request = response.next_request
    raise httpx2.TooManyRedirects(f"it redirects more than {MOST_REDIRECTS} times")
