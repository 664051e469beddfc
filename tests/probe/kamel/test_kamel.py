"""Reading KAMEL, its prompts, and a run that goes on where a killed one stopped."""

import hashlib
import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from rows import jsonl

from lmkbc import InputError
from lmkbc.models.base import Form
from lmkbc.probe.benchmark import BenchmarkRun
from lmkbc.probe.kamel import kamel_data as kamel
from lmkbc.probe.kamel.kamel import KamelBuild, is_part, selected
from lmkbc.probe.kamel.kamel_data import KamelAnswer, KamelFact, prompts, questions
from lmkbc.probe.kmir.questions import TypedTriple

TRAIN = [KamelFact("P36", f"land {i}", (KamelAnswer(f"town {i}"), KamelAnswer(f"city {i}"))) for i in range(30)]


def tree(root: Path, rows: int = 30) -> Path:
    lines = [{"index": [i], "sub_label": f"land {i}", "obj_label": [f"town {i}"]} for i in range(rows)]
    named = {"rdf": "Nuuk", "chosen": "Nuuk", "alternative": ["Godthab"]}
    year = {"rdf": None, "chosen": "1976", "alternative": ["June 1976", "1976"]}
    test = [{"sub_label": name, "obj_uri": ["Q1"], "obj_label": [named, year]} for name in ("G", "land 3")]
    folder = jsonl(root / "KAMEL/P36/train.jsonl", [*lines[:2], '{"index": [1], "sub_label": "x"', *lines[2:]]).parent
    jsonl(folder / "dev.jsonl", lines[:1])
    jsonl(folder / "test.jsonl", test)
    return root / "KAMEL"


def test_a_broken_line_is_logged_and_skipped_in_a_tree_and_an_archive(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="lmkbc")
    root = tree(tmp_path)
    archive = tmp_path / "KAMEL.tar.xz"
    with tarfile.open(archive, "w:xz") as file:
        file.add(root, "KAMEL")
        evil = tarfile.TarInfo("../escaped/P1/train.jsonl")
        evil.type = tarfile.SYMTYPE
        evil.linkname = "/etc/passwd"
        file.addfile(evil, io.BytesIO())
    for path in (root, archive):
        found = kamel.read_kamel(path)
        assert len(found.of("P36", "train")) == 30
        assert "skipped P36/train.jsonl, line 3:" in caplog.messages[-1]
        answer, year = found.of("P36", "test")[0].objects
        assert (answer.label, answer.alternatives, answer.literal) == ("Nuuk", ("Godthab",), False)
        assert (year.literal, year.shown) == (True, "1976")
        assert found.properties == ["P36"]


def test_what_is_no_kamel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not hold"):
        kamel.read_kamel(tmp_path)
    (tmp_path / "x.tar.xz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="cannot be read as KAMEL"):
        kamel.read_kamel(tmp_path / "x.tar.xz")
    with pytest.raises(InputError, match="no test split of 'P37'"):
        kamel.read_kamel(tree(tmp_path)).of("P37", "test")


def test_the_official_archive(data_dir: Path) -> None:
    found = kamel.read_kamel(data_dir / "kamel" / "KAMEL.tar.xz", splits=("test",))
    assert (len(found.properties), sum(map(len, found.facts.values()))) == (234, 46_800)
    assert set(found.properties) == set(questions())
    assert len(kamel.LAMA & set(found.properties)) == len(kamel.LAMA) == 40
    literal = {name for name in found.properties if all(o.literal for f in found.of(name, "test") for o in f.objects)}
    assert {"P569", "P570", "P1082"} <= literal
    assert not {"P36", "P47"} & literal


def test_our_questions_and_those_of_a_file(tmp_path: Path) -> None:
    assert all(question.count("{subject}") == 1 and question.endswith("?") for question in questions().values())
    path = tmp_path / "templates.csv"
    path.write_text('property,question\nP36, What town, if any, is the capital of [S]?\nP50,"Who wrote {subject}?"\n')
    assert questions(path) == {
        "P36": "What town, if any, is the capital of {subject}?",
        "P50": "Who wrote {subject}?",
    }
    path.write_text("P36,What is the capital?\n")
    with pytest.raises(InputError, match=r"line 1: .* exactly once"):
        questions(path)


def test_prompts_have_the_papers_form_and_never_the_own_subject() -> None:
    wording = {"P36": "Capital of {subject}?"}
    for fixed in (False, True):
        made = texts(wording, fixed)
        assert made == texts(wording, fixed)
        for fact, text in made:
            *solved, question = text.split("\n")
            assert question == f"Capital of {fact.subject}?"
            assert len(solved) == 3
            assert not any(line.startswith(question) for line in solved)
            assert all(line.split("? ")[1].endswith("%") and "; city" in line for line in solved)
    # one head for all, but for the subjects that are themselves examples
    assert len({text.rsplit("\n", 1)[0] for _, text in made}) == 1 + 3
    assert len({text.rsplit("\n", 1)[0] for _, text in texts(wording, fixed=False)}) > 20
    assert next(prompts(TRAIN[:1], TRAIN, {"P36": "{subject}"}, 0))[1].text == "land 0"


def test_a_subject_spelt_otherwise_is_still_the_own_subject() -> None:
    train = [KamelFact("P36", name, (KamelAnswer("x"),)) for name in ("LAND 0", "land-0", "Land 1", "Land 2")]
    asked = KamelFact("P36", "land 0", (KamelAnswer("x"),))
    for fixed in (False, True):
        (_, prompt), *_ = prompts([asked], train, {"P36": "{subject}?"}, 2, fixed=fixed)
        assert sorted(prompt.text.splitlines()) == ["Land 1? x%", "Land 2? x%", "land 0?"]
        with pytest.raises(InputError, match="too few for 3 shots"):
            list(prompts([asked], train, {"P36": "{subject}?"}, 3, fixed=fixed))


def texts(wording: dict[str, str], fixed: bool) -> list[tuple[KamelFact, str]]:
    return [(fact, prompt.text) for fact, prompt in prompts(TRAIN, TRAIN, wording, 3, fixed=fixed)]


@pytest.mark.parametrize(
    ("form", "digest"),
    [
        ("chat", "44cf107bb1c5778c9aa1ec6320e56230878da5e20cc7c5c830e88caced5b292c"),
        ("completion", "b70dbb862b712e297bc55aa0cdbed0f64ab5cc2c8a85aa9727f584efab5056a9"),
    ],
)
def test_what_a_model_reads_is_known_to_the_character(form: Form, digest: str) -> None:
    texts = []
    for name in ("P36", "P47", "P569"):
        train = [KamelFact(name, f"land {row}", (KamelAnswer(f"a {row}"), KamelAnswer("b"))) for row in range(3)]
        asked = KamelFact(name, "Utopia", (KamelAnswer("x"),))
        texts += [prompt.text for _, prompt in prompts([asked], train, questions(), 2, form=form)]
    assert hashlib.sha256("\0".join(texts).encode()).hexdigest() == digest


QUOTA = {"train": 3, "dev": 1, "test": 2}
CAPITALS = [TypedTriple(f"land {n}", "P36", f"town {n}", object_aliases=(f"city {n}", f"town {n}")) for n in range(8)]
BIRTHS = [TypedTriple(f"person {n}", "P569", str(1900 + n), object_aliases=(f"1 May {1900 + n}",)) for n in range(6)]
NEIGHBOURS = [TypedTriple("land 0", "P47", f"land {n}") for n in range(1, 12)]
ROWS = [*CAPITALS, CAPITALS[0], TypedTriple("Luxembourg City, capital", "P36", "luxembourg city"), *BIRTHS, *NEIGHBOURS]


def written(path: Path, rows: Sequence[TypedTriple]) -> Path:
    fields = ("subject", "relation", "object", "object_aliases")
    return jsonl(path, ({name: getattr(row, name) for name in fields} for row in rows))


def built(triples: Path, out: Path, seed: int = 0) -> dict[str, dict[str, int]]:
    values: dict[str, dict[str, int]] = (
        KamelBuild(triples=triples, out=out, seed=seed, **QUOTA).run(BenchmarkRun()).values
    )
    return values


def test_each_filter_is_counted_and_kamels_reader_reads_the_rest(tmp_path: Path) -> None:
    counts = built(written(tmp_path / "t.jsonl", ROWS), tmp_path / "out")
    assert [one["removed"] for one in counts.values()] == [1, 1, 11, 0, 2]
    assert list(counts.values())[-1] == {"removed": 2, "facts": 12, "queries": 12, "properties": 2}
    data = kamel.read_kamel(tmp_path / "out")
    assert data.properties == ["P36", "P569"]
    assert {split: len(data.of("P36", split)) for split in kamel.SPLITS} == QUOTA
    subjects = [fact.subject for split in kamel.SPLITS for fact in data.of("P36", split)]
    assert len(set(subjects)) == len(subjects) == 6
    fact = data.of("P36", "test")[0]
    number = fact.subject.split()[1]
    assert fact.objects == (kamel.KamelAnswer(f"town {number}", (f"city {number}",), f"town {number}"),)
    (born,) = data.of("P569", "test")[0].objects
    assert (born.literal, born.label, born.alternatives) == (True, None, (f"1 May {born.shown}", born.shown))
    assert all(answer.literal for one in data.of("P569", "train") for answer in one.objects)


def test_the_same_seed_writes_the_same_bytes_and_another_draws_others(tmp_path: Path) -> None:
    first, turned = written(tmp_path / "a.jsonl", CAPITALS), written(tmp_path / "b.jsonl", CAPITALS[::-1])
    for name, source, seed in (("one", first, 0), ("same", first, 0), ("turned", turned, 0), ("other", first, 1)):
        built(source, tmp_path / name, seed)
    files = {name: (tmp_path / name / "P36" / "test.jsonl").read_bytes() for name in ("one", "same", "other")}
    assert files["one"] == files["same"] != files["other"]
    one, again = (kamel.read_kamel(tmp_path / name).facts for name in ("one", "turned"))
    assert one == again


@pytest.mark.parametrize(
    ("label", "subject", "part"),
    [
        ("Springfield", "Springfield, Illinois", True),
        ("new york", "University of New York City", True),
        ("York", "Yorkshire", False),
        ("City New", "New City", False),
    ],
)
def test_an_object_is_part_of_a_subjects_name_as_whole_words(label: str, subject: str, part: bool) -> None:
    assert is_part(label, subject) is part


def test_what_cannot_be_built_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="no property has 9 queries"):
        selected(ROWS, 9, 0)
    with pytest.raises(InputError, match="'capital' is no property"):
        built(written(tmp_path / "t.jsonl", [TypedTriple("a", "capital", "b")]), out)
    assert not out.exists()
    built(written(tmp_path / "t.jsonl", CAPITALS), out)
    stranger = out / "P569" / "train.jsonl"
    stranger.parent.mkdir()
    stranger.write_text("mine")
    with pytest.raises(InputError, match="in its way"):
        built(written(tmp_path / "t.jsonl", ROWS), out)
    assert stranger.read_text() == "mine"


def test_the_filter_finds_nothing_in_what_the_authors_filtered(data_dir: Path) -> None:
    data = kamel.read_kamel(data_dir / "kamel" / "KAMEL.tar.xz", properties=["P36", "P131"], splits=("test",))
    facts = [fact for own in data.facts.values() for fact in own]
    rows = [TypedTriple(fact.subject, fact.property, answer.shown) for fact in facts for answer in fact.objects]
    left, counts = selected(rows, 150, 0)
    assert counts["object within its subject's name"]["removed"] == 0
    assert list(map(len, left.values())) == [150, 150]
