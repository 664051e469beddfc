"""Read the channels of many draws, and decide by what they have in common (CS2, LM-KBC 2026)."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, ClassVar, Literal

import numpy as np

from lmkbc.answer.formats import AnswerFormat
from lmkbc.ask.slots import one_line
from lmkbc.ask.style import PromptStyle
from lmkbc.ask.templates import check_template, render
from lmkbc.files.jsonl import read_jsonl
from lmkbc.files.places import RecordedFile
from lmkbc.files.splits import QueryRow
from lmkbc.generate.access import is_given, open_model
from lmkbc.generate.conversation import Conversation
from lmkbc.generate.language_model import LanguageModelSpec
from lmkbc.generate.recorded_rows import each_row
from lmkbc.generate.spec import GeneratorSpec, Relations, merged, specs
from lmkbc.models.base import LanguageModel, Reply, Sampling, single
from lmkbc.models.plain_questions import plain_request
from lmkbc.models.reference import ModelReference
from lmkbc.models.thoughts import answer_of
from lmkbc.notes import Notes, Replies
from lmkbc.scoring.matchers import number
from lmkbc.select.numeric import middle_of_deepest
from lmkbc.select.rule import Rule
from lmkbc.session.run import Run
from lmkbc.types import Candidate, CandidateSet, Generator, Nil, Prediction, Query, Source, State

# Areas: the first number of a sentence, with its unit, and the middle of the deepest region.

_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+")
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?!\d)(st|nd|rd|th)?")
UNITS = (
    (1.0, ("km2", "km²", "square kilomet", "sq km")),
    (2.589988, ("square mile", "sq mi", "mi2", "mi²")),
    (0.01, ("hectare", " ha")),
    (0.00404686, ("acre",)),
    (1e-6, ("m2", "m²", "square met", "sq m")),
)
"""Square kilometres of a unit, and the words for it; the first that occurs in `AFTER` characters counts."""
AFTER = 18


@dataclass(frozen=True, kw_only=True)
class AreaFormat(AnswerFormat):
    """A sentence that states an area: its first number that is no ordinal, in square kilometres."""

    joint: str = "; "
    tolerant: bool = False

    def parts(self, answer: str) -> list[str]:
        """Return the area in a sentence, in digits; [] if it has none."""
        text = answer.replace("\n", " ")
        if found := _CONTINENTAL.search(text):
            value, end = float(found[0].replace(".", "").replace(",", ".")), found.end()
        elif plain := next((one for one in _NUMBER.finditer(text) if not one[2]), None):
            value, end = float(plain[1].replace(",", "")), plain.end(1)
        else:
            return []
        unit = text[end : end + AFTER].lower()
        factor = next((factor for factor, words in UNITS if any(word in unit for word in words)), 1.0)
        size = value * factor
        return [format(Decimal(repr(size)), "f")] if 0 < size < math.inf else []


def _ordered(candidates: CandidateSet) -> list[Candidate]:
    """Return the candidates, those of the best score first."""
    return sorted(candidates.candidates, key=lambda one: (-one.score, one.text))


@dataclass(frozen=True, kw_only=True)
class OfDraws(Rule):
    """Answer with one number that the numbers of all draws give. digits: significant ones of the answer."""

    digits: int = 6

    @abstractmethod
    def chosen(self, values: Sequence[float]) -> float:
        """Return the number. values: of the draws, positive and in order of size."""

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the number, or nothing if no draw has one."""
        sized = ((number(one.text), len(one.sources)) for one in candidates.candidates)
        values = sorted(value for value, count in sized if value is not None and value > 0 for _ in range(count))
        if candidates.failed or not values:
            return Prediction(candidates.query, failed=candidates.failed)
        text = format(Decimal(f"{self.chosen(values):.{self.digits}g}"), "f")
        return Prediction(candidates.query, (Candidate(text, 1.0, id=text),))


@dataclass(frozen=True, kw_only=True)
class PlusMinus(OfDraws):
    """Geometric middle of the region in which most intervals v - tolerance v to v + tolerance v overlap."""

    name: ClassVar[str] = "cs2-26/stab-mid"
    tolerance: float = 0.05

    def chosen(self, values: Sequence[float]) -> float:
        """Return the middle; of regions with equal depth, the widest as a ratio."""
        own = np.array(values)
        return middle_of_deepest(own * (1 - self.tolerance), own * (1 + self.tolerance), np.ones(len(own)))


@dataclass(frozen=True, kw_only=True)
class FirstMember(OfDraws):
    """Median of the largest cluster, whose members are within `tolerance` of its smallest one; the lowest on ties."""

    name: ClassVar[str] = "cs2-26/first-member"
    tolerance: float = 0.025

    def chosen(self, values: Sequence[float]) -> float:
        """Return the rounded median."""
        clusters: list[list[float]] = []
        for value in values:
            if not clusters or value > clusters[-1][0] * (1 + self.tolerance):
                clusters.append([])
            clusters[-1].append(value)
        largest = max(clusters, key=len)
        return round(median(largest))


# Exchanges: a sentence of prose.

_LISTED = re.compile(r"\b(?:listed|traded|trades|trading)\b(?:[^.\n]{0,40}?)\b(?:on|at) ([^\n]*)", re.IGNORECASE)
_UNLISTED = re.compile(
    r"\b(?:not (?:publicly )?(?:listed|traded)|privately held|private company|unlisted)\b", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class ListedFormat(AnswerFormat):
    """A sentence that says where a company is listed, or that it is not."""

    joint: str = ", "
    tolerant: bool = False
    brackets: bool = False

    def write(self, objects: Sequence[str]) -> str:
        """Return the sentence without its end."""
        return f"listed on {' and '.join(objects)}"

    def parts(self, answer: str) -> list[str]:
        """Return the exchanges up to the first full stop; [] if it says that there is none, or nothing of it."""
        found = None if _UNLISTED.search(answer) else _LISTED.search(answer)
        place = found[1].partition(". ")[0].rstrip(". ") if found else ""
        return [name.removeprefix("the ").strip() for name in re.split(r",|;| and ", place) if name.strip()]


# Cities: eight kinds of texts about a death.

_LABEL = re.compile(r"(?:City of death|Death city|Place of death|Died at)(?:\s*\([^)]*\))?\s*:([^\n|]*)", re.IGNORECASE)
_DIED_IN = re.compile(r"died\b[^.]{0,60}?\bin ([A-Z][\w'’\-]*(?: [A-Z][\w'’\-]*){0,2})", re.IGNORECASE)
_YEARS = re.compile(r"Years:\s*\d{3,4}\s*[-–—]\s*\d{3,4}", re.IGNORECASE)
_ALIVE = re.compile(r"\b(?:still living|alive|present)\b", re.IGNORECASE)
_VOID = frozenset(("", "n/a", "na", "none", "unknown", "alive", "still alive"))
LONGEST = 40


@dataclass(frozen=True, kw_only=True)
class ChannelStyle(PromptStyle):
    """A prompt whose reply may name a city of death.

    reading: a bare "line", the text behind a "label" such as City of death, or of an "obituary", which may have none.
    years: whether the share of draws with a line of years is a probability that the person died.
    """

    reading: Literal["line", "label", "obituary"]
    years: bool = False

    def city(self, text: str) -> str:
        """Return the city that a reply names; "" if it names none."""
        if self.reading == "line":
            named = text.strip().partition("\n")[0].partition("|")[0]
        else:
            found = _LABEL.search(text) or (_DIED_IN.search(text) if self.reading == "obituary" else None)
            named = found[1] if found else ""
        city = named.partition(",")[0].strip().rstrip(".").strip()
        return "" if city.casefold() in _VOID or len(city) > LONGEST or city.isdigit() else city


class Channel(Conversation):
    """Reads of each draw a city, and whether the person is called alive, which is a proposal of nothing."""

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """Return the cities of the draws."""
        style: Any = self.asking.plan(query).style
        replies = [None if reply is None or reply.failed else reply.text for reply in parts[0]]
        given = [(text, Source(self._name, str(draw))) for draw, text in enumerate(replies) if text is not None]
        named = [(style.city(text), source) for text, source in given]
        alive = [source for text, source in given if _ALIVE.search(text) and not _YEARS.search(text)]
        dated = sum(bool(_YEARS.search(text)) for text, _ in given) / max(len(given), 1)
        return CandidateSet(
            query,
            tuple(Candidate(city, 1.0, (source,)) for city, source in named if city),
            tuple(
                State.MISSING if text is None else State.ANSWERED if style.city(text) else State.ABSTAINED
                for text in replies
            ),
            nothing=tuple(Nil(1.0, (source,)) for source in alive),
            nil_probabilities=(Nil(1 - dated, (Source(self._name, "years"),)),) if style.years and given else (),
        )


@dataclass(frozen=True, kw_only=True)
class Channels(LanguageModelSpec):
    """A generator whose prompt is a `ChannelStyle`."""

    talk: ClassVar[type[Conversation]] = Channel


@dataclass(frozen=True, kw_only=True)
class Base(GeneratorSpec):
    """Reads the file of predictions to which the later stages are applied; without one, it proposes nothing."""

    @property
    def asks_model(self) -> bool:
        """Return True: the file holds what a model answered."""
        return True

    def claims(self, path: Path) -> bool:
        """Return whether a file is called as the table, and holds predictions."""
        return path.name.startswith(f"{self.name}.predictions")

    def open(self, run: Run, notes: Notes) -> Generator:  # noqa: ARG002
        """Return the generator."""
        return _Predicted(self.name, [file.path for file in run.answers or ()])


class _Predicted:
    """Proposes what files of predictions hold."""

    def __init__(self, name: str, files: Sequence[Path]) -> None:
        self._name, self._source = name, (Source(name),)
        rows = chain.from_iterable(read_jsonl(path, QueryRow) for path in files)
        self._rows = {(row.SubjectEntity, row.Relation): row.ObjectEntities or () for row in rows}

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield a set per distinct query."""
        for query in dict.fromkeys(queries):
            names = self._rows.get((query.subject, query.relation))
            if names is None:
                yield CandidateSet(query, draws=())
            else:
                objects = tuple(Candidate(str(name), 1.0, self._source) for name in names)
                nothing = () if objects else (Nil(1.0, self._source),)
                state = State.ANSWERED if objects else State.ABSTAINED
                yield CandidateSet(query, objects, (state,), nothing=nothing)


@dataclass(frozen=True, kw_only=True)
class CityOfDeath(Rule):
    """Keep the city of the base; of somebody without one, the leading city where three signals agree.

    base: source of the base. Without it, draws of `first` (source -> number of draws) make the base: their modal city,
    whose share of all these draws is at least `modal`. The probability of death by source `gate` is at least `dead`.
    channels: source -> number of draws, in the order of the sources; the signals are of them. alive: highest share of
    draws that call the person alive. dated: lowest probability of death by source `years`. leading: lowest share of
    the leading city among draws with a city.
    """

    name: ClassVar[str] = "cs2-26/city"
    base: str
    first: Mapping[str, float]
    gate: str
    modal: float
    dead: float
    channels: Mapping[str, float]
    years: str
    alive: float
    dated: float
    leading: float

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the city."""
        if candidates.failed:
            return Prediction(candidates.query, failed=True)
        found = [one for one in _ordered(candidates) if self.base in dict(one.by_model)]
        found = found or self._first(candidates) or self._rescued(candidates)
        return Prediction(candidates.query, tuple(found[:1]))

    def _died(self, candidates: CandidateSet, source: str) -> float | None:
        """Return the probability of death by a source; None if it gives none."""
        shares = [dict(nil.by_model) for nil in candidates.nil_probabilities]
        return next((1 - share[source] for share in shares if source in share), None)

    def _first(self, candidates: CandidateSet) -> list[Candidate]:
        votes, best = self._leading(candidates, self.first)
        dead = self._died(candidates, self.gate)
        sure = dead is not None and dead >= self.dead - 1e-9
        enough = best and votes[best[0].text] >= self.modal * sum(self.first.values()) - 1e-9
        return best if sure and enough else []

    def _rescued(self, candidates: CandidateSet) -> list[Candidate]:
        votes, best = self._leading(candidates, self.channels)
        alive = sum(source.model in self.channels for nil in candidates.nothing for source in nil.sources)
        dead = self._died(candidates, self.years)
        agree = (
            alive <= self.alive * sum(self.channels.values()) + 1e-9
            and dead is not None
            and dead >= self.dated - 1e-9
            and best
            and votes[best[0].text] >= self.leading * votes.total() - 1e-9
        )
        return best if agree else []

    def _leading(self, candidates: CandidateSet, channels: Mapping[str, float]) -> tuple[Counter[str], list[Candidate]]:
        """Return the votes of some sources by city, and the leading city, the first on ties."""
        order = [*channels]
        votes: Counter[str] = Counter()
        places: dict[str, tuple[int, int]] = {}
        for one in candidates.candidates:
            own = [(order.index(its.model), int(its.draw or 0)) for its in one.sources if its.model in channels]
            if own:
                votes[one.text], places[one.text] = len(own), min(own)
        leading = min(votes, key=lambda text: (-votes[text], places[text]), default=None)
        return votes, [one for one in candidates.candidates if one.text == leading]


# Awards: a list, the winners of each year, and who leads back to the award.

_REASON = re.compile(r"\((?:for|with)\b")
_NO_NAMES = frozenset(("", "unknown", "n/a", "none", "not awarded", "no award", "award not given"))
_MARKS = re.compile(r"[-–—?]+")
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")


@dataclass(frozen=True, kw_only=True)
class WinnersFormat(AnswerFormat):
    """Winners of a year in a line, without the reason in brackets."""

    joint: str = ", "
    tolerant: bool = False

    def parts(self, answer: str) -> list[str]:
        """Return the names of 3 to 60 characters."""
        names = [name.strip(". \n\t") for name in re.split(r",| and | & |;", _REASON.split(answer)[0])]
        return [
            name
            for name in names
            if name.casefold() not in _NO_NAMES
            and not _MARKS.fullmatch(name)
            and 3 <= len(name) <= 60
            and _LATIN.search(name)
            and not name[0].isdigit()
        ]


@dataclass(frozen=True, kw_only=True)
class YearsStyle(PromptStyle):
    """A prompt about a year. rate: from which on a name is asked back, and confirms the list."""

    rate: float


class Years(Conversation):
    """Scores a name by its best rate in a year: its mentions, of the year's draws that name anybody."""

    def candidates(self, query: Query, parts: Sequence[Sequence[Reply | None]]) -> CandidateSet:
        """Return the names; those with the style's rate come first, in the order in which they reached it."""
        style: Any = self.asking.plan(query).style
        if any(reply is None or reply.failed for draws in parts for reply in draws):
            return CandidateSet(query, draws=(State.MISSING,))
        rates: dict[str, float] = {}
        reached: dict[str, float] = {}
        for draws in parts:
            named = [style.format.parts(answer_of(reply.text) or "") for reply in draws if reply]
            answered = sum(map(bool, named))
            for name, count in Counter(chain.from_iterable(named)).items():
                rate = min(count / answered, 1.0)
                rates[name] = max(rates.get(name, 0.0), rate)
                if rate >= style.rate:
                    reached.setdefault(name, rate)
        source = (Source(self._name),)
        objects = tuple(Candidate(name, rates[name], source) for name in {**reached, **rates})
        return CandidateSet(query, objects, (State.ANSWERED if objects else State.ABSTAINED,))


@dataclass(frozen=True, kw_only=True)
class YearsSpec(LanguageModelSpec):
    """A generator that is asked year by year, with a `YearsStyle`."""

    talk: ClassVar[type[Conversation]] = Years


@dataclass(frozen=True, slots=True, kw_only=True)
class Back:
    """Settings of the question from a name back to its honours.

    ask: template over `object`. stop: texts that end a reply. words: lowest share of the award's words that a reply
    holds. without: words that do not count.
    """

    ask: str
    samples: int = 6
    temperature: float = 0.8
    max_tokens: int = 64
    stop: tuple[str, ...] = ("\n",)
    words: float = 0.6
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a template with an unknown slot."""
        check_template("back.ask", self.ask, ("object",))

    def score(self, award: str, replies: Sequence[str]) -> float:
        """Return the share of replies that hold enough words of an award's name, also within longer words."""
        wanted = [word for word in re.findall("[a-z0-9]+", award.lower()) if word not in self.without]
        held = [sum(word in text.lower() for word in wanted) for text in replies]
        return sum(count >= self.words * len(wanted) - 1e-9 for count in held) / max(len(replies), 1)


@dataclass(frozen=True, kw_only=True)
class Awards(ModelReference, GeneratorSpec):
    """Three sources: a list, the winners of each year, and the names of both that lead back to the award.

    winners, years: tables of generators, whose names are their sources. back: the question back, whose source is
    called "back".
    """

    winners: Mapping[str, Any]
    years: Mapping[str, Any]
    back: Back

    def __post_init__(self) -> None:
        """Raise InputError for wrong settings of a table within."""
        super().__post_init__()
        _ = self.parts

    @cached_property
    def parts(self) -> tuple[GeneratorSpec, ...]:
        """Return the two generators of the tables, which ask the same model."""
        shared = {"component": "chat", "model": self.model, "only": self.only}
        return specs([merged(shared, self.winners), merged(shared, self.years)])

    def check(self, relations: Relations) -> None:
        """Raise InputError for an unknown relation."""
        super().check(relations)
        for spec in self.parts:
            spec.check(relations)

    def whole(self) -> Iterator[GeneratorSpec]:
        """Yield the table itself, and the tables within it."""
        yield from (self, *self.parts)

    @property
    def called(self) -> tuple[str, ...]:
        """Return the names of the three sources."""
        return (*(spec.name for spec in self.parts), "back")

    @property
    def asks_model(self) -> bool:
        """Return True."""
        return True

    def open(self, run: Run, notes: Notes) -> Generator:
        """Return the generator of the names that lead back."""
        return dict(self.sources(run, notes))["back"]

    def sources(self, run: Run, notes: Notes) -> Iterator[tuple[str, Generator]]:
        """Yield the three generators with their names."""
        kept = []
        for spec in self.parts:
            ((name, generator),) = spec.sources(_reading(run, spec.name), notes)
            kept.append(_Kept(generator))
            yield name, kept[-1]
        yield "back", _LeadBack(self, kept, _reading(run, "back"), notes)


def _reading(run: Run, name: str) -> Run:
    """Return a run whose recorded answers are those of one source."""
    if run.answers is None:
        return run
    held = [
        RecordedFile(file.path, frozenset({name}))
        for file in run.answers
        if any(row.called == name for row in each_row(file.path, run.edition))
    ]
    return replace(run, answers=tuple(held))


class _Kept:
    """Generator whose sets are kept for the one that reads them."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self.sets: dict[Query, CandidateSet] = {}

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the sets."""
        for found in self._generator.generate(queries):
            self.sets[found.query] = found
            yield found


class _LeadBack:
    """Asks for the honours of the names of a list, and of those with a high rate in a year."""

    def __init__(self, spec: Awards, kept: Sequence[_Kept], run: Run, notes: Notes) -> None:
        self._spec, self._kept, self._notes, self._name = spec, kept, notes, "back"
        self._key = run.edition.metric.scorer.key
        style: Any = spec.parts[1]
        self._rate = style.prompt.rate
        self._rows = {
            (row.SubjectEntity, row.Relation): row.replies
            for file in run.answers or ()
            for row in each_row(file.path, run.edition)
            if row.called == "back"
        }
        asks = run.answers is None or is_given(spec, run)
        self._model: LanguageModel | None = open_model(spec, run, notes, completion=True) if asks else None

    def names(self, query: Query) -> list[str]:
        """Return who is asked back: the list, and behind it the names of high rate, those of the highest first."""
        winners, years = (kept.sets.get(query, CandidateSet(query)).candidates for kept in self._kept)
        high = sorted((one for one in years if one.score >= self._rate), key=lambda one: -one.score)
        named: dict[str, str] = {}
        for one in (*winners, *high):
            named.setdefault(self._key(one.text), one.text)
        return [*named.values()]

    def generate(self, queries: Sequence[Query]) -> Iterator[CandidateSet]:
        """Yield the asked names of each distinct query, with the share of replies that lead back."""
        for query in dict.fromkeys(queries):
            names = self.names(query)
            parts = self._rows.get((query.subject, query.relation))
            parts = self._asked(query, names) if parts is None and self._model and names else parts
            if parts is None or len(parts) != len(names) or any(reply is None for part in parts for reply in part):
                yield CandidateSet(query, draws=(State.MISSING,) if names else ())
                continue
            texts = [[reply.text for reply in part if reply] for part in parts]
            scores = (self._spec.back.score(query.subject, replies) for replies in texts)
            named = zip(names, scores, strict=True)
            yield CandidateSet(query, tuple(Candidate(name, score, (Source("back"),)) for name, score in named))

    def _asked(self, query: Query, names: Sequence[str]) -> list[list[Reply | None]]:
        back = self._spec.back
        sampling = Sampling(temperature=back.temperature, samples=back.samples, max_tokens=back.max_tokens)
        prompts = [render(back.ask, {"object": one_line(name)}) for name in names]
        requests = {place: single(plain_request(text, sampling, back.stop)) for place, text in enumerate(prompts)}
        found: Any = dict(self._model.complete(requests)) if self._model else {}
        parts = [[*found[place]] for place in requests]
        model = self._model.name if self._model else ""
        self._notes.replied(query, Replies("back", tuple(map(tuple, parts)), model=model))
        return parts


@dataclass(frozen=True, kw_only=True)
class Winners(Rule):
    """Keep a list, and correct it if the years confirm little of it.

    winners, years, back: sources. least: lowest share of the list's draws. rate: of a year, which confirms a name. The
    confidence is the share of the list that is confirmed. Below `prune_below`, names are dropped that no year has.
    Below `add_below`, names are added of which at least `leads` of the replies lead back.
    """

    name: ClassVar[str] = "cs2-26/winners"
    winners: str = "list"
    years: str = "years"
    back: str = "back"
    least: float
    rate: float
    prune_below: float
    add_below: float
    leads: float

    def select(self, candidates: CandidateSet) -> Prediction:
        """Return the corrected list."""
        if candidates.failed:
            return Prediction(candidates.query, failed=True)
        shares = [(one, dict(one.by_model)) for one in _ordered(candidates)]
        listed = [(one, own) for one, own in shares if own.get(self.winners, 0.0) >= self.least - 1e-9]
        confirmed = sum(own.get(self.years, 0.0) >= self.rate - 1e-9 for _, own in listed)
        confidence = confirmed / max(len(listed), 1)
        is_pruned = confidence < self.prune_below
        kept = [one for one, own in listed if not is_pruned or own.get(self.years, 0.0) > 0]
        if confidence < self.add_below:
            texts = {one.text for one, _ in listed}
            further = ((one, own) for one, own in shares if one.text not in texts)
            kept += [one for one, own in further if own.get(self.back, 0.0) >= self.leads - 1e-9]
        return Prediction(candidates.query, tuple(kept))


COMPONENTS = {
    "cs2-26/area": AreaFormat(),
    "cs2-26/listed": ListedFormat(),
    "cs2-26/winners-of-year": WinnersFormat(),
    "cs2-26/channel": ChannelStyle,
    "cs2-26/channels": Channels,
    "cs2-26/base": Base,
    "cs2-26/year": YearsStyle,
    "cs2-26/years": YearsSpec,
    "cs2-26/awards": Awards,
    PlusMinus.name: PlusMinus,
    FirstMember.name: FirstMember,
    CityOfDeath.name: CityOfDeath,
    Winners.name: Winners,
}
