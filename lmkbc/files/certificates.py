"""Which certificates HTTPS trusts: read once in a process, which takes longer than many a request."""

from __future__ import annotations

import functools
import ssl

import httpx2


@functools.cache
def trusted() -> ssl.SSLContext:
    """httpx2's own choice, which every client of the process shares."""
    return httpx2.create_ssl_context()
