"""Addresses on the web, found in a reply by their form, and compared as written."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import ClassVar

from lmkbc.kinds.kind import Described, Exported, Kind
from lmkbc.relation import EntityType, Relation

_URL = re.compile(r"""https?://(?:[^\s<>"'()\[\]]|\([^\s()]*\))+(?<![.,;:*`])""")
_ADDRESS = re.compile(r"https?://[^\x00-\x20<>\"{}|^`\\\x7f-\x9f]+")
"""Pattern of an address that is no text around one."""


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
        fault = "" if _ADDRESS.fullmatch(value or "") else "no web address"
        return super().exported(value, about)._replace(datatype="anyURI", fault=fault)


URL = Url()
