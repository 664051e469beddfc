"""Checks of web addresses, before anything is asked of them."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_web_address(url: str) -> bool:
    """Return whether a URL is of http or https, and names a host that can be looked up.

    It is not where a character cannot be seen, brackets or the port make no sense, or a part of the host is empty.
    """
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        return False
