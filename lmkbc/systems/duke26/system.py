"""Fuse the channels of a model: lists, recitals, tables, checks of names (dukesun99, LM-KBC 2026)."""

from __future__ import annotations

import json
import math
import re
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from itertools import islice, pairwise
from typing import Any, ClassVar, Literal

from lmkbc.answer.formats import AnswerFormat
from lmkbc.answer.parse import Parsed
from lmkbc.ask.builder import Frames
from lmkbc.ask.builder import part as part_of
from lmkbc.ask.examples import Shots
from lmkbc.ask.slots import fill, one_line
from lmkbc.ask.style import VARIABLES, PromptStyle
from lmkbc.ask.templates import check_template, render
from lmkbc.generate.access import is_given, open_model
from lmkbc.generate.conversation import Conversation, Course
from lmkbc.generate.draws import asking
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.recorded_rows import RecordedRow, each_row
from lmkbc.generate.spec import GeneratorSpec
from lmkbc.link.cleaning import NameShape
from lmkbc.models.base import Dialogue, LanguageModel, PlannedRequest, Reply, Request, Sampling, single
from lmkbc.models.plain_questions import plain_request, word_log_probabilities
from lmkbc.models.reference import ModelReference
from lmkbc.models.thoughts import answer_of
from lmkbc.names import folded_key
from lmkbc.notes import Notes, Replies
from lmkbc.scoring.matchers import number
from lmkbc.select.rule import Rule
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Example, Generator, Nil, Prediction, Query, Source, State

# Reading: the last JSON object of a reply, and figures in prose.

_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
_FENCE = re.compile(r"```(?:json)?")


def last_object(text: str) -> Mapping[str, Any] | None:
    """Return the last JSON object of a text, or the first one if that is empty; None if there is none."""
    text = _FENCE.sub("", text)
    opened: list[int] = []
    pairs: list[tuple[int, int]] = []
    for place, sign in enumerate(text):
        if sign == "{":
            opened.append(place)
        elif sign == "}" and opened:
            pairs.append((opened.pop(), place + 1))
    pairs.sort()
    last = next(_objects(text, reversed(pairs)), None)
    return last or next(_objects(text, pairs), last)


def _objects(text: str, pairs: Iterable[tuple[int, int]]) -> Iterator[Any]:
    for start, end in pairs:
        try:
            yield json.loads(text[start:end])
        except (ValueError, RecursionError):
            continue


def _plain(value: float) -> str:
    return format(Decimal(repr(value)), "f")


@dataclass(frozen=True, kw_only=True)
class ObjectFormat(AnswerFormat):
    """A reply that ends in a JSON object, such as {"city": "Lyon"}.

    key: of the objects. unit: of a number, for examples. many: whether its value is a list.
    """

    joint: str = '", "'
    tolerant: bool = False
    key: str
    unit: str = ""
    many: bool = False

    def write(self, objects: Sequence[str]) -> str:
        """Return some objects as a JSON object."""
        if self.unit:
            value: Any = json.loads(objects[0]) if objects else None
            return json.dumps({self.key: value, "unit": self.unit})
        return json.dumps({self.key: [*objects] if self.many else next(iter(objects), None)}, ensure_ascii=False)

    def parts(self, answer: str) -> list[str]:
        """Return the texts of the objects in an answer."""
        return [*self.parsed(last_object(answer)).objects]

    def split(self, text: str, null: str = "") -> Parsed:  # noqa: ARG002 -- nothing is an object, too
        """Return the objects of the last JSON object of a reply; of a list at its end if it holds no object."""
        found = last_object(text)
        if found is None and text.rstrip().endswith("]"):
            start = text.rfind("[")
            objects = next(_objects(text.rstrip(), [(start, len(text.rstrip()))]), None)
            listed = [*objects] if isinstance(objects, list) else []
            found = {self.key: listed if self.many else next(iter(listed), None)} if objects is not None else None
        return self.parsed(found)

    def parsed(self, found: Mapping[str, Any] | None) -> Parsed:
        """Return the objects of a JSON object. Without its key, nothing is read; without a text, it says nothing."""
        value = found.get(self.key) if found is not None else None
        if found is None or (self.many and not isinstance(value, list)):
            return Parsed(State.UNPARSED)
        if self.unit:
            size = _size(value, str(found.get("unit", "")), self.unit)
            if not size:
                return Parsed(State.UNPARSED if size is None else State.ABSTAINED)
            return Parsed(State.ANSWERED, (_plain(size),))
        names = [name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)]
        objects = tuple(dict.fromkeys(filter(None, map(str.strip, names))))
        return Parsed(State.ANSWERED if objects else State.ABSTAINED, objects)


SQUARE_KILOMETRES = {"mi2": 2.58999, "mi²": 2.58999, "ha": 0.01, "acre": 0.00404686, "acres": 0.00404686, "m2": 1e-6}
"""Unit of an area -> its square kilometres; 1 for any other."""


def _size(value: Any, unit: str, wanted: str) -> float | None:
    """Return a number in the wanted unit, from a number or a text's first number; 0 for null, None if there is none."""
    if isinstance(value, str):
        figure = _FIGURE.search(value)
        value = float(figure[0].replace(",", "")) if figure else None
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        return None
    size = float(value or 0) * (SQUARE_KILOMETRES.get(unit.casefold(), 1.0) if wanted == "km2" else 1.0)
    return size if 0 <= size < math.inf else None


@dataclass(frozen=True, kw_only=True)
class FigureFormat(AnswerFormat):
    """Prose that holds a figure above 100. largest: whether it is the largest one; else it is the first."""

    joint: str = "; "
    tolerant: bool = False
    largest: bool

    def parts(self, answer: str) -> list[str]:
        """Return the figure of a text, in digits; [] if it has none."""
        figures = [value for found in _FIGURE.findall(answer) if (value := float(found.replace(",", ""))) > 100]
        return [_plain(max(figures) if self.largest else figures[0])] if figures else []


# Asking: blocks of draws with examples of their own, one list from many questions, and checks of all names.


def words_of(frames: str, name: str) -> Mapping[str, Mapping[str, Any]]:
    """Return relation -> words, of a part of a file of frames; {} if it has no such part."""
    named = part_of(frames, name)
    return Frames.read(named).tables if named else {}


@dataclass(frozen=True, kw_only=True)
class BlockShots(Shots):
    """Examples that some draws in a row share, and all queries.

    draws: number of draws that share examples. shortest: choose among so many examples with the fewest objects.
    """

    REPLACES: ClassVar[tuple[str, ...]] = ("draw",)

    draws: int = 1
    shortest: int | None = None

    def shown_to(self, query: Query, draw: int) -> tuple[str | int, ...]:  # noqa: ARG002
        """Return the number of the block of draws."""
        return "", draw // self.draws

    def chosen(self, query: Query, free: Iterable[Example]) -> list[Example] | None:  # noqa: ARG002
        """Return k of the examples with the shortest lists, if the table says so."""
        if self.shortest is None:
            return None
        pool = [*free]
        short = {one.query for one in sorted(pool, key=lambda one: (one.size, one.query.subject))[: self.shortest]}
        return [one for one in pool if one.query in short][: self.k]


@dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """A question of a count besides the first one.

    name: of the part of a file of frames that words it.
    ask: template; `item` is one of `items`. samples, temperature, max_tokens: of its replies. weight: of a reply.
    """

    ask: str
    name: str = ""
    items: tuple[str, ...] = ("",)
    years: tuple[int, int] | None = None
    samples: int = 1
    temperature: float = 1.0
    max_tokens: int = 600
    weight: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for a template with an unknown slot."""
        check_template("further.ask", self.ask, (*VARIABLES, "item"))

    @property
    def asked(self) -> Sequence[str]:
        """Return the items: its years, or those that are listed."""
        return [str(year) for year in range(self.years[0], self.years[1] + 1)] if self.years else self.items


@dataclass(frozen=True, kw_only=True)
class CountingStyle(PromptStyle):
    """A prompt beside which further questions are put; a name counts as often as replies hold it."""

    further: tuple[Further, ...]


class Counting(Conversation):
    """Puts all questions of a query, and scores a name by its count as a share of the highest count."""

    def _style(self, query: Query) -> Any:
        return self.asking.plan(query).style

    def _requests(self, query: Query) -> Iterator[tuple[Request, float]]:
        """Yield the requests of a query, with the weight of a reply."""
        yield self.request(query, self.asking.prompt(query), range(self.asking.plan(query).sampling.samples)), 1.0
        for one in self._style(query).further:
            sampling = replace(
                self.asking.plan(query).sampling,
                samples=one.samples,
                temperature=one.temperature,
                max_tokens=one.max_tokens,
            )
            for item in one.asked:
                prompt = self.asking.worded(one.ask, query, item=item)
                request = self.request(query, prompt, range(one.samples))
                yield replace(request, sampling=sampling), one.weight

    def plan(self, query: Query, context: str) -> Iterator[PlannedRequest]:  # noqa: ARG002
        """Yield the requests of a query."""
        for place, (request, _) in enumerate(self._requests(query)):
            yield PlannedRequest(f"further {place}" if place else "question", request, 1, 0)

    def _answers(self, query: Query, course: Course) -> Dialogue[list[list[Reply | None]]]:  # noqa: ARG002
        responses = yield from asking([request for request, _ in self._requests(query)])
        return [[reply] for response in responses for reply in response.replies]

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """Return the names of all replies; a query one of whose calls failed has none."""
        weights = [weight for request, weight in self._requests(query) for _ in request.draws]
        if any(reply is None or reply.failed for part in parts for reply in part):
            return CandidateSet(query, draws=(State.MISSING,))
        counts: dict[str, float] = {}
        spelt: dict[str, str] = {}
        states: list[State] = []
        for weight, part in zip(weights, parts, strict=False):
            found = super().candidates(query, [part])
            states += found.draws
            for one in found.candidates:
                key = one.text.casefold()
                counts[key] = counts.get(key, 0.0) + weight
                spelt.setdefault(key, one.text)
        most, source = max(counts.values(), default=1.0), (Source(self._name),)
        named = tuple(Candidate(spelt[key], count / most, source) for key, count in counts.items())
        is_read = any(state.is_answer for state in states)
        state = State.ANSWERED if named else State.ABSTAINED if is_read else State.UNPARSED
        nothing = (Nil(1.0, source),) if state is State.ABSTAINED else ()
        return CandidateSet(query, named, (state,), nothing=nothing)


@dataclass(frozen=True, kw_only=True)
class Count(LanguageModelSpec):
    """A generator whose prompt is a `CountingStyle`."""

    talk: ClassVar[type[Conversation]] = Counting

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:
        """Return the table with the words of a file of frames, its further questions included."""
        prompt = table["prompt"]
        further = [
            {**one, "ask": words["ask"]}
            for one in prompt["further"]
            for words in (*words_of(frames, one.get("name", "")).values(), one)[:1]
        ]
        return super().reworded({**table, "prompt": {**prompt, "further": further}}, frames)


@dataclass(frozen=True, kw_only=True)
class FirstTokens(ModelReference, GeneratorSpec):
    """Checks by the probability of the first token of a reply. words: that affirms, and that denies."""

    words: tuple[str, str] = ("Yes", "No")

    @property
    def asks_model(self) -> bool:
        """Return True."""
        return True

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator over the model, or over recorded probabilities."""
        if run.answers is not None and not (is_given(self, run) and not run.answers):
            return _Rows(self, run, notes)
        return self.asker(open_model(self, run, notes, completion=False), run, notes)

    @abstractmethod
    def asker(self, model: LanguageModel, run: Run, notes: Notes) -> Generator:
        """Return the generator over a model."""

    def affirmed(self, model: LanguageModel, prompts: Sequence[str]) -> list[float]:
        """Return P(yes) among yes and no for each prompt; 0.5 where both are impossible."""
        pairs = word_log_probabilities(model, prompts, self.words)
        return [0.5 if yes == no else 1 / (1 + math.exp(min(no - yes, 700.0))) for yes, no in pairs]

    @abstractmethod
    def set_of(self, row: RecordedRow | None, query: Query, source: Source) -> CandidateSet:
        """Return the candidate set of a recorded row."""


class _Rows:
    """Generator over the recorded rows of a table of checks."""

    def __init__(self, spec: FirstTokens, run: Run, notes: Notes) -> None:
        self._spec, self._source = spec, Source(spec.name or spec.component)
        self._rows = {
            (row.SubjectEntity, row.Relation): row
            for file in run.answers or ()
            for row in each_row(file.path, run.edition)
            if file.models is None or row.called in file.models
        }
        notes.asked(*dict.fromkeys(row.model for row in self._rows.values() if row.model))

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield a set per distinct query."""
        for query in dict.fromkeys(queries):
            yield self._spec.set_of(self._rows.get((query.subject, query.relation)), query, self._source)


@dataclass(frozen=True, kw_only=True)
class Gate(FirstTokens):
    """Asks whether there is an object. ask: template over `subject` and `question`, the relation's question."""

    ask: str

    def __post_init__(self) -> None:
        """Raise ValueError for a template with an unknown slot."""
        super().__post_init__()
        check_template("ask", self.ask, ("subject", "question"))

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:
        """Return the table with the question of a file of frames."""
        asks = [words["ask"] for words in words_of(frames, table.get("name", "")).values()]
        return {**table, "ask": asks[0]} if asks else table

    def asker(self, model: LanguageModel, run: Run, notes: Notes) -> Generator:
        """Return the generator over a model."""
        return _Gate(self, model, run, notes)

    def set_of(self, row: RecordedRow | None, query: Query, source: Source) -> CandidateSet:
        """Return the set with the probability of no object."""
        nothing = [] if row is None else [*row.nil_probabilities.values()]
        if row is not None and row.existence is not None:
            nothing = [1 - row.existence]
        return CandidateSet(query, draws=(), nil_probabilities=tuple(Nil(share, (source,)) for share in nothing))


class _Gate:
    """Asks the question of a `Gate` about each query."""

    def __init__(self, spec: Gate, model: LanguageModel, run: Run, notes: Notes) -> None:
        self._spec, self._model, self._notes, self._relations = spec, model, notes, run.relations
        self._name = spec.name or spec.component

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield a set without candidates per distinct query."""
        distinct = [*dict.fromkeys(queries)]
        prompts = [self._prompt(query) for query in distinct]
        for query, share in zip(distinct, self._spec.affirmed(self._model, prompts), strict=True):
            nothing = round(1 - share, 6)
            self._notes.replied(query, Replies(self._name, (), {"gate": nothing}, model=self._model.name))
            yield CandidateSet(query, draws=(), nil_probabilities=(Nil(nothing, (Source(self._name),)),))

    def _prompt(self, query: Query) -> str:
        subject = {"subject": one_line(query.subject)}
        question = fill(self._relations[query.relation].question, subject)
        return render(self._spec.ask, {**subject, "question": question})


@dataclass(frozen=True, kw_only=True)
class Universe(FirstTokens):
    """Probes every name that the model lists, for every subject.

    universe: relation -> question for all names, a line each, of which those in at least `least` of `draws` count.
    asks: relation -> templates over `subject` and `object`; P(yes) is their mean. Where there are several, no subject
    is asked about itself.
    max_tokens: relation -> most tokens of such a list.
    placebos: number of train's first subjects without object, whose mean P(yes) is subtracted in log-odds.
    """

    universe: Mapping[str, str]
    asks: Mapping[str, tuple[str, ...]]
    placebos: Mapping[str, int] = field(default_factory=dict)
    draws: int = 3
    least: int = 2
    temperature: float = 0.8
    max_tokens: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a template with an unknown slot."""
        super().__post_init__()
        for ask in (one for several in self.asks.values() for one in several):
            check_template("asks", ask, ("subject", "object"))

    @classmethod
    def reworded(cls, table: Mapping[str, Any], frames: str) -> Mapping[str, Any]:
        """Return the table with the questions of a file of frames; with `both`, names are asked about both ways."""
        words = words_of(frames, table.get("name", ""))
        if not words:
            return table
        asks = {
            name: [one["ask"], *([_reversed(one["ask"])] if one.get("both") else [])] for name, one in words.items()
        }
        return {**table, "universe": {name: one["task"] for name, one in words.items()}, "asks": asks}

    def asker(self, model: LanguageModel, run: Run, notes: Notes) -> Generator:
        """Return the generator over a model."""
        return _Probes(self, model, run, notes)

    def set_of(self, row: RecordedRow | None, query: Query, source: Source) -> CandidateSet:
        """Return the probed names, each with its probability."""
        return probed(query, row.verification, source) if row else CandidateSet(query, draws=())


def _reversed(ask: str) -> str:
    """Return a question with its subject and its object in each other's place."""
    turned = {"subject": "{{ object }}", "object": "{{ subject }}"}
    return re.sub(r"\{\{ (subject|object) \}\}", lambda slot: turned[slot[1]], ask)


NO_NAME = "-*0123456789. "
"""Signs around a name in a list."""
LONGEST = 60
"""Most characters of a name in a list."""


def probed(query: Query, shares: Mapping[str, float], source: Source) -> CandidateSet:
    """Return names with their probabilities as candidates."""
    return CandidateSet(query, tuple(Candidate(name, share, (source,)) for name, share in shares.items()))


class _Probes:
    """Asks for the names of a relation once, and then about each of them for each query."""

    def __init__(self, spec: Universe, model: LanguageModel, run: Run, notes: Notes) -> None:
        self._spec, self._model, self._run, self._notes = spec, model, run, notes
        self._name = spec.name or spec.component
        self.names, self.bias = cache(self._listed), cache(self._placebo)

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield a set of all names per distinct query."""
        for query in dict.fromkeys(queries):
            names, bias = self.names(query.relation), self.bias(query.relation)
            if len(self._of(self._spec.asks, query.relation, ())) > 1:
                names = [name for name in names if folded_key(name) != folded_key(query.subject)]
            shares = self._shares(query.relation, query.subject, names)
            verification = {name: round(_less(shares[name], bias.get(name)), 6) for name in names}
            replies = Replies(self._name, (), verification=verification, model=self._model.name)
            self._notes.replied(query, replies)
            yield probed(query, verification, Source(self._name))

    def _of(self, table: Mapping[str, Any], relation: str, default: Any) -> Any:
        return self._run.relations[relation].entry(table, default)

    def _listed(self, relation: str) -> Sequence[str]:
        """Return the names that enough draws list, sorted."""
        spec, ask = self._spec, self._of(self._spec.universe, relation, "")
        tokens = self._of(spec.max_tokens, relation, None)
        sampling = Sampling(temperature=spec.temperature, top_p=0.95, max_tokens=tokens, samples=spec.draws)
        counts: Counter[str] = Counter()
        spelt: dict[str, str] = {}
        for _, replies in self._model.complete({0: single(plain_request(ask, sampling))}):
            for reply in filter(None, replies):
                names = {line.strip(NO_NAME) for line in (answer_of(reply.text) or "").splitlines() if ":" not in line}
                named = {folded_key(name): name for name in sorted(names) if 0 < len(name) <= LONGEST}
                spelt = named | spelt
                counts.update(named.keys())
        return sorted(spelt[key] for key, count in counts.items() if count >= spec.least)

    def _placebo(self, relation: str) -> Mapping[str, float]:
        """Return name -> mean P(yes) over train's first subjects without an object; {} if there are none."""
        empty = (one.query.subject for one in self._run.train if one.query.relation == relation and not one.objects)
        names = self.names(relation)
        each = [self._shares(relation, one, names) for one in islice(empty, self._of(self._spec.placebos, relation, 0))]
        return {name: math.fsum(shares[name] for shares in each) / len(each) for name in names} if each else {}

    def _shares(self, relation: str, subject: str, names: Sequence[str]) -> Mapping[str, float]:
        asks = self._of(self._spec.asks, relation, ())
        slots = [{"subject": one_line(subject), "object": one_line(name)} for name in names]
        found = [self._spec.affirmed(self._model, [render(ask, each) for each in slots]) for ask in asks]
        return {name: math.fsum(own) / len(own) for name, *own in zip(names, *found, strict=True)}


def _less(share: float, bias: float | None) -> float:
    """Return a probability less another one, in log-odds."""
    if bias is None:
        return share
    return 1 / (1 + math.exp(min(_log_odds(bias) - _log_odds(share), 700.0)))


def _log_odds(share: float) -> float:
    held = min(max(share, 1e-6), 1 - 1e-6)
    return math.log(held / (1 - held))


# Deciding.


@dataclass(frozen=True, kw_only=True)
class AsciiShape(NameShape):
    """The shape of a name of two or more characters that begins with one of the capitals A to Z."""

    def fits(self, name: str) -> bool:
        """Return whether a name has the shape."""
        return len(name) > 1 and "A" <= name[0] <= "Z" and super().fits(name)


@dataclass(frozen=True, kw_only=True)
class Fused(Rule):
    """Keep names by the share of the draws that name them, and by the probability of Yes to them.

    weights: source -> weight of its share, the main one first; another source counts for the names that it has.
    probes: source whose score is the probability; names that it lacks keep their share. probed: its weight, of 1.
    threshold: lowest score of a kept name. belongs: name -> name in its place.
    """

    name: ClassVar[str] = "duke26/fused"
    weights: Mapping[str, float]
    probes: str = "probes"
    probed: float
    threshold: float
    belongs: Mapping[str, str] = field(default_factory=dict)

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the names whose fused score is high enough, best first."""
        scored = [(self._score(dict(one.by_model)), one) for one in candidates.candidates]
        enough = [pair for pair in scored if pair[0] >= self.threshold - 1e-9]
        kept = sorted(enough, key=lambda pair: (-pair[0], -pair[1].score, pair[1].text))
        named: dict[str, Candidate] = {}
        for score, one in kept:
            text = self.belongs.get(one.text, one.text)
            named.setdefault(text, Candidate(text, min(score, 1.0), one.sources, by_model=one.by_model))
        objects = () if candidates.failed else tuple(named.values())
        return Prediction(candidates.query, objects, candidates.failed)

    def _score(self, shares: Mapping[str, float]) -> float:
        """Return the fused score of a name; 0 if no draw names it. shares: by source."""
        main = next(iter(self.weights), "")
        named = [source for source in self.weights if source == main or source in shares]
        weight = math.fsum(self.weights[source] for source in named) or 1.0
        share = math.fsum(self.weights[source] * shares.get(source, 0.0) for source in named) / weight
        if not share or self.probes not in shares:
            return share
        return (1 - self.probed) * share + self.probed * shares[self.probes]


def _votes(weights: Mapping[str, float]) -> Callable[[tuple[Source, ...]], float]:
    """Return a function from sources to the weight of their draws."""
    return lambda sources: math.fsum(weights.get(source.model, 0.0) for source in sources)


@dataclass(frozen=True, kw_only=True)
class Modal(Rule):
    """Keep the object that most draws name, or nothing if most name nothing; on ties what was named first.

    weights: source -> weight of a draw, in the order of the sources.
    """

    name: ClassVar[str] = "duke26/modal"
    weights: Mapping[str, float]

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the leading object, or nothing."""
        order, weigh = [*self.weights], _votes(self.weights)

        def rank(sources: tuple[Source, ...]) -> tuple[float, tuple[int, int]]:
            first = min((order.index(one.model), int(one.draw or 0)) for one in sources if one.model in order)
            return -weigh(sources), first

        named = [(rank(one.sources), one) for one in candidates.candidates if weigh(one.sources)]
        silent = tuple(source for nil in candidates.nothing for source in nil.sources)
        best = min(named, key=lambda pair: pair[0], default=None)
        is_kept = best is not None and self.passes(
            candidates, math.fsum(weigh(one.sources) for _, one in named), weigh(silent)
        )
        if is_kept and best and self.is_first(best[0], rank(silent) if weigh(silent) else None):
            return Prediction(candidates.query, () if candidates.failed else (best[1],), candidates.failed)
        return Prediction(candidates.query, failed=candidates.failed)

    def is_first(self, best: tuple[float, Any], silent: tuple[float, Any] | None) -> bool:
        """Return whether an object precedes nothing, by their ranks."""
        return silent is None or best < silent

    def passes(self, candidates: CandidateSet, named: float, silent: float) -> bool:  # noqa: ARG002
        """Return whether anything may be answered. named, silent: weight of the draws that name an object, or none."""
        return True


@dataclass(frozen=True, kw_only=True)
class ModalIfDead(Modal):
    """Keep the object that most draws name, if existence + `named` x the share of draws with one is enough.

    threshold: that is enough.
    """

    name: ClassVar[str] = "duke26/city"
    named: float
    threshold: float

    def is_first(self, best: tuple[float, Any], silent: tuple[float, Any] | None) -> bool:  # noqa: ARG002
        """Return True: draws without an object count in the sum alone."""
        return True

    def passes(self, candidates: CandidateSet, named: float, silent: float) -> bool:
        """Return whether the sum is enough."""
        return (candidates.existence or 0.0) + self.named * named / (named + silent) >= self.threshold - 1e-9


@dataclass(frozen=True, kw_only=True)
class HeaviestGroup(Rule):
    """Answer with a number of the heaviest group of numbers, which a gap wider than a share of the larger one ends.

    weights: source -> weight of a draw. gap: that share. ties: which of groups with equal weight. take: the highest
    number of the group, or the upper one of the two in the middle. otherwise: number if no draw has any, or none.
    whole_from: from this number on, it is rounded to a whole one. digits: behind the point of smaller ones.
    """

    name: ClassVar[str] = "duke26/group"
    weights: Mapping[str, float]
    gap: float
    ties: Literal["highest", "lowest"]
    take: Literal["highest", "upper"]
    otherwise: float | None = None
    whole_from: float = 1000
    digits: int = 4

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the number."""
        weigh, votes = _votes(self.weights), defaultdict[float, float](float)
        for one in candidates.candidates:
            value = number(one.text)
            if value is not None and value > 0 and weigh(one.sources):
                votes[value] += weigh(one.sources)
        point = self._point(sorted(votes.items())) if votes else self.otherwise
        if point is None or (candidates.failed and candidates.lacks_replies):
            return Prediction(candidates.query, failed=candidates.failed)
        text = _plain(float(round(point) if point >= self.whole_from else round(point, self.digits))).removesuffix(".0")
        return Prediction(candidates.query, (Candidate(text, 1.0, id=text),))

    def _point(self, votes: Sequence[tuple[float, float]]) -> float:
        groups = [[votes[0]]]
        for (before, _), vote in pairwise(votes):
            if vote[0] - before > self.gap * vote[0]:
                groups.append([])
            groups[-1].append(vote)
        weights = [math.fsum(weight for _, weight in group) for group in groups]
        heaviest = [group for group, weight in zip(groups, weights, strict=True) if weight >= max(weights) - 1e-9]
        group = heaviest[-1 if self.ties == "highest" else 0]
        if self.take == "highest":
            return group[-1][0]
        middle, passed = math.fsum(weight for _, weight in group) / 2, 0.0
        return next(value for value, weight in group if (passed := passed + weight) > middle)


COMPONENTS = {
    "duke26/names": ObjectFormat(key="objects", many=True),
    "duke26/city-object": ObjectFormat(key="city"),
    "duke26/area": ObjectFormat(key="value", unit="km2"),
    "duke26/people": ObjectFormat(key="value", unit="people"),
    "duke26/first-figure": FigureFormat(largest=False),
    "duke26/largest-figure": FigureFormat(largest=True),
    "duke26/shots": BlockShots,
    "duke26/counting": CountingStyle,
    "duke26/count": Count,
    "duke26/gate": Gate,
    "duke26/universe": Universe,
    "duke26/shape": AsciiShape,
    Fused.name: Fused,
    Modal.name: Modal,
    ModalIfDead.name: ModalIfDead,
    HeaviestGroup.name: HeaviestGroup,
}
