"""The subjects of a knowledge base: a file of names, QIDs and classes, checked completely before any model is asked.

A subject is asked the relations for its class, unless the user names others.
"""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import polars as pl

from lmkbc.errors import InputError, counted
from lmkbc.files.checksum import file_sha256
from lmkbc.files.tables import InputTable, TableRow
from lmkbc.link.hits import bundled
from lmkbc.names import as_qid, name_key, shown, spelling
from lmkbc.relation import ANYTHING, EntityClass, EntityType, Relation

COLUMNS = ("name", "id", "class", "own_id", "qid")
"""Columns that are read. qid: in place of `id`, which is then an id of one's own."""
ALSO = {"item": "id", "itemlabel": "name", "label": "name"}
"""Names of these columns elsewhere, as in results of Wikidata's Query Service."""
SCHEMA = dict.fromkeys(COLUMNS[:3], pl.String)
LISTED = dict.fromkeys(COLUMNS[:4], pl.String)
"""Columns of the given subjects, before those of one's own. own_id: an id that is no QID."""
AT_ONCE = 250_000
"""Rows that are Python values at a time; progress is logged after each such chunk."""
log = logging.getLogger(__name__)


class Subject(NamedTuple):
    """Subject of a knowledge base. row: its index, from 0. class_: a QID or label, or ""."""

    row: int
    name: str
    id: str | None = None
    class_: str = ""


class Subjects:
    """Subjects, each once, stored as columns. frame: begins with the columns of `SCHEMA`. first: row of the first one.

    classes: class -> number of subjects.
    """

    def __init__(self, frame: pl.DataFrame, first: int = 0) -> None:
        self.frame, self._first = frame, first
        self.classes = Counter(dict(frame.group_by("class", maintain_order=True).len().iter_rows()))

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Subject]:
        for row, values in enumerate(self.frame.select(*SCHEMA).iter_rows(), self._first):
            yield Subject(row, *values)


class SubjectFile(Subjects):
    """The subjects of a file, in its order. InputError names the line of a wrong value.

    Rows with the same QID are the same subject, under any name. Rows of the same name without a QID are the same
    subject, unless they have two classes or two ids of one's own. Other columns are kept as they are.

    Case, Unicode form and blanks aside, any other name is another one, and so is a name with a QID and without. limit:
    number of subjects to keep, from the first. before: subjects of a base, which stand before those of the file.

    counts: numbers of rows, merged rows and namesakes. remarks: messages for the user.
    """

    def __init__(self, path: Path, limit: int | None = None, before: pl.DataFrame | None = None) -> None:
        table = InputTable(path, COLUMNS, 1, also=ALSO, keeps_more=True)
        self.sha256 = file_sha256(path)
        earlier = pl.DataFrame(schema=LISTED) if before is None else before
        first = len(earlier)
        given = pl.concat([earlier, *_checked(table)], how="diagonal")
        rows = given.select(*LISTED).with_row_index("row")
        rows = rows.with_columns(spelt=hashes(rows["name"], spelling))
        is_new = pl.col("row") >= first
        linked = rows.filter(pl.col("id").is_not_null()).with_columns(
            again=~pl.col("id").is_first_distinct() & is_new,
            other=pl.col("spelt") != pl.col("spelt").first().over("id"),
            namesake=pl.col("id") != pl.col("id").first().over("spelt"),
        )
        class_ = pl.when(pl.col("class") != "").then("class")
        bare = rows.filter(pl.col("id").is_null()).with_columns(
            pl.coalesce(class_, class_.drop_nulls().first().over("spelt"), pl.lit("")).alias("class")
        )
        of_class = pl.struct("spelt", pl.col("class").str.to_lowercase(), "own_id")
        bare = bare.with_columns(again=~of_class.is_first_distinct() & is_new)
        columns = ["row", *LISTED]
        kept = pl.concat([part.filter(~pl.col("again")).select(columns) for part in (linked, bare)]).sort("row")
        if len(rows) == first:
            raise InputError(f"{path} names no subject: it needs a column 'name', and a row for each")
        own = len(kept.filter(pl.col("row") >= first))
        listed = [kept.select(*LISTED), given.drop(*LISTED, "subject_row", strict=False)[kept["row"]]]
        super().__init__(
            pl.concat(listed, how="horizontal").head(len(kept) if limit is None else len(kept) - own + limit)
        )
        others = linked.filter(pl.col("again") & pl.col("other"))
        namesakes = linked.filter(~pl.col("again") & pl.col("namesake"))
        unlinked = bare.filter(~pl.col("again")).join(linked, on="spelt", how="semi", maintain_order="left")
        repeated = len(bare.filter("again")) + len(linked.filter("again")) - len(others)
        self.counts = {
            "rows": len(rows),
            "subjects": len(self),
            "repeated": repeated,
            "other_names": len(others),
            "namesakes": len(namesakes),
        }
        self.remarks: list[str] = []
        own_ids = rows.filter(pl.col("own_id").is_not_null() & is_new)
        for row, *_, own_id in own_ids.head(1).select("row", *LISTED).iter_rows():
            self.remarks.append(
                f"{path}: {counted(len(own_ids), 'id is no QID', 'ids are no QIDs')}, first {own_id!r} at "
                f"{_place(table, row - first)}: kept as own_id"
            )
        ends = pl.col("name").str.to_uppercase().str.strip_chars_end("/").str.ends_with(pl.col("id"))
        named = rows.filter(is_new & ends)
        for row, name, qid, *_ in named.head(1).select("row", *LISTED).iter_rows():
            self.remarks.append(
                f"{path}: {counted(len(named), 'name is a QID', 'names are QIDs')} or an address, first {name!r} at "
                f"{_place(table, row - first)}, whose id is {qid}: a model knows names, so give them in the column name"
            )
        if repeated:
            self.remarks.append(f"{path}: {repeated} rows repeat a subject and are left out")
        for row, _, qid, *_ in others.head(1).iter_rows():
            self.remarks.append(
                f"{path}: {len(others)} rows give a QID again under another name, first {qid} at "
                f"{_place(table, row - first)}: the first name is asked about"
            )
        for row, name, *_ in namesakes.head(1).iter_rows():
            self.remarks.append(
                f"{path}: {len(namesakes)} names have another QID too, first {name!r} at {_place(table, row - first)}: "
                "these are subjects of their own, of which a model is asked the same: let their names tell them apart, "
                "as in 'Springfield (Illinois)'"
            )
        for row, name, *_ in unlinked.head(1).iter_rows():
            self.remarks.append(
                f"{path}: {len(unlinked)} names have a row with a QID and one without, first {name!r} at "
                f"{_place(table, row - first)}: these are subjects of their own; if they are one, give it its QID"
            )


def hashes(names: pl.Series, form: Callable[[str], str]) -> pl.Series:
    """Return a 64-bit hash of the form of each name, by which names are compared in little memory."""
    parts = (pl.Series(map(form, names[at : at + AT_ONCE]), dtype=pl.String) for at in range(0, len(names), AT_ONCE))
    return pl.concat([pl.Series(dtype=pl.UInt64), *(part.hash(0) for part in parts)])


def _checked(table: InputTable) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file in chunks."""
    rows, done = table.rows(), 0
    while some := [_subject(row, table.called) for row in islice(rows, AT_ONCE)]:
        listed = pl.DataFrame([values for values, _ in some], schema=LISTED, orient="row")
        own = pl.DataFrame([more for _, more in some], infer_schema_length=None) if any(m for _, m in some) else None
        yield pl.concat([listed, own.select(pl.all().cast(pl.String))], how="horizontal") if own is not None else listed
        done += len(some)
        if len(some) == AT_ONCE:
            log.info("%s: %s rows checked", table.path, f"{done:,}")


def _subject(
    row: TableRow, called: Mapping[str, str]
) -> tuple[tuple[str, str | None, str, str | None], Mapping[str, str | None]]:
    """Return name, QID, class and own id of a row, and its other columns. called: names of the columns in the file.

    InputError for a blank name, a column `qid` without a QID, and two ids of one's own.
    """
    name, id_, class_, own_id, qid = ((value or "").strip() or None for value in row.values)
    if not (name and ("a" <= name[0].lower() <= "z" or shown(name))):
        raise InputError(f"{row.place}, field {called['name']}: empty; name the subject")
    linked = as_qid(qid or id_ or name)
    if qid and not linked:
        raise InputError(f"{row.place}, field qid: {qid!r} is no QID; write one like Q42, or leave it empty")
    own = {own_id, None if qid is None and linked else id_} - {None}
    if len(own) > 1:
        raise InputError(
            f"{row.place}, field own_id: {own_id!r}, and {called['id']} is {id_!r}: leave one of your own ids"
        )
    return (unicodedata.normalize("NFC", name), linked, class_ or "", next(iter(own), None)), row.more


def _place(table: InputTable, row: int) -> str:
    """Return the place of a row, for messages."""
    return next(islice(table.rows(), row, None)).place


class Classes:
    """Known classes: those of the workspace, those that relations declare, and the linker's small class tree.

    A class is found by its QID or by a name. asked: relations that may be asked, by their names in queries. named:
    whether the user named them. They are then also asked about a subject whose class is unknown, or lies above theirs.
    So are relations that all have one class of subjects.
    every: all relations, whose types are known classes. table: QID -> class of the workspace.
    """

    def __init__(
        self,
        asked: Mapping[str, Relation],
        every: Iterable[Relation] = (),
        table: Mapping[str, EntityClass] | None = None,
        *,
        named: bool = False,
    ) -> None:
        table = table or {}
        self._types = [relation.subject_class or relation.subject_type for relation in asked.values()]
        self._asked, self._named = asked, named or len({kind.qid for kind in self._types}) == 1
        relations = (*every, *asked.values())
        types = [
            kind
            for relation in relations
            for kind in (relation.subject_type, relation.object_type, relation.subject_class)
            if kind
        ]
        self._qids = {name_key(kind.noun): kind.qid for kind in reversed(types)}
        self._qids |= {name_key(name): qid for qid, entity_class in table.items() for name in entity_class.names}
        self._qids |= {one: one for kind in types for one in kind.classes if as_qid(one) is None} | {
            name_key(kind.noun): kind.qid for kind in types if as_qid(kind.qid) is None
        }
        self._above: dict[str, set[str]] = {qid: set(entity_class.below) for qid, entity_class in table.items()}
        for kind in bundled().types.values():
            for lower in (kind.qid, *kind.subclasses):
                self._above.setdefault(lower, set()).add(kind.qid)
        for declared in types:
            for qid in (declared.qid, *declared.classes):
                self._above.setdefault(qid, set())

    def qid(self, named: str) -> str | None:
        """Return the class for a QID or a name; None if it is unknown."""
        qid = as_qid(named) or self._qids.get(name_key(named))
        return qid if qid in self._above else None

    @property
    def nouns(self) -> Sequence[str]:
        """Return the names of the classes that are asked about."""
        return [*dict.fromkeys(kind.noun for kind in self._types)]

    def doubles(self) -> Iterator[str]:
        """Yield remarks about classes that are asked about and share a QID, or a name."""
        by_qid, by_name = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for kind in self._types:
            by_qid[kind.qid].add(kind.noun)
            by_name[name_key(kind.noun)].add(kind.qid)
        for qid, nouns in by_qid.items():
            if len(set(map(name_key, nouns))) > 1:
                yield (
                    f"{' and '.join(map(repr, sorted(nouns)))} have one QID, {qid}, so they are one class: leave it "
                    f"out in the relations' modules if it is none of theirs, as in EntityType({min(nouns)!r})"
                )
        for name, qids in by_name.items():
            if len(qids) > 1:
                yield (
                    f"two classes are called {name!r}, {' and '.join(sorted(qids))}; by that name, a subject is of "
                    f"{self.qid(name)}: rename one in the relations' modules, or give QIDs"
                )

    def relations(self, named: str) -> Sequence[str]:
        """Return the relations to ask about a subject of a class."""
        qid = self.qid(named)
        if qid is None:
            return [*self._asked] if self._named else []
        return [
            name
            for name, relation in self._asked.items()
            if self._fits(qid, relation.subject_class or relation.subject_type)
        ]

    def voted(self, weights: Mapping[str, float]) -> str:
        """Return the class with the highest weight. A weight of a class also counts for the classes below it."""
        return max(weights, key=lambda qid: sum(weight for other, weight in weights.items() if self._is(qid, other)))

    def _fits(self, qid: str, kind: EntityType) -> bool:
        """Return whether a class fits a type. If the user named the relations, a class above the type fits too."""
        accepted = (kind.qid, *kind.classes)
        return (
            kind == ANYTHING
            or any(self._is(qid, other) for other in accepted)
            or (self._named and any(self._is(other, qid) for other in accepted))
        )

    def _is(self, lower: str, upper: str) -> bool:
        """Return whether two classes are equal, or the first lies below the second."""
        met, rest = {lower}, [lower]
        while rest:
            above = self._above.get(rest.pop(), set()) - met
            met |= above
            rest += above
        return upper in met
