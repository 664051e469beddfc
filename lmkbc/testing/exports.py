r"""Cases of exports: a base of a few facts in memory, what a format writes of it, and what every format keeps to.

A plug-in of the group `lmkbc.exports` is tested by its name:

    from lmkbc.testing.exports import check_exporter, exported, fact

    def test_names():
        check_exporter("names", lambda content: content.count(b"\\n"))
        assert exported("names", [fact("Libya")]).text == "Libya\n"
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from lmkbc.kb.base.fact_row import FactRow
from lmkbc.kb.base.knowledge import Knowledge
from lmkbc.kb.base.manifest import About
from lmkbc.kb.export.exporter import Exporter, ExportSettings
from lmkbc.kb.export.left_out import ExportTally
from lmkbc.names import as_qid
from lmkbc.registry import EXPORTS, KINDS

HOSTILE = ("", "a", '"=1+1"|,;\t', "/* a */ ]]> </script>", "ä\n\r\u2028\x00\x1b[2J\ufffe\U0010ffff", "x" * 5000, "\\N")
"""Objects as a model may write them."""
LITERALS = {"number": "4", "date": "1985", "coordinates": "45.5, -73.6"}
OF_RELATION = {*About.__struct_fields__} - {"subject", "object"}
"""Fields of a relation that `fact` takes."""


class ListedFacts(Knowledge):
    """A base that holds these facts, in their order, and has no directory."""

    def __init__(self, facts: Sequence[FactRow]) -> None:
        self._facts, self.path, self.run = facts, Path("absent"), "0" * 16
        self.inputs, self.shards, self._outputs = {}, (), {}
        self.relations = {one.relation: one.about for one in facts}

    def facts(self) -> Iterator[FactRow]:
        """Yield the facts."""
        yield from self._facts

    def by_subject(self) -> Iterator[list[FactRow]]:
        """Yield the facts of each subject; those of a subject stand in one row of facts."""
        for _, some in groupby(self._facts, key=lambda one: (one.subject_row, one.subject, one.subject_id)):
            yield [*some]


class WrittenExport(NamedTuple):
    """What a format wrote: text and bytes of its file, or of its files for review; reason -> facts left out.

    facts: number of facts that were written.
    """

    text: str
    left_out: Counter[str]
    facts: int
    content: bytes


def fact(object_: str = "Libya", object_id: str | None = None, **more: Any) -> FactRow:
    """Return a fact. more: further fields of the row, and of its relation, such as property and kind.

    By default: of the subject Chad (Q657), property P47, kind entity.
    """
    about = {name: more.pop(name) for name in OF_RELATION if name in more}
    made = FactRow(0, "Chad", "Q657", object_, object_id, None, 0.875, ["m#0"], "m", "relation", About("P47", "entity"))
    return made._replace(about=About(**{"property": "P47", "kind": "entity", **about}), **more)


def exported(
    form: str,
    facts: Sequence[FactRow],
    *,
    base: str = "urn:lmkbc:",
    date: str = "2026-11-22",
    run: str = "0" * 16,
    known: str | bytes = "",
    batch: int = 250,
) -> WrittenExport:
    """Return what the format of this name writes of facts.

    known: content of a file of known facts; by default, nothing is known of the facts' subjects and properties.
    InputError for an unknown format, and for facts that no format may be given.
    """
    exporter: Exporter = EXPORTS.get(form)
    held, tally = ListedFacts(facts), ExportTally()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "known"
        file.write_bytes(known if isinstance(known, bytes) else (known or _nothing_known(facts)).encode())
        settings = ExportSettings(base=base, date=date, run=run, known=file, batch=batch)
        if type(exporter).write is Exporter.write:
            buffer = io.BytesIO()
            exporter.fill(buffer, held, tally, settings)
            content = buffer.getvalue()
        else:
            exporter.write(held, Path(folder) / "out", tally, settings)
            files = [*Path(folder).glob("out"), *sorted(Path(folder).glob("out/review-*"))]
            content = b"".join(path.read_bytes() for path in files if path.is_file())
    return WrittenExport(content.decode("utf-8", "replace"), tally.left_out, tally.facts, content)


def _nothing_known(facts: Sequence[FactRow]) -> str:
    """Return a table that covers the subjects and the properties of facts, and states nothing about them."""
    subjects = sorted({as_qid(one.subject_id or "") or "Q1" for one in facts})
    properties = sorted({one.about.property for one in facts if one.about.is_of_wikidata()})
    rows = [(one, "P999999999", "Q1") for one in subjects] + [("Q999999999", name, "Q1") for name in properties]
    return "".join(",".join(row) + "\n" for row in [("subject", "property", "object"), *rows])


def check_exporter(form: str, read: Callable[[bytes], int] | None = None) -> None:
    """Check that a format writes or counts each fact of any kind and text, and writes the same of the same facts.

    The kinds are those of the engine. read: returns the number of facts that a reader of others' making finds in what
    was written. AssertionError for a fact that is lost, that this reader does not find, or that is written in two ways.
    """
    for text in HOSTILE:
        ours: dict[str, Any] = {"model": text, "sources": [text]}
        other = ours | {"subject_row": 1, "subject": text, "subject_id": None, "object_id": "Q2"}
        some = [
            fact(text, kind=kind, relation=kind, literal=LITERALS.get(kind), **about)
            for about in (ours, other)
            for kind in KINDS
        ]
        some += [fact(f"https://example.org/{end}", kind="url", relation=end) for end in (text[:9], "a#b#c", "%zz")]
        made = exported(form, some)
        counted = made.facts + sum(made.left_out.values())
        assert counted == len(some), f"{form} counts {counted} of {len(some)} facts, where a model wrote {text!r}"
        assert exported(form, some) == made, f"{form} writes the same facts in two ways, where a model wrote {text!r}"
        if made.facts and read is not None:
            found = read(made.content)
            assert found == made.facts, f"a reader finds {found} of {made.facts} facts of {form}, with {text!r}"
