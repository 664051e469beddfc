"""Tables of `kmir score`: token F1 in percent, beside what the paper printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.kmir.chance import Chance
from lmkbc.probe.kmir.files import TYPES, Question
from lmkbc.probe.kmir.score import KNOWLEDGE, PUBLISHED, PUBLISHED_ROBUSTNESS, KmirTable


def by_type(table: KmirTable, questions: Sequence[Question]) -> Sheet:
    """Return the table of F1 by question type."""
    counts = Counter(question.type for question in questions)
    own, widths = ([shares.get(kind) for kind in TYPES] for shares in (table.types, table.half_widths))
    rows: list[list[Any]] = [
        ["these answers", *percent(*own, table.f1)],
        ["+- (95 % interval)", *percent(*widths, table.half_width)],
        ["questions", *(counts[kind] for kind in TYPES), len(questions)],
        *([f"paper: {name}", *values, None] for name, values in PUBLISHED.items()),
    ]
    return Sheet(["F1 %", *TYPES, "all"], rows, "by-type")


def by_topic(table: KmirTable, questions: Sequence[Question]) -> Sheet:
    """Return the table of F1 by topic."""
    counts = Counter(question.topic for question in questions)
    rows = [[topic, 100 * f1, counts[topic]] for topic, f1 in table.topics.items()]
    return Sheet(["topic", "F1 %", "questions"], rows, "by-topic")


def by_fact(table: KmirTable, _: Sequence[Question]) -> Sheet:
    """Return the table of facts of which all, some or none of the questions are answered right."""
    steady = table.robustness
    rows: list[list[Any]] = [
        ["these answers", *percent(steady.every, steady.some, steady.none), steady.facts],
        *([f"paper: {name}", *values, None] for name, values in PUBLISHED_ROBUSTNESS.items()),
    ]
    return Sheet(["questions on one fact", "all right %", "some %", "none %", "facts"], rows, "by-fact")


def type_by_topic(table: KmirTable, questions: Sequence[Question]) -> Sheet:
    """Return the table of F1 by knowledge type and question type: the paper's types first, whether asked or not."""
    counts = Counter(question.topic for question in questions)
    others = [topic for topic in table.cells if topic not in KNOWLEDGE]
    rows: list[list[Any]] = []
    for topic in (*KNOWLEDGE, *others):
        cells = [table.cells.get(topic, {}).get(kind) for kind in TYPES]
        parts = [(100 * cell.f1, cell.questions) if cell else (None, 0) for cell in cells]
        label = topic if topic in KNOWLEDGE else f"not in the paper: {topic or 'no topic'}"
        whole = *percent(table.topics.get(topic)), counts[topic]
        rows.append([label, *(value for part in parts for value in part), *whole])
    heads = ["F1 %", *(head for kind in (*TYPES, "all") for head in (kind, "questions"))]
    return Sheet(heads, rows, "type-by-topic", "F1 by type of knowledge and of question, as in the paper's table 6")


def by_chance(table: KmirTable, found: Chance) -> Sheet:
    """Return the table of what guesses without knowledge expect, beside the answers."""
    shares = {
        "these answers": table.types,
        "random: any name, or option": found.name,
        "random: a name of its relation, or option": found.relation,
        "the commonest answer of its type and relation": found.commonest,
        "questions that leave a choice %": found.choices,
    }
    rows: list[list[Any]] = [[name, *percent(*map(own.get, TYPES))] for name, own in shares.items()]
    rows.insert(-1, ["paper: random", *PUBLISHED["random"]])
    return Sheet(["F1 %", *TYPES], rows, "chance", f"F1 that guesses expect; a random name is one of {found.names:,}")


SHEETS: Mapping[str, Callable[[KmirTable, Sequence[Question]], Sheet]] = {
    "by-type": by_type,
    "by-topic": by_topic,
    "type-by-topic": type_by_topic,
    "by-fact": by_fact,
}
"""Tables made of scores alone, by the name that `--table` gives them."""
