"""A build's directory: whole or not there, resumed after any kill; damage is named, nobody's files are touched."""

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from bases import Base, Killed, answered, dying, failed, neighbours, tree
from command import Command

from lmkbc import InputError, KnowledgeBase, LmkbcError
from lmkbc.kb.builder import base_directory
from lmkbc.testing import CandidateSet, Query

RELATIONS = ("country-borders", "children")
NAMES = ["Chad", "Mali", "Niger", "Togo", "Benin"]


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    (tmp_path / "alone").mkdir()
    base = Base(tmp_path / "alone", NAMES)
    base.build(monkeypatch, neighbours, RELATIONS)
    assert len(base.asked) == 10
    return tree(base.out)


def test_a_build_is_a_hive_of_relations_with_a_manifest(whole: dict[str, bytes], tmp_path: Path) -> None:
    kb = tmp_path / "alone" / "kb"
    assert sorted(whole) == [
        "entities/part-000000.parquet",
        "facts/relation=children/part-000000.parquet",
        "facts/relation=country-borders/part-000000.parquet",
        "manifest.json",
        "nothing/part-000000.parquet",
        "subjects/part-000000.parquet",
    ]
    facts = pl.scan_parquet(kb / "facts").collect()
    assert facts.group_by("relation").len().sort("relation").rows() == [("children", 4), ("country-borders", 10)]
    assert pl.scan_parquet(kb / "nothing").collect()["subject"].to_list() == ["Togo"]
    manifest = json.loads(whole["manifest.json"])
    assert manifest["counts"] == {
        "subjects": 5,
        "queries": 10,
        "facts": 14,
        "linked": 5,
        "stated_by_labels": 0,
        "quoted": 0,
        "nothing": 1,
        "failed": 0,
        "below_least": 0,
    }
    assert manifest["of_relations"]["children"] == {
        "facts": 4,
        "linked": 0,
        "stated_by_labels": 0,
        "quoted": 0,
        "nothing": 1,
        "failed": 0,
        "below_least": 0,
    }
    assert facts["run"].unique().to_list() == [manifest["run"]]


def test_the_same_again_asks_nothing_and_changes_nothing(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Base(tmp_path / "alone", NAMES)
    timing = (base.out / "timing.json").read_bytes()
    base.build(monkeypatch, neighbours, RELATIONS)
    assert (tree(base.out), base.asked) == (whole, [])
    assert (base.out / "timing.json").read_bytes() == timing


def readable(kb: Path) -> bool:
    """Return whether a reader takes the directory for a whole knowledge base: then it has to be one."""
    return (kb / "manifest.json").is_file() and not (kb / ".lmkbc-ready").exists()


@pytest.mark.whole(but=["-21"])
@pytest.mark.kill
@pytest.mark.parametrize(
    ("again", "step"),
    [("", 21), ("failed", 21), *(pytest.param(*case, marks=pytest.mark.whole) for case in (("", 4), ("failed", 9)))],
)
def test_killed_at_any_moment_it_goes_on_and_ends_alike(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str, step: int
) -> None:
    """again: of a finished build of which some queries had failed."""

    def first(query: Query) -> CandidateSet:
        return failed(query) if query.subject == "Benin" else neighbours(query)

    for moment in range(9 % step, 300, step):
        folder = tmp_path / f"{moment}"
        folder.mkdir()
        base = Base(folder, NAMES)
        if again:
            base.build(monkeypatch, first, RELATIONS)
            base.asked.clear()
            assert len(pl.read_parquet(base.out / "missing")) == 2
        with monkeypatch.context() as patch:
            calls = dying(patch, moment)
            with suppress(Killed):
                base.build(patch, neighbours, RELATIONS)
            assert calls() > 0
        ended = calls() <= moment
        if readable(base.out) and not again:
            assert {name: content for name, content in tree(base.out).items() if "unfinished" not in name} == whole
        elif not again:
            assert not (base.out / "facts").exists() or (base.out / ".lmkbc-ready").exists()
        base.build(monkeypatch, neighbours, RELATIONS)
        assert tree(base.out) == whole
        assert len(base.asked) <= (6 if again else 10) + base.shard
        if ended:
            assert moment > 20
            return
    pytest.fail("it never ended")


def test_failed_queries_are_missing_and_asked_again_alone(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Base(tmp_path, NAMES)

    def without(query: Query) -> CandidateSet:
        return (
            failed(query) if (query.subject, query.relation) == ("Chad", "CountryBordersCountry") else neighbours(query)
        )

    made = base.build(monkeypatch, without, RELATIONS)
    assert made["counts"] == {
        "subjects": 5,
        "queries": 10,
        "facts": 12,
        "linked": 4,
        "stated_by_labels": 0,
        "quoted": 0,
        "nothing": 1,
        "failed": 1,
        "below_least": 0,
    }
    missing = pl.read_parquet(base.out / "missing").row(0, named=True)
    assert (missing["subject"], missing["subject_id"], missing["reason"]) == ("Chad", "Q1", "missing")
    base.asked.clear()
    assert base.build(monkeypatch, neighbours, RELATIONS)["counts"]["failed"] == 0
    assert [query.subject for query in base.asked] == ["Chad"]
    assert tree(base.out) == whole


@pytest.mark.parametrize("files", [1, 6])
def test_after_a_full_disk_a_build_goes_on(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    base = Base(tmp_path, NAMES)
    real, left = os.fsync, iter(range(files))

    def full(handle: int) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LmkbcError, match=r"kb.* No space left on device; "):
            base.build(patch, neighbours, RELATIONS)
    assert not (base.out / "facts").exists()
    assert not [*base.out.rglob(".*")]
    asked = len(base.asked)
    base.build(monkeypatch, neighbours, RELATIONS)
    assert len(base.asked) <= asked + 10
    assert tree(base.out) == whole


def test_another_build_or_anyone_s_files_are_not_touched(
    whole: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Base(tmp_path / "alone", NAMES)
    with pytest.raises(InputError, match="a finished build of other inputs, which differ in limit: give the same"):
        base.build(monkeypatch, neighbours, RELATIONS, limit=3)
    assert tree(base.out) == whole

    def meanwhile(query: Query) -> CandidateSet:
        other = Base(tmp_path, NAMES)
        with pytest.raises(InputError, match="another run is writing"):
            other.build(monkeypatch, neighbours, RELATIONS)
        return neighbours(query)

    (tmp_path / "kb").mkdir()
    Base(tmp_path, NAMES).build(monkeypatch, meanwhile, RELATIONS)
    assert tree(tmp_path / "kb") == whole
    base.out = tmp_path / "mine"
    base.out.mkdir()
    (base.out / "facts").write_text("my own")
    with pytest.raises(InputError, match="holds files that are of no build, first 'facts'"):
        base.build(monkeypatch, neighbours, RELATIONS)
    assert tree(base.out) == {"facts": b"my own"}


def test_a_build_that_wrote_nothing_yet_gives_way_to_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path, NAMES)

    def breaks(query: Query) -> CandidateSet:
        raise InputError("a model is lacking")

    with pytest.raises(InputError, match="a model is lacking"):
        base.build(monkeypatch, breaks, RELATIONS)
    assert base.build(monkeypatch, neighbours, RELATIONS, limit=3)["inputs"]["limit"] == 3


LANDS = [f"Land {n}" for n in range(10)]
QUERIES = len(LANDS) * len(RELATIONS)


@pytest.fixture
def lands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    """Of shards of four queries, and parts of six rows."""
    monkeypatch.setattr(base_directory, "ROWS", 6)
    return Base(tmp_path, LANDS)


@pytest.fixture
def undamaged(tmp_path: Path, lands: Base, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of the same base that nobody damaged."""
    (tmp_path / "alone").mkdir()
    alone = Base(tmp_path / "alone", LANDS)
    alone.build(monkeypatch, neighbours, RELATIONS)
    return tree(alone.out)


def begin(lands: Base, monkeypatch: pytest.MonkeyPatch, queries: int) -> None:
    """Build, and stop after so many queries."""

    def some(query: Query) -> CandidateSet:
        if len(lands.asked) > queries:
            raise Killed
        return neighbours(query)

    with pytest.raises(Killed):
        lands.build(monkeypatch, some, RELATIONS)
    lands.asked.clear()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def swap(path: Path) -> None:
    """With the next of its kind."""
    other = next(one for one in sorted(path.parent.iterdir()) if one > path)
    mine, its = path.read_bytes(), other.read_bytes()
    path.write_bytes(its)
    other.write_bytes(mine)


SHARD = "unfinished/000001.shard"


@pytest.mark.whole(but=["cut-1", "unlink-1"])
@pytest.mark.parametrize(("damage", "lost"), [(flip, 1), (cut, 1), (swap, 2), (Path.unlink, 1)])
def test_a_damaged_shard_of_an_unfinished_build_is_asked_again(
    lands: Base,
    undamaged: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], object],
    lost: int,
) -> None:
    begin(lands, monkeypatch, 13)  # three shards are written
    damage(lands.out / SHARD)
    lands.build(monkeypatch, neighbours, RELATIONS)
    assert tree(lands.out) == undamaged
    assert len(lands.asked) == QUERIES - (3 - lost) * lands.shard


def test_levels_below_a_damaged_one_are_asked_anew(lands: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts may name other subjects once they are asked again."""
    names = {"old": "x"}

    def neighbour(query: Query) -> CandidateSet:
        if len(lands.asked) > 25:
            raise Killed
        return answered(query, (f"{names['old']} of {query.subject}", None, 0.9))

    with pytest.raises(Killed):
        lands.build(monkeypatch, neighbour, RELATIONS[:1], grow=2)
    flip(lands.out / SHARD)
    names["old"] = "y"
    lands.asked.clear()
    made = lands.build(monkeypatch, neighbour, RELATIONS[:1], grow=2)
    assert [level["subjects"] for level in made["graph"]["levels"]] == [len(LANDS)] * 3
    second = [query.subject for query in lands.asked][4 : 4 + len(LANDS)]
    assert [name[0] for name in second] == ["x"] * 4 + ["y"] * 4 + ["x"] * 2


def outputs(lands: Base) -> list[str]:
    return sorted(json.loads((lands.out / "manifest.json").read_text())["outputs"])


@pytest.mark.whole(but=["flip"])
@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
def test_a_damaged_file_of_a_finished_base_is_refused(
    lands: Base, monkeypatch: pytest.MonkeyPatch, command: Command, damage: Callable[[Path], object]
) -> None:
    lands.build(monkeypatch, neighbours, RELATIONS)
    name = next(one for one in outputs(lands) if one.startswith("facts"))
    damage(lands.out / name)
    with pytest.raises(
        InputError, match=f"1 of 11 files are damaged or gone, first {name}: build into a new directory"
    ):
        lands.build(monkeypatch, neighbours, RELATIONS)
    assert "build into a new directory" in command.fails(
        "export", str(lands.out), "--format", "ntriples", "--out", "x.nt"
    )


@pytest.mark.parametrize("place", ["manifest.json", "unfinished/manifest.json"])
def test_a_manifest_that_is_damaged_is_told(lands: Base, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    if "unfinished" in place:
        begin(lands, monkeypatch, 13)
    else:
        lands.build(monkeypatch, neighbours, RELATIONS)
    content = (lands.out / place).read_bytes()
    (lands.out / place).write_bytes(content.replace(b'"P47"', b'"P46"'))
    before = tree(lands.out)
    with pytest.raises(InputError, match=r"is damaged \(its SHA-256 is another\): build into a new directory"):
        lands.build(monkeypatch, neighbours, RELATIONS)
    assert tree(lands.out) == before
    (lands.out / place).write_bytes(content)
    lands.build(monkeypatch, neighbours, RELATIONS)


def test_nothing_is_removed_that_is_not_the_build_s(
    lands: Base, undamaged: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(lands, monkeypatch, 13)
    mine = dict.fromkeys(("unfinished/mine.txt", "unfinished/facts/.hidden", "notes.txt"), b"mine")
    for name, content in mine.items():
        (lands.out / name).parent.mkdir(parents=True, exist_ok=True)
        (lands.out / name).write_bytes(content)
    for _ in range(2):
        lands.build(monkeypatch, neighbours, RELATIONS)
        assert tree(lands.out) == undamaged | mine


def test_only_what_the_manifest_lists_is_read(lands: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lands.build(monkeypatch, neighbours, RELATIONS)
    before = KnowledgeBase(lands.out, made).facts.collect()
    part = lands.out / outputs(lands)[0]
    part.with_name("part-000099.parquet").write_bytes(part.read_bytes())
    assert KnowledgeBase(lands.out, made).facts.collect().equals(before)
