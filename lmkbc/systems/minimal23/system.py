"""Search a prize with its whole name, and link others by a known word (minimal23, LM-KBC 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from lmkbc.ask.templates import check_template, reads, render
from lmkbc.generate.spec import check_names
from lmkbc.link.hits import Link
from lmkbc.link.linker import Linking, under_own_names
from lmkbc.names import as_qid, name_key
from lmkbc.relation import Relation


@dataclass(frozen=True, kw_only=True)
class WordLinking(Linking):
    """Linking as in other systems, with two tables more.

    searched: relation -> template of the searched text, in place of "{{ object }}".
    known: relation -> word -> id, for a name that holds the word (in any case) and that nothing else links.
    """

    searched: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the settings. ValueError for a template without {object}, and for an id that is none."""
        Linking.__post_init__(self)
        for name, template in self.searched.items():
            check_template(f"searched.{name}", template, ("object",))
            if "object" not in reads(template):
                raise ValueError(f"searched.{name} is {template!r}: say with {{{{ object }}}} where the name stands")
        for name, words in self.known.items():
            if wrong := next((qid for qid in words.values() if as_qid(qid) != qid), None):
                raise ValueError(f"known.{name} names {wrong!r}, which is no QID: write one like 'Q42'")

    def check(self, relations: Mapping[str, Relation]) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        super().check(relations)
        check_names((*self.searched, *self.known), relations, "link")

    def canonical(self, relations: Mapping[str, Relation]) -> Self:
        """Return the settings under the relations' own names. InputError for a relation that does not exist."""
        keys = {name: {name_key(word): qid for word, qid in words.items()} for name, words in self.known.items()}
        made = super().canonical(relations)
        searched, known = (under_own_names(table, relations) for table in (self.searched, keys))
        return replace(made, searched=searched, known=known)

    def sought(self, relation: Relation, text: str) -> str:
        """Return the text with which a name is searched."""
        return render(self.searched.get(relation.name, "{{ object }}"), {"object": text})

    def last_link(self, relation: Relation, text: str) -> Link | None:
        """Return the link to the id of a known word in a name; None if it holds none."""
        ids, name = self.known.get(relation.name, {}), name_key(text)
        word = next((word for word in (name, *name.split()) if word in ids), None)
        return Link(ids[word], "known", word, text) if word else None


COMPONENTS = {"minimal23/words": WordLinking}
