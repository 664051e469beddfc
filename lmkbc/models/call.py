"""A draw from a model, the key under which its answer is stored, and the place of the store: a file or a database."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

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


@dataclass(frozen=True, kw_only=True)
class Call:
    """A draw from a model, with everything that determines its answer: no timeouts, keys or concurrency.

    prompt: the messages or the text.
    sampling: JSON values.
    draw: distinguishes draws with the same prompt and seed.
    """

    model: str
    prompt: Any
    base_url: str = ""
    revision: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    schema: Mapping[str, Any] | None = None
    seed: int | None = None
    draw: int = 0

    @cached_property
    def key(self) -> str:
        """Return the SHA-256 of the call's canonical JSON, in which 1 and 1.0 are equal."""
        return _digest(self.settings | {"sampling": _whole(self.sampling), "prompt": self.prompt_digest})

    @cached_property
    def prompt_digest(self) -> str:
        """Return the SHA-256 of the prompt's JSON."""
        return _digest(self.prompt)

    @property
    def settings(self) -> dict[str, Any]:
        """Return all fields except the prompt."""
        return {name: getattr(self, name) for name in _SETTINGS}


_SETTINGS = tuple(field.name for field in fields(Call) if field.name != "prompt")


def canonical_json(value: Any) -> str:
    """Return a value's JSON with sorted names, so that equal values give equal texts."""
    return msgspec.json.encode(value, order="deterministic").decode()


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def _whole(value: Any) -> Any:
    """Return a JSON value with whole floats as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple) else value


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
