"""Short texts of which an answer may list several: cut at the relation's separators, and kept as they are written."""

from __future__ import annotations

from lmkbc.kinds.kind import WITH_COMMAS, Kind


class Strings(Kind):
    """Short texts, such as codes and slogans."""

    name = "strings"
    is_parted = True
    shape = WITH_COMMAS


STRINGS = Strings()
