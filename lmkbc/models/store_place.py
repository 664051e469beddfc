"""Place of the store of answers: a file, or a PostgreSQL database that workers on many machines share."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from lmkbc.errors import InputError
from lmkbc.files.places import cache_dir

VARIABLE = "LMKBC_STORE"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_URL = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^\s:/?#@\[\]]+)(?P<password>:[^\s/?#@\[\]]*)?@)?"
    r"(?P<hosts>[^\s/?#@]*)(?P<name>/[^\s/?#@]*)?(?P<parameters>\?[^\s#@]*)?"
)
"""Pattern of an unambiguous URL. libpq accepts others, and may read a part of a password as a host."""
_SECRET = re.compile(r"[?&](?:password|sslpassword)=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL database. Its text form is safe in messages: it lacks the password and the parameters.

    Raise InputError, without a quotation, for an ambiguous URL.
    """

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _URL.fullmatch(self.url):
            raise InputError(
                "the URL of the store cannot be read: write postgresql://USER@HOST:PORT/DATABASE, with what is neither "
                "letter nor digit in a name or password as %XX, or give the password in PGPASSWORD"
            )

    def __str__(self) -> str:
        parts = self._parts
        user = f"{parts['user']}@" if parts["user"] else ""
        return f"postgresql://{user}{parts['hosts']}{parts['name'] or ''}"

    @property
    def has_password(self) -> bool:
        """Return whether the URL contains a secret, so that it must not be passed on."""
        return bool(self._parts["password"] or _SECRET.search(self.url))

    @property
    def _parts(self) -> dict[str, str | None]:
        match = _URL.fullmatch(self.url)
        return match.groupdict() if match else {}


Place: TypeAlias = Path | Database


def place_of(text: str) -> Place:
    """Return a place from --store or the environment: a file, or a database by its URL.

    Raise InputError for another URL.
    """
    scheme = _SCHEME.match(text)
    if scheme is None:
        return Path(text)
    if scheme[1].lower() not in ("postgresql", "postgres"):
        raise InputError(f"no store can lie in {scheme[1]}://...: give a file, or postgresql://USER@HOST/DATABASE")
    return Database(text)


def default_place(given: Place | str | None = None, *, offline: bool = False) -> Place:
    """Return the given place, else $LMKBC_STORE, else a file in the cache.

    Raise InputError for a database if `offline` is set.
    """
    named = given or os.environ.get(VARIABLE) or cache_dir() / "store.sqlite"
    place = place_of(named) if isinstance(named, str) else named
    if offline and isinstance(place, Database):
        raise InputError(f"--offline opens no socket, and {place} needs one: name a file with --store")
    return place
