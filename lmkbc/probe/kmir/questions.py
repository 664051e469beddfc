"""KMIR's questions: four types, built from any typed triples and a schema of their relations; and their files.

Gao et al. 2022. The closure of the given triples under the schema is taken as the truth, and everything else as false.
Random choices depend only on the seed, the type of question and the fact, so the same seed writes the same bytes. Files
have one JSON line for each triple or question.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import msgspec

from lmkbc.errors import InputError, did_you_mean
from lmkbc.files import jsonl
from lmkbc.files.atomic import DirectoryKind
from lmkbc.probe.kamel.kamel_data import SPLITS, read_kamel
from lmkbc.probe.kmir.schema import Closure, Derivation, RelationSchema, Schema, Triple
from lmkbc.types import grouped

MASK = "[MASK]"
SHARES = {"train": 8, "dev": 1, "test": 1}
QUESTIONS = DirectoryKind("KMIR's questions", "manifest.json", frozenset(f"{name}.jsonl" for name in SHARES))
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
        triples = (_tsv_row(path, number, line, schema) for number, line in jsonl.numbered(path))
        rows = [row for row in triples if row is not None]
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
    fits = name in schema.relations and start.startswith("/c/en/") and end.startswith("/c/en/")
    return TypedTriple(ends[0], name, ends[1]) if fits else None


def _kamel(path: Path, relations: Collection[str] | None) -> list[TypedTriple]:
    dataset = read_kamel(path, properties=relations)
    facts = (fact for name in dataset.properties for split in SPLITS for fact in dataset.facts.get((name, split), ()))
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
    ids = {question.id for question in questions}
    names: dict[str, list[str]] = {}
    for row in jsonl.read_jsonl(path, _Guesses):
        if row.id not in ids or row.id in names:
            what = "is answered twice" if row.id in names else "is no question's id"
            raise InputError(f"{path}, field id: {row.id!r} {what}; answer each question of the file once")
        names[row.id] = [row.ret] if isinstance(row.ret, str) else row.ret
    return names


OPTIONS = 4
ANSWERS = 50
"""Most right answers of a question if its other end can be asked. Example: a thousand places are in Asia."""
TRIES = 24
"""Random draws of a distractor, before all candidates are searched or the question is dropped."""

CHECKS = (
    "True or false? {statement} This is {mask}.",
    "{statement} Is that claim true or false? It is {mask}.",
    'The sentence "{statement}" is {mask} (true or false).',
)
ODD = (
    "Three of {names} have the same {aspect}; the odd one out is {mask}.",
    "By {aspect}, one of {names} does not belong with the others: {mask}.",
)
HENCE = ("{premises} Hence: {conclusion}", "{premises} It follows that: {conclusion}")
CHOOSE = "{question} Choose one of {names}."


class QuestionBuilder:
    """Builds questions about given triples. InputError for a relation whose facts all stay true when corrupted."""

    def __init__(self, triples: Sequence[TypedTriple], schema: Schema, seed: int = 0) -> None:
        self._triples, self._schema, self._seed = triples, schema, seed
        self.closure = Closure((row.triple for row in triples), schema)
        self._number = {row.triple: number for number, row in enumerate(triples)}
        subjects = ((("subject", row.relation, row.subject_type), row.subject) for row in triples)
        objects = ((("object", row.relation, row.object_type), row.object) for row in triples)
        pools = grouped(chain(subjects, objects))
        self._pools = {key: list(dict.fromkeys(names)) for key, names in pools.items()}
        ends = grouped((triple.relation, triple.object) for triple in chain(self.closure.given, self.closure.steps))
        self._ends = {relation: list(dict.fromkeys(names)) for relation, names in ends.items()}

    def questions(self) -> Iterator[Question]:
        """Yield all questions: fact by fact, then those about inferred facts."""
        kinds = (self._completions, self._checks, self._distinctions)
        corrupted: set[str] = set()
        for number, row in enumerate(self._triples):
            for kind in kinds:
                for question in kind(number, row):
                    if question.type == "checking" and question.answer == ["false"]:
                        corrupted.add(question.relation)
                    yield question
        for place, (triple, step) in enumerate(self.closure.steps.items()):
            if all(premise in self.closure.given for premise in step.premises):
                yield from self._reasoning(place, triple, step)
        for relation in sorted({row.relation for row in self._triples} - corrupted):
            raise InputError(
                f"no statement of {relation!r} can be made false: every subject has every object; "
                "give more triples of it, or leave it out"
            )

    def _random(self, kind: str, number: object) -> random.Random:
        return random.Random(f"{self._seed} {kind} {number}")

    def _relation(self, triple: TypedTriple | Triple) -> RelationSchema:
        return self._schema.relations[triple.relation]

    def _completions(self, number: int, row: TypedTriple) -> Iterator[Question]:
        """Yield one question per template with one end masked.

        Every entity that makes it true is an accepted answer.
        """
        draw = self._random("completion", number)
        subjects = self.closure.subjects[row.relation, row.object]
        objects = self.closure.objects[row.subject, row.relation]
        for place, template in enumerate(self._relation(row).templates):
            drawn = draw.random() < 0.5
            if len(subjects) > ANSWERS or len(objects) > ANSWERS:
                drawn = len(subjects) < len(objects)
            ends = (MASK, row.object) if drawn else (row.subject, MASK)
            text = template.format(subject=ends[0], object=ends[1])
            answers = list(subjects if drawn else objects)
            yield self._question(f"completion-{number}-{place}", text, answers, row, number)

    def _checks(self, number: int, row: TypedTriple) -> Iterator[Question]:
        """Yield the statement, and a false one if there is one."""
        draw = self._random("checking", number)
        false = self.corrupted(row, draw)
        for answer, triple in (("true", row.triple), ("false", false)):
            if triple is not None:
                statement = _statement(draw, self._relation(row), triple)
                text = draw.choice(CHECKS).format(statement=statement, mask=MASK)
                yield self._question(f"checking-{number}-{answer}", text, [answer], row, number)

    def corrupted(self, row: TypedTriple, draw: random.Random) -> Triple | None:
        """Return the fact with one end replaced by an entity of the same relation and type, such that it is false."""
        first, second = draw.sample(("subject", "object"), 2)
        return self._swapped(row, first, draw) or self._swapped(row, second, draw)

    def _swapped(self, row: TypedTriple, end: str, draw: random.Random) -> Triple | None:
        def swap(name: str) -> Triple:
            return row.triple._replace(**{end: name})

        pool = self._pools[end, row.relation, row.subject_type if end == "subject" else row.object_type]
        names = _drawn(pool, draw, lambda name: not self._holds(swap(name)))
        return None if names is None else swap(names)

    def _holds(self, triple: Triple) -> bool:
        return triple.subject == triple.object or triple in self.closure

    def _distinctions(self, number: int, row: TypedTriple) -> Iterator[Question]:
        """Yield a question with three subjects that share this fact's object, and one odd subject, if unambiguous."""
        aspect = self._relation(row).aspect
        members = self.closure.subjects[row.relation, row.object]
        if aspect is None or len(members) < OPTIONS - 1:
            return
        draw = self._random("distinction", number)
        others = [name for name in members if name != row.subject]
        pool = self._pools["subject", row.relation, row.subject_type]
        for _ in range(TRIES):
            trio, odd = [row.subject, *draw.sample(others, OPTIONS - 2)], draw.choice(pool)
            if self._unique(trio, odd, row.relation):
                names = draw.sample([*trio, odd], OPTIONS)
                text = draw.choice(ODD).format(names=_enumerated(names), aspect=aspect, mask=MASK)
                yield self._question(f"distinction-{number}", text, [odd], row, number, names)
                return

    def _unique(self, trio: Sequence[str], odd: str, relation: str) -> bool:
        """Return whether the trio shares an object that the odd one lacks, and no other three share one."""
        four = [*trio, odd]
        objects = [frozenset(self.closure.objects.get((name, relation), ())) for name in four]
        shared = [frozenset.intersection(*objects[:i], *objects[i + 1 :]) - objects[i] for i in range(len(four))]
        return len(set(four)) == len(four) and bool(shared[-1]) and not any(shared[:-1])

    def _reasoning(self, place: int, triple: Triple, step: Derivation) -> Iterator[Question]:
        """Yield the conclusion with its object masked. It is a choice if other objects are true too."""
        numbers = [self._number[premise] for premise in step.premises]
        draw = self._random("reasoning", place)
        premises = " ".join(_statement(draw, self._relation(premise), premise) for premise in step.premises)
        masked = _statement(draw, self._relation(triple), triple._replace(object=MASK))
        text = draw.choice(HENCE).format(premises=premises, conclusion=masked)
        options: list[str] = []
        if len(self.closure.objects[triple.subject, triple.relation]) > 1:
            names = [triple.object, *self._wrong(triple, draw)]
            if len(names) < 2:
                return
            options = draw.sample(names, len(names))
            text = CHOOSE.format(question=text, names=_enumerated(options))
        yield self._question(
            f"reasoning-{place}", text, [triple.object], triple, numbers[0], options, step.axiom, numbers[1:]
        )

    def _wrong(self, triple: Triple, draw: random.Random) -> list[str]:
        """Return up to three objects of the relation that are false for the subject."""
        wrong: list[str] = []
        for _ in range(OPTIONS - 1):
            name = _drawn(
                self._ends[triple.relation],
                draw,
                lambda n: n not in wrong and not self._holds(triple._replace(object=n)),
            )
            if name is not None:
                wrong.append(name)
        return wrong

    def _question(
        self,
        name: str,
        text: str,
        answers: list[str],
        about: TypedTriple | Triple,
        number: int,
        options: Sequence[str] = (),
        axiom: str = "",
        premises: Sequence[int] = (),
    ) -> Question:
        topic = self._relation(about).topic
        kind = name.split("-", 1)[0]
        return Question(name, kind, text, answers, about.relation, number, topic, axiom, list(options), list(premises))


def _statement(draw: random.Random, relation: RelationSchema, triple: Triple) -> str:
    return draw.choice(relation.templates).format(subject=triple.subject, object=triple.object)


def _enumerated(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _drawn(pool: Sequence[str], draw: random.Random, fits: Callable[[str], bool]) -> str | None:
    """Return a fitting name from a few random draws, else the first that fits in random order; None if none fits."""
    for _ in range(TRIES):
        if fits(name := draw.choice(pool)):
            return name
    return next(filter(fits, draw.sample(pool, len(pool))), None)
