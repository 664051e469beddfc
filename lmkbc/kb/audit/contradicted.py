"""Facts of a base that labelled rows contradict: a wrong fact, or a wrong row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from lmkbc.kb.audit.known import Mark, MarkedFact, of_split
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import About
from lmkbc.session.run import Run


def contradicted(path: Path, run: Run) -> list[MarkedFact]:
    """Return the facts of a base that a run's labelled rows contradict, by the kinds of objects, with what these say.

    Rows of other relations than the base's are passed over.
    """
    base, every = Knowledge(path), chain.from_iterable(run.labelled_rows.values())
    own = (row for row in every if run.relations[row.query.relation].name in base.relations)
    known = of_split(own, lambda name: About.of(run.relations[name]))
    facts = base.facts() if known.objects else ()
    return [marked for marked in map(known.marked, facts) if marked.mark is Mark.CONTRADICTING]


def worded(found: Sequence[MarkedFact], most: int = 20) -> Iterator[str]:
    """Yield contradicted facts in words. most: facts to name."""
    for fact, _, _, known in found[:most]:
        others = ", ".join(sorted(known))
        yield f"{fact.relation} of {fact.subject}: {fact.worded}, where a labelled row says: {others}"
    if len(found) > most:
        yield f"labelled rows contradict {len(found) - most} more facts"
