"""Verification: the model is asked again whether each proposed fact holds, and candidates keep its score.

The selection rule `verified` decides later whether the score counts; tuning uses the rule where it helps. Facts are
probed as in ProP (Alivanistos et al. 2022), by several prompt variants (MAVE, LM-KBC 2026), and in reverse, from the
object to the subject, as a cycle check (CS2, LM-KBC 2026). Worked examples precede each question. They are the same for
all subjects of a relation, so that they are encoded once.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Annotated, ClassVar, Literal

from msgspec import structs

from lmkbc.answer.clean import is_subject
from lmkbc.answer.parse import Parsed, parse
from lmkbc.ask.examples import ExampleSelector, Method, Shots
from lmkbc.ask.slots import fill, one_line
from lmkbc.errors import refuse
from lmkbc.generate.guard import guarded
from lmkbc.generate.spec import check_names
from lmkbc.models.base import LanguageModel, PlannedRequest, Request, Sampling
from lmkbc.models.plain_questions import FIRST_WORD, plain_request, texts, word_log_probabilities
from lmkbc.names import name_key
from lmkbc.notes import Notes
from lmkbc.relation import Relation, Shape
from lmkbc.settings import ReadBy
from lmkbc.types import Candidate, CandidateSet, Example, Generator, Query, State, grouped

Variant = Literal["statement", "reverse"]
VERIFICATION = "verification"
"""Name of its planned requests."""
STATEMENT, REVERSE = 4, 32
"""Most tokens of a reply to a statement, and to the reverse."""
Score = tuple[tuple[Query, str], float]
"""A query and an object, and the score of this fact."""


OF_ODDS = ReadBy(
    "a check of statements by probability",
    lambda check, *_: check.by == "probability" and "statement" in check.variants,
)
TEXTS = ReadBy("a check that reads texts (by = 'text', or variant 'reverse')", lambda check, *_: check.reads_texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Settings of fact verification, as in a recipe.

    variants: the relation's "statement" of a fact; "reverse" asks for the subject of an object.
    by: whether to read the probability of the two words, or the text.
    words: for true and for false.
    shots: number of worked examples, half of them true.
    relations: examples of the fact's "own" relation, or the same examples for all facts, from the first rows of "all"
    relations in turn.
    only: relations to check; () for all.
    samples: texts per question.
    temperature: of the texts; by default 1 for several samples and 0 for one.
    placebos: number of train's subjects without the object for which the same is asked, those without any object first.
    The mean of their log-odds is subtracted, since a model affirms some objects of every subject (dukesun99 2026).
    max_tokens: of a reply and the thoughts before it. By default there are no thoughts, and 4 tokens about a statement
    and 32 to the reverse.
    """

    variants: tuple[Variant, ...] = ("statement",)
    by: Literal["probability", "text"] = "probability"
    words: tuple[str, str] = ("True", "False")
    shots: int = 4
    relations: Literal["own", "all"] = "own"
    seed: int = 0
    only: tuple[str, ...] = ()
    samples: Annotated[int, TEXTS] = 1
    temperature: Annotated[float | None, TEXTS] = None
    max_tokens: Annotated[int | None, TEXTS] = None
    placebos: Annotated[int, OF_ODDS] = 0

    REMOVED: ClassVar[Mapping[str, str]] = {"match": "the reverse must name the subject itself"}

    def __post_init__(self) -> None:
        """Raise ValueError for a wrong value."""
        refuse(
            (
                not self.asks or len(set(map(str.casefold, self.words))) < 2 or not all(self.words),
                "give at least one variant, and two different words",
            ),
            (
                self.shots < 0 or self.samples < 1 or (self.temperature or 0.0) < 0 or self.placebos < 0,
                "shots, placebos and temperature are at least 0, and samples at least 1",
            ),
            (self.max_tokens is not None and self.max_tokens < 1, "max_tokens is at least 1"),
        )

    def check(self, relations: Mapping[str, Relation], what: str) -> None:
        """Raise InputError for a relation that does not exist. relations: all relations, by every name."""
        check_names(self.only, relations, f"{what}.only")

    @property
    def asks(self) -> bool:
        """Return whether anything is asked about a fact."""
        return bool(self.variants)

    @property
    def reads_texts(self) -> bool:
        """Return whether replies are read as texts."""
        return self.by == "text" or "reverse" in self.variants

    def open(
        self,
        scorer: LanguageModel | None,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        notes: Notes | None = None,
    ) -> FactCheck:
        """Return the check; without a scorer, it only plans its requests."""
        return self.checker(scorer, self, relations, train, notes)

    @property
    def checker(self) -> type[FactCheck]:
        """Return the class that asks."""
        return FactCheck

    @property
    def stops(self) -> tuple[str, ...]:
        """Return what ends a reply, which is a line if it has no room for thoughts."""
        return ("\n",) if self.max_tokens is None else ()

    @property
    def sampling_temperature(self) -> float:
        """Return the temperature of texts."""
        return float(self.samples > 1) if self.temperature is None else self.temperature


OBJECT = "{object}"
"""Slot of the object in planned requests."""

Scores = dict[tuple[Query, str], list[float]]


class FactCheck:
    """Asks a model about every object of every set once, however many sources name it.

    A fact without a clear reply has no score, and neither has NIL.

    scorer: the model; None if requests are only planned.
    """

    def __init__(
        self,
        scorer: LanguageModel | None,
        check: Check,
        relations: Mapping[str, Relation],
        train: Sequence[Example],
        notes: Notes | None = None,
    ) -> None:
        self._check, self._relations = check, relations
        self._given, self.notes = scorer, notes or Notes()
        emptiest = sorted(train if check.placebos else (), key=lambda example: bool(example.objects))
        self._controls = grouped((example.query.relation, example) for example in emptiest)
        self._worked_once = lru_cache(maxsize=64)(self.worked)  # facts come by subject, and share their examples
        method: Method = "random" if check.relations == "own" else "fixed"
        shots = Shots(k=check.shots, method=method, seed=check.seed, relations=check.relations)
        self._examples = ExampleSelector(shots, train)
        self._objects = grouped((example.query.relation, name) for example in train for name in example.names)

    @property
    def _scorer(self) -> LanguageModel:
        """Return the model. RuntimeError if there is none."""
        if self._given is None:
            raise RuntimeError("a check without a model only plans its requests")
        return self._given

    def plan(self, query: Query, objects: int, tokens: int) -> Iterator[PlannedRequest]:
        """Yield what may be asked about a query's objects, with the slot {object}.

        objects: their largest number. tokens: the most that all of them have together.
        """
        for text, plain, each in self.requests(query, OBJECT) if self._checks(query) else ():
            times = objects * each
            held = text.count(OBJECT) * (tokens + objects) * times // max(objects, 1)
            yield PlannedRequest(VERIFICATION, plain, times, held)

    def requests(self, query: Query, text: str) -> Iterator[tuple[str, Request, int]]:
        """Yield each question about a fact, its request, and how often one like it is sent."""
        check = self._check
        for variant in check.variants:
            if variant == "reverse":
                put = self._reversed(query, text)
                yield put, self.request(put, REVERSE), 1
                continue
            put = self._stated(query, text)
            if check.by == "probability":
                yield put, plain_request(put, FIRST_WORD), 1 + check.placebos
            else:
                yield put, self.request(put, STATEMENT), 1

    def request(self, text: str, max_tokens: int) -> Request:
        """Return the request of a question whose reply is read as text."""
        check = self._check
        sampling = Sampling(
            temperature=check.sampling_temperature, samples=check.samples, max_tokens=check.max_tokens or max_tokens
        )
        return plain_request(text, sampling, check.stops)

    def _checks(self, query: Query) -> bool:
        return self._relations[query.relation].is_in(self._check.only)

    def _stated(self, query: Query, text: str) -> str:
        return self._worked_once(query) + self.question(query, text)

    def _reversed(self, query: Query, text: str) -> str:
        return self._inverted(query) + self._blank(query, text)

    def worked(self, query: Query) -> str:
        """Return the task and the worked examples, true and false examples in turn."""
        yes, no = self._check.words
        lines = [f"{self.question(about, text)} {yes if holds else no}\n\n" for about, text, holds in self.facts(query)]
        return "".join([f"Say of each statement whether it holds: {yes} or {no}.\n\n", *lines])

    def facts(self, query: Query) -> list[tuple[Query, str, bool]]:
        """Return the drawn facts of the worked examples."""
        facts: list[tuple[Query, str, bool]] = []
        drawn = random.Random(f"{self._check.seed} {query.relation if self._check.relations == 'own' else ''}")
        for shot in self._examples.select(query):
            names = {name_key(name) for gold in shot.objects for name in gold.names}
            wrong = [name for name in self._objects[shot.query.relation] if name_key(name) not in names]
            facts += [(shot.query, name, True) for name in shot.names[:1]]
            facts += [(shot.query, drawn.choice(wrong), False)] if wrong else []
        return facts[: self._check.shots]

    def question(self, query: Query, text: str) -> str:
        """Return the question whether a fact holds, without examples."""
        return f"Statement: {self.fact(query, text)}\n{' or '.join(self._check.words)}:"

    def fact(self, query: Query, text: str) -> str:
        """Return the relation's statement of a fact."""
        relation = self._relations[query.relation]
        return fill(relation.statement, {"subject": one_line(query.subject), "object": one_line(text)})

    def _inverted(self, query: Query) -> str:
        relation = self._relations[query.relation]
        lines = [f"Fill in each blank with the {relation.subject_type.noun} it stands for.\n\n"]
        lines += [
            f"{self._blank(shot.query, shot.names[0])} {one_line(shot.query.subject)}\n\n"
            for shot in self._examples.select(query)
            if shot.names
        ]
        return "".join(lines[: self._check.shots + 1])

    def _blank(self, query: Query, text: str) -> str:
        statement = self._relations[query.relation].statement
        return f"Sentence: {fill(statement, {'subject': '____', 'object': one_line(text)})}\nBlank:"

    def verify(self, sets: Iterable[CandidateSet]) -> Iterator[CandidateSet]:
        """Yield each set, in order, with the verification scores of its objects."""
        given = list(sets)
        pairs = {(candidates.query, text) for candidates in given for text in self.unverified(candidates)}
        facts = sorted(pairs, key=lambda fact: (fact[0].relation, fact[0].subject, fact[0].subject_id or "", fact[1]))
        scores: Scores = defaultdict(list)
        for fact, score in self.judgements(facts):
            scores[fact].append(score)
        if unclear := len(facts) - len(scores):
            has_no_room = self._check.stops and self._check.reads_texts
            advice = "; a model that thinks first needs verify.max_tokens" if has_no_room else ""
            self.notes.remark(f"{unclear} of {len(facts)} facts got no clear verdict: they stay unverified{advice}")
        for candidates in given:
            judged = [self._judgement(c, scores.get((candidates.query, c.text))) for c in candidates.candidates]
            yield replace(candidates, candidates=tuple(judged))

    def judgements(self, facts: Sequence[tuple[Query, str]]) -> Iterator[Score]:
        """Yield each fact with its score in each variant; facts with unclear replies are left out."""
        for variant in self._check.variants:
            yield from self._backwards(facts) if variant == "reverse" else self._judged(facts)

    def unverified(self, candidates: CandidateSet) -> Iterator[str]:
        """Yield the objects of a set to check. An object with only an id is left out."""
        relation = self._relations[candidates.query.relation]
        if not self._checks(candidates.query):
            return
        for candidate in candidates.candidates:
            unverified = candidate.text and candidate.verification is None
            if unverified and (relation.has_numbers() or candidate.text != candidate.id):
                yield candidate.text

    def score(self, scores: Sequence[float]) -> float:
        """Return the score of a fact from those of its variants: their mean."""
        return math.fsum(scores) / len(scores)

    def _judgement(self, candidate: Candidate, scores: Sequence[float] | None) -> Candidate:
        return structs.replace(candidate, verification=self.score(scores)) if scores else candidate

    def _judged(self, facts: Sequence[tuple[Query, str]]) -> Iterator[Score]:
        """Yield each fact with the score of its statement; facts with unclear replies are left out."""
        prompts = [self._stated(*fact) for fact in facts]
        scores: Sequence[float | None]
        if self._check.by == "probability":
            scores = self._corrected(facts, self._probable(prompts))
        else:
            scores = self.votes(prompts)
        yield from ((fact, score) for fact, score in zip(facts, scores, strict=True) if score is not None)

    def votes(self, prompts: Sequence[str]) -> Sequence[float | None]:
        """Return the share of replies to each prompt that affirm it; None without a clear reply."""
        return [_votes(draws, *self._check.words) for draws in self.texts(prompts, STATEMENT)]

    def _probable(self, prompts: Sequence[str]) -> list[float | None]:
        return [_share(*pair) for pair in word_log_probabilities(self._scorer, prompts, self._check.words)]

    def _corrected(self, facts: Sequence[tuple[Query, str]], scores: Sequence[float | None]) -> Sequence[float | None]:
        """Return the scores without what the model affirms of placebo subjects too, in log-odds."""
        controls = [[*self._placebos(*fact)] for fact in facts]
        asked = [*dict.fromkeys(chain.from_iterable(controls))]
        if not asked:
            return scores
        known = dict(zip(asked, self._probable([self._stated(*fact) for fact in asked]), strict=True))
        return [
            _less(score, [one for control in its if (one := known[control]) is not None])
            for score, its in zip(scores, controls, strict=True)
        ]

    def _placebos(self, query: Query, text: str) -> Iterator[tuple[Query, str]]:
        """Yield the fact about train's first subjects of the relation that lack the object."""
        key = name_key(text)
        lacking = (
            (one.query, text)
            for one in self._controls[query.relation]
            if one.query.subject != query.subject
            and key not in {name_key(n) for gold in one.objects for n in gold.names}
        )
        return islice(lacking, self._check.placebos)

    def texts(self, prompts: Sequence[str], max_tokens: int) -> list[list[str]]:
        """Return the replies to each prompt, without thoughts."""
        check = self._check
        how = check.samples, check.sampling_temperature, check.seed, check.stops
        return texts(self._scorer, prompts, check.max_tokens or max_tokens, *how)

    def _backwards(self, facts: Sequence[tuple[Query, str]]) -> Iterator[Score]:
        """Yield each fact with the share of replies that name the subject, given the object."""
        prompts = [self._reversed(*fact) for fact in facts]
        for fact, draws in zip(facts, self.texts(prompts, REVERSE), strict=True):
            names_of = replace(self._relations[fact[0].relation], kind="entity", unit=None, shape=Shape())
            replies = [draw for draw in draws if draw.strip()]
            parsed = (
                guarded(partial(parse, draw, names_of, fact[1]), draw, lambda *_: Parsed(State.UNPARSED))
                for draw in replies
            )
            named = [one.objects for one in parsed]
            hits = sum(any(is_subject(name, names_of, fact[0].subject) for name in names) for names in named)
            if replies:
                yield fact, hits / len(replies)


class Verifying:
    """Generator whose candidates are verified before it yields them. notes: get the verification scores."""

    def __init__(self, generator: Generator, verifier: FactCheck, notes: Notes | None = None) -> None:
        self._generator, self._verifier, self._notes = generator, verifier, notes or Notes()

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the generator's sets after verification."""
        for found in self._verifier.verify(self._generator.generate(queries)):
            self._notes.verified(found)
            lacking = self._notes.stopped and any(self._verifier.unverified(found))
            yield replace(found, draws=(*found.draws, State.UNASKED)) if lacking else found


def _share(yes: float, no: float) -> float | None:
    """Return P(yes) among yes and no, from their log-probabilities; None if both are impossible."""
    if max(yes, no) == -math.inf:
        return None
    return 1 / (1 + math.exp(min(no - yes, 700.0)))


def _less(score: float | None, bias: Sequence[float]) -> float | None:
    """Return a probability after the mean log-odds of others are subtracted from its log-odds."""
    if score is None or not bias:
        return score
    return _share(_log_odds(score) - math.fsum(map(_log_odds, bias)) / len(bias), 0.0)


def _log_odds(share: float) -> float:
    """Return the log-odds of a probability, which is first limited to the range from 0.000001 to 0.999999."""
    held = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(held / (1 - held))


def _votes(draws: Sequence[str], yes: str, no: str) -> float | None:
    """Return the share of yes among the draws that begin with yes or no; None if no draw does."""
    first = first_words(draws)
    count = first.count(yes.casefold()), first.count(no.casefold())
    return count[0] / sum(count) if any(count) else None


def first_words(draws: Sequence[str]) -> list[str]:
    """Return the first word of each draw that has one, in lower case and without punctuation."""
    return [draw.split()[0].strip(".,:;!*\"'").casefold() for draw in draws if draw.split()]
