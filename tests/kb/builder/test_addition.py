"""An addition to a finished base: it equals the build of everything at once, asks nothing twice, and survives kills."""

import io
import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from bases import Base, Killed, answered, dying, failed, tree
from command import Command

from lmkbc import InputError, LmkbcError
from lmkbc.kb.builder import base_directory
from lmkbc.testing import CandidateSet, Query

RELATIONS = ("country-borders", "children", "country-languages", "place-of-death")
LANDS = [f"Land {n}" for n in range(14)]


def facts_of(query: Query) -> CandidateSet:
    """Answer with objects that repeat and contradict each other, often with equal confidence; sometimes with none."""
    draw = Random(f"{query.subject} {query.relation}")
    count = draw.choice((0, 1, 1, 2, 3))
    objects = [(f"Land {draw.randrange(16)}", draw.choice((None, f"Q{draw.randrange(1, 9)}"))) for _ in range(count)]
    return answered(query, *((name, qid, draw.choice((0.5, 0.9))) for name, qid in dict.fromkeys(objects)))


def listed(base: Base, names: Sequence[str], *, every_id: bool = False) -> list[str]:
    """Write the subjects of the next build, and return their lines. Some have no QID, unless all shall have one."""
    ids = {name: f"Q{at}" if every_id or at % 3 else "" for at, name in enumerate(LANDS, start=1)}
    lines = [f"{name},{ids[name]}\n" for name in names]
    base.file.write_text("".join(["name,id\n", *lines]))
    return lines


def tables(out: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of a base, without the id of the build that made a row."""
    files = {name: content for name, content in tree(out).items() if name.endswith(".parquet")}
    return {name: pl.read_parquet(io.BytesIO(content)).select(pl.exclude("run")) for name, content in files.items()}


SEEDS = [3, *(pytest.param(seed, marks=pytest.mark.whole) for seed in range(12) if seed != 3)]


@pytest.mark.parametrize("seed", SEEDS)
def test_additions_give_the_base_of_one_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    draw = Random(seed)
    monkeypatch.setattr(base_directory, "ROWS", draw.choice((3, 7, 1 << 16)))
    (tmp_path / "one").mkdir()
    base, one = Base(tmp_path, [], shard=draw.choice((1, 4, 9))), Base(tmp_path / "one", [], shard=5)
    one.shard = base.shard
    base.writes = one.writes = lambda query: f"{query.subject}, {query.relation}: \ud800 <b>"
    order = draw.sample(LANDS, len(LANDS))
    cuts = [*sorted(draw.sample(range(1, len(LANDS)), 2)), len(LANDS)]
    relations = sorted(draw.sample(RELATIONS, draw.randrange(1, 4)))
    lost = {(draw.choice(LANDS), name) for name in ("CountryBordersCountry", "PersonHasNumberOfChildren")}

    def fails(query: Query) -> CandidateSet:
        return failed(query) if (query.subject, query.relation) in lost else facts_of(query)

    lines = list[str]()
    for step, end in enumerate(cuts):
        some = order[draw.randrange(end) if step else 0 : end]  # a file may repeat what the base has
        lines += listed(base, some, every_id=step > 0 and seed % 2 > 0)
        relations = list(dict.fromkeys([*relations, *(draw.sample(RELATIONS, 1) if step else ())]))
        made = base.build(monkeypatch, fails if step == 0 else facts_of, relations, add=step > 0)
    one.file.write_text("".join(["name,id\n", *lines]))
    one.build(monkeypatch, facts_of, relations)
    mine, theirs = tables(base.out), tables(one.out)
    assert any(name.startswith("replies/") for name in mine)
    assert mine.keys() == theirs.keys()
    for name, table in mine.items():
        assert table.equals(theirs[name]), name
    again = Counter(base.asked) - Counter(one.asked)
    again = Counter(
        {query: n for query, n in again.items() if query.subject_id or seed % 2 == 0}
    )  # the others got a QID
    assert {(query.subject, query.relation) for query in again} <= lost
    assert again.total() <= len(lost)
    assert made["counts"] == json.loads((one.out / "manifest.json").read_text())["counts"]
    assert [step["after"] for step in made["additions"]][1:] == [step["run"] for step in made["additions"]][:-1]


def test_what_was_added_is_recorded_and_the_same_again_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Base(tmp_path, [])
    listed(base, LANDS[:5])
    first = base.build(monkeypatch, facts_of, RELATIONS[:1])
    listed(base, LANDS[3:8])
    second = base.build(monkeypatch, facts_of, RELATIONS[:2], add=True)
    about = {"after": first["run"], "subjects": 3, "relations": ["children"], "system": "stub", "model": None}
    assert second["additions"] == [{"run": second["run"], **about}]
    facts = pl.concat(pl.read_parquet(path) for path in base.out.glob("facts/*/*"))
    assert {*facts["run"]} == {first["run"], second["run"]}
    timing = json.loads((base.out / "timing.json").read_text())
    assert [one["run"] for one in timing["earlier"]] == [first["run"]]
    before, asked = tree(base.out), len(base.asked)
    for _ in range(2):
        base.build(monkeypatch, facts_of, RELATIONS[:2], add=True)
        assert (tree(base.out), len(base.asked)) == (before, asked)


@pytest.mark.whole(but=["another addition"])
@pytest.mark.parametrize("other", [LANDS[5:7], LANDS[3:8]], ids=["another addition", "the same addition"])
def test_an_addition_that_ended_meanwhile_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Sequence[str]
) -> None:
    base = Base(tmp_path, LANDS[:3])
    base.build(monkeypatch, facts_of, RELATIONS[:1])
    prepared = base_directory.Directory.held

    def late(directory: base_directory.Directory) -> Any:
        monkeypatch.setattr(base_directory.Directory, "held", prepared)
        listed(base, other)
        base.build(monkeypatch, facts_of, RELATIONS[:1], add=True)
        return prepared(directory)

    monkeypatch.setattr(base_directory.Directory, "held", late)
    listed(base, LANDS[3:8])
    if other == LANDS[3:8]:
        base.build(monkeypatch, facts_of, RELATIONS[:1], add=True)
    else:
        with pytest.raises(LmkbcError, match="was changed by another command while this one began: run this one again"):
            base.build(monkeypatch, facts_of, RELATIONS[:1], add=True)
    listed(base, LANDS[3:8])
    base.build(monkeypatch, facts_of, RELATIONS[:1], add=True)
    subjects = pl.read_parquet(base.out / "subjects" / "*.parquet")["name"]
    assert {*subjects} == {*LANDS[:8]}


@pytest.mark.kill
@pytest.mark.parametrize("step", [63, *(pytest.param(step, marks=pytest.mark.whole) for step in (21, 7))])
def test_killed_at_any_moment_it_goes_on_and_ends_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    trees = []
    for moment in (None, *range(9 % step, 400, step)):
        folder = tmp_path / f"{moment}"
        folder.mkdir()
        base = Base(folder, [])
        listed(base, LANDS[:4])
        base.build(monkeypatch, facts_of, RELATIONS[:1])
        old = tree(base.out)
        listed(base, LANDS[2:7])
        with monkeypatch.context() as patch:
            calls = dying(patch, 10_000 if moment is None else moment)
            with suppress(Killed):
                base.build(patch, facts_of, RELATIONS[:2], add=True)
        if not (base.out / ".lmkbc-ready").exists():
            now = {name: content for name, content in tree(base.out).items() if name in old}
            assert now == old or json.loads(now["manifest.json"])["additions"]
        base.build(monkeypatch, facts_of, RELATIONS[:2], add=True)
        trees.append(tree(base.out))
        assert len(json.loads((base.out / "timing.json").read_text())["earlier"]) == 1
        assert trees[-1] == trees[0]
        assert len(base.asked) <= 14 + base.shard
        if moment is not None and calls() <= moment:
            assert moment > 20
            return
    pytest.fail("it never ended")


def test_another_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Base(tmp_path, LANDS[:3])
    with pytest.raises(InputError, match="holds no finished base: build one first, without --add"):
        base.build(monkeypatch, facts_of, RELATIONS[:1], add=True)
    base.build(monkeypatch, facts_of, RELATIONS[:1])
    before = tree(base.out)
    with pytest.raises(InputError, match="differ in system: add with those of the base, or build all into a new"):
        base.build(monkeypatch, facts_of, RELATIONS[:1], add=True, system={"name": "other"})
    assert tree(base.out) == before


def test_the_command_adds_and_says_what_does_not_fit(command: Command) -> None:
    rows = ["name,id,class", "Chad,Q657,country", "Niger,Q1032,country", "Mali,Q912,country"]
    for name, some in (("old", rows[:2]), ("new", rows[:1] + rows[2:])):
        Path(f"{name}.csv").write_text("\n".join(some) + "\n")
    answers = [
        {
            "SubjectEntity": line.split(",")[0],
            "Relation": "CountryBordersCountry",
            "model": "m",
            "completions": ["Libya, Chad"],
        }
        for line in (*rows[1:], "Libya")
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers))
    build = ["build", "--edition", "mini", "--from", "answers.jsonl", "--out", "kb", "--subjects"]
    borders = ["--relation", "country-borders"]
    command.done(*build, "old.csv", *borders)
    _, told = command.done(*build, "new.csv", "--add")
    assert "kb: 2 new subjects, 0 new relations" in told
    assert json.loads(Path("kb/manifest.json").read_text())["counts"]["subjects"] == 3
    assert "leave it out" in command.fails(*build, "new.csv", "--add", "--grow", "1")
    assert "differ in least: add with those of the base" in command.fails(*build, "new.csv", "--add", "--least", "0.2")
    whole = ["classed" if word == "kb" else word for word in build]
    command(*whole, "old.csv")  # the recorded answers lack a relation
    assert "leave out --relation; new relations" in command.fails(*whole, "new.csv", "--add", *borders)
    grown = ["grown" if word == "kb" else word for word in build]
    command.done(*grown, "old.csv", *borders, "--grow", "1")
    assert "grown was grown, so nothing can be added: build all" in command.fails(*grown, "new.csv", "--add")
