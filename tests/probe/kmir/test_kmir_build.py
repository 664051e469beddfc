"""Questions from triples: truth, derivations, uniqueness, and the errors of triples and schemas."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import InputError
from lmkbc.probe.kmir.kmir_scores import KNOWLEDGE
from lmkbc.probe.kmir.questions import Question, QuestionBuilder, TypedTriple, read_triples, split
from lmkbc.probe.kmir.schema import AxiomChain, Closure, RelationSchema, Schema, Triple, read_schema

ANSWERS = 50


question_lines = msgspec.json.Encoder().encode_lines
SAY = ("<{subject}> %s <{object}>.", "It is said of <{subject}> that it %s <{object}>.")


def relation(name: str, **axioms: object) -> RelationSchema:
    return RelationSchema(name, tuple(template % name for template in SAY), **axioms)  # type: ignore[arg-type]


SCHEMA = Schema(
    {
        "in": relation("in", transitive=True, aspect="place"),
        "near": relation("near", symmetric=True),
        "holds": relation("holds", inverse=("in",)),
        "within": relation("within", equivalent=("in",)),
        "capital": relation("capital", implies=("holds",)),
        "speaks": relation("speaks", aspect="language"),
    },
    (AxiomChain("in", "speaks", "speaks"),),
)
NAMES = st.sampled_from([*"abcdefgh", "{x}", "false"])
TRIPLES = st.lists(
    st.builds(TypedTriple, NAMES, st.sampled_from(sorted(SCHEMA.relations)), NAMES), min_size=1, max_size=40
).map(lambda rows: list({row.triple: row for row in rows if row.subject != row.object}.values()))


def built(rows: list[TypedTriple], seed: int = 0) -> tuple[QuestionBuilder, list[Question]]:
    """All questions, or those up to the complaint about a relation that has no false statement."""
    builder, found = QuestionBuilder(rows, SCHEMA, seed), list[Question]()
    with suppress(InputError):
        found.extend(builder.questions())
    return builder, found


def naive_closure(rows: list[TypedTriple]) -> set[Triple]:
    """Every axiom written out, until nothing is new."""
    known = {row.triple for row in rows}
    while True:
        fresh: set[Triple] = set()
        for s, r, o in known:
            fresh |= {Triple(o, "near", s)} if r == "near" else set()
            fresh |= {Triple(o, "in", s)} if r == "holds" else set()
            fresh |= {Triple(s, "in", o)} if r == "within" else set()
            fresh |= {Triple(s, "within", o)} if r == "in" else set()
            fresh |= {Triple(s, "holds", o)} if r == "capital" else set()
            if r == "in":
                fresh |= {Triple(s, q, e) for m, q, e in known if m == o and q in ("in", "speaks")}
        fresh = {triple for triple in fresh if triple.subject != triple.object} - known
        if not fresh:
            return known
        known |= fresh


@given(TRIPLES)
def test_the_closure_is_all_that_follows_and_each_step_follows_from_its_axiom(rows: list[TypedTriple]) -> None:
    closure = Closure((row.triple for row in rows), SCHEMA)
    assert set(closure.given) | set(closure.steps) == naive_closure(rows)
    for triple, step in closure.steps.items():
        assert all(premise in closure for premise in step.premises)
        assert follows(triple, step)


def follows(made: Triple, step: Any) -> bool:
    (s, r, o), *rest = step.premises
    one = SCHEMA.relations[r]
    match step.axiom:
        case "symmetric":
            return one.symmetric and made == (o, r, s)
        case "inverse":
            return made.relation in one.inverse and (made.subject, made.object) == (o, s)
        case "equivalent":
            same = made.relation in one.equivalent or r in SCHEMA.relations[made.relation].equivalent
            return same and (made.subject, made.object) == (s, o)
        case "sub-relation":
            return made.relation in one.implies and (made.subject, made.object) == (s, o)
        case "transitive":
            return one.transitive and rest == [Triple(o, r, made.object)] and made == (s, r, made.object)
        case _:
            linked = AxiomChain(r, rest[0].relation, made.relation) in SCHEMA.chains
            return linked and rest[0].subject == o and made == (s, made.relation, rest[0].object)


@given(TRIPLES, st.integers(0, 3))
def test_no_corrupted_statement_is_true(rows: list[TypedTriple], seed: int) -> None:
    true = naive_closure(rows)
    _, questions = built(rows, seed)
    said = {text.format(subject=t.subject, object=t.object): t for t in all_triples() for text in says(t.relation)}
    for question in questions:
        if question.type == "checking":
            (triple,) = [triple for text, triple in said.items() if text in question.question]
            assert (triple in true) == (question.answer == ["true"])


def says(name: str) -> tuple[str, ...]:
    return SCHEMA.relations[name].templates


def all_triples() -> list[Triple]:
    names = [*"abcdefgh", "{x}", "false"]
    return [Triple(s, r, o) for r in SCHEMA.relations for s in names for o in names if s != o]


@given(TRIPLES, st.integers(0, 3))
def test_the_odd_one_is_unique_and_choices_hold_one_right_answer(rows: list[TypedTriple], seed: int) -> None:
    true = naive_closure(rows)
    builder, questions = built(rows, seed)
    objects = {(s, r): {o for t, q, o in true if (t, q) == (s, r)} for s, r, _ in true}
    for question in questions:
        if question.type == "distinction":
            kinds = [objects.get((name, question.relation), set()) for name in question.options]
            odd = [
                name
                for place, name in enumerate(question.options)
                if set.intersection(*kinds[:place], *kinds[place + 1 :]) - kinds[place]
            ]
            assert odd == question.answer
            assert len(set(question.options)) == 4
        if question.type == "reasoning":
            triple = list(builder.closure.steps)[int(question.id.split("-")[1])]
            right = objects[triple.subject, triple.relation]
            assert [name for name in question.options or question.answer if name in right] == question.answer
            assert question.options or len(right) == 1
        if question.type == "completion":
            assert question.answer


def test_the_same_seed_writes_the_same_bytes() -> None:
    rows = [TypedTriple(s, "in", o) for s in "abcdef" for o in "xyz" if (ord(s) + ord(o)) % 3]
    first, again, other = (question_lines(built(rows, seed)[1]) for seed in (1, 1, 2))
    assert first == again != other
    questions = built(rows, 1)[1]
    assert split(questions, rows, 1) == split(questions, rows, 1) != split(questions, rows, 2)


@given(TRIPLES, st.integers(0, 3))
def test_no_split_tells_a_fact_of_another_in_any_direction(rows: list[TypedTriple], seed: int) -> None:
    told: dict[str, set[tuple[str, ...]]] = {}
    questions = built(rows)[1]
    parts = split(questions, rows, seed)
    for name, part in parts.items():
        numbers = {number for question in part for number in (question.fact, *question.premises)}
        told[name] = {tuple(sorted((rows[number].subject, rows[number].object))) for number in numbers}
    assert not (told["train"] & told["dev"] | told["train"] & told["test"] | told["dev"] & told["test"])
    texts = {name: {question.question for question in part} for name, part in parts.items()}
    assert not (texts["train"] & texts["dev"] | texts["train"] & texts["test"] | texts["dev"] & texts["test"])
    kept = {question.question for part in parts.values() for question in part}
    assert all(question.question in kept for question in questions if not question.premises)


def test_what_has_very_many_answers_is_asked_for_its_other_end() -> None:
    rows = [TypedTriple(f"s{number}", "speaks", f"o{number % 2}") for number in range(2 * ANSWERS + 2)]
    rows += [TypedTriple("x", "near", f"y{number}") for number in range(ANSWERS + 1)]
    questions = [question for question in built(rows)[1] if question.type == "completion"]
    assert {question.relation for question in questions} == {"speaks", "near"}
    assert max(len(question.answer) for question in questions) <= ANSWERS


def test_distractors_keep_to_the_type() -> None:
    rows = [TypedTriple(f"p{i}", "speaks", f"o{i}", "person", "") for i in range(4)]
    rows += [TypedTriple(f"c{i}", "speaks", f"o{i}", "city", "") for i in range(4)]
    builder = QuestionBuilder(rows, SCHEMA)
    swapped = [builder._swapped(row, "subject", builder._random("x", i)) for i, row in enumerate(rows)]
    for row, found in zip(rows, swapped, strict=True):
        assert found is not None
        assert found.subject[0] == row.subject[0]


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ({"rob": relation("r", implies=("rib",))}, "did you mean 'rob'"),
        ({"r": RelationSchema("r")}, "no templates"),
        ({"r": RelationSchema("r", ("{subject} is.",))}, "each once"),
        ({"r": RelationSchema("r", ("{subject} {object} {",))}, "each once"),
    ],
)
def test_schemas_without_names_or_slots_are_refused(relations: dict[str, RelationSchema], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schema(relations)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "triples.tsv"
    path.write_text("a\tin\tb\na\tin\tb\na\tin\ta\nb\tnear\tc\tcity\tcity\n")
    assert [row.triple for row in read_triples(path, SCHEMA)] == [("a", "in", "b"), ("b", "near", "c")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tinn\tb\n", "triple 1: the schema lacks relation 'inn'; did you mean 'in'"),
        ("a\tin\tb\nthe [MASK]\tin\tb\n", r"triple 2: 'the \[MASK\]' is no name"),
        ("a\tin\t \n", "triple 1: ' ' is no name"),
        ("a\tin\n", "line 1: 2 columns"),
    ],
)
def test_a_line_that_is_no_triple_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "triples.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_triples(tmp_path / "triples.tsv", SCHEMA)


@pytest.mark.parametrize("name", ["kamel", "domains", "conceptnet"])
def test_bundled_schemas_are_read_by_name(name: str) -> None:
    schema = read_schema(Path(name))
    topics = {one.topic for one in schema.relations.values()}
    assert {"kamel": "biology", "domains": "law", "conceptnet": "commonsense"}[name] in topics
    assert name == "kamel" or topics <= set(KNOWLEDGE)
    with pytest.raises(InputError, match=f"no bundled schema: did you mean '{name}'"):
        read_schema(Path(f"{name}s"))


def test_assertions_of_conceptnet_in_english(tmp_path: Path) -> None:
    path = tmp_path / "assertions.csv"
    rows = [("IsA", "en/dog/n", "en/animal"), ("IsA", "fr/chien", "en/animal"), ("RelatedTo", "en/dog", "en/cat")]
    rows.append(("PartOf", "en/crust/n/wn", "en/ice_cream_pie"))
    path.write_text("".join(f"/a/[x]\t/r/{name}\t/c/{start}\t/c/{end}\t{{}}\n" for name, start, end in rows))
    found = [row.triple for row in read_triples(path, read_schema(Path("conceptnet")))]
    assert found == [("dog", "IsA", "animal"), ("crust", "PartOf", "ice cream pie")]


def test_truth_on_facts_of_kamel(data_dir: Path) -> None:
    schema = read_schema(Path("lmkbc/probe/kamel/schema.toml").resolve())
    rows = read_triples(data_dir / "kamel" / "KAMEL.tar.xz", schema)[::6]
    questions = list(QuestionBuilder(rows, schema).questions())
    assert {question.type for question in questions} == {"completion", "checking", "distinction", "reasoning"}
