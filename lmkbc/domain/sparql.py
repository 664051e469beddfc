"""SPARQL over Wikidata's own RDF: the queries for labelled data, and their answers through a cache.

Layout of the RDF: https://www.mediawiki.org/wiki/Wikibase/Indexing/RDF_Dump_Format. Each answer is stored when it
arrives, so a run that was killed asks only what is missing. Pages are not ordered, since a query service cannot sort
large classes in time; an answer that lacks subjects of a page is asked for again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from lmkbc.errors import LmkbcError, counted
from lmkbc.link.search import Cache
from lmkbc.link.wikibase import ApiCall, ApiReply, ShapeError
from lmkbc.link.wikidata import Client
from lmkbc.progress import Report
from lmkbc.relation import Relation

QUERY_URL = "https://query.wikidata.org/sparql"
EVERY = "mul"
"""Code of labels that hold in every language."""
PAGE, GROUP = 200, 50
"""Subjects of a page, and items of a query for aliases."""
MOST_SUBJECTS = 20_000
"""Subjects of a class among which pages are drawn: to skip more takes a query service longer than it allows."""
_PREFIXES = """PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wdno: <http://www.wikidata.org/prop/novalue/>
PREFIX p: <http://www.wikidata.org/prop/>
PREFIX ps: <http://www.wikidata.org/prop/statement/>
PREFIX psv: <http://www.wikidata.org/prop/statement/value/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX skos: <http://www.w3.org/2004/02/skos/core#>
"""
Row = Mapping[str, str]
"""A row of an answer: variable -> value; an unbound variable is absent. A blank node begins with "_:"."""


class SparqlQuery(NamedTuple):
    """A query, and what it asks for, in words.

    variable: one that each row binds. fewest: number of its values in a whole answer. form: pattern of each value.
    """

    text: str
    what: str
    variable: str
    fewest: int = 0
    form: str = ".+"


class QueryAnswer(msgspec.Struct, frozen=True, gc=False):
    """Rows of an answer, and the day on which it came."""

    rows: list[dict[str, str]]
    date: str


class _Cell(msgspec.Struct, gc=False):
    type: str
    value: str


class _Results(msgspec.Struct, gc=False):
    bindings: list[dict[str, _Cell]]


class _Reply(ApiReply):
    results: _Results | msgspec.UnsetType = msgspec.UNSET


_REPLY = msgspec.json.Decoder(_Reply)
_ANSWER = msgspec.json.Decoder(QueryAnswer)


def query_client(contact: str | None = None, endpoint: str = QUERY_URL) -> Client:
    """Return a client of a query service, which may take a minute for an answer. contact: see `Client`."""
    return Client(contact, endpoint, rate=2.0, timeout=75.0, deadline=120.0)


class QueryService:
    """A query service through a cache of all its answers.

    client: None to use the cache alone. endpoint: the address that the client asks. refresh: ask again for what the
    cache has.
    """

    def __init__(self, client: Client | None, endpoint: str, cache: Path, *, refresh: bool = False) -> None:
        self._client, self._endpoint, self._refresh = client, endpoint, refresh
        self._path = cache

    def answers(self, queries: Sequence[SparqlQuery], step: str, progress: Report) -> list[QueryAnswer]:
        """Return the answer to each query, in order. LmkbcError for one that the service does not give."""
        with closing(Cache(self._path, self._endpoint)) as cache:
            keys = [query.text for query in queries]
            kept = {} if self._refresh else cache.get("sparql", keys, _ANSWER)
            for query in queries:  # an earlier version may have kept an answer that cannot be read
                if query.text in kept and _lack(kept[query.text].rows, query):
                    del kept[query.text]
            missing = [query for query in queries if query.text not in kept]
            if missing and self._client is None:
                raise LmkbcError(
                    f"offline, and {self._path} lacks {counted(len(missing), 'answer')} of {self._endpoint}, first "
                    f"{missing[0].what}: run once without --offline"
                )
            progress(step, len(queries) - len(missing), len(queries))
            if self._client is not None:
                for at, answer in self._client.answers([_call(query) for query in missing]):
                    if answer is not None:
                        cache.put("sparql", {missing[at].text: answer})
                        kept[missing[at].text] = answer
                        progress(step, len(kept), len(queries))
        return [kept[key] for key in keys]


def count(relation: Relation) -> SparqlQuery:
    """Return the query for the number of subjects of a relation's class that state something of its property."""
    inner = f"{{ SELECT DISTINCT ?subject WHERE {{ {_members(relation)} }} LIMIT {MOST_SUBJECTS} }}"
    return SparqlQuery(
        f"{_PREFIXES}SELECT (COUNT(*) AS ?count) WHERE {inner}",
        f"the number of subjects of {relation.name}",
        "count",
        1,
        r"[0-9]{1,9}",
    )


def page(relation: Relation, number: int, subjects: int, language: str) -> SparqlQuery:
    """Return the query for a page of subjects, with a row for each of their best-ranked values.

    number: of the page, from 0. subjects: of the whole class, as `count` gives them.
    """
    prop, offset = relation.property, number * PAGE
    inner = f"SELECT DISTINCT ?subject WHERE {{ {_members(relation)} }} LIMIT {PAGE} OFFSET {offset}"
    last = min(offset + PAGE, subjects)
    text = f"""{_PREFIXES}SELECT ?subject ?links ?label ?mul ?none
    ?value ?name ?nameMul ?unit ?precision ?calendar WHERE {{
  {{ {inner} }}
  OPTIONAL {{ ?subject wikibase:sitelinks ?links }}
  {_label("subject", "label", language)}
  {_label("subject", "mul", EVERY)}
  BIND(EXISTS {{ ?subject a wdno:{prop} }} AS ?none)
  OPTIONAL {{
    ?subject p:{prop} ?statement . ?statement a wikibase:BestRank ; ps:{prop} ?value .
    OPTIONAL {{ ?statement psv:{prop} ?amount . ?amount wikibase:quantityUnit ?unit }}
    OPTIONAL {{
      ?statement psv:{prop} ?time . ?time wikibase:timePrecision ?precision ; wikibase:timeCalendarModel ?calendar
    }}
    {_label("value", "name", language)}
    {_label("value", "nameMul", EVERY)}
  }}
}}"""
    fewest = PAGE if last == offset + PAGE else (last - offset) * 9 // 10  # some may have gone since they were counted
    return SparqlQuery(text, f"subjects {offset + 1} to {last} of {relation.name}", "subject", fewest)


def aliases(qids: Sequence[str], language: str) -> SparqlQuery:
    """Return the query for the aliases of some items."""
    items = " ".join(f"wd:{qid}" for qid in qids)
    text = f"""{_PREFIXES}SELECT ?item ?alias WHERE {{
  VALUES ?item {{ {items} }}
  ?item skos:altLabel ?alias FILTER(LANG(?alias) IN ("{language}", "{EVERY}"))
}}"""
    return SparqlQuery(text, f"the aliases of {qids[0]} to {qids[-1]}", "item")


def _members(relation: Relation) -> str:
    kind = relation.subject_class or relation.subject_type
    classes = " ".join(f"wd:{qid}" for qid in (kind.qid, *kind.classes))
    return f"VALUES ?class {{ {classes} }} ?subject wdt:P31/wdt:P279* ?class ; p:{relation.property} ?any ."


def _label(item: str, variable: str, language: str) -> str:
    return f'OPTIONAL {{ ?{item} rdfs:label ?{variable} FILTER(LANG(?{variable}) = "{language}") }}'


def _call(query: SparqlQuery) -> ApiCall[QueryAnswer]:
    """Return the request. The query begins with a comment, so that operators of the service see what is asked."""
    return ApiCall({"query": f"# {query.what}\n{query.text}"}, _REPLY, lambda reply: _answer(reply, query))


def _answer(reply: _Reply, query: SparqlQuery) -> QueryAnswer:
    if reply.results is msgspec.UNSET:
        raise ShapeError("Object missing required field `results`")
    rows = [
        {name: f"_:{cell.value}" if cell.type == "bnode" else cell.value for name, cell in binding.items()}
        for binding in reply.results.bindings
    ]
    if lack := _lack(rows, query):
        raise ShapeError(lack)
    return QueryAnswer(rows, time.strftime("%Y-%m-%d", time.gmtime()))


def _lack(rows: Sequence[Row], query: SparqlQuery) -> str:
    """Return what an answer lacks, for a message; "" for nothing."""
    values = {row.get(query.variable, "") for row in rows}
    if strange := sorted(value for value in values if not re.fullmatch(query.form, value, re.DOTALL)):
        return f"{query.variable!r} is {strange[0][:40]!r}"
    return f"it has {len(values)} of {query.fewest} values of {query.variable!r}" * (len(values) < query.fewest)
