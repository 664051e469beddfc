"""From a block of queries to rows of facts: pure functions, which run on any machine.

A block gives three tables. `facts` has a row for each object that was kept. `nothing` has a row for each query with an
empty answer, and the reason. An empty answer is knowledge too, unless an answer was withheld. `missing` lists the
queries that no model answered.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import polars as pl

from lmkbc.kb.base.schemas import FACTS, LEAST, MISSING, NOTHING, QUOTE, REPLIES, SETTLED, SUMS
from lmkbc.kinds.kind import kind_of
from lmkbc.models.budget import MAX_COST, MAX_TOKENS
from lmkbc.names import as_qid
from lmkbc.relation import Relation
from lmkbc.select.selector import Confidence, PerRelation, confidences
from lmkbc.session.quotes import Quoting
from lmkbc.session.statements import Statements
from lmkbc.types import Candidate, CandidateSet, Query, Source, State

Texts = Mapping[Query, Sequence[tuple[str, Sequence[str | None]]]]
"""Query -> the models that replied, each with a text per draw; None for a failed call."""
REACHED = {option: f"{option} is reached" for option in (MAX_TOKENS, MAX_COST)}
"""Why queries were not asked, by the option that limits tokens or cost."""

UNREAD = frozenset((State.UNPARSED, State.TRUNCATED, State.EMPTY))


def is_unread(reason: str) -> bool:
    """Return whether a query is missing because no reply can be read, so that asking again does not help."""
    return UNREAD.issuperset(reason.split(", "))


class Ask(NamedTuple):
    """A query, and the row of its subject."""

    row: int
    query: Query


def among(
    asks: Iterable[Ask], rows: pl.DataFrame, relations: Mapping[str, Relation], *, inside: bool = True
) -> list[Ask]:
    """Return the queries that are, or are not, among the rows of a table. relations: by their names in queries."""
    found, names = (
        {*rows.select("subject_row", "relation").iter_rows()},
        {own: one.name for own, one in relations.items()},
    )
    return [ask for ask in asks if ((ask.row, names[ask.query.relation]) in found) is inside]


class Tables(NamedTuple):
    """Results of a block of queries, with the columns of `SCHEMAS`. sums: with those of `SUMS`; not part of a base."""

    facts: pl.DataFrame
    nothing: pl.DataFrame
    missing: pl.DataFrame
    sums: pl.DataFrame = pl.DataFrame(schema=SUMS)
    replies: pl.DataFrame = pl.DataFrame(schema=REPLIES)

    @classmethod
    def together(cls, parts: Sequence[Tables]) -> Tables:
        """Concatenate the tables of several blocks."""
        return cls(*(pl.concat(frames) for frames in zip(*parts, strict=True)))

    def each(self, made: Callable[[pl.DataFrame], pl.DataFrame]) -> Tables:
        """Return the tables of queries, each as a function makes it."""
        return Tables(made(self.facts), made(self.nothing), made(self.missing), self.sums, made(self.replies))

    def completed(self, made: Tables, relations: Sequence[str]) -> Tables:
        """Return these tables with the answers to their missing queries, in the order of subjects and of relations."""
        rank = pl.col("relation").replace_strict(dict(zip(relations, range(len(relations)), strict=True)))
        replies = self.replies.join(self.missing, on=["subject_row", "relation"], how="anti", maintain_order="left")
        whole = Tables.together([self._replace(missing=self.missing.clear(), replies=replies), made])
        return whole.each(lambda frame: frame.sort("subject_row", rank, maintain_order=True))

    @property
    def answered(self) -> pl.DataFrame:
        """Return the queries with an answer, each by the row of its subject and its relation."""
        return pl.concat([frame.select("subject_row", "relation") for frame in (self.facts, self.nothing)]).unique()

    def encoded(self) -> list[bytes]:
        """Return the tables in Arrow's format, to be sent or stored."""
        buffers = [frame.write_ipc(None, compression="zstd") for frame in self]
        return [buffer.getvalue() for buffer in buffers]

    @classmethod
    def decoded(cls, tables: Iterable[bytes]) -> Tables:
        """Read tables from Arrow's format."""
        made = cls(*(pl.read_ipc(io.BytesIO(table)) for table in tables))
        # a shard of an earlier version may lack a column
        return made._replace(sums=pl.concat([pl.DataFrame(schema=SUMS), made.sums], how="diagonal"))


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes tables from answered queries. relations: relations by their names in queries. run: id of the build.

    least: least confidence of a fact, in addition to its rule; None for that of `floor`. statements: what labelled
    rows state; None if this is not recorded. documents: texts to quote; None without any.
    """

    selector: PerRelation
    relations: Mapping[str, Relation]
    run: str
    least: float | None = None
    statements: Statements | None = None
    documents: Quoting | None = None

    def tables(self, rows: Sequence[int], sets: Sequence[CandidateSet]) -> Tables:
        """Return the tables of a block. rows: row of each set's subject. sets: pooled, one per query."""
        made: tuple[list[tuple[Any, ...]], ...] = ([], [], [])
        tokens, below = Counter[str](), Counter[str]()
        places: dict[tuple[Source, ...], int] = {}  # many facts have the same sources, which are written once
        chosen, made_sure = self.selector.select_all(sets), confidences(self.selector, sets)
        for row, candidates, kept, sure in zip(rows, sets, chosen, made_sure, strict=True):
            query, relation = candidates.query, self.relations[candidates.query.relation]
            about = self._about(row, query)
            if kept.failed:
                reason = ", ".join(dict.fromkeys(candidates.draws)) or "not asked"
                made[2].append((*about, reason, self.run))
                continue
            pairs = [*zip(kept.objects, of_each(sure, kept.objects), strict=True)]
            least = floor(sure) if self.least is None else self.least
            most = 1 if relation.has_one_object() else None
            stating = [(candidate, p) for candidate, p in pairs if p >= least][:most]
            below[relation.name] += len(pairs[:most]) - len(stating)
            if stating:
                for candidate, p in stating:
                    places.setdefault(candidate.sources, len(places))
                    made[0].append(
                        (*about, *self._fact(query, candidate, relation, p, sure.calibrated, places[candidate.sources]))
                    )
            else:
                made[1].append(
                    (*about, *self._nothing(candidates, "withheld" if kept.withheld else why_nothing(candidates)))
                )
        schemas = (FACTS | {"sources": pl.Int64}, NOTHING, MISSING)
        facts, nothing, missing = (
            pl.DataFrame(rows, schema=schema, orient="row") for rows, schema in zip(made, schemas, strict=True)
        )
        named = pl.Series("sources", [named_sources(sources)[0] for sources in places], pl.List(pl.String))
        for candidates in sets:
            tokens[self.relations[candidates.query.relation].name] += candidates.tokens
        return Tables(facts.with_columns(named.gather(facts["sources"])), nothing, missing, sums_of(tokens, below))

    def _about(self, row: int, query: Query) -> tuple[Any, ...]:
        relation = self.relations[query.relation]
        return row, writable(query.subject), query.subject_id, relation.name, relation.property

    def replies(self, rows: Sequence[int], queries: Sequence[Query], replies: Texts) -> pl.DataFrame:
        """Return the table of what models wrote about some queries. rows: row of each query's subject."""
        made = [
            (*self._about(row, query), writable(model), [text if text is None else writable(text) for text in texts])
            for row, query in zip(rows, queries, strict=True)
            for model, texts in replies.get(query, ())
        ]
        return pl.DataFrame(made, schema=REPLIES, orient="row")

    def _fact(
        self, query: Query, kept: Candidate, relation: Relation, p: float, calibrated: bool, sources: int
    ) -> tuple[Any, ...]:
        """Return the columns of a fact from its object on. sources: place of its sources."""
        stated_by = self.statements.stated_by(query, kept) if self.statements else ()
        models = tuple(source for source in kept.sources if str(source) not in stated_by) or kept.sources
        literal, precision = kind_of(relation).literal((kept.id or "", kept.text))
        qid = kept.id if relation.has_entities() and kept.id and as_qid(kept.id) == kept.id else None
        if stated_by and self.statements and relation.has_entities():  # linking leaves out the row of the query itself
            qid = qid or self.statements.qid(query, kept)
        return (
            writable(kept.text),
            qid,
            literal,
            relation.unit if literal is not None else None,
            round(p, 6),
            calibrated,
            sources,
            named_sources(models)[1],
            self.run,
            precision,
            *(None for _ in SETTLED),
            stated_by or None,
            *self._quote(query, kept),
        )

    def _quote(self, query: Query, kept: Candidate) -> tuple[Any, ...]:
        """Return the columns of a fact's quote."""
        quote = self.documents.quote(query, self.relations[query.relation], (kept.text,)) if self.documents else None
        if quote is None:
            return (None,) * len(QUOTE)
        return writable(quote.text), quote.address or None, writable(quote.file), quote.start, quote.end

    def _nothing(self, candidates: CandidateSet, reason: str) -> tuple[Any, ...]:
        sources = tuple(source for nil in candidates.nothing for source in nil.sources)
        score = max((nil.score for nil in candidates.nothing), default=None)
        return reason, None if score is None else round(score, 6), named_sources(sources)[1], self.run


def sums_of(tokens: Mapping[str, int], below: Mapping[str, int]) -> pl.DataFrame:
    """Return what is summed by relation as a frame with the columns of `SUMS`."""
    rows = [(name, tokens.get(name, 0), below.get(name, 0)) for name in sorted({*tokens, *below})]
    return pl.DataFrame(rows, schema=SUMS, orient="row").filter(pl.sum_horizontal("tokens", "below_least") > 0)


def of_each(sure: Confidence, kept: Sequence[Candidate]) -> list[float]:
    """Return the confidences of all selected objects."""
    if not kept:
        return []
    known = {(candidate.text, candidate.id): p for candidate, p in zip(sure.candidates, sure.p, strict=True)}
    return [known[one.text, one.id] if (one.text, one.id) in known else sure.of(one) for one in kept]


def floor(sure: Confidence) -> float:
    """Return the least confidence of a query's facts: `LEAST` if confidences are probabilities, else 0.

    Suppose a relation always has an object. The rule with the best score may keep an unlikely one, since an empty
    answer is certainly wrong. In a knowledge base such an object is an error like any other. Confidences that are not
    probabilities order facts, and promise nothing.
    """
    return LEAST if sure.calibrated else 0.0


def why_nothing(candidates: CandidateSet) -> str:
    """Return why an answered query has no fact.

    "abstained": no object was named. "dropped": no named object was valid. "not kept": valid objects were not likely
    enough.
    """
    if candidates.candidates:
        return "not kept"
    return "dropped" if State.DROPPED in candidates.draws and State.ABSTAINED not in candidates.draws else "abstained"


@lru_cache(1 << 16)
def named_sources(sources: tuple[Source, ...]) -> tuple[list[str], str]:
    """Return the names of some sources in files, and the names of their models."""
    names = [writable(str(source)) for source in sorted(sources)]
    return names, "; ".join(sorted({writable(str(Source(source.model))) for source in sources}))


def writable(text: str) -> str:
    """Return a model's text in a form that a column can hold: lone surrogates are written as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
