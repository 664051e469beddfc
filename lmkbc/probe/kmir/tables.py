"""Tables of `kmir score`: token F1 in percent, beside the paper's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmkbc.probe.benchmark import Sheet, percent
from lmkbc.probe.kmir.chance import Chance
from lmkbc.probe.kmir.cooccurrence import CountBin, CountCurve
from lmkbc.probe.kmir.files import TYPES, Question
from lmkbc.probe.kmir.score import KNOWLEDGE, PUBLISHED, PUBLISHED_ROBUSTNESS, KmirTable
from lmkbc.report.figures import BLUE, GREEN, INK, ORANGE, Plot, canvas


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
    """Return the table of facts with all, some and none of their questions answered right."""
    steady = table.robustness
    rows: list[list[Any]] = [
        ["these answers", *percent(steady.every, steady.some, steady.none), steady.facts],
        *([f"paper: {name}", *values, None] for name, values in PUBLISHED_ROBUSTNESS.items()),
    ]
    return Sheet(["questions on one fact", "all right %", "some %", "none %", "facts"], rows, "by-fact")


def type_by_topic(table: KmirTable, questions: Sequence[Question]) -> Sheet:
    """Return the table of F1 by knowledge type and question type.

    The paper's types come first, also without questions.
    """
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
    """Return the table of the expected scores of guesses without knowledge, beside the answers' scores."""
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


def by_cooccurrence(found: Mapping[str, CountCurve]) -> Sheet:
    """Return the table of F1 by the number of lines with both names, with its figure."""
    rows: list[list[Any]] = []
    for kind in filter(found.get, TYPES):
        bins = found[kind].bins
        rows.extend([kind, _lines(one), *percent(one.f1, one.half_width), one.questions, None] for one in bins)
        rows[-1][-1] = found[kind].correlation
    heads = ["type", "lines", "F1 %", "+- (95 % interval)", "questions", "Spearman"]
    title = "F1 by how many lines hold subject and object, after the paper's figure 2"
    return Sheet(heads, rows, "co-occurrence", title, lambda: _drawn(found))


def _lines(one: CountBin) -> str:
    return str(one.low) if one.low == one.high else f"{one.low}-{one.high}"


def _drawn(found: Mapping[str, CountCurve]) -> Plot:
    caption = "Vertical bars are 95 % intervals. A bin is four times as wide as the one before."
    bins = sorted({(one.low, one.high): one for curve in found.values() for one in curve.bins}.values(), key=_low)
    places = {one.low: place for place, one in enumerate(bins)}
    with canvas("co-occurrence", "F1 by how many lines hold subject and object", caption) as drawn:
        axes = drawn.axes
        styles = zip(filter(found.get, TYPES), (BLUE, ORANGE, GREEN, INK), "osD^", strict=False)
        for number, (kind, colour, mark) in enumerate(styles):
            curve = found[kind].bins
            at = [places[one.low] + 0.06 * (number - 1.5) for one in curve]
            axes.plot(at, [100 * one.f1 for one in curve], f"{mark}-", color=colour, ms=4, lw=1.2, label=kind)
            for place, one in zip(at, curve, strict=True):
                if one.half_width is not None:
                    ends = [100 * (one.f1 - one.half_width), 100 * (one.f1 + one.half_width)]
                    axes.plot([place] * 2, ends, color=colour, lw=0.9)
        axes.set(xticks=range(len(bins)), xticklabels=map(_lines, bins), ylim=(0, 102))
        axes.set(xlabel="lines that hold both names", ylabel="F1 %")
        drawn.figure.legend(loc="outside lower center", ncols=4)
    return drawn.plot


def _low(one: CountBin) -> int:
    return one.low


SHEETS: Mapping[str, Callable[[KmirTable, Sequence[Question]], Sheet]] = {
    "by-type": by_type,
    "by-topic": by_topic,
    "type-by-topic": type_by_topic,
    "by-fact": by_fact,
}
"""Tables from scores alone, by their name for `--table`."""
