"""Reader of a knowledge base on disk: its facts, as the decisions of persons left them.

Facts are read one by one or part by part. The hash of every file is checked.
"""

from __future__ import annotations

import heapq
import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars as pl

from lmkbc.errors import InputError, check_known
from lmkbc.files import checksum
from lmkbc.files.reader import whole
from lmkbc.kb.base.fact_row import FactRow, Thing
from lmkbc.kb.base.manifest import MANIFEST, PART, TIMING, UNFINISHED, About, partition, read_manifest, relation_names
from lmkbc.kb.base.reviews import (
    PERSON,
    REVIEWED,
    RelationReviews,
    Review,
    Reviews,
    SubjectReviews,
    decided,
    distinct,
)
from lmkbc.kb.base.schemas import FACTS, SCHEMA_VERSION
from lmkbc.kinds.kind import kind_of
from lmkbc.names import Memo, name_key, spelling
from lmkbc.progress import Report, silent
from lmkbc.relation import Relation
from lmkbc.run.submission import PREDICTIONS

_keyed = Memo(name_key, 1 << 16)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
MEND = "build into a new directory; answers of models are in the store"
REPORTED = 1 << 10
"""Facts between two reports of progress. A report takes longer than reading a fact."""
ABOUT_SUBJECT = ("subject_row", "subject", "subject_id")
_PLACES = ("quote_file", "quote_start", "quote_end")
_LAST = ("stated_by", "precision", "object_label", *REVIEWED, *_PLACES)
SETTLED = ("subject_entity", "object_entity")
_MENTIONS = ("subject_row", "subject", "subject_id", "object", "object_id")
COLUMNS = (*ABOUT_SUBJECT, "object", "object_id", "literal", "confidence", "sources", "model", *_LAST)
ANSWER = (*ABOUT_SUBJECT, "relation", "reason")
"""Columns that are read for queries without a fact."""
_ALL = {**{name: kind for name, kind in FACTS.items() if name != "relation"}, **dict.fromkeys(REVIEWED, pl.String)}
UNSURE = "confidence below {:g}"
"""Reason for facts that `least` leaves out."""
OTHERS = {
    "reviewed_by": (
        "decided by a person (--reviewed writes them)",
        "not decided by a person (--unreviewed writes them)",
    ),
    "quote": ("with a quote (--quoted writes them)", "without a quote (--unquoted writes them)"),
}
"""Column -> reasons for facts that have it, and that lack it, where only the others are read."""
REFUTED = "wrong by review"
"""Reason of a query whose facts are all wrong, as a person decided."""


class _Timing(msgspec.Struct):
    """Field that is read from the file beside the manifest."""

    finished: str = ""


class _Decided(NamedTuple):
    """Facts of a relation as decisions left them. facts: row of a decided subject -> its facts, in order.

    emptied: subjects of which no fact is left: row, name and QID. idle: decisions that are not about one subject, with
    name and QID of those of the name: none if it is not asked.
    """

    facts: Mapping[int, Sequence[Mapping[str, Any]]]
    emptied: Sequence[tuple[int, str, str | None]]
    idle: Sequence[tuple[Review, Sequence[tuple[str, str | None]]]]


class Knowledge:
    """The facts of a build's directory, as persons' decisions left them: wrong ones are out, and right ones are in.

    least: least confidence; facts below it are left out, and counted in `unsure`. chosen: relations to read, all if
    empty. limit: read only facts of the first `limit` subjects. reviewed: read only facts that persons decided, or only
    others; None for all. quoted: the same of facts with a quote. others: counts of what these two leave out, by reason.
    as_built: whether to leave out all decisions. report: callback for progress in facts. InputError for a directory
    without a finished build, a damaged one, or a missing relation.
    """

    def __init__(
        self,
        path: Path,
        least: float = 0.0,
        *,
        chosen: Sequence[str] = (),
        limit: int | None = None,
        reviewed: bool | None = None,
        quoted: bool | None = None,
        as_built: bool = False,
        report: Report = silent,
    ) -> None:
        self.path, self._least, self._limit, self._report = path, least, limit, report
        if (path / PREDICTIONS).is_file():
            raise InputError(
                f"{path} is a run, not a knowledge base: 'lmkbc report {path}' shows it, 'lmkbc evaluate {path}' "
                "scores it, and 'lmkbc build' makes a base from subjects"
            )
        if not path.is_dir():
            raise InputError(f"{path} is no directory: give one of 'lmkbc build'")
        manifest = read_manifest(path / MANIFEST)
        if manifest is None:
            undone = (path / UNFINISHED / MANIFEST).is_file()
            why = (
                "its build is not finished: run 'lmkbc build' again" if undone else "give a directory of 'lmkbc build'"
            )
            raise InputError(f"{path} holds no {MANIFEST}; {why}")
        if manifest.schema != SCHEMA_VERSION:
            raise InputError(
                f"{path} is of schema {manifest.schema}, this program reads {SCHEMA_VERSION}: build into a new "
                "directory"
            )
        if manifest.shards is None:
            raise InputError(f"{path} is a build that is not finished: run 'lmkbc build' again")
        self._all_relations, names = {**manifest.relations}, relation_names(manifest.relations)
        for name in chosen:
            check_known(names.own(name) or name, manifest.relations, f"{path} has no facts of {name!r}")
        chosen = [names.own(name) for name in chosen]
        self.relations = {name: about for name, about in self._all_relations.items() if not chosen or name in chosen}
        self.run, self.inputs, self.shards = manifest.run, manifest.inputs, manifest.shards
        self.is_whole = not chosen and limit is None
        self._outputs, self._done, self.unsure, self.others = manifest.outputs, 0, 0, Counter[str]()
        self.reviews = Reviews() if as_built else Reviews.read(path)
        self._having = {"reviewed_by": reviewed, "quote": quoted}
        self._decisions = dict[str, _Decided]()
        self._by_value = "by" in (manifest.inputs.get("grow") or {})
        self._whole = sum(shard.facts.get(name, 0) for shard in manifest.shards for name in self.relations)

    def describe(self, relations: Mapping[str, Relation]) -> None:
        """Describe relations by a workspace's, where the manifest is of a version that has no nouns."""
        for name, about in self.relations.items():
            if not about.subject and name in relations:
                same = {field: getattr(about, field) for field in ("property", "kind", "unit", "unit_id")}
                self.relations[name] = self._all_relations[name] = msgspec.structs.replace(
                    About.of(relations[name]), **same
                )

    @property
    def rows(self) -> int:
        """Return the number of facts and of queries without a fact for these relations. The limit is ignored."""
        tables = (table for shard in self.shards for table in (shard.facts, shard.nothing, shard.failed))
        return sum(table.get(name, 0) for table in tables for name in self.relations)

    @property
    def finished(self) -> str:
        """Return when the build was finished, as in 2026-11-22T09:30:00Z; "" if unknown."""
        try:
            finished = msgspec.json.decode(whole(self.path / TIMING), type=_Timing).finished
        except (InputError, msgspec.MsgspecError, UnicodeDecodeError):
            return ""
        return finished if _TIME.fullmatch(finished) else ""

    @property
    def date(self) -> str:
        """Return the day on which the build was finished, as in 2026-11-22; "" if unknown."""
        return self.finished[:10]

    @property
    def checksum(self) -> str:
        """Return a SHA-256 over the manifest's hashes of fact files. Two bases with the same facts share it."""
        facts = [f"{name} {self._outputs[name]}\n" for name in sorted(self._outputs) if name.startswith("facts/")]
        return checksum.sha256("".join(facts).encode())

    def facts(self) -> Iterator[FactRow]:
        """Yield all facts, relation by relation, each in the stored order."""
        self._done, self.unsure, self.others = 0, 0, Counter[str]()
        for relation in self.relations:
            yield from self.of(relation)

    def of(self, relation: str, first: Mapping[int, int] | None = None) -> Iterator[FactRow]:
        """Yield the facts of a relation in the stored order. Only one part is in memory at a time.

        first: rows of `_first_rows`, to sort facts by subject. All columns are in memory if they are not stored in
        this order.
        """
        about, parts = self.relations[relation], self.parts(relation, (*COLUMNS, *SETTLED))
        if first or (first is not None and self._by_value):
            held = [*parts]
            row = pl.col("subject_row").replace(dict(first))
            parts = iter([pl.concat(held).sort(row, maintain_order=True)] if held else ())
        for part in parts:
            ends = zip(*(self._entities(part, side, about) for side in ("subject", "object")), strict=True)
            for values, things in zip(part.select(COLUMNS).iter_rows(), ends, strict=True):
                if self._done % REPORTED == 0:
                    self._report("read (facts)", self._done, self._whole)
                self._done += 1
                yield FactRow._make((*values[: -len(_LAST)], relation, about, *values[-len(_LAST) :], *things))

    def _entities(self, facts: pl.DataFrame, side: str, about: About) -> Iterator[Thing | None]:
        """Yield the thing that each subject or object of facts is; None for one that the base has not settled.

        A name without a QID means what it means in a build, where persons gave a thing of the name its QID.
        """
        places = facts[f"{side}_entity"].cast(pl.Int64)
        places = places.set(~places.is_between(0, len(self._settled) - 1), None)
        rows = self._settled.select(pl.all().gather(places)).iter_rows()
        things = (None if values[1] is None else Thing._make(values) for values in rows)
        by_decision = self._by_decision if side == "subject" or kind_of(about).is_entity else {}
        if not by_decision:
            yield from things
            return
        for thing, (row, name, qid) in zip(things, facts["subject_row", side, f"{side}_id"].iter_rows(), strict=True):
            is_listed = row < self._listed[0] if side == "subject" else spelling(name) in self._listed[1]
            yield thing if (thing if qid else is_listed) else by_decision.get(qid or _keyed[name], thing)

    @cached_property
    def _listed(self) -> tuple[float, frozenset[str]]:
        """Return the number of subjects that the user listed, and the spellings of those without a QID."""
        listed = [*self._read("subjects", ("name", "id"))]  # a base of an earlier version does not say
        bare = (part.filter(pl.col("id").is_null())["name"] for part in listed)
        names = frozenset(spelling(name) for part in bare for name in part)
        return sum(map(len, listed)) if listed else math.inf, names

    @cached_property
    def _by_decision(self) -> Mapping[str, Thing]:
        """Return the things to which persons gave QIDs, by QID, and by name where only one thing with a QID has it."""
        ids = {one.object_id for one in self.reviews.rows if one.object_id}
        names = {name_key(one.object) for one in self.reviews.rows if one.object_id}
        found, of_name = dict[str, Thing](), defaultdict[str, set[str]](set)
        for relation in self._all_relations if ids else ():
            for part in self._with_decisions(relation, _MENTIONS):
                for side in ("subject", "object"):
                    mentions = part.select(pl.col(f"{side}_id").alias("id"), name=side).drop_nulls().unique()
                    for qid, name in mentions.sort("id", "name").iter_rows():
                        if _keyed[name] in names:
                            of_name[_keyed[name]].add(qid)
                            found.setdefault(qid, Thing(qid, name))
        settled = self._settled.filter(pl.col("id").is_in(ids.union(found))).iter_rows()
        found |= {values[0]: Thing._make(values) for values in settled}
        return found | {key: found[min(some)] for key, some in of_name.items() if len(some) == 1}

    @cached_property
    def _settled(self) -> pl.DataFrame:
        """Return QID, name and number of all things, in the order of their numbers in facts."""
        columns = "id", "name"
        entities = pl.concat([pl.DataFrame(schema=dict.fromkeys(columns, pl.String)), *self._read("entities", columns)])
        other = pl.int_range(pl.len()).over(*columns)
        return entities.with_columns(other=pl.when(pl.col("id").is_null()).then(other).otherwise(0))

    def parts(self, relation: str, columns: Sequence[str] = COLUMNS) -> Iterator[pl.DataFrame]:
        """Yield the facts of a relation as data frames, in the order of subjects."""
        needed = dict.fromkeys(("subject_row", *columns, "confidence", *REVIEWED))
        for frame in self._with_decisions(relation, [*needed]):
            within = self._limited(frame)
            kept = within.filter(pl.col("confidence") >= self._least) if self._least > 0 else within
            own = kept
            for column, wanted in self._having.items():
                if wanted is not None:
                    rest = own.filter(pl.col(column).is_not_null() == wanted)
                    self.others[OTHERS[column][wanted]] += len(own) - len(rest)
                    own = rest
            self.unsure += len(within) - len(kept)
            self._done += len(frame) - len(own)
            yield own.select(columns)

    def _with_decisions(self, relation: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the facts of a relation as persons' decisions left them, in the order of subjects."""
        left, schema = dict(sorted(self._decided(relation).facts.items())), {name: _ALL[name] for name in columns}
        for frame in self._read(partition(relation), columns):
            schema = dict(frame.schema)
            last = int(frame["subject_row"].to_numpy().max(initial=-1))
            rows = [left.pop(row) for row in [*left] if row <= last] if left else []
            yield _together(frame.filter(~pl.col("subject_row").is_in([*self._decided(relation).facts])), rows)
        if left:
            yield _together(pl.DataFrame(schema=schema), [*left.values()])

    def _decided(self, relation: str) -> _Decided:
        """Return what persons' decisions make of a relation. The facts of its subjects are read once more for it."""
        if relation in self._decisions:
            return self._decisions[relation]
        reviews, about = self.reviews.of(relation), defaultdict[int, list[Review]](list)
        own, subjects = defaultdict[int, list[dict[str, Any]]](list), dict[int, tuple[str, str | None]]()
        of_each = [*zip(reviews.rows, self.subjects_of(reviews, relation), strict=True)]
        for review, rows in of_each:
            if len(distinct(rows)) == 1:
                subjects |= rows
                for row in rows:
                    about[row].append(review)
        for part in self._read(partition(relation), [*_ALL]) if subjects else ():
            for fact in part.filter(pl.col("subject_row").is_in([*subjects])).iter_rows(named=True):
                own[fact["subject_row"]].append(fact)
        made, emptied, single = dict[int, list[dict[str, Any]]](), [], self._all_relations[relation].one_object
        for row, (name, qid) in sorted(subjects.items()):
            kept, lacking = SubjectReviews(about[row], one_object=single).applied(own[row])
            made[row] = [*kept, *(_given(row, name, qid, one) for one in lacking)]
            if own[row] and not made[row]:
                emptied.append((row, name, qid))
        idle = [(review, distinct(rows)) for review, rows in of_each if len(distinct(rows)) != 1]
        self._decisions[relation] = _Decided(made, emptied, idle)
        return self._decisions[relation]

    def subjects_of(self, reviews: RelationReviews, relation: str) -> list[dict[int, tuple[str, str | None]]]:
        """Return, for each decision about a relation, the asked subjects that it names: row -> name and QID."""
        found = [dict[int, tuple[str, str | None]]() for _ in reviews.rows]
        for row, name, qid in self._asked([relation]) if reviews.rows else ():
            for place in reviews.places(name, qid):
                found[place][row] = name, qid
        return [review.closest(subjects) for review, subjects in zip(reviews.rows, found, strict=True)]

    def _asked(self, relations: Collection[str]) -> Iterator[tuple[int, str, str | None]]:
        """Yield row, name and QID of the subjects that are asked some relations, perhaps several times."""
        for name in relations:
            for part in self._read(partition(name), ABOUT_SUBJECT):
                yield from part.unique(maintain_order=True).iter_rows()
        for table in STATES:
            for part in self._read(table, (*ABOUT_SUBJECT, "relation")):
                own = part.filter(pl.col("relation").is_in([*relations])).select(ABOUT_SUBJECT)
                yield from own.unique(maintain_order=True).iter_rows()

    @cached_property
    def shared_names(self) -> Mapping[str, Sequence[tuple[str, str | None]]]:
        """Return the keys of names that several subjects have: name and QID of each."""
        first, found = dict[str, tuple[int, str, str | None]](), dict[str, dict[int, tuple[str, str | None]]]()
        for row, name, qid in self._asked([*self._all_relations]):
            known = first.setdefault(_keyed[name], (row, name, qid))
            if (known[2] or known[0]) != (qid or row):
                found.setdefault(_keyed[name], {known[0]: known[1:]})[row] = name, qid
        return {key: distinct(subjects) for key, subjects in found.items()}

    @property
    def left_out(self) -> dict[str, int]:
        """Return the facts of the last reading that were left out, by reason."""
        found = {UNSURE.format(self._least): self.unsure, **self.others}
        return {reason: number for reason, number in found.items() if number}

    def idle(self) -> list[tuple[Review, Sequence[tuple[str, str | None]]]]:
        """Return the decisions that change nothing, each with name and QID of the subjects that share its name.

        They are none if the base does not ask such a subject in this relation.
        """
        return [one for relation in self.relations for one in self._decided(relation).idle]

    def answers(self, table: str) -> Iterator[pl.DataFrame]:
        """Yield the queries without a fact. table: "nothing", or "missing" for queries without an answer of a model."""
        decided = {name: self._decided(name) for name in self.relations} if self.reviews.rows else {}
        stated = [(row, name) for name, one in decided.items() for row, facts in one.facts.items() if facts]
        schema = {"subject_row": pl.Int64, "relation": pl.String}
        for frame in self._read(table, ANSWER):
            own = frame.filter(pl.col("relation").is_in([*self.relations]))
            if stated:
                given = pl.DataFrame(stated, schema, orient="row")
                own = own.join(given, on=[*schema], how="anti", maintain_order="left")
            yield self._limited(own)
        emptied = [(*about, name, REFUTED) for name, one in decided.items() for about in one.emptied]
        if emptied and table == "nothing":
            yield self._limited(
                pl.DataFrame(emptied, {**{name: _ALL.get(name, pl.String) for name in ANSWER}}, orient="row")
            )

    def replies(self, rows: Collection[int]) -> dict[tuple[int, str], list[tuple[str, str | None]]]:
        """Return (row of a subject, relation) -> (model, text) of each reply, for the subjects of some rows."""
        found = defaultdict[tuple[int, str], list[tuple[str, str | None]]](list)
        for frame in self.reply_parts():
            for row, relation, model, texts in frame.filter(pl.col("subject_row").is_in(rows)).iter_rows():
                found[row, relation] += [(model, text) for text in texts]
        return found

    def reply_parts(self) -> Iterator[pl.DataFrame]:
        """Yield what models wrote, if the base keeps it: subject_row, relation, model and a list of texts."""
        for frame in self._read("replies", ("subject_row", "relation", "model", "completions")):
            yield self._limited(frame.filter(pl.col("relation").is_in([*self.relations])))

    def own_columns(self) -> Iterator[pl.DataFrame]:
        """Yield what the file of subjects states in columns of the user's own: a `value` a row, of a `column`."""
        for frame in self._read("subjects", ()):
            if "subject_row" in frame.columns:  # a base of an earlier version has no column of the user's own
                index = ["subject_row", "name", "id"]
                each = frame.drop("class").unpivot(index=index, variable_name="column").filter(pl.col("value") != "")
                if len(each):
                    yield self._limited(each.rename({"name": "subject", "id": "subject_id"}))

    def _limited(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame if self._limit is None else frame.filter(pl.col("subject_row") < self._limit)

    def by_subject(self) -> Iterator[list[FactRow]]:
        """Yield the facts of each subject, of all relations, in the order of subjects.

        Rows that the base has settled as one thing are one subject. Facts are stored so, unless the base grew
        by value, or has such rows. In that case, all columns are loaded and sorted.
        """
        self._done, first = 0, self._first_rows()

        def row(fact: FactRow) -> int:
            return first.get(fact.subject_row, fact.subject_row)

        for _, facts in groupby(heapq.merge(*(self.of(name, first) for name in self.relations), key=row), key=row):
            yield list(facts)

    def _first_rows(self) -> dict[int, int]:
        """Return row of a subject -> the first row that is the same thing, for all but first rows."""
        columns = "subject_row", "subject_entity"
        frames = [pl.DataFrame(schema=dict.fromkeys(columns, pl.Int64))]
        for name in self.relations:
            frames += (self._limited(part.cast(pl.Int64)).unique() for part in self._read(partition(name), columns))
        rows = pl.concat(frames).drop_nulls().with_columns(first=pl.col("subject_row").min().over("subject_entity"))
        return dict(rows.filter(pl.col("first") < pl.col("subject_row")).select("subject_row", "first").iter_rows())

    def _read(self, folder: str, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the parts of a directory, with all columns if none is named. InputError for a damaged part."""
        for name in sorted(filter(PART.fullmatch, self._outputs)):
            if name.rpartition("/")[0] == folder:
                yield self._part(self.path / name, self._outputs[name], columns)

    def _part(self, path: Path, sha256: str, columns: Sequence[str]) -> pl.DataFrame:
        try:
            content = whole(path)
        except InputError as error:
            raise InputError(f"{error}; {MEND}") from None
        if checksum.sha256(content) != sha256:
            raise InputError(f"{path} is damaged, since it is not what the manifest says; {MEND}")
        there = pl.read_parquet_schema(io.BytesIO(content))  # a base of an earlier version may lack a column
        columns = columns or [*there]
        lacking = [pl.lit(None, pl.String).alias(name) for name in columns if name not in there]
        frame = pl.read_parquet(io.BytesIO(content), columns=[*filter(there.get, columns)], hive_partitioning=False)
        return frame.with_columns(lacking).select(columns)


STATES = ("nothing", "missing")
"""Tables of queries without a fact."""


def _together(frame: pl.DataFrame, decided: Sequence[Sequence[Mapping[str, Any]]]) -> pl.DataFrame:
    """Return facts and those of decided subjects, in the order of subjects."""
    rows = [{name: fact.get(name) for name in frame.columns} for facts in decided for fact in facts]
    if not rows:
        return frame
    return pl.concat([frame, pl.DataFrame(rows, frame.schema)]).sort("subject_row", maintain_order=True)


def _given(row: int, subject: str, subject_id: str | None, review: Review) -> dict[str, Any]:
    """Return a right object that no model gave as a fact of a subject."""
    value = {"object": review.object, "object_id": review.object_id, "literal": review.literal}
    about = {"subject_row": row, "subject": subject, "subject_id": subject_id, "model": PERSON, "sources": [PERSON]}
    return {**about, **value, "confidence": 1.0, "calibrated": True, **decided(review)}
