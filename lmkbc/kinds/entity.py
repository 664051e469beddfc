"""Entities: things with names, which are linked to items of Wikidata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmkbc.kinds.kind import Described, Kind, KnownValue, Match, Stated
from lmkbc.kinds.numbers import decimal
from lmkbc.names import as_qid, name_key, without_legal_form
from lmkbc.relation import ANYTHING
from lmkbc.words import FORM


class EntityKind(Kind):
    """Things with names."""

    name = "entity"
    is_entity = is_parted = True
    data_types = ("wikibase-item",)
    type = ANYTHING
    form = ""

    def votes(self, texts: Sequence[str]) -> Mapping[str, str]:
        """Return name with an article, a title or a profession -> the same one without."""
        longer = sorted(filter(FORM.before_name.match, texts), key=len, reverse=True)
        by_key = {name_key(text): text for text in texts} if longer else {}
        plain = {text: by_key.get(name_key(FORM.before_name.sub("", text)), text) for text in longer}
        return {text: other for text, other in plain.items() if other != text}

    def known(self, stated: Stated, about: Described) -> KnownValue | None:
        """Return an item's QID; a text stands for a name."""
        return KnownValue(stated.text, object_key(stated.text))

    def compare(self, own: str, known: KnownValue, about: Described) -> Match:
        """Return whether an item, or a name, is the known one; firms may be named with their legal form or without."""
        return (
            Match.SAME
            if object_key(own) == known.value
            else Match.COMPATIBLE
            if without_legal_form(own) == without_legal_form(known.text)
            else Match.CONTRADICTS
        )


def object_key(text: str) -> str:
    """Return the key of a text that is a QID, a number or a name, which has it without an article or a title, too."""
    return as_qid(text) or decimal(text) or name_key(FORM.before_name.sub("", text))


ENTITY = EntityKind()
