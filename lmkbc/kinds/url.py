"""Addresses on the web, found in a reply by their form, and compared as written."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import ClassVar

from lmkbc.kinds.kind import Described, Exported, Kind
from lmkbc.relation import EntityType, Relation

_URL = re.compile(r"""https?://(?:[^\s<>"'()\[\]]|\([^\s()]*\))+(?<![.,;:*`])""")
_SIGNS = r"A-Za-z0-9._~!$&'()*+,;=\u00a1-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\U00010000-\U0001fffd\U00020000-\U0002fffd-"
_HOST, _PATH, _END = (f"(?:[{more}{_SIGNS}]|%[0-9A-Fa-f]{{2}})*" for more in ("", ":@/", ":@/?"))
_IRI = re.compile(
    rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):"
    rf"(?://(?:(?:{_HOST}:)*{_HOST}@)?(?P<host>{_HOST})(?::[0-9]{{0,5}})?(?=[/?#]|\Z)|(?!//)){_PATH}(?:\?{_END})?(?:#{_END})?"
)
"""Pattern of an absolute IRI of RFC 3987, but for private characters and hosts that are numbers in brackets."""


SCHEMES = ("http", "https")


def is_iri(text: str) -> bool:
    """Return whether a text is an absolute IRI that readers of RDF accept. Invisible characters are in none."""
    return text.isprintable() and _IRI.fullmatch(text) is not None


def is_address(text: str) -> bool:
    """Return whether a text is the address of a page, with a host, that readers of RDF accept."""
    match = _IRI.fullmatch(text)
    return match is not None and bool(match["host"]) and match["scheme"].lower() in SCHEMES and text.isprintable()


class Url(Kind):
    """Addresses of pages and files."""

    name = "url"
    fields = frozenset(("url", "link", "website"))
    data_types = ("url",)
    type = EntityType("web address", "Q42253")
    schema: ClassVar = {"type": "string", "format": "uri"}
    is_marked = True

    def marked(self, text: str) -> list[str]:
        """Return the addresses in a text."""
        return _URL.findall(text)

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return an address as written."""
        return text.strip()

    def exported(self, value: str | None, about: Described) -> Exported:
        """Return an address, with a fault if it is none."""
        fault = "" if is_address(value or "") else "no web address"
        return super().exported(value, about)._replace(datatype="anyURI", fault=fault)


URL = Url()
