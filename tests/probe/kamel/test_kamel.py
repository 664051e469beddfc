"""Reading KAMEL, its prompts, and data in its layout that are built from triples."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from asked_kamel import asked, written
from command import Command
from rows import jsonl

from lmkbc.probe.kamel import kamel_data as kamel

LANDS: Mapping[str, list[str]] = {f"land {i}": [f"town {i}", f"city {i}"] for i in range(30)}


def test_a_broken_line_is_logged_and_skipped_in_a_tree_and_an_archive(command: Command, tmp_path: Path) -> None:
    root = written(tmp_path / "KAMEL", P36={"train": LANDS})
    file = root / "P36" / "train.jsonl"
    lines = file.read_text().splitlines()
    jsonl(file, [*lines[:2], '{"index": [1], "sub_label": "x"', *lines[2:]])
    named = {"rdf": "Nuuk", "chosen": "Nuuk", "alternative": ["Godthab"]}
    literal = {"rdf": None, "chosen": "1976", "alternative": ["June 1976", "1976"]}
    jsonl(root / "P36" / "test.jsonl", [{"sub_label": "G", "obj_uri": ["Q1"], "obj_label": [named, literal]}])
    archive = tmp_path / "KAMEL.tar.xz"
    with tarfile.open(archive, "w:xz") as packed:
        packed.add(root, "KAMEL")
        evil = tarfile.TarInfo("../escaped/P1/train.jsonl")
        evil.type = tarfile.SYMTYPE
        evil.linkname = "/etc/passwd"
        packed.addfile(evil, io.BytesIO())
    for path in (root, archive):
        words = ("--shots", 30, "--json")
        found, told, bodies = asked(command, path, lambda _: "godthab;june 1976", *words, names=["P36"])
        assert "skipped P36/train.jsonl, line 3:" in told
        assert found["published"]["properties"] == {"P36": {"p": 1.0, "r": 1.0, "f1": 1.0, "count": 1}}
        assert found["published, labels only"]["overall"]["r"] == 0.5
        assert all(len(body["messages"]) == 1 + 2 * 30 + 1 for body in bodies)


def test_what_is_no_kamel_is_refused(command: Command, tmp_path: Path) -> None:
    run = command.under("probe", "kamel", "--model", "m")
    (tmp_path / "x.tar.xz").write_bytes(b"no archive")
    assert "does not hold" in run.fails(tmp_path)
    assert "cannot be read as KAMEL" in run.fails(tmp_path / "x.tar.xz")


@pytest.mark.whole
def test_the_official_archive(data_dir: Path) -> None:
    found = kamel.read_kamel(data_dir / "kamel" / "KAMEL.tar.xz", splits=("test",))
    assert (len(found.properties), sum(map(len, found.facts.values()))) == (234, 46_800)
    questions = kamel.questions()
    assert set(found.properties) == set(questions)
    assert all(question.count("{subject}") == 1 and question.endswith("?") for question in questions.values())
    assert len(kamel.LAMA & set(found.properties)) == len(kamel.LAMA) == 40
    literal = {name for name in found.properties if all(o.literal for f in found.of(name, "test") for o in f.objects)}
    assert {"P569", "P570", "P1082"} <= literal
    assert not {"P36", "P47"} & literal


def test_questions_of_a_file(command: Command, tmp_path: Path) -> None:
    data = written(tmp_path / "KAMEL", P36={"test": {"<G>": ["x"]}}, P50={"test": {"<H>": ["y"]}})
    path = tmp_path / "own.csv"
    path.write_text('property,question\nP36, What town, if any, is the capital of [S]?\nP50,"Who wrote {subject}?"\n')
    _, _, bodies = asked(command, data, str, "--shots", 0, "--templates", path)
    assert {body["messages"][-1]["content"] for body in bodies} == {
        "What town, if any, is the capital of <G>?",
        "Who wrote <H>?",
    }
    path.write_text("P36,What is the capital?\n")
    said = command.fails("probe", "kamel", data, "--model", "m", "--templates", path)
    assert "line 1: 'What is the capital?' needs {subject} (or [S], [X]) exactly once" in said


def solved(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the examples that a request shows: question and answer."""
    turns = [turn["content"] for turn in body["messages"]]
    return list(zip(turns[1:-1:2], turns[2:-1:2], strict=True))


def test_prompts_have_the_papers_form_and_never_the_own_subject(command: Command, tmp_path: Path) -> None:
    data = written(tmp_path / "KAMEL", P36={"train": LANDS, "test": LANDS})
    heads = {}
    for how in ("--fixed", "--random"):
        sent = [asked(command, data, str, "--shots", 3, how)[2] for _ in range(2)]
        assert len(sent[0]) == 30
        first, again = ({json.dumps(body["messages"]) for body in bodies} for bodies in sent)
        assert first == again
        for body in sent[0]:
            own = body["messages"][-1]["content"]
            shown = solved(body)
            assert len({question for question, _ in shown} - {own}) == 3
            for question, answer in shown:
                number = question.removeprefix("P36 of <land ").removesuffix(">?")
                assert answer == f"town {number}; city {number}"
        heads[how] = {json.dumps(solved(body)) for body in sent[0]}
    assert len(heads["--fixed"]) == 1 + 3  # one for all, but for the subjects that are themselves examples
    assert len(heads["--random"]) > 20


def test_what_a_model_reads_is_known_to_the_character(command: Command, tmp_path: Path) -> None:
    facts = {"train": {"Peru": ["Lima", "Cusco"]}, "test": {"<Utopia>": ["x"]}}
    data = written(tmp_path / "KAMEL", P36=facts)
    plain = tmp_path / "plain.csv"
    plain.write_text("P36,Capital of {subject}?\n")
    words = ("--shots", 1, "--templates", plain)
    (body,) = asked(command, data, str, *words, "--form", "completion")[2]
    assert body["prompt"] == "Capital of Peru? Lima; Cusco%\nCapital of <Utopia>?"
    (body,) = asked(command, data, str, *words)[2]
    assert [(turn["role"], turn["content"]) for turn in body["messages"]] == [
        ("system", "Answer each question with names, years or numbers alone, parted by semicolons."),
        ("user", "Capital of Peru?"),
        ("assistant", "Lima; Cusco"),
        ("user", "Capital of <Utopia>?"),
    ]


def test_a_subject_spelt_otherwise_is_still_the_own_subject(command: Command, tmp_path: Path) -> None:
    train = {name: ["x"] for name in ("LAND 0", "land-0", "Land 1", "Land 2")}
    data = written(tmp_path / "KAMEL", P36={"train": train, "test": {"land 0": ["x"]}})
    for how in ("--fixed", "--random"):
        (body,) = asked(command, data, str, "--shots", 2, how)[2]
        assert {question for question, _ in solved(body)} == {"P36 of <Land 1>?", "P36 of <Land 2>?"}
        words = ("--model", "m", "--shots", 3, how, "--templates", tmp_path / "templates.csv")
        assert "too few for 3 shots" in command.fails("probe", "kamel", data, *words)


QUOTA = {"train": 3, "dev": 1, "test": 2}
Triple = tuple[str, str, str, list[str]]
CAPITALS: list[Triple] = [(f"land {n}", "P36", f"town {n}", [f"city {n}", f"town {n}"]) for n in range(8)]
BIRTHS: list[Triple] = [(f"person {n}", "P569", str(1900 + n), [f"1 May {1900 + n}"]) for n in range(6)]
NEIGHBOURS: list[Triple] = [("land 0", "P47", f"land {n}", []) for n in range(1, 12)]
PARTS: list[Triple] = [
    ("Luxembourg City, capital", "P36", "luxembourg city", []),
    ("Springfield, Illinois", "P36", "Springfield", []),
    ("University of New York City", "P36", "new york", []),
]
WHOLE: list[Triple] = [("Yorkshire", "P36", "York", []), ("New City", "P36", "City New", [])]


@pytest.fixture
def build(command: Command, tmp_path: Path) -> Any:
    def built(rows: list[Triple], out: str, *options: object) -> dict[str, dict[str, int]]:
        fields = ("subject", "relation", "object", "object_aliases")
        triples = jsonl(tmp_path / "t.jsonl", (dict(zip(fields, row, strict=True)) for row in rows))
        sizes = [word for name, size in QUOTA.items() for word in (f"--{name}", size)]
        words = ("probe", "kamel-build", triples, "--out", tmp_path / out, *sizes, *options, "--json")
        values: dict[str, dict[str, int]] = json.loads(command.done(*words)[0])
        return values

    return built


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_filter_is_counted_and_the_rest_is_in_kamels_layout(build: Any, tmp_path: Path) -> None:
    counts = build([*CAPITALS, CAPITALS[0], *PARTS, *BIRTHS, *NEIGHBOURS], "out")
    assert [one["removed"] for one in counts.values()] == [1, 3, 11, 0, 2]
    assert list(counts.values())[-1] == {"removed": 2, "facts": 12, "queries": 12, "properties": 2}
    for name in ("P36", "P569"):
        assert {split: len(lines(tmp_path / "out" / name / f"{split}.jsonl")) for split in QUOTA} == QUOTA
    rows = [row for split in QUOTA for row in lines(tmp_path / "out" / "P36" / f"{split}.jsonl")]
    assert len({row["sub_label"] for row in rows}) == 6
    number = rows[-1]["sub_label"].split()[1]
    assert rows[-1]["obj_label"] == [
        {"rdf": f"town {number}", "chosen": f"town {number}", "alternative": [f"city {number}"]}
    ]
    born = lines(tmp_path / "out" / "P569" / "test.jsonl")[0]
    year = str(1900 + int(born["sub_label"].split()[1]))
    assert born["obj_label"] == [{"rdf": None, "chosen": year, "alternative": [f"1 May {year}", year]}]
    assert lines(tmp_path / "out" / "P569" / "train.jsonl")[0]["obj_label"][0].startswith("190")


def test_an_object_is_part_of_a_subjects_name_as_whole_words(build: Any) -> None:
    counts = build([*CAPITALS, *PARTS, *WHOLE], "out")
    assert counts["object within its subject's name"]["removed"] == len(PARTS)


def test_the_same_seed_writes_the_same_bytes_and_another_draws_others(build: Any, tmp_path: Path) -> None:
    for name, rows, seed in (
        ("one", CAPITALS, 0),
        ("same", CAPITALS, 0),
        ("turned", CAPITALS[::-1], 0),
        ("other", CAPITALS, 1),
    ):
        build(rows, name, "--seed", seed)
    files = {name: (tmp_path / name / "P36" / "test.jsonl").read_bytes() for name in ("one", "same", "other")}
    assert files["one"] == files["same"] != files["other"]
    one, again = (
        [row["sub_label"] for row in lines(tmp_path / name / "P36" / "test.jsonl")] for name in ("one", "turned")
    )
    assert one == again


def test_what_cannot_be_built_is_refused(build: Any, command: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(CAPITALS, "out")
    build_of = ("probe", "kamel-build", tmp_path / "t.jsonl", "--out")
    assert "no property has 1400 queries" in command.fails(*build_of, tmp_path / "new")
    stranger = out / "P569" / "train.jsonl"
    stranger.parent.mkdir()
    stranger.write_text("mine")
    fields = ("subject", "relation", "object", "object_aliases")
    jsonl(tmp_path / "t.jsonl", (dict(zip(fields, row, strict=True)) for row in [*CAPITALS, *BIRTHS]))
    sizes = [word for name, size in QUOTA.items() for word in (f"--{name}", size)]
    assert "in its way" in command.fails(*build_of, out, *sizes)
    assert stranger.read_text() == "mine"
    (tmp_path / "t.tsv").write_text("a\tcapital\tb\n")
    assert "'capital' is no property" in command.fails(*build_of[:2], tmp_path / "t.tsv", "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_filter_finds_nothing_in_what_the_authors_filtered(data_dir: Path, build: Any) -> None:
    data = kamel.read_kamel(data_dir / "kamel" / "KAMEL.tar.xz", properties=["P36", "P131"], splits=("test",))
    facts = [fact for own in data.facts.values() for fact in own]
    counts = build([(fact.subject, fact.property, one.shown, []) for fact in facts for one in fact.objects], "out")
    assert counts["object within its subject's name"]["removed"] == 0
    assert [*counts.values()][-2]["properties"] == 2
