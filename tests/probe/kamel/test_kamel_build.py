"""Data in KAMEL's layout, from triples: what each filter removes, and what its reader then finds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmkbc.errors import InputError
from lmkbc.probe.benchmark import Means
from lmkbc.probe.kamel import dataset
from lmkbc.probe.kamel.build import KamelBuild, is_part, selected
from lmkbc.probe.kmir.files import TypedTriple

QUOTA = {"train": 3, "dev": 1, "test": 2}
CAPITALS = [TypedTriple(f"land {n}", "P36", f"town {n}", object_aliases=(f"city {n}", f"town {n}")) for n in range(8)]
BIRTHS = [TypedTriple(f"person {n}", "P569", str(1900 + n), object_aliases=(f"1 May {1900 + n}",)) for n in range(6)]
NEIGHBOURS = [TypedTriple("land 0", "P47", f"land {n}") for n in range(1, 12)]
ROWS = [*CAPITALS, CAPITALS[0], TypedTriple("Luxembourg City, capital", "P36", "luxembourg city"), *BIRTHS, *NEIGHBOURS]


def written(path: Path, rows: Sequence[TypedTriple]) -> Path:
    fields = ("subject", "relation", "object", "object_aliases")
    path.write_text("".join(json.dumps({name: getattr(row, name) for name in fields}) + "\n" for row in rows))
    return path


def built(triples: Path, out: Path, seed: int = 0) -> dict[str, dict[str, int]]:
    values: dict[str, dict[str, int]] = KamelBuild(triples=triples, out=out, seed=seed, **QUOTA).run(Means()).values
    return values


def test_each_filter_is_counted_and_kamels_reader_reads_the_rest(tmp_path: Path) -> None:
    counts = built(written(tmp_path / "t.jsonl", ROWS), tmp_path / "out")
    assert [one["removed"] for one in counts.values()] == [1, 1, 11, 0, 2]
    assert list(counts.values())[-1] == {"removed": 2, "facts": 12, "queries": 12, "properties": 2}
    data = dataset.read(tmp_path / "out")
    assert data.properties == ["P36", "P569"]
    assert {split: len(data.of("P36", split)) for split in dataset.SPLITS} == QUOTA
    subjects = [fact.subject for split in dataset.SPLITS for fact in data.of("P36", split)]
    assert len(set(subjects)) == len(subjects) == 6
    fact = data.of("P36", "test")[0]
    number = fact.subject.split()[1]
    assert fact.objects == (dataset.KamelAnswer(f"town {number}", (f"city {number}",), f"town {number}"),)
    (born,) = data.of("P569", "test")[0].objects
    assert (born.literal, born.label, born.alternatives) == (True, None, (f"1 May {born.shown}", born.shown))
    assert all(answer.literal for one in data.of("P569", "train") for answer in one.objects)


def test_the_same_seed_writes_the_same_bytes_and_another_draws_others(tmp_path: Path) -> None:
    first, turned = written(tmp_path / "a.jsonl", CAPITALS), written(tmp_path / "b.jsonl", CAPITALS[::-1])
    for name, source, seed in (("one", first, 0), ("same", first, 0), ("turned", turned, 0), ("other", first, 1)):
        built(source, tmp_path / name, seed)
    files = {name: (tmp_path / name / "P36" / "test.jsonl").read_bytes() for name in ("one", "same", "other")}
    assert files["one"] == files["same"] != files["other"]
    one, again = (dataset.read(tmp_path / name).facts for name in ("one", "turned"))
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
    data = dataset.read(data_dir / "kamel" / "KAMEL.tar.xz", properties=["P36", "P131"], splits=("test",))
    facts = [fact for own in data.facts.values() for fact in own]
    rows = [TypedTriple(fact.subject, fact.property, answer.shown) for fact in facts for answer in fact.objects]
    left, counts = selected(rows, 150, 0)
    assert counts["object within its subject's name"]["removed"] == 0
    assert list(map(len, left.values())) == [150, 150]
