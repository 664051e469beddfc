"""Every prompt of every bundled recipe, to the character: a change of code or words that alters none is safe."""

import hashlib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from space import SPACE, bundled

from lmkbc import Edition, Workspace
from lmkbc.ask.builder import PromptBuilder
from lmkbc.ask.prompts import target
from lmkbc.generate.conversation import Conversation
from lmkbc.recipe import read_file
from lmkbc.testing import Example, Notes, Query

DIGESTS = Path(__file__).with_name("prompts.toml")
"""Recipe -> relation of its edition, or of the bundled one -> the first digits of the SHA-256 of its prompts."""
PASSAGE = "Of {subject} it is told: {{ subject }}."
"""Text that was found, in which braces are text."""
ODD = "A {{ subject }}, {% raw %} {question}"
"""Subject whose name no template may read."""
QUERIES, ROWS = 3, 40
"""First queries and train rows of a relation that are asked and shown."""


@cache
def rows(name: str, data: str) -> tuple[Edition, dict[str, list[Query]], list[Example]]:
    """Return an edition, the first queries of each relation, and its first train rows."""
    space = SPACE if not data else Workspace(data=data)
    edition = space.edition(name)
    queries = {
        one: [query for query in space.queries(edition, "val") if query.relation == one] for one in edition.relations
    }
    labelled = {
        one: [row for row in space.examples(edition, "train") if row.query.relation == one] for one in edition.relations
    }
    train = [replace(row, objects=row.objects[:30]) for one in edition.relations for row in labelled[one][:ROWS]]
    return edition, {one: [*queries[one][:QUERIES], Query(ODD, one)] for one in edition.relations}, train


class _Asked:
    """All that a generator's model is sent: steps, question, expansion, later turns and checks; and what is learned."""

    def __init__(self, spec: Any, edition: Edition, train: Sequence[Example]) -> None:
        relations = {name: SPACE.relation(name) for name in edition.relations}
        self._only = getattr(spec, "only", ())
        self._asking = PromptBuilder(edition, relations, train, spec, SPACE.relations)
        self._talk = Conversation(self._asking, relations, "", None, Notes())
        verify = getattr(spec, "verify", None)
        self._check = verify and verify.open(None, relations, train)
        self._edition, self._train, self._relations = edition, train, {**SPACE.relations, **relations}
        self._static: dict[int, tuple[object, str]] = {}  # kept, so that no other gets its number

    def asks(self, relation: str) -> bool:
        return self._relations[relation].is_in(self._only)

    def texts(self, query: Query) -> Iterator[str]:
        for planned in self._talk.plan(query, PASSAGE if query.subject == ODD else ""):
            prompt, stops = planned.request.prompt, planned.request.stops
            if id(prompt.static) not in self._static:
                self._static[id(prompt.static)] = prompt.static, repr(prompt.static)
            yield f"{planned.name} {prompt.form} {self._static[id(prompt.static)][1]} {prompt.own} {stops}"
        if self._check and query.subject == ODD:
            yield from (repr(planned.request.prompt.own) for planned in self._check.plan(query, 1, 1))
        if query.subject == ODD:
            style = self._asking.plan(query).style
            for shot in islice((row for row in self._train if row.query.relation == query.relation and row.named), 2):
                yield target(style, self._relations, shot, edition=self._edition.name)
            yield repr((style.mark, style.stops, style.format.brackets))


def digests(system: str, data: str = "") -> dict[str, str]:
    """Return relation -> digest of its prompts, for a recipe that asks a model."""
    recipe, year = bundled(system), read_file(SPACE.recipe_path(system)).year
    edition, queries, train = rows(str(year or 2026) if data else "mini", data)
    parts = [part for spec in recipe.generate for part in spec.whole() if hasattr(part, "shots")]
    asked = [_Asked(part, edition, train) for part in parts]
    found = {}
    for name, its in queries.items():
        texts = [text for one in asked if one.asks(name) for query in its for text in one.texts(query)]
        if texts:
            found[name] = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
    return found


KNOWN = tomllib.loads(DIGESTS.read_text())


@pytest.mark.parametrize("system", SPACE.system_names())
def test_every_prompt_about_the_bundled_edition_stays_as_it_is(system: str) -> None:
    assert digests(system) == KNOWN["mini"].get(system, {})


@pytest.mark.parametrize("system", SPACE.system_names())
def test_every_prompt_about_its_own_edition_stays_as_it_is(system: str, data_dir: Path) -> None:
    assert digests(system, str(data_dir)) == KNOWN["official"].get(system, {})
