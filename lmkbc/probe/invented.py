"""Invented names: how much a model or a system says about what does not exist, beside what it says about real names.

Silence alone would win, so each invented name stands beside a real one of its kind. A model is asked for free triples
about a bare name; a system is asked its relations. Protocol and invented names are those of BeyondQuestions
(github.com/Knowledge-aware-AI/BeyondQuestions, CC BY 4.0). The instruction is in this project's words.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from lmkbc.answer.elements import narrowed
from lmkbc.answer.literal import Word, read_literals
from lmkbc.models.base import LanguageModel, Message, Prompt, Sampling
from lmkbc.names import folded_key
from lmkbc.plan import Plan
from lmkbc.probe.benchmark import BenchmarkRun, Findings, Sheet, percent, texts
from lmkbc.progress import Report, silent
from lmkbc.run.pipeline import propose
from lmkbc.select.cutoffs import TopK
from lmkbc.select.selector import PerRelation
from lmkbc.types import Example, Query, grouped

NAMES: Mapping[str, str] = {
    "U-Bahn Dresden": "Berlin U-Bahn",
    "International Airport of Andorra": "Zurich Airport",
    "National Archive of Future Events": "Vatican Apostolic Archive",
    "Mediterranean Logistics Coordination Agency": "European Space Agency",
    "iPhone 19 Pro": "iPhone 12 Pro",
    "Gulf of Varennes": "Gulf of Finland",
    "Valdora Strait": "Bering Strait",
    "Milan Flying Public Transport System": "Milan Metro",
    "Zittau International Agreement on AI Governance": "Kyoto Protocol",
    "Helios Prize for Digital Arts": "Turner Prize",
}
"""Invented name -> a real one of its kind."""
INVENTED, REAL = "invented", "real"
ALL, BARE = "*** All ***", "the ten names, each relation"
PUBLISHED: Mapping[str, tuple[int, int]] = {"GPT-5.4": (0, 0), "Llama-4-Scout": (32, 7), "DeepSeek V3.2": (131, 5)}
"""Model -> triples about the ten invented names, and the number of names that got any."""

TASK = (
    "You are an expert in knowledge bases. Write what you know about the named entity as triples, as a JSON object "
    '{"triples": [{"subject": "...", "predicate": "...", "object": "..."}]}. Include a triple with the predicate '
    "instanceOf. Write 50 to 100 triples or more about a popular entity, and 5 to 10 about another. If you do not know "
    "the entity, or if it is no named entity, write an empty list."
)
PARTS = ("subject", "predicate", "object")
_TRIPLE = {"type": "object", "properties": {part: {"type": "string"} for part in PARTS}, "required": [*PARTS]}
SCHEMA = {"type": "object", "properties": {"triples": {"type": "array", "items": _TRIPLE}}, "required": ["triples"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
SAMPLING = Sampling(temperature=0.0, max_tokens=4096, extra={"response_format": FORMAT})
"""The form of the answer is asked of servers alone."""


def triples(text: str) -> set[tuple[str, ...]] | None:
    """Return the whole triples in an answer, each once; None for an answer without any JSON."""
    groups, found = read_literals(narrowed(text)[0] or ""), set[tuple[str, ...]]()
    if not groups:
        return None
    while groups:
        group = groups.pop()
        words = {item.key: item.text for item in group.items if isinstance(item, Word) and item.whole and item.text}
        if all(part in words for part in PARTS):
            found.add(tuple(words[part] for part in PARTS))
        groups += [item for item in group.items if not isinstance(item, Word)]
    return found


def free_triples(model: LanguageModel, limit: int, run: BenchmarkRun) -> Findings:
    """Ask a model for triples about invented and real names, at most `limit` of each, and count them."""
    names = [*list(NAMES)[:limit], *list(NAMES.values())[:limit]]
    prompts = [Prompt((Message("system", TASK),), (Message("user", name),)) for name in names]
    found = [triples(text) for text in texts(model, prompts, SAMPLING, run, "names")]
    values = {
        kind: {
            "names": len(part),
            "answered": sum(map(bool, part)),
            "triples": sum(len(one or ()) for one in part),
            "no JSON": part.count(None),
        }
        for kind, part in ((INVENTED, found[: len(names) // 2]), (REAL, found[len(names) // 2 :]))
    }
    rows: list[list[Any]] = [[kind, *row.values()] for kind, row in values.items()]
    rows += (
        [f"published: {name}, {INVENTED}", len(NAMES), ones, many, None] for name, (many, ones) in PUBLISHED.items()
    )
    heads = ["names", "number", "answered", "triples", "no JSON"]
    return Findings(values, [Sheet(heads, rows, "triples", f"Triples by {model.name} about bare names")])


SHARED, NEAR, TRIES = 3, 0.8, 50
"""Names that share a word such as "River"; similarity that a new word has to no known one; tries to find a word."""


def invented_subjects(names: Sequence[str], count: int, seed: int = 0) -> list[str]:
    """Return new names of the same kind: words that several names share, and new words for the others.

    A new word is the first half of one word and the second half of another, and resembles none (difflib's ratio). The
    rarest word of a name is always new. Fewer names are returned if too few new words come up.
    """
    distinct, draw, invented = list(dict.fromkeys(names)), random.Random(seed), dict[str, None]()
    seen = Counter(word for name in distinct for word in dict.fromkeys(name.split()))
    rare, known = [word for word in seen if seen[word] < SHARED and len(word) > 3], {*map(folded_key, seen)}

    def new() -> str:
        pairs = (draw.choices(rare, k=2) for _ in range(TRIES if rare else 0))
        words = (first[: (len(first) + 1) // 2] + second[len(second) // 2 :] for first, second in pairs)
        return next((word for word in words if not get_close_matches(folded_key(word), known, 1, NEAR)), "")

    for name in draw.choices(distinct, k=TRIES * count):
        if len(invented) < count and (words := name.split()):
            rarest = min(words, key=lambda word: (seen[word], -len(word)))
            made = [word if seen[word] >= SHARED and word != rarest else new() for word in words]
            invented |= {" ".join(made): None} if all(made) else {}
    return list(invented)


HEADS = ("relation", "subjects", "queries", "failed", "empty in gold %")


def silence(
    plan: Plan,
    selector: PerRelation,
    examples: Sequence[Example],
    limit: int,
    seed: int = 0,
    report: Report = silent,
) -> Findings:
    """Ask a system about invented and real subjects of each relation, at most `limit` of each, and the ten names.

    examples: real subjects with gold. selector: with the system's thresholds; the recipe's own rules, and the best
    candidate of each query, which never abstains, stand beside it. A failed query counts as no answer of any kind.
    """
    run, recipe = plan.run, plan.recipe
    rows = grouped((example.query.relation, example) for example in examples)
    asked: dict[tuple[str, str], list[Query]] = {}
    names = grouped((example.query.relation, example.query.subject) for example in [*run.train, *examples])
    for relation, some in rows.items():
        asked[relation, INVENTED] = [Query(name, relation) for name in invented_subjects(names[relation], limit, seed)]
        asked[relation, REAL] = [example.query for example in some[:limit]]
    for kind, named in ((INVENTED, [*NAMES]), (REAL, [*NAMES.values()])):
        asked[ALL, kind] = [query for relation in rows for query in asked[relation, kind]]
        asked[BARE, kind] = [Query(name, relation) for relation in rows for name in named[:limit]]
    queries = list(dict.fromkeys(query for own in asked.values() for query in own))
    sets = propose(plan, queries, report).sets
    ways = {} if selector == recipe.select else {"tuned": selector}
    ways |= {"recipe's rule": recipe.select, "best candidate": PerRelation(TopK(k=1))}
    kept = {way: dict(zip(queries, rule.select_all(sets), strict=True)) for way, rule in ways.items()}
    gold = {example.query: bool(example.objects) for example in examples}
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    for (relation, kind), own in asked.items():
        shares: dict[str, Any] = {"queries": len(own), "failed": 0}
        for way, made_by in kept.items():
            made = [made_by[query] for query in own if not made_by[query].failed]
            shares["failed"] = len(own) - len(made)
            shares[way] = {
                "empty": sum(not one.objects for one in made) / len(made) if made else None,
                "triples": sum(len(one.objects) for one in made),
                "answered": len({one.query.subject for one in made if one.objects}),
            }
        labelled = [gold[query] for query in own if query in gold]
        shares["empty in gold"] = labelled.count(False) / len(labelled) if labelled else None
        values[relation][kind] = shares
    of_ways = [head for way in ways for head in (f"{way}: empty %", "triples", "answered")]
    table = [
        [relation, kind, one["queries"], one["failed"], *percent(one["empty in gold"])]
        + [cell for way in ways for cell in (*percent(one[way]["empty"]), one[way]["triples"], one[way]["answered"])]
        for relation, kinds in values.items()
        for kind, one in kinds.items()
    ]
    return Findings(
        dict(values), [Sheet([*HEADS, *of_ways], table, "silence", f"{recipe.name} on {run.edition.title}")]
    )
