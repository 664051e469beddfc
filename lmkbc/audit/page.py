"""A page on which a person labels the facts of a sample, without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from lmkbc.audit.labels import LABELS, LabelRow
from lmkbc.audit.sample import Sample, SampledFact
from lmkbc.build.saved import FactRow
from lmkbc.report.page import render
from lmkbc.report.rows import LONGEST_TEXT, cut

WIKIDATA, SEARCH = "https://www.wikidata.org/wiki/", "https://duckduckgo.com/?q="
MOST_SOURCES = 20
"""Most sources of a fact that are shown."""


def page(
    name: str, sample: Sample, facts: Sequence[SampledFact], rows: Sequence[LabelRow], about: Mapping[str, str]
) -> str:
    """Return the page. name: name of the base. rows: lines of the labels file. about: definitions of relations."""
    content = {
        "key": f"lmkbc-audit-{sample.base}-{sample.size}-{sample.seed}",
        "file": LABELS,
        "facts": [
            {"line": msgspec.to_builtins(row), **shown(fact, about.get(fact.fact.relation, ""))}
            for fact, row in zip(facts, rows, strict=True)
        ],
    }
    return render("audit.html", title=f"Audit of {cut(name, LONGEST_TEXT)}", facts=len(facts), content=content)


def shown(sampled: SampledFact, definition: str) -> dict[str, Any]:
    """Return what the page shows of a fact. Long texts are cut."""
    fact = sampled.fact
    unit = f" {fact.about.unit}" if fact.about.kind == "number" and fact.about.unit else ""
    words = " ".join(cut(text, LONGEST_TEXT) for text in (fact.subject, fact.relation.replace("-", " "), fact.object))
    return {
        "subject": [cut(fact.subject, LONGEST_TEXT), _item(fact.subject_id)],
        "relation": [fact.relation, f"{WIKIDATA}Property:{fact.about.property}"],
        "object": [cut(fact.object, LONGEST_TEXT) + unit, _item(fact.object_id)],
        "definition": definition,
        "search": SEARCH + quote(words, safe="", errors="replace"),
        "confidence": f"{fact.confidence:.3f}",
        "sources": cut("; ".join(cut(source, LONGEST_TEXT) for source in fact.sources[:MOST_SOURCES]), 4 * LONGEST_TEXT)
        + (f", stated by {' and '.join(fact.stated_by)}" if fact.stated_by else ""),
        "model": cut(fact.model, LONGEST_TEXT),
        "others": [_other(one) for one in sampled.others],
        "further": sampled.further,
    }


def _item(qid: str | None) -> str:
    return f"{WIKIDATA}{qid}" if qid else ""


def _other(fact: FactRow) -> str:
    return f"{fact.relation}: {cut(fact.object, LONGEST_TEXT)} ({fact.confidence:.3f})"
