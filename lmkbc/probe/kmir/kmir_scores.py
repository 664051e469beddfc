"""KMIR's scores: token F1 as in SQuAD, per question type and topic, and consistency over the questions of a fact.

Gao et al., KMIR: A Benchmark for Evaluating Knowledge Memorization, Identification and Reasoning Abilities of Language
Models, 2022.

Chance is the expected token F1 of a guess without knowledge, computed exactly. A question with options is guessed among
its options, true or false among the two. A question without options is guessed among names: all right answers of such
questions in the file, or those for the same relation.

The paper's figure 2 shows F1 by a relevance score of Elasticsearch for the fact. Its query and its text are not known
here. So lines of a given text are counted that hold both names of a fact, as whole words, in any case.
"""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np

from lmkbc.errors import InputError
from lmkbc.probe.benchmark import Sheet, half_width, percent
from lmkbc.probe.kmir.questions import TYPES, Question, TypedTriple
from lmkbc.probe.kmir.schema import Closure, Schema, Triple
from lmkbc.report.figures import BLUE, GREEN, INK, ORANGE, Plot, canvas
from lmkbc.train.name_tree import NameTree
from lmkbc.types import grouped

PUBLISHED: Mapping[str, tuple[float, float, float, float]] = {
    "random": (0.00017, 50.0, 25.0, 18.75),
    "BERT-base": (15.34, 61.57, 30.01, 26.82),
    "ELECTRA": (14.98, 63.09, 33.27, 27.52),
    "DistilBERT": (14.37, 59.89, 28.56, 24.38),
    "ALBERT": (11.79, 63.42, 32.46, 27.16),
    "RoBERTa": (15.50, 66.13, 35.92, 29.19),
    "DistilRoBERTa": (14.64, 63.02, 32.67, 27.02),
}
"""Model -> F1 in percent of completion, checking, distinction, reasoning."""

PUBLISHED_ROBUSTNESS: Mapping[str, tuple[float, float, float]] = {
    "BERT": (16.37, 54.28, 29.35),
    "RoBERTa": (17.65, 55.36, 26.99),
}
"""Model -> percent of facts with all, some and none of their questions answered right."""

KNOWLEDGE = (
    "physics",
    "biology",
    "chemistry",
    "medicine",
    "history",
    "law",
    "military",
    "music",
    "film",
    "commonsense",
)
"""The paper's types of knowledge, as topics of a schema: seven of experts, two general ones, and common sense.

Film stands for film and television. The list is from the paper's overview at alphaxiv.org.
"""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def tokens(text: str) -> list[str]:
    """Return the tokens in SQuAD's normal form: lower case, no ASCII punctuation, no articles, split at white space."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def token_f1(predicted: str, gold: str) -> float:
    """Return F1 of two bags of tokens; two empty ones are equal."""
    answer_tokens, gold_tokens = tokens(predicted), tokens(gold)
    if not answer_tokens or not gold_tokens:
        return float(answer_tokens == gold_tokens)
    common = sum((Counter(answer_tokens) & Counter(gold_tokens)).values())
    if not common:
        return 0.0
    p, r = common / len(answer_tokens), common / len(gold_tokens)
    return 2 * p * r / (p + r)


def question_f1(guesses: Sequence[str], accepted: Sequence[str]) -> float:
    """Return the best F1 of any guess with any accepted answer.

    As published, a longer list of guesses scores higher.
    """
    return max((token_f1(guess, answer) for guess in guesses for answer in accepted), default=0.0)


@dataclass(frozen=True, slots=True)
class KmirTable:
    """Mean F1 overall, by question type and by topic, and robustness over the questions of a fact.

    half_width, half_widths: half of F1's 95 % interval over other facts, overall and by type; None if all questions are
    about one fact. cells: topic -> question type -> F1 ("f1") and number of questions ("questions"). robustness: shares
    of facts with all ("every"), some and none of their questions answered right, and their number ("facts").
    """

    f1: float
    half_width: float | None
    types: Mapping[str, float]
    half_widths: Mapping[str, float | None]
    topics: Mapping[str, float]
    cells: Mapping[str, Mapping[str, Mapping[str, float]]]
    robustness: Mapping[str, float]


def graded(questions: Iterable[Question], guesses: Mapping[str, Sequence[str]]) -> list[tuple[Question, float]]:
    """Return each question with the F1 of its guesses. A question without guesses scores 0."""
    return [(question, question_f1(guesses.get(question.id, ()), question.answer)) for question in questions]


def score(questions: Iterable[Question], guesses: Mapping[str, Sequence[str]]) -> KmirTable:
    """Score guesses by question id. A question without guesses scores 0."""
    scored = graded(questions, guesses)
    types = _means((question.type, f1) for question, f1 in scored)
    by_topic = grouped((question.topic, (question.type, f1)) for question, f1 in scored)
    return KmirTable(
        f1=fmean(f1 for _, f1 in scored) if scored else 0.0,
        half_width=f1_half_width(scored),
        types=types,
        half_widths={kind: f1_half_width([row for row in scored if row[0].type == kind]) for kind in types},
        topics=_means((question.topic, f1) for question, f1 in scored),
        cells={
            topic: {
                kind: {"f1": fmean(scores), "questions": len(scores)} for kind, scores in sorted(grouped(pairs).items())
            }
            for topic, pairs in sorted(by_topic.items())
        },
        robustness=robustness((question.fact, f1 == 1.0) for question, f1 in scored),
    )


def robustness(answered: Iterable[tuple[int, bool]]) -> dict[str, float]:
    """Return the robustness from (fact, whether a question about it is answered right)."""
    facts = grouped(answered)
    every, none = (sum(test(rights) for rights in facts.values()) for test in (all, lambda rights: not any(rights)))
    n = len(facts) or 1
    some = len(facts) - every - none
    return {"every": every / n, "some": some / n, "none": none / n, "facts": len(facts)}


def f1_half_width(scored: Sequence[tuple[Question, float]]) -> float | None:
    """Return half the width of the mean's 95 % interval. Facts are resampled, each with all its questions.

    Questions about one fact tend to be right or wrong together.
    """
    sums: defaultdict[int, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for question, f1 in scored:
        total, count = sums[question.fact]
        sums[question.fact] = total + f1, count + 1
    return half_width([list(sums.values())], lambda means: means[:, 0, 0] / means[:, 0, 1])


def _means(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    return {name: fmean(scores) for name, scores in sorted(grouped(pairs).items())}


def by_type(table: KmirTable, questions: Sequence[Question]) -> Sheet:
    """Return the table of F1 by question type."""
    counts = Counter(question.type for question in questions)
    scores, widths = ([shares.get(kind) for kind in TYPES] for shares in (table.types, table.half_widths))
    rows: list[list[Any]] = [
        ["these answers", *percent(*scores, table.f1)],
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
        ["these answers", *percent(*(steady[part] for part in ("every", "some", "none"))), steady["facts"]],
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
        parts = [(100 * cell["f1"], cell["questions"]) if cell else (None, 0) for cell in cells]
        label = topic if topic in KNOWLEDGE else f"not in the paper: {topic or 'no topic'}"
        whole = *percent(table.topics.get(topic)), counts[topic]
        rows.append([label, *(value for part in parts for value in part), *whole])
    heads = ["F1 %", *(head for kind in (*TYPES, "all") for head in (kind, "questions"))]
    return Sheet(heads, rows, "type-by-topic", "F1 by type of knowledge and of question, as in the paper's table 6")


SHEETS: Mapping[str, Callable[[KmirTable, Sequence[Question]], Sheet]] = {
    "by-type": by_type,
    "by-topic": by_topic,
    "type-by-topic": type_by_topic,
    "by-fact": by_fact,
}
"""Tables from scores alone, by their name for `--table`."""


class _NamePool:
    """Names from which a guess is drawn uniformly."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(dict.fromkeys(names))
        bags = [_features(name) for name in self.names]
        self._lengths = np.array([len(bag) for bag in bags])
        self.expected_f1 = cache(self._expected)
        places = grouped((feature, place) for place, bag in enumerate(bags) for feature in bag)
        self._places = {feature: np.array(indexes) for feature, indexes in places.items()}

    def _expected(self, accepted: tuple[str, ...]) -> float:
        """Return the mean over names of the best token F1 with any accepted answer."""
        best = np.zeros(len(self.names))
        for answer in accepted:
            bag = _features(answer)
            shared = [self._places[feature] for feature in bag if feature in self._places]
            if shared:
                at, common = np.unique(np.concatenate(shared), return_counts=True)
                best[at] = np.maximum(best[at], 2 * common / (self._lengths[at] + len(bag)))
        return float(best.mean())


def _features(name: str) -> list[tuple[str, int]]:
    """Return each token with its number among equal tokens, so that bags can be intersected as sets.

    A name without tokens has one empty token, so two such names are equal.
    """
    seen = Counter[str]()
    features = []
    for token in tokens(name) or [""]:
        features.append((token, seen[token]))
        seen[token] += 1
    return features


def chance(questions: Iterable[Question], file: Sequence[Question]) -> dict[str, Any]:
    """Return the expected token F1 of guesses on some questions, by question type.

    file: all questions, whose right answers are the names. "name": a guess among all names. "relation": a guess among
    the names of the question's relation. "commonest": always the most frequent answer of the question's type and
    relation. "choices": share of questions with options. "names": number of names.
    """
    free = [question for question in file if not question.choices]
    every = _NamePool(name for question in free for name in question.answer)
    names = grouped((question.relation, name) for question in free for name in question.answer)
    pools = {relation: _NamePool(named) for relation, named in names.items()}
    commonest = _commonest(file)
    scores: dict[str, list[tuple[float, ...]]] = grouped(
        (
            question.type,
            (
                _expected_f1(question, every),
                _expected_f1(question, pools.get(question.relation, every)),
                question_f1([commonest[question.type, question.relation]], question.answer),
                float(bool(question.choices)),
            ),
        )
        for question in questions
    )
    columns = {
        column: {kind: fmean(row[at] for row in rows) for kind, rows in scores.items()}
        for at, column in enumerate(("name", "relation", "commonest", "choices"))
    }
    return {**columns, "names": len(every.names)}


def _expected_f1(question: Question, pool: _NamePool) -> float:
    """Return the expected F1 of a random option, or of a random name if there are no options."""
    choices = question.choices
    if not choices:
        return pool.expected_f1(tuple(question.answer))
    return fmean(question_f1([choice], question.answer) for choice in choices)


def _commonest(file: Iterable[Question]) -> dict[tuple[str, str], str]:
    """Return the most frequent answer for each type and relation; on a tie, the first."""
    answers = grouped(((question.type, question.relation), name) for question in file for name in question.answer)
    return {key: Counter(names).most_common(1)[0][0] for key, names in answers.items()}


def by_chance(table: KmirTable, expected: Mapping[str, Any]) -> Sheet:
    """Return the table of the expected scores of guesses without knowledge, beside the answers' scores."""
    shares = {
        "these answers": table.types,
        "random: any name, or option": expected["name"],
        "random: a name of its relation, or option": expected["relation"],
        "the commonest answer of its type and relation": expected["commonest"],
        "questions that leave a choice %": expected["choices"],
    }
    rows: list[list[Any]] = [[name, *percent(*map(of_type.get, TYPES))] for name, of_type in shares.items()]
    rows.insert(-1, ["paper: random", *PUBLISHED["random"]])
    title = f"F1 that guesses expect; a random name is one of {expected['names']:,}"
    return Sheet(["F1 %", *TYPES], rows, "chance", title)


Pair = tuple[str, str]
Words = tuple[str, ...]
_WORD = re.compile(r"\w+")


def pair_counts(pairs: Mapping[str, Pair], lines: Iterable[str]) -> dict[str, int]:
    """Return question id -> number of lines that hold both names of its pair. Only names are in memory.

    A name inside a longer one counts: a line about the Paris Metro names Paris.
    """
    names, seconds, counts = NameTree(), defaultdict[Words, set[Words]](set), Counter[tuple[Words, Words]]()
    wanted = {question: (_words(first), _words(second)) for question, (first, second) in pairs.items()}
    for first, second in wanted.values():
        names.add(first)
        names.add(second)
        seconds[first].add(second)
    for words in map(_words, lines):
        held = {words[start:end] for start, end in names.find(words)}
        counts.update((first, second) for first in held & seconds.keys() for second in seconds[first] & held)
    return {question: counts[pair] for question, pair in wanted.items()}


def _words(text: str) -> Words:
    return tuple(_WORD.findall(text.casefold()))


def asked_pairs(questions: Sequence[Question], facts: Sequence[TypedTriple], schema: Schema) -> dict[str, Pair]:
    """Return question id -> subject and object: of its fact, or of the inferred fact.

    InputError if the questions were built from other triples, or with another schema.
    """
    inferred: list[Triple] = []
    if any(question.type == "reasoning" for question in questions):
        inferred = list(Closure((row.triple for row in facts), schema).steps)
    pairs = {}
    for question in questions:
        if question.type == "reasoning":
            number = question.id.removeprefix("reasoning-")
            triple = inferred[int(number)] if number.isdecimal() and int(number) < len(inferred) else None
        else:
            triple = facts[question.fact].triple if 0 <= question.fact < len(facts) else None
        asks_name = question.type in {"completion", "reasoning"}
        if (
            triple is None
            or triple.relation != question.relation
            or (asks_name and {triple.subject, triple.object}.isdisjoint(question.answer))
        ):
            raise InputError(
                f"question {question.id!r} was not built from these triples by this schema: "
                "give --triples and --schema as 'kmir build' had them"
            )
        pairs[question.id] = triple.subject, triple.object
    return pairs


def curves(graded: Iterable[tuple[Question, float]], counts: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Return question type -> F1 by count. counts: by question id.

    "bins": for questions whose pair occurs in "low" to "high" lines, the mean F1 ("f1"), half of its 95 % interval
    ("half_width") and the number of questions ("questions"). "correlation": Spearman's, of count and F1 over questions;
    None if one of them is constant.
    """
    by_type = grouped((question.type, (question, f1)) for question, f1 in graded)
    return {kind: _curve(rows, counts) for kind, rows in sorted(by_type.items())}


def _curve(rows: Sequence[tuple[Question, float]], counts: Mapping[str, int]) -> dict[str, Any]:
    from scipy.stats import spearmanr

    lines, scores = [counts[question.id] for question, _ in rows], [f1 for _, f1 in rows]
    # bins: 0, 1 to 3, 4 to 15, each four times as wide as the one before
    parts = grouped(zip(((count.bit_length() + 1) // 2 for count in lines), rows, strict=True))
    bins = [
        {
            "low": 4 ** (place - 1) if place else 0,
            "high": 4**place - 1,
            "f1": fmean(f1 for _, f1 in part),
            "half_width": f1_half_width(part),
            "questions": len(part),
        }
        for place, part in sorted(parts.items())
    ]
    varied = len(set(lines)) > 1 < len(set(scores))
    return {"bins": bins, "correlation": float(spearmanr(lines, scores).statistic) if varied else None}


def by_cooccurrence(curve_of: Mapping[str, Mapping[str, Any]]) -> Sheet:
    """Return the table of F1 by the number of lines with both names, with its figure."""
    rows: list[list[Any]] = []
    for kind in filter(curve_of.get, TYPES):
        rows.extend(
            [kind, _lines(part), *percent(part["f1"], part["half_width"]), part["questions"], None]
            for part in curve_of[kind]["bins"]
        )
        rows[-1][-1] = curve_of[kind]["correlation"]
    heads = ["type", "lines", "F1 %", "+- (95 % interval)", "questions", "Spearman"]
    title = "F1 by how many lines hold subject and object, after the paper's figure 2"
    return Sheet(heads, rows, "co-occurrence", title, lambda: _drawn(curve_of))


def _lines(part: Mapping[str, Any]) -> str:
    low, high = part["low"], part["high"]
    return str(low) if low == high else f"{low}-{high}"


def _drawn(curve_of: Mapping[str, Mapping[str, Any]]) -> Plot:
    caption = "Vertical bars are 95 % intervals. A bin is four times as wide as the one before."
    bins = {part["low"]: _lines(part) for curve in curve_of.values() for part in curve["bins"]}
    places = {low: place for place, low in enumerate(sorted(bins))}
    with canvas("co-occurrence", "F1 by how many lines hold subject and object", caption) as drawn:
        axes = drawn.axes
        styles = zip(filter(curve_of.get, TYPES), (BLUE, ORANGE, GREEN, INK), "osD^", strict=False)
        for number, (kind, colour, mark) in enumerate(styles):
            curve = curve_of[kind]["bins"]
            at = [places[part["low"]] + 0.06 * (number - 1.5) for part in curve]
            axes.plot(at, [100 * part["f1"] for part in curve], f"{mark}-", color=colour, ms=4, lw=1.2, label=kind)
            for place, part in zip(at, curve, strict=True):
                if (half := part["half_width"]) is not None:
                    ends = [100 * (part["f1"] - half), 100 * (part["f1"] + half)]
                    axes.plot([place] * 2, ends, color=colour, lw=0.9)
        axes.set(xticks=range(len(places)), xticklabels=map(bins.get, places), ylim=(0, 102))
        axes.set(xlabel="lines that hold both names", ylabel="F1 %")
        drawn.figure.legend(loc="outside lower center", ncols=4)
    return drawn.plot
