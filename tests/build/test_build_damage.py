"""A base whose files were damaged: what is lost is asked again, the rest is kept, and nobody's files are touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from bases import Base, neighbours, tree
from command import Command

from lmkbc.api.building import KnowledgeBase
from lmkbc.build import parts
from lmkbc.errors import InputError
from lmkbc.types import CandidateSet, Query

RELATIONS = ("country-borders", "children")
NAMES = [f"Land {n}" for n in range(10)]
QUERIES = len(NAMES) * len(RELATIONS)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Base:
    """Of shards of four queries, and parts of six rows."""
    monkeypatch.setattr(parts, "ROWS", 6)
    return Base(tmp_path, NAMES)


@pytest.fixture
def whole(tmp_path: Path, base: Base, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The files of the same base that nobody damaged."""
    (tmp_path / "alone").mkdir()
    alone = Base(tmp_path / "alone", NAMES)
    alone.build(monkeypatch, neighbours, RELATIONS)
    return tree(alone.out)


class Stopped(BaseException):
    """The end of a process."""


def begin(base: Base, monkeypatch: pytest.MonkeyPatch, queries: int) -> None:
    """Build, and stop after so many queries."""

    def some(query: Query) -> CandidateSet:
        if len(base.asked) > queries:
            raise Stopped
        return neighbours(query)

    with pytest.raises(Stopped):
        base.build(monkeypatch, some, RELATIONS)
    base.asked.clear()


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


@pytest.mark.parametrize(("damage", "lost"), [(flip, 1), (cut, 1), (swap, 2), (Path.unlink, 1)])
def test_a_damaged_shard_of_an_unfinished_build_is_asked_again(
    base: Base, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], object], lost: int
) -> None:
    begin(base, monkeypatch, 13)  # three shards are written
    damage(base.out / SHARD)
    base.build(monkeypatch, neighbours, RELATIONS)
    assert tree(base.out) == whole
    assert len(base.asked) == QUERIES - (3 - lost) * base.shard


def outputs(base: Base) -> list[str]:
    return sorted(json.loads((base.out / "manifest.json").read_text())["outputs"])


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
def test_a_damaged_file_of_a_finished_base_is_refused(
    base: Base, monkeypatch: pytest.MonkeyPatch, command: Command, damage: Callable[[Path], object]
) -> None:
    base.build(monkeypatch, neighbours, RELATIONS)
    name = next(one for one in outputs(base) if one.startswith("facts"))
    damage(base.out / name)
    with pytest.raises(
        InputError, match=f"1 of 10 files are damaged or gone, first {name}: build into a new directory"
    ):
        base.build(monkeypatch, neighbours, RELATIONS)
    assert "build into a new directory" in command.fails(
        "export", str(base.out), "--format", "ntriples", "--out", "x.nt"
    )


@pytest.mark.parametrize("place", ["manifest.json", "unfinished/manifest.json"])
def test_a_manifest_that_is_damaged_is_told(base: Base, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    if "unfinished" in place:
        begin(base, monkeypatch, 13)
    else:
        base.build(monkeypatch, neighbours, RELATIONS)
    content = (base.out / place).read_bytes()
    (base.out / place).write_bytes(content.replace(b'"P47"', b'"P46"'))
    before = tree(base.out)
    with pytest.raises(InputError, match=r"is damaged \(its SHA-256 is another\): build into a new directory"):
        base.build(monkeypatch, neighbours, RELATIONS)
    assert tree(base.out) == before
    (base.out / place).write_bytes(content)
    base.build(monkeypatch, neighbours, RELATIONS)


def test_nothing_is_removed_that_is_not_the_build_s(
    base: Base, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(base, monkeypatch, 13)
    mine = dict.fromkeys(("unfinished/mine.txt", "unfinished/facts/.hidden", "notes.txt"), b"mine")
    for name, content in mine.items():
        (base.out / name).parent.mkdir(parents=True, exist_ok=True)
        (base.out / name).write_bytes(content)
    for _ in range(2):
        base.build(monkeypatch, neighbours, RELATIONS)
        assert tree(base.out) == whole | mine


def test_only_what_the_manifest_lists_is_read(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    made = base.build(monkeypatch, neighbours, RELATIONS)
    before = KnowledgeBase(base.out, made).facts.collect()
    part = base.out / outputs(base)[0]
    part.with_name("part-000099.parquet").write_bytes(part.read_bytes())
    assert KnowledgeBase(base.out, made).facts.collect().equals(before)
