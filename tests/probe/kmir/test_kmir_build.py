"""Questions from triples: truth, derivations, uniqueness, and the errors of triples and schemas."""

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Command
from rows import jsonl

ANSWERS = 50
SPLITS = ("train", "dev", "test")
Triple = tuple[str, ...]
Rows = list[dict[str, Any]]


def relation(name: str, *more: str) -> str:
    templates = [f"<{{subject}}> {name} <{{object}}>.", f"It is said of <{{subject}}> that it {name} <{{object}}>."]
    return "\n".join([f"[relations.{name}]", f'name = "{name}"', f"templates = {json.dumps(templates)}", *more, ""])


SCHEMA = "\n".join(
    [
        relation("in", "transitive = true", 'aspect = "place"'),
        relation("near", "symmetric = true"),
        relation("holds", 'inverse = ["in"]'),
        relation("within", 'equivalent = ["in"]'),
        relation("capital", 'implies = ["holds"]'),
        relation("speaks", 'aspect = "language"'),
        '[[chains]]\nfirst = "in"\nsecond = "speaks"\nimplies = "speaks"\n',
    ]
)
RELATIONS = ("in", "near", "holds", "within", "capital", "speaks")
NAMES = [*"abcdefghijklmn", "{x}", "false"]


@pytest.fixture
def build(command: Command, tmp_path: Path) -> Any:
    """Build questions of triples, and return them by split."""

    def built(rows: Sequence[Triple], out: str = "out", seed: int = 0) -> dict[str, Rows]:
        (tmp_path / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
        (tmp_path / "s.toml").write_text(SCHEMA)
        words = ("probe", "kmir", "build", tmp_path / "t.tsv", "--schema", tmp_path / "s.toml")
        command.done(*words, "--out", tmp_path / out, "--seed", seed)
        files = {name: (tmp_path / out / f"{name}.jsonl").read_text().splitlines() for name in SPLITS}
        return {name: [json.loads(line) for line in lines] for name, lines in files.items()}

    return built


def naive_closure(rows: Sequence[Triple]) -> set[Triple]:
    """Every axiom written out, until nothing is new."""
    known = {row[:3] for row in rows}
    while True:
        fresh: set[Triple] = set()
        for s, r, o in known:
            fresh |= {(o, "near", s)} if r == "near" else set()
            fresh |= {(o, "in", s)} if r == "holds" else set()
            fresh |= {(s, "in", o)} if r == "within" else set()
            fresh |= {(s, "within", o)} if r == "in" else set()
            fresh |= {(s, "holds", o)} if r == "capital" else set()
            if r == "in":
                fresh |= {(s, q, e) for m, q, e in known if m == o and q in ("in", "speaks")}
        fresh = {triple for triple in fresh if triple[0] != triple[2]} - known
        if not fresh:
            return known
        known |= fresh


def stated(text: str) -> list[Triple]:
    """Return the triples that a text states, in the order of the text."""
    return re.findall(r"<([^<>]+)> (?:that it )?(\w+) <([^<>]+)>", text)


def random_rows(seed: int) -> list[Triple]:
    """Return triples in which places lie within later ones, so that no statement holds both ways."""
    draw = random.Random(seed)
    rows = list[Triple]()
    for _ in range(45):
        name, places = draw.choice(RELATIONS), sorted(draw.sample(range(len(NAMES)), 2))
        one, other = (NAMES[place] for place in (places[::-1] if name in ("holds", "capital") else places))
        rows.append((one, name, other))
    return list(dict.fromkeys(rows))


@pytest.mark.parametrize("seed", range(6))
def test_questions_agree_with_all_that_follows_from_the_triples(build: Any, seed: int) -> None:
    rows = random_rows(seed)
    true = naive_closure(rows)
    parts = build(rows, seed=seed)
    objects = {(s, r): {o for t, q, o in true if (t, q) == (s, r)} for s, r, _ in true}
    kinds = Counter[str]()
    for question in (one for part in parts.values() for one in part):
        kinds[question["type"]] += 1
        if question["type"] == "checking":
            (triple,) = stated(question["question"])
            assert (triple in true) == (question["answer"] == ["true"])
        if question["type"] == "distinction":
            shared = [objects.get((name, question["relation"]), set()) for name in question["options"]]
            odd = [
                name
                for place, name in enumerate(question["options"])
                if set.intersection(*shared[:place], *shared[place + 1 :]) - shared[place]
            ]
            assert odd == question["answer"]
            assert len(set(question["options"])) == 4
        if question["type"] == "reasoning":
            *premises, (subject, name, _) = stated(question["question"])
            given = [question["fact"], *question.get("premises", ())]
            assert premises == [rows[number] for number in given]
            right = objects[subject, name]
            options = question.get("options", [])
            assert [one for one in options or question["answer"] if one in right] == question["answer"]
            assert options or len(right) == 1
            assert (subject, name, *question["answer"]) in naive_closure(premises) - set(rows)
        if question["type"] == "completion":
            (triple,) = stated(question["question"])
            wanted = {one[0] if triple[0] == "[MASK]" else one[2] for one in true if fits(triple, one)}
            assert set(question["answer"]) == wanted
    assert kinds["checking"] > 40
    assert kinds["reasoning"] > 10
    told: dict[str, set[tuple[str, ...]]] = {}
    for name, part in parts.items():
        numbers = {number for one in part for number in (one["fact"], *one.get("premises", ()))}
        told[name] = {tuple(sorted((rows[number][0], rows[number][2]))) for number in numbers}
    assert not (told["train"] & told["dev"] | told["train"] & told["test"] | told["dev"] & told["test"])
    texts = {name: {one["question"] for one in part} for name, part in parts.items()}
    assert not (texts["train"] & texts["dev"] | texts["train"] & texts["test"] | texts["dev"] & texts["test"])


def fits(asked: Triple, triple: Triple) -> bool:
    return all(one in ("[MASK]", other) for one, other in zip(asked, triple, strict=True))


def test_every_axiom_is_told(build: Any) -> None:
    rows = [("a", "near", "b"), ("c", "holds", "a"), ("b", "within", "d"), ("e", "capital", "f"), ("d", "in", "g")]
    rows += [("d", "speaks", "x"), ("h", "speaks", "y"), ("h", "near", "g"), ("g", "in", "i"), ("h", "in", "j")]
    rows += [("k", "holds", "l"), ("m", "within", "n"), ("o", "capital", "p"), ("q", "in", "d")]
    questions = [one for seed in range(4) for part in build(rows, f"out{seed}", seed).values() for one in part]
    axioms = {one["axiom"] for one in questions if one["type"] == "reasoning"}
    assert axioms == {"symmetric", "inverse", "equivalent", "sub-relation", "transitive", "chain"}


def test_the_same_seed_writes_the_same_bytes(build: Any, tmp_path: Path) -> None:
    rows = [(s, "in", o) for s in "abcdef" for o in "xyz" if (ord(s) + ord(o)) % 3]
    for out, seed in (("one", 1), ("same", 1), ("other", 2)):
        build(rows, out, seed)
    one, same, other = (
        {name: (tmp_path / out / f"{name}.jsonl").read_bytes() for name in SPLITS} for out in ("one", "same", "other")
    )
    assert one == same != other


def test_what_has_very_many_answers_is_asked_for_its_other_end(build: Any) -> None:
    rows = [(f"s{number}", "speaks", f"o{number % 2}") for number in range(2 * ANSWERS + 2)]
    rows += [("x", "near", f"y{number}") for number in range(ANSWERS + 1)] + [("p", "near", "q")]
    asked = [one for part in build(rows).values() for one in part if one["type"] == "completion"]
    assert {one["relation"] for one in asked} == {"speaks", "near"}
    assert max(len(one["answer"]) for one in asked) <= ANSWERS


def test_distractors_keep_to_the_type(build: Any) -> None:
    rows = [(f"p{i}", "speaks", f"o{i}", "person", "") for i in range(4)]
    rows += [(f"c{i}", "speaks", f"o{i}", "city", "") for i in range(4)]
    questions = [one for seed in range(3) for part in build(rows, f"out{seed}", seed).values() for one in part]
    false = [one for one in questions if one["answer"] == ["false"]]
    swapped = [(stated(one["question"])[0][0], rows[one["fact"]][0]) for one in false]
    assert any(name != own for name, own in swapped)
    assert all(name[0] == own[0] for name, own in swapped)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (relation("rob", 'implies = ["rib"]'), "did you mean 'rob'"),
        ('[relations.r]\nname = "r"', "no templates"),
        ('[relations.r]\nname = "r"\ntemplates = ["{subject} is."]', "each once"),
        ('[relations.r]\nname = "r"\ntemplates = ["{subject} {object} {"]', "each once"),
    ],
)
def test_schemas_without_names_or_slots_are_refused(
    command: Command, tmp_path: Path, schema: str, message: str
) -> None:
    (tmp_path / "s.toml").write_text(schema)
    (tmp_path / "t.tsv").write_text("a\tr\tb\n")
    words = ("probe", "kmir", "build", tmp_path / "t.tsv", "--schema", tmp_path / "s.toml", "--out", tmp_path / "out")
    assert message in command.fails(*words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tin\tb\nthe [MASK]\tin\tb\n", "triple 2: 'the [MASK]' is no name"),
        ("a\tin\t \n", "triple 1: ' ' is no name"),
        ("a\tin\n", "line 1: 2 columns"),
    ],
)
def test_a_line_that_is_no_triple_is_named(command: Command, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "t.tsv").write_text(text)
    words = ("probe", "kmir", "build", tmp_path / "t.tsv", "--schema", tmp_path / "s.toml", "--out", tmp_path / "out")
    assert message in command.fails(*words)


def test_repeated_facts_and_facts_about_themselves_are_left_out(command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "t.tsv").write_text(
        "a\tin\tb\na\tin\tb\na\tin\ta\nb\tnear\tc\tcity\tcity\nd\tnear\te\tcity\tcity\nd\tin\tf\n"
    )
    words = ("probe", "kmir", "build", tmp_path / "t.tsv", "--schema", tmp_path / "s.toml", "--out", tmp_path / "out")
    assert "on 4 facts" in command.done(*words)[1]


@pytest.mark.parametrize(
    ("name", "row", "topic"),
    [("kamel", "P36", "places"), ("domains", "P1001", "law"), ("conceptnet", "IsA", "commonsense")],
)
def test_bundled_schemas_are_read_by_name(command: Command, tmp_path: Path, name: str, row: str, topic: str) -> None:
    (tmp_path / "t.tsv").write_text("".join(f"a{n}\t{row}\tb{n}\n" for n in range(4)))
    words = ("probe", "kmir", "build", tmp_path / "t.tsv", "--out", tmp_path / "out", "--schema")
    command.done(*words, name)
    lines = [line for one in SPLITS for line in (tmp_path / "out" / f"{one}.jsonl").read_text().splitlines()]
    assert {json.loads(line)["topic"] for line in lines} == {topic}
    assert f"no bundled schema: did you mean '{name}'" in command.fails(*words, f"{name}s")


def test_assertions_of_conceptnet_in_english(command: Command, tmp_path: Path) -> None:
    rows = [("IsA", "en/dog/n", "en/animal"), ("IsA", "fr/chien", "en/animal"), ("RelatedTo", "en/dog", "en/cat")]
    rows += [
        ("PartOf", "en/crust/n/wn", "en/ice_cream_pie"),
        ("PartOf", "en/leg", "en/cat"),
        ("IsA", "en/oak", "en/tree"),
    ]
    (tmp_path / "assertions.csv").write_text(
        "".join(f"/a/[x]\t/r/{name}\t/c/{start}\t/c/{end}\t{{}}\n" for name, start, end in rows)
    )
    words = ("probe", "kmir", "build", tmp_path / "assertions.csv", "--schema", "conceptnet", "--out", tmp_path / "out")
    assert "on 4 facts" in command.done(*words)[1]
    text = "".join((tmp_path / "out" / f"{one}.jsonl").read_text() for one in SPLITS)
    assert [name in text for name in ("ice cream pie", "crust", "animal", "chien", "en/", "ice_cream")] == [
        True
    ] * 3 + [False] * 3


def test_facts_of_kamel_are_triples(command: Command, tmp_path: Path) -> None:
    for name, count in (("P36", 4), ("P3", 9)):  # the schema has no P3
        facts = [{"sub_label": f"land {n}", "obj_label": [f"town {n}"]} for n in range(count)]
        jsonl(tmp_path / "KAMEL" / name / "train.jsonl", facts)
    assert "on 4 facts" in command.done("probe", "kmir", "build", tmp_path / "KAMEL", "--out", tmp_path / "out")[1]
