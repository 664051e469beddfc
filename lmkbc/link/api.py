"""What the Wikidata API answers, as values: search hits, entities, and the errors that come as HTTP 200.

Formats: https://www.wikidata.org/w/api.php?action=help&modules=wbsearchentities and =wbgetentities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lmkbc.link.evidence import Hit

IDS_PER_CALL = 50
"""The API's own limit for wbgetentities."""


class Found(msgspec.Struct, frozen=True, gc=False):
    """One search hit as answered."""

    id: str
    label: str = ""
    description: str = ""
    name: str = ""


class Record(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an entity: `id` is that of the entity it was merged into, where it was."""

    id: str
    label: str = ""
    description: str = ""
    instance_of: tuple[str, ...] = ()
    subclass_of: tuple[str, ...] = ()
    sitelinks: int = 0

    def hit(self, classes: Sequence[str], name: str = "") -> Hit:
        """The entity as a hit, with the classes it falls under."""
        return Hit(self.id, self.label, self.description, tuple(classes), self.sitelinks, name)


def search_params(text: str, language: str, limit: int) -> dict[str, str]:
    """The query of one wbsearchentities call."""
    return {
        "action": "wbsearchentities",
        "search": text,
        "language": language,
        "uselang": language,
        "type": "item",
        "limit": str(limit),
    }


def entity_params(ids: Sequence[str], language: str) -> dict[str, str]:
    """The query of one wbgetentities call, for at most IDS_PER_CALL ids."""
    return {
        "action": "wbgetentities",
        "ids": "|".join(ids),
        "props": "info|labels|descriptions|claims|sitelinks",
        "languages": language,
        "languagefallback": "1",
    }


def found(answer: Mapping[str, Any]) -> list[Found]:
    """The hits of a wbsearchentities answer, best first."""
    return [
        Found(hit["id"], hit.get("label", ""), hit.get("description", ""), hit.get("match", {}).get("text", ""))
        for hit in answer["search"]
    ]


def records(answer: Mapping[str, Any], ids: Sequence[str], language: str) -> dict[str, Record | None]:
    """The entities of a wbgetentities answer by the id that was asked for; None for no such entity."""
    by_id: dict[str, Any] = {}
    for key, entity in answer["entities"].items():
        by_id[entity.get("redirects", {}).get("from", key)] = entity
        by_id[key] = entity
    return {qid: None if "missing" in by_id[qid] else _record(by_id[qid], language) for qid in ids}


def _record(entity: Mapping[str, Any], language: str) -> Record:
    claims = entity.get("claims") or {}
    return Record(
        entity["id"],
        ((entity.get("labels") or {}).get(language) or {}).get("value", ""),
        ((entity.get("descriptions") or {}).get(language) or {}).get("value", ""),
        _values(claims.get("P31", ())),
        _values(claims.get("P279", ())),
        len(entity.get("sitelinks") or ()),
    )


def _values(statements: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    values = (
        statement["mainsnak"].get("datavalue", {}).get("value", {}).get("id")
        for statement in statements
        if statement.get("rank") != "deprecated"
    )
    return tuple(dict.fromkeys(value for value in values if value))
