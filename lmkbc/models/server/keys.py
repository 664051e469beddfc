"""Which key a server is sent: one that the user has named it for, never one that a recipe asks for by itself."""

from __future__ import annotations

import ipaddress
import logging
import os
from functools import cache
from urllib.parse import SplitResult

from lmkbc.errors import InputError

KEY = "OPENAI_API_KEY"
KEYS = "LMKBC_KEYS"
"""Says which variable holds the key of which host, as in "api.example.org=EXAMPLE_KEY,other.org=OTHER_KEY"."""

PROVIDER = "api.openai.com"
"""The host that KEY is of."""

log = logging.getLogger(__name__)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def variable_of(address: SplitResult, *, of_recipe: bool, wanted: str = "") -> str:
    """Return the environment variable that holds the key for an address; "" for a server that gets none.

    of_recipe: whether a recipe alone names the address; wanted: the variable that it names. InputError for a host of a
    recipe that the user has named no key for.
    """
    host = address.hostname or ""
    if named := _named().get(host):
        return named
    if not of_recipe or (host == PROVIDER and address.scheme == "https"):
        return KEY
    if is_loopback(host):
        return ""
    variable = wanted or KEY
    raise InputError(
        f"base_url of the recipe is {address.geturl()!r}, which is sent no key that you did not name for it: if you "
        f"trust {host}, set {KEYS}={host}={variable}, or give the address with --base-url"
    )


def warn_of_plain(address: SplitResult) -> None:
    """Warn, once for each host, of one beyond this machine that is asked without encryption."""
    if address.scheme == "http" and address.hostname and not is_loopback(address.hostname):
        _warn(address.hostname)


@cache
def _warn(host: str) -> None:
    log.warning("%s is asked over http: prompts, answers and the key can be read on the way; use https", host)


def _named() -> dict[str, str]:
    """Return host -> variable, as the user has set them."""
    named = {}
    for pair in os.environ.get(KEYS, "").replace(",", " ").split():
        host, _, variable = pair.partition("=")
        if not (host and variable.isidentifier()):
            raise InputError(f"{KEYS}: {pair!r} is not HOST=VARIABLE; write pairs such as api.example.org=EXAMPLE_KEY")
        named[host.casefold()] = variable
    return named
