"""Kills at random moments during `lmkbc link`: what was there is untouched, and the next run ends as if undisturbed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import link_faults
import pytest
from forge import Ended, Forge
from link.stand_in import item
from places import Places

from lmkbc.link.index import AliasIndex

Disturb = Callable[..., Any]
BUILD = ("link", "build", "aliases.sqlite", "--table", "names.csv", "--dump", "dump.json")
OLD = ("link", "build", "aliases.sqlite", "--table", "old.csv")


def run(forge: Forge, places: Places, folder: Path, words: Sequence[object]) -> Ended:
    """A command that nobody kills."""
    ended = forge.run(words, places.environment(folder), cwd=folder, before=link_faults.QUICK)
    assert ended.code == 0, ended.err
    return ended


def test_kill_link(forge: Forge, places: Places, disturbed: Disturb, tmp_path: Path, seed: int) -> None:
    with link_faults.world(delay=0.05) as server:
        link_faults.predictions(tmp_path)
        whole = run(forge, places, tmp_path, link_faults.link(server.url))
    linked = (tmp_path / "linked.jsonl").read_bytes()
    with link_faults.world(delay=0.05) as server:

        def command(folder: Path) -> Sequence[object]:
            if not (folder / "predictions.jsonl").exists():
                server.searched.clear()
                link_faults.predictions(folder)
            (folder / "linked.jsonl").unlink(missing_ok=True)  # whole, if the kill came after it
            return link_faults.link(server.url)

        def check(folder: Path) -> None:
            assert not (folder / "linked.jsonl").exists() or (folder / "linked.jsonl").read_bytes() == linked

        left = disturbed(command, whole.seconds, seed, check, before=link_faults.QUICK)
    assert (left.folder / "linked.jsonl").read_bytes() == linked
    asked = [*server.searched.values()]
    assert max(asked) <= left.kills + 1
    assert sum(asked) <= len(asked) + 3 * left.kills, "more was asked again than was in flight"
    assert server.most_at_once <= 6, "three of a killed process and three of the next"


def inputs(folder: Path) -> None:
    (folder / "names.csv").write_text("text,id\nInn,Q1\nEn,Q1\n", encoding="utf-8")
    lines = [json.dumps(item(f"Q{at}", f"name {at}", ["Q5"], links=at % 7)) for at in range(1, 3000)]
    (folder / "dump.json").write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    (folder / "old.csv").write_text("text,id\nOld,Q7\n", encoding="utf-8")


@pytest.mark.whole
def test_kill_link_build(forge: Forge, places: Places, disturbed: Disturb, tmp_path: Path, seed: int) -> None:
    inputs(tmp_path)
    whole = run(forge, places, tmp_path, BUILD)
    built = (tmp_path / "aliases.sqlite").read_bytes()
    old: dict[Path, bytes] = {}

    def command(folder: Path) -> Sequence[object]:
        if folder not in old:
            inputs(folder)
            run(forge, places, folder, OLD)
            old[folder] = (folder / "aliases.sqlite").read_bytes()
        return BUILD

    def check(folder: Path) -> None:
        index = folder / "aliases.sqlite"
        assert index.read_bytes() in (old[folder], built)
        usable = AliasIndex(index)
        assert [hit.id for hit in (*usable.exact("Old"), *usable.exact("Inn"))] in (["Q7"], ["Q1"])
        usable.close()

    left = disturbed(command, whole.seconds, seed, check, before=link_faults.QUICK)
    assert (left.folder / "aliases.sqlite").read_bytes() == built
    assert sorted(path.name for path in left.folder.glob("aliases*")) == ["aliases.sqlite"]
