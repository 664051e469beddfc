"""KMIR's files: typed triples as input, questions as output, one JSON line each."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files import jsonl
from lmkbc.files.atomic import Kind
from lmkbc.probe.kamel import kamel_data as kamel
from lmkbc.probe.kmir.schema import Schema, Triple

MASK = "[MASK]"
SHARES = {"train": 8, "dev": 1, "test": 1}
QUESTIONS = Kind("KMIR's questions", "manifest.json", frozenset(f"{name}.jsonl" for name in SHARES))
"""Kind of the directory that `kmir build` writes."""
TYPES = ("completion", "checking", "distinction", "reasoning")


class TypedTriple(msgspec.Struct, frozen=True, gc=False):
    """A given fact. Types, if given, restrict distractors to entities of the same type.

    object_aliases: other names of the object, which `kamel-build` keeps.
    """

    subject: str
    relation: str
    object: str
    subject_type: str = ""
    object_type: str = ""
    object_aliases: tuple[str, ...] = ()

    @property
    def triple(self) -> Triple:
        """Return the fact without types."""
        return Triple(self.subject, self.relation, self.object)


class Question(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Question with its accepted answers. fact: index of the triple that the question is about.

    options: the names to choose from, if the question is a choice; exactly one is right. premises: indexes of the other
    triples that the question states.
    """

    id: str
    type: str
    question: str
    answer: list[str]
    relation: str
    fact: int
    topic: str = ""
    axiom: str = ""
    options: list[str] = []
    premises: list[int] = []

    @property
    def choices(self) -> list[str]:
        """Return what a guess is chosen from: true or false, the names that the question lists, or []."""
        return ["true", "false"] if self.type == "checking" else self.options


def read_triples(path: Path, schema: Schema) -> list[TypedTriple]:
    """Return the triples of `read_rows`, without repeated facts and facts that relate an entity to itself."""
    rows = read_rows(path, schema)
    return list({row.triple: row for row in rows if row.subject != row.object}.values())


def read_rows(path: Path, schema: Schema | None = None) -> list[TypedTriple]:
    """Read the triples of a JSONL file, a TSV file without header, or of KAMEL.

    Columns: subject, relation, object, and optionally subject_type and object_type. From KAMEL's archive or directory,
    the schema's relations are read (None: all). From ConceptNet's table of assertions, the schema's relations in
    English are read. InputError for a relation that the schema lacks, and for an entity whose name is empty or holds
    the mask.
    """
    relations = None if schema is None else schema.relations
    if path.is_dir() or path.name.endswith((".tar.xz", ".tar")):
        rows = _kamel(path, relations)
    elif path.name.removesuffix(".gz").endswith((".tsv", ".csv")):
        found = (_tsv_row(path, number, line, schema) for number, line in jsonl.numbered(path))
        rows = [row for row in found if row is not None]
    else:
        rows = jsonl.read_jsonl(path, TypedTriple)
    for number, row in enumerate(rows, start=1):
        if relations is not None and row.relation not in relations:
            hint = did_you_mean(row.relation, relations)
            raise InputError(f"{path}, triple {number}: the schema lacks relation {row.relation!r}; {hint}")
        for name in (row.subject, row.object):
            if MASK in name or not name.strip():
                raise InputError(
                    f"{path}, triple {number}: {name!r} is no name of an entity: name it, or drop the triple"
                )
    return rows


def _tsv_row(path: Path, number: int, line: bytes, schema: Schema | None) -> TypedTriple | None:
    cells = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
    if schema is not None and cells[0].startswith("/a/") and len(cells) == 5:
        return _assertion(cells[1], cells[2], cells[3], schema)
    if not 3 <= len(cells) <= 5:
        raise InputError(f"{path}, line {number}: {len(cells)} columns; give subject, relation, object and two types")
    subject, relation, object_, subject_type, object_type = [*cells, "", ""][:5]
    return TypedTriple(subject, relation, object_, subject_type, object_type)


def _assertion(relation: str, start: str, end: str, schema: Schema) -> TypedTriple | None:
    """Return a row of ConceptNet's table, as in /r/IsA, /c/en/dog/n, /c/en/animal; None if the schema lacks it."""
    name = relation.rpartition("/")[2]
    ends = [end.removeprefix("/c/en/").split("/")[0].replace("_", " ") for end in (start, end)]
    known = name in schema.relations and start.startswith("/c/en/") and end.startswith("/c/en/")
    return TypedTriple(ends[0], name, ends[1]) if known else None


def _kamel(path: Path, relations: Collection[str] | None) -> list[TypedTriple]:
    dataset = kamel.read(path, properties=relations)
    facts = (
        fact for name in dataset.properties for split in kamel.SPLITS for fact in dataset.facts.get((name, split), ())
    )
    return [
        TypedTriple(fact.subject, fact.property, answer.shown, object_aliases=answer.alternatives)
        for fact in facts
        for answer in fact.objects
    ]


def split(questions: Iterable[Question], triples: Sequence[TypedTriple], seed: int) -> dict[str, list[Question]]:
    """Return split -> questions. All questions about one pair of entities are in one split, chosen by the seed.

    So a split never asks another split's facts in the other direction, as in capital and capital of. Some questions are
    left out, since they would teach test answers. These are questions that state facts of two splits. They are also
    questions of train or dev with the same words as one in a later split.
    """
    names, shares = list(SHARES), list(SHARES.values())
    of = [
        random.Random(f"{seed} split {sorted((row.subject, row.object))}").choices(names, shares)[0] for row in triples
    ]
    chosen: dict[str, list[Question]] = {name: [] for name in names}
    for question in questions:
        if len({of[number] for number in (question.fact, *question.premises)}) == 1:
            chosen[of[question.fact]].append(question)
    taken = set[str]()
    for name in reversed(names):
        chosen[name] = [question for question in chosen[name] if question.question not in taken]
        taken.update(question.question for question in chosen[name])
    return chosen


def sample(questions: Sequence[Question], most: int, seed: int) -> list[Question]:
    """Return at most `most` questions of each type, drawn at random, in the given order.

    The first questions would be no good sample: a file goes from fact to fact, so they have few relations. A larger
    sample contains a smaller one.
    """
    drawn = set[str]()
    for kind in dict.fromkeys(question.type for question in questions):
        names = [question.id for question in questions if question.type == kind]
        drawn.update(random.Random(f"{seed} sample {kind}").sample(names, len(names))[:most])
    return [question for question in questions if question.id in drawn]


class _Guesses(msgspec.Struct, gc=False):
    id: str
    ret: str | list[str]


def read_guesses(path: Path, questions: Iterable[Question]) -> dict[str, list[str]]:
    """Return question id -> guesses from a JSONL file of {"id", "ret"}. InputError for an unknown or repeated id."""
    known = {question.id for question in questions}
    names: dict[str, list[str]] = {}
    for row in jsonl.read_jsonl(path, _Guesses):
        if row.id not in known or row.id in names:
            what = "is answered twice" if row.id in names else "is no question's id"
            raise InputError(f"{path}, field id: {row.id!r} {what}; answer each question of the file once")
        names[row.id] = [row.ret] if isinstance(row.ret, str) else row.ret
    return names
