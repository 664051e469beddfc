"""KMIR's files: typed triples in, questions out, one JSON line each."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import msgspec

from lmkbc import data
from lmkbc.errors import InputError, did_you_mean
from lmkbc.probe import kamel
from lmkbc.probe.kmir_axioms import Triple
from lmkbc.probe.kmir_schema import Schema

SHARES = {"train": 8, "dev": 1, "test": 1}
TYPES = ("completion", "checking", "distinction", "reasoning")


class TypedTriple(msgspec.Struct, frozen=True, gc=False):
    """A given fact. The types, where given, keep distractors to entities of the same type."""

    subject: str
    relation: str
    object: str
    subject_type: str = ""
    object_type: str = ""

    @property
    def triple(self) -> Triple:
        """The fact without types."""
        return Triple(self.subject, self.relation, self.object)


class Question(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One question with its accepted answers. fact: number of the triple asked about, from 0, in the order given.

    options: what may be chosen, where a choice is asked; exactly one of them is right.
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


def read_triples(path: Path, schema: Schema) -> list[TypedTriple]:
    """Triples of a JSONL file, a TSV file without header, or of KAMEL.

    Columns: subject, relation, object, and subject_type and object_type where known. Of KAMEL's archive or tree, the
    schema's relations are read. Facts that occur twice, or relate an entity to itself, are dropped. InputError for a
    relation without schema.
    """
    if path.is_dir() or path.name.endswith((".tar.xz", ".tar")):
        rows = _kamel(path, schema)
    elif path.name.removesuffix(".gz").endswith(".tsv"):
        rows = [_tsv_row(path, number, line) for number, line in data.numbered_lines(data.read_bytes(path))]
    else:
        rows = data.read_jsonl(path, TypedTriple)
    for number, row in enumerate(rows, start=1):
        if row.relation not in schema.relations:
            hint = did_you_mean(row.relation, schema.relations)
            raise InputError(f"{path}, triple {number}: the schema lacks relation {row.relation!r}; {hint}")
    return list({row.triple: row for row in rows if row.subject != row.object}.values())


def _tsv_row(path: Path, number: int, line: bytes) -> TypedTriple:
    cells = line.decode("utf-8", "replace").rstrip("\r\n").split("\t")
    if not 3 <= len(cells) <= 5:
        raise InputError(f"{path}, line {number}: {len(cells)} columns; give subject, relation, object and two types")
    return TypedTriple(*cells)


def _kamel(path: Path, schema: Schema) -> list[TypedTriple]:
    found = kamel.read(path, properties=schema.relations)
    facts = (fact for name in found.properties for split in kamel.SPLITS for fact in found.facts.get((name, split), ()))
    return [TypedTriple(fact.subject, fact.property, one.shown) for fact in facts for one in fact.objects]


def question_lines(questions: Iterable[Question]) -> bytes:
    """The benchmark's JSONL."""
    encoder = msgspec.json.Encoder()
    return b"".join(encoder.encode(question) + b"\n" for question in questions)


def split_files(questions: Iterable[Question], seed: int) -> dict[str, bytes]:
    """File name -> lines: all questions on one fact lie in one split, at random but always the same."""
    names, shares = list(SHARES), list(SHARES.values())
    chosen: dict[str, list[Question]] = {name: [] for name in names}
    for question in questions:
        draw = random.Random(f"{seed} split {question.fact}")
        chosen[draw.choices(names, shares)[0]].append(question)
    return {f"{name}.jsonl": question_lines(part) for name, part in chosen.items()}


def read_questions(path: Path) -> list[Question]:
    """Questions as `kmir build` writes them, or as the benchmark does."""
    return data.read_jsonl(path, Question)


class _Guesses(msgspec.Struct, gc=False):
    id: str
    ret: str | list[str]


def read_guesses(path: Path, questions: Iterable[Question]) -> dict[str, list[str]]:
    """Question id -> guesses, of a JSONL file of {"id", "ret"}. InputError for an unknown or repeated id."""
    known = {question.id for question in questions}
    found: dict[str, list[str]] = {}
    for row in data.read_jsonl(path, _Guesses):
        if row.id not in known or row.id in found:
            what = "is answered twice" if row.id in found else "is no question's id"
            raise InputError(f"{path}, field id: {row.id!r} {what}; answer each question of the file once")
        found[row.id] = [row.ret] if isinstance(row.ret, str) else row.ret
    return found
