"""Texts in a language, such as a motto: as written, with the language of their relation."""

from __future__ import annotations

from lmkbc.kinds.kind import Described, Exported, Kind, accepted

UNDETERMINED = "und"
"""Wikidata's code of a language that is not known."""


class LanguageText(Kind):
    """Texts in the language of their relation."""

    name = "text"
    fields = frozenset(("text", "quote", "motto", "title"))
    data_types = ("monolingualtext",)
    hint = ", the language of its texts (as in language='fr')"

    def exported(self, value: str | None, about: Described) -> Exported:
        """Return a text with its language."""
        language, text = about.language or UNDETERMINED, value or ""
        written = {"type": "monolingualtext", "value": {"text": accepted(text), "language": language}}
        return Exported(text, f"@{language}", ("monolingualtext", written), f'{language}:"{text}"')


TEXT = LanguageText()
