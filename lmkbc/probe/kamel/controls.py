"""Controls for KAMEL, which learn from its train split alone, and the queries that they do not answer.

A control learns a property's objects and the words of its subjects, and nothing else (after Zhong, Friedman and Chen,
NAACL 2021). The paper has the first control, the majority object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lmkbc.probe.kamel.dataset import Kamel, KamelFact
from lmkbc.probe.kamel.score import query_score
from lmkbc.train.controls import LearnedControls

Answered = list[tuple[KamelFact, str]]


def learned(benchmark: Kamel, facts: Iterable[KamelFact]) -> dict[str, Answered]:
    """Return control -> its answers to some facts, one object each.

    No control learns from a train fact whose subject is in these facts.
    """
    tested = list(facts)
    train = benchmark.train_of(tested)
    taught = [(fact.subject, fact.property, answer.shown) for fact in train for answer in fact.objects]
    controls = LearnedControls(taught)
    answers = {"majority of train": controls.majority, "naive Bayes of train": controls.naive_bayes}
    return {name: [(fact, answer(fact.subject, fact.property)) for fact in tested] for name, answer in answers.items()}


def hard(answers: Sequence[tuple[KamelFact, str]], controls: Mapping[str, Sequence[tuple[KamelFact, str]]]) -> Answered:
    """Return the answers to queries that no control answers in full. The controls' answers are in the same order."""
    easy = [
        any(query_score(*pair, strip=True) == (1.0, 1.0) for pair in pairs)
        for pairs in zip(*controls.values(), strict=True)
    ]
    return [pair for pair, known in zip(answers, easy, strict=True) if not known]
