"""LAMA: facts of Wikidata (T-REx) with one-token objects, as clozes over a vocabulary that models share.

Petroni et al., Language Models as Knowledge Bases?, EMNLP 2019. The harder subset LAMA-UHN: Poerner, Waltinger and
Schuetze, E-BERT, Findings of EMNLP 2020.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, check_known
from lmkbc.files.jsonl import read_jsonl
from lmkbc.probe.kamel.kamel_data import LAMA, Kamel, KamelFact, read_kamel
from lmkbc.probe.kmir.schema import Schema
from lmkbc.train.corpus import phrases
from lmkbc.types import grouped

PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "BERT-base": {"1-1": 68.0, "N-1": 32.4, "N-M": 24.7, "all": 31.1, "LAMA-UHN": 21.8},
    "BERT-large": {"all": 32.3},
}
"""Model -> P@1 in percent on T-REx, mean over its 41 relations, by type, and on the facts of LAMA-UHN."""

_LOG = logging.getLogger(__name__)
TOP = 1000
"""Largest rank that counts towards MRR."""

NAMES: Mapping[str, str] = {
    "P19": "{subject} is a name that is common in the city of {mask} .",
    "P20": "{subject} is a name that is common in the city of {mask} .",
    "place_of_birth": "{subject} is a name that is common in the city of {mask} .",
    "place_of_death": "{subject} is a name that is common in the city of {mask} .",
    "P27": "{subject} is a name that is common in the country of {mask} .",
    "P103": "{subject} is a name that is common among speakers of {mask} .",
    "P1412": "{subject} is a name that is common among speakers of {mask} .",
}
"""Relation of persons -> cloze for one word of a name, to test whether the name alone reveals the object."""

ONE_TO_ONE = frozenset(("P36", "P1376"))
MANY_TO_MANY = frozenset("P27 P31 P39 P47 P101 P106 P108 P178 P190 P463 P527 P530 P937 P1001 P1303 P1412".split())
"""T-REx's relations of these types in LAMA; its 23 others are N-1."""

GUESSES = 3
"""Number of likeliest words. If the object is among them, the name reveals it."""


SENTENCE, SENTENCE_MASK = "{sentence}", "[MASK]"
"""Cloze of facts whose subjects are whole sentences, and the mask in these sentences."""


class _Relation(msgspec.Struct):
    relation: str
    template: str
    type: str = ""
    label: str = ""


class _Fact(msgspec.Struct):
    sub_label: str
    obj_label: str


Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """A relation: its cloze with {subject} and {mask}, its type (1-1, N-1, N-M, or ""), and (subject, object) pairs.

    facts: pairs to test on. train: pairs to learn. dev: pairs for early stopping.
    """

    name: str
    cloze: str
    type: str
    facts: tuple[Pair, ...]
    train: tuple[Pair, ...] = ()
    dev: tuple[Pair, ...] = ()


def is_lama(path: Path) -> bool:
    """Return whether a directory has LAMA's layout."""
    return (path / "relations.jsonl").is_file()


def pairs_of(file: Path) -> tuple[Pair, ...]:
    """Read the (subject, object) labels of a file in LAMA's format."""
    return tuple((fact.sub_label, fact.obj_label) for fact in read_jsonl(file, _Fact))


def read_trex(path: Path, relations: Collection[str] | None = None) -> list[RelationFacts]:
    """Read T-REx as published: relations.jsonl, and TREx/P*.jsonl beside it; each pair of labels once.

    InputError for a template without [X] and [Y], a missing relation, or no file at all.
    """
    benchmark: list[RelationFacts] = []
    absent: list[str] = []
    for row in read_jsonl(path / "relations.jsonl", _Relation):
        if relations is not None and row.relation not in relations:
            continue
        places = (path / "TREx" / f"{row.relation}.jsonl", path / f"{row.relation}.jsonl")
        file = next(filter(Path.is_file, places), None)
        if file is None:
            absent.append(row.relation)
            continue
        cloze = as_cloze(row.template, f"{path / 'relations.jsonl'}: {row.relation}")
        benchmark.append(RelationFacts(row.relation, cloze, row.type, tuple(dict.fromkeys(pairs_of(file)))))
    lacking = sorted(set(relations or ()) - {relation.name for relation in benchmark})
    if lacking or not benchmark:
        raise InputError(
            f"{path} holds no facts of {', '.join(lacking) or 'relations'}: "
            "give the directory of relations.jsonl and TREx/, and relations that are there"
        )
    if absent:
        _LOG.info("left out, since their files are not there: %s", ", ".join(absent))
    return benchmark


def as_cloze(template: str, where: str) -> str:
    """Return a template with [X] and [Y] as a cloze with {subject} and {mask}. InputError if one of them is missing."""
    if template.count("[X]") != 1 or template.count("[Y]") != 1:
        raise InputError(f"{where} needs [X], [Y], each once, in its template {template!r}")
    return template.replace("{", "{{").replace("}", "}}").replace("[X]", "{subject}").replace("[Y]", "{mask}")


def kamel_clozes(schema: Schema | None = None) -> dict[str, str]:
    """Return property -> cloze: the first template of a schema, else one from the verb phrase used in training."""
    plain = {name: f"{{subject}} {phrase} {{mask}}." for name, phrase in phrases().items()}
    relations = schema.relations if schema else {}
    return plain | {name: relation.templates[0].replace("{object}", "{mask}") for name, relation in relations.items()}


def facts_of_kamel(
    path: Path,
    properties: Collection[str] | None,
    default: Collection[str] | None,
    clozes: Mapping[str, str],
    splits: Collection[str] = ("test",),
) -> list[RelationFacts]:
    """Read KAMEL's facts with a single object. default: properties to read if none is named.

    splits: splits to read; without train and dev, there are no pairs to learn. InputError for a property that is
    missing or has no cloze.
    """
    benchmark = read_kamel(path, properties=properties or default, splits=splits)
    for name in properties or ():
        benchmark.of(name, "test")
    return of_kamel(benchmark, clozes, splits)


def of_kamel(benchmark: Kamel, clozes: Mapping[str, str], splits: Collection[str] = ("test",)) -> list[RelationFacts]:
    """Return KAMEL's facts with a single object. InputError for a property without a cloze."""

    def pairs(name: str, split: str) -> tuple[Pair, ...]:
        facts = benchmark.of(name, split) if split in splits else ()
        return tuple(dict.fromkeys((fact.subject, fact.objects[0].shown) for fact in facts if len(fact.objects) == 1))

    for name in benchmark.properties:
        check_known(name, clozes, f"there is no template for {name}")
    return [
        RelationFacts(
            name,
            clozes[name],
            type_of(name, benchmark.of(name, "test")),
            pairs(name, "test"),
            pairs(name, "train"),
            pairs(name, "dev"),
        )
        for name in benchmark.properties
    ]


def type_of(name: str, facts: Sequence[KamelFact]) -> str:
    """Return the type of a relation: LAMA's, or, for a property that LAMA lacks, a type computed from its facts.

    It is N-M if a tenth of the subjects have several objects. Else it is N-1 if objects have 1.5 subjects or more on
    average. Else it is 1-1.
    """
    if name in LAMA:
        return "1-1" if name in ONE_TO_ONE else "N-M" if name in MANY_TO_MANY else "N-1"
    objects = [answer.shown for fact in facts for answer in fact.objects]
    several = sum(len(fact.objects) > 1 for fact in facts)
    if 10 * several >= len(facts):
        return "N-M"
    return "N-1" if len(objects) >= 1.5 * len(set(objects)) else "1-1"


def shared_vocabulary(vocabularies: Sequence[Iterable[str]], listed: Collection[str] | None = None) -> list[str]:
    """Return the words that every model knows as one token, sorted. listed: if given, only words in this list."""
    common = set.intersection(*map(set, vocabularies))
    common &= common if listed is None else set(listed)
    if not common:
        raise InputError(
            "the models share no word, or none that is listed: compare models of the same language and casing"
        )
    return sorted(common)


def lowered(relations: Iterable[RelationFacts]) -> list[RelationFacts]:
    """Return the same facts with objects in lower case, for uncased models; each pair once."""
    return [
        replace(relation, facts=tuple(dict.fromkeys((name, word.lower()) for name, word in relation.facts)))
        for relation in relations
    ]


def within(relations: Iterable[RelationFacts], keep: Callable[[str, str, str], bool]) -> list[RelationFacts]:
    """Return the facts for which keep(relation, subject, object) is true; log relations without any."""
    kept = [
        replace(relation, facts=tuple(pair for pair in relation.facts if keep(relation.name, *pair)))
        for relation in relations
    ]
    if left := [relation.name for relation in kept if not relation.facts]:
        _LOG.info("left out, since no fact remains: %s", ", ".join(left))
    return [relation for relation in kept if relation.facts]


def unhelpful(
    relations: Iterable[RelationFacts], guessed: Callable[[str, str], Collection[str]]
) -> list[RelationFacts]:
    """Return LAMA-UHN: facts whose object is neither part of the subject's name nor guessed from one word of it.

    guessed: function from (relation, word of a name) to the likeliest objects; called for relations of persons only.
    """

    def keep(relation: str, subject: str, object_: str) -> bool:
        if object_.lower() in subject.lower():
            return False
        return relation not in NAMES or not any(object_ in guessed(relation, word) for word in subject.split())

    return within(relations, keep)


@dataclass(frozen=True, slots=True)
class MeanRank:
    """P@1, P@10, reciprocal rank and natural log-probability of the gold object, averaged, and the number of facts."""

    p1: float
    p10: float
    mrr: float
    log_probability: float
    facts: int


@dataclass(frozen=True, slots=True)
class LamaTable:
    """Means over relations, overall and by type, and each relation's mean over facts."""

    overall: MeanRank
    types: Mapping[str, MeanRank]
    relations: Mapping[str, MeanRank]


Rank = tuple[int, float]
"""The gold object's rank in the vocabulary, from 1, and its log-probability there."""


def lama_table(relations: Sequence[RelationFacts], ranks: Mapping[str, Sequence[Rank]]) -> LamaTable:
    """Return the tables of the ranks of each relation's facts."""
    per = {relation.name: _facts(ranks[relation.name]) for relation in relations}
    by_type = grouped((relation.type, per[relation.name]) for relation in relations)
    types = {name: _mean(by_type[name]) for name in sorted(by_type) if name}
    return LamaTable(_mean(list(per.values())), types, per)


def _facts(ranks: Sequence[Rank]) -> MeanRank:
    return _mean([MeanRank(rank == 1, rank <= 10, 1 / rank if rank <= TOP else 0.0, log, 1) for rank, log in ranks])


def _mean(parts: Sequence[MeanRank]) -> MeanRank:
    n = len(parts) or 1
    columns = ("p1", "p10", "mrr", "log_probability")
    p1, p10, mrr, log = (math.fsum(getattr(part, column) for part in parts) / n for column in columns)
    return MeanRank(p1, p10, mrr, log, sum(part.facts for part in parts))


GOOGLE_RE: Mapping[str, str] = {
    "place_of_birth": "{subject} was born in {mask} .",
    "date_of_birth": "{subject} (born {mask}).",
    "place_of_death": "{subject} died in {mask} .",
}
"""Relation -> cloze of LAMA's script."""
SENTENCES = {"conceptnet": "ConceptNet", "squad": "Squad"}
"""Corpus of sentences -> its directory, which holds test.jsonl."""
LONGEST = 100
"""Words of the longest sentence that LAMA's script uses."""


class _Judgment(msgspec.Struct):
    judgment: str


class _Row(msgspec.Struct):
    obj_label: str
    sub_label: str = ""
    masked_sentences: list[str] = []
    judgments: list[_Judgment] = []

    @property
    def denied(self) -> bool:
        """Return whether most annotators deny the fact. LAMA's script leaves such facts out."""
        votes = Counter(judgment.judgment == "yes" for judgment in self.judgments)
        return votes[False] > votes[True]


def read_corpus(path: Path, corpus: str, relations: Collection[str] | None = None) -> list[RelationFacts]:
    """Read a corpus from the directory of LAMA's data; each fact once. relations: of Google-RE; None for all.

    InputError for a relation that does not exist. A corpus of sentences is one relation, as in LAMA's averages.
    Sentences without exactly one mask, or too long ones, are left out and counted in the log.
    """
    if corpus == "google-re":
        for name in relations or ():
            check_known(name, GOOGLE_RE, f"Google-RE has no relation {name!r}")
        return [
            RelationFacts(name, cloze, "", _subjects(path / "Google_RE" / f"{name}_test.jsonl"))
            for name, cloze in GOOGLE_RE.items()
            if relations is None or name in relations
        ]
    if relations is not None:
        raise InputError(f"{corpus} is not parted into relations: leave --properties out")
    return [RelationFacts(SENTENCES[corpus], SENTENCE, "", _sentences(path / SENTENCES[corpus] / "test.jsonl"))]


def _subjects(file: Path) -> tuple[tuple[str, str], ...]:
    rows = (row for row in read_jsonl(file, _Row) if not row.denied)
    return tuple(dict.fromkeys((row.sub_label, row.obj_label) for row in rows))


def _sentences(file: Path) -> tuple[tuple[str, str], ...]:
    every = [(" ".join(row.masked_sentences), row.obj_label) for row in read_jsonl(file, _Row)]
    kept = [pair for pair in every if pair[0].count(SENTENCE_MASK) == 1 and len(pair[0].split()) <= LONGEST]
    if len(kept) < len(every):
        _LOG.info("%s: %d sentences without one mask, or too long, left out", file, len(every) - len(kept))
    return tuple(dict.fromkeys(kept))
