"""LAMA's facts as KAMEL's questions: a model's score on facts whose objects are not restricted to one token.

Kalo and Fichtel 2022, table 4: the same relations, prompts and scores, on the facts of either benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.kamel import score
from lmkbc.probe.kamel.dataset import LAMA, Kamel, KamelAnswer, KamelFact
from lmkbc.probe.lama.dataset import Pair, pairs_of, read

KAMELS, LAMAS = score.PUBLISHED_LAMA
"""Names of the rows, by the origin of the facts."""
ABSENT = "LAMA's facts are not asked: name the directory of its relations.jsonl and TREx/ with --lama"


def lama_questions(directory: Path, data: Kamel, examples: Path | None = None) -> Kamel:
    """Return LAMA's facts of KAMEL's properties as a test split, with a train split for examples.

    examples: directory with P36/train.jsonl, as AutoPrompt made them and the paper used them; default: KAMEL's train
    split.
    """
    facts: dict[tuple[str, str], tuple[KamelFact, ...]] = {}
    for relation in read(directory):
        if relation.name in LAMA and (relation.name, "train") in data.facts:
            own = data.of(relation.name, "train")
            train = (
                own if examples is None else _facts(relation.name, pairs_of(examples / relation.name / "train.jsonl"))
            )
            facts |= {(relation.name, "test"): _facts(relation.name, relation.facts), (relation.name, "train"): train}
    return Kamel(facts)


def _facts(name: str, pairs: Sequence[Pair]) -> tuple[KamelFact, ...]:
    return tuple(KamelFact(name, subject, (KamelAnswer(object_),)) for subject, object_ in pairs)


LamaTables = Mapping[str, tuple[score.KamelTable, score.KamelTable]]
"""Scores of KAMEL's facts and of LAMA's, by name of the row: as published, and after stripping."""


def lama_tables(kamels: Sequence[tuple[KamelFact, str]], lamas: Sequence[tuple[KamelFact, str]]) -> LamaTables:
    """Return the scores of the answers to KAMEL's facts, and to LAMA's if they were asked."""
    asked = {KAMELS: kamels, LAMAS: lamas}
    return {whose: (score.score(own), score.score(own, strip=True)) for whose, own in asked.items() if own}


def by_facts(tables: LamaTables) -> Sheet:
    """Return the table, with the paper's figures below."""
    heads = ["facts", "P %", "R %", "F1 %", "+-", "F1 %, stripped", "questions", "relations"]
    rows = []
    for whose, (plain, stripped) in tables.items():
        mean, asked = plain.overall, sum(one.count for one in plain.properties.values())
        shares = percent(mean.p, mean.r, mean.f1, plain.half_width, stripped.overall.f1)
        rows.append([whose, *shares, asked, mean.count])
    for whose, f1 in score.PUBLISHED_LAMA.items():
        rows.append([f"paper: OPT-13b, 10 shots, {whose}", None, None, f1, None, None, None, 40])
    return Sheet(heads, rows, "lama-facts", "LAMA's facts beside KAMEL's, table 4 of the paper")
