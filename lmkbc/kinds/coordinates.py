"""Coordinates on Earth, in decimal degrees: latitude, then longitude ("45.5, -73.6").

They are read from degrees with minutes and seconds, with letters or signs, from "Point(-73.6 45.5)" of well-known text,
which has the longitude first, and from fields of JSON. Two are the same if they are near each other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from lmkbc.kinds.kind import WITH_COMMAS, Described, Exported, Kind, KnownValue, LeftOutError, Match, Stated
from lmkbc.names import WIKIDATA_ITEM
from lmkbc.relation import EntityType, Relation
from lmkbc.words import FORM, TABLES, replaced

NEAR = 5.0
"""Kilometres within which two places are the same, if a relation gives no `absolute_tolerance`."""
RADIUS = 6371.0
"""Radius of Earth in kilometres."""
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
EARTH = f"{WIKIDATA_ITEM}Q2"
MOST = 20_000
"""Maximum number of characters that are read."""
_KEYS = {"lat": 0, "latitude": 0, "lon": 1, "lng": 1, "long": 1, "longitude": 1}


class Coordinates(Kind):
    """Places on Earth."""

    name = "coordinates"
    has_values = holds_marks = one_object = True
    fields = frozenset("coordinates coordinate location position point".split())
    example = "'45.5, -73.6' (latitude, longitude)"
    schema: ClassVar = {
        "type": "object",
        "properties": {"latitude": {"type": "number"}, "longitude": {"type": "number"}},
        "required": ["latitude", "longitude"],
    }
    data_types = ("globe-coordinate",)
    type = EntityType("place on Earth", "Q22664")
    shape = WITH_COMMAS
    form = ", in decimal degrees: the latitude, a comma, and the longitude."

    def read(self, text: str, relation: Relation) -> list[str]:
        """Return the places that a text gives, in decimal degrees."""
        side = TABLES["side_of_o"].get(relation.language[:2])
        own = re.sub(r"([°′″’'\"\d]\s?)O\b", rf"\1{side}", text[:MOST]) if side else text[:MOST]
        return list(dict.fromkeys(_places(own)))

    def in_line(self, line: str, relation: Relation) -> list[str]:
        """Return the first place of a line."""
        return self.read(line, relation)[:1]

    def joined(self, fields: Sequence[tuple[str, str]]) -> tuple[int, str] | None:
        """Return latitude and longitude of two fields, or of a list of two numbers."""
        named = {_KEYS[key.lower()]: place for place, (key, _) in enumerate(fields) if key.lower() in _KEYS}
        if len(named) < 2 and (len(fields) != 2 or any(key for key, _ in fields)):
            return None
        first, second = (named[0], named[1]) if named else (0, 1)
        both = f"{fields[first][1]}, {fields[second][1]}"
        return (first, both) if FORM.place_signed.fullmatch(both) else None

    def meaning(self, text: str, relation: Relation) -> Hashable:
        """Return latitude and longitude in degrees."""
        return _degrees(text)

    def is_same(self, given: Any, true: Any, relation: Relation, *, coarser: bool) -> bool:
        """Return whether two places are near each other."""
        return bool(given and true) and distance(given, true) <= (relation.absolute_tolerance or NEAR)

    def literal(self, texts: Sequence[str]) -> tuple[str | None, str | None]:
        """Return the place in decimal degrees."""
        return next(_places(texts[-1]), None), None

    def exported(self, value: str | None, about: Described) -> Exported:
        """Return a place."""
        if (place := _degrees(value or "")) is None:
            raise LeftOutError("no readable coordinates")
        latitude, longitude = (value or "").split(", ")
        precision = 10.0 ** -max(len(part.partition(".")[2]) for part in (latitude, longitude))
        globe = {"latitude": place[0], "longitude": place[1], "altitude": None, "precision": precision, "globe": EARTH}
        of_node = [
            ("geoLatitude", latitude, "double"),
            ("geoLongitude", longitude, "double"),
            ("geoPrecision", f"{precision:g}", "double"),
            ("geoGlobe", EARTH, "iri"),
        ]
        return Exported(
            f"Point({longitude} {latitude})",
            WKT,
            ("globe-coordinate", {"type": "globecoordinate", "value": globe}),
            f"@{latitude}/{longitude}",
            precision=f"{precision:g}",
            node=("GlobecoordinateValue", of_node),
            node_key=value or "",
        )

    def known(self, stated: Stated, about: Described) -> KnownValue | None:
        """Return a known place."""
        place = _degrees(stated.text)
        return place and KnownValue(", ".join(f"{part:g}" for part in place), place)

    def compare(self, own: str, known: KnownValue, about: Described) -> Match:
        """Return whether a place is near a known one."""
        place = _degrees(own)
        is_near = place is not None and distance(place, known.value) <= (about.absolute_tolerance or NEAR)
        return Match.SAME if is_near else Match.CONTRADICTS

    def gold(self, text: str, row: Mapping[str, str], relation: Relation) -> str:
        """Return a point of well-known text in decimal degrees."""
        place = next(_places(text), None) if FORM.place_point.fullmatch(text) else None
        if place is None:
            raise LeftOutError("a value that is no place on Earth")
        return place


def distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the distance of two places on a sphere of Earth's size, in kilometres."""
    (south, west), (north, east) = (tuple(map(math.radians, place)) for place in (one, other))
    half = math.sin((north - south) / 2) ** 2 + math.cos(south) * math.cos(north) * math.sin((east - west) / 2) ** 2
    return 2 * RADIUS * math.asin(min(1.0, math.sqrt(half)))


def _places(text: str) -> Iterator[str]:
    """Yield the places in a text: those of the first form that it has any of."""
    text = replaced(text.replace("’", "'"), "places")
    points = [(_number(found[2]), _number(found[1])) for found in FORM.place_point.finditer(text)]
    letters = [
        (_angle(found[:3], found[3]), _angle(found[4:7], found[7])) for found in FORM.place_letters_behind.findall(text)
    ] or [
        (_angle(found[1:4], found[0]), _angle(found[5:8], found[4]))
        for found in FORM.place_letters_before.findall(text)
    ]
    pairs = [] if points or letters else FORM.place_labelled.findall(text) or FORM.place_signed.findall(text)
    signed = [(_number(first), _number(second)) for first, second in pairs]
    for latitude, longitude in (*points, *letters, *signed):
        if abs(latitude) <= 90 and abs(longitude) <= 180:
            yield ", ".join(f"{round(part, 6) + 0.0:.6f}".rstrip("0").rstrip(".") for part in (latitude, longitude))


def _number(text: str) -> float:
    try:
        return float(text.replace("−", "-").replace(",", "."))
    except ValueError:
        return math.inf


def _angle(parts: Sequence[str], side: str) -> float:
    """Return decimal degrees, with as many places as the parts make sure."""
    degrees, minutes, seconds = parts
    size = abs(_number(degrees)) + float(minutes or 0) / 60 + float(seconds or 0) / 3600
    places = 5 if seconds else 3 if minutes else 6
    return round(size, places) * (-1 if side[0] in "SsWw" or degrees[0] in "-−" else 1)


def _degrees(text: str) -> tuple[float, float] | None:
    place = next(_places(text[:MOST]), None)
    if place is None:
        return None
    latitude, longitude = map(float, place.split(", "))
    return latitude, longitude


COORDINATES = Coordinates()
