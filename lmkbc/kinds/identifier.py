"""Identifiers, such as an ISBN: texts without blanks or punctuation around them, compared as written."""

from __future__ import annotations

from collections.abc import Hashable

from lmkbc.kinds.kind import Kind
from lmkbc.relation import EntityType, Relation


class Identifier(Kind):
    """Identifiers in a data base."""

    name = "identifier"
    fields = frozenset(("id", "code", "identifier"))
    data_types = ("external-id",)
    type = EntityType("identifier", "Q853614")

    def bare(self, text: str, *, is_sentence: bool) -> str:
        """Return an identifier without punctuation; "" for a sentence, since none is written like one."""
        return "" if is_sentence else text.rstrip(".,;`")

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return an identifier as written."""
        return text.strip()


IDENTIFIER = Identifier()
