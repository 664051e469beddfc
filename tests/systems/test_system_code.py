"""A system is a folder that may hold code: it is found by the system's name, once the user trusts it."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from lmkbc.testing import build
from tests.command import Command

CODE = """
from dataclasses import dataclass
from typing import ClassVar

from lmkbc.select.cutoffs import TopK

@dataclass(frozen=True, kw_only=True)
class Half(TopK):
    name: ClassVar[str] = "mine/first"
    k: int = 1

COMPONENTS = {"mine/first": Half}
"""
RECIPE = """
description = "Mine."
generate = [{ component = "prior" }]
select = { rule = "mine/first" }
"""
PREDICT = ("predict", "--edition", "mini", "--split", "val", "--limit", "2", "--no-report", "--system")


@pytest.fixture
def system(tmp_path: Path) -> Path:
    folder = tmp_path / "systems" / "mine"
    folder.mkdir(parents=True)
    (tmp_path / "lmkbc.toml").touch()
    (folder / "system.py").write_text(CODE)
    (folder / "recipe.toml").write_text(RECIPE)
    return folder


def test_a_system_of_one_s_own_uses_its_code_once_it_is_trusted(
    command: Command, system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "systems/mine/system.py; read it, then give --trust" in command.fails(*PREDICT, "mine")
    command.done(*PREDICT, "mine", "--trust")
    command.done(*PREDICT, system / "recipe.toml", "--out", "again")
    command.done(*PREDICT, system, "--out", "again")
    listed = command.done("systems", "list")[0]
    assert "mine" in listed
    manifest = json.loads((tmp_path / "again" / "manifest.json").read_bytes())
    assert manifest["recipe"]["code"] == {"mine": sha256(CODE.encode()).hexdigest()}
    (system / "system.py").write_text(CODE.replace("k: int = 1", "k: int = 2"))
    assert "as it is now" in command.fails(*PREDICT, "mine", "--out", "again")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("COMPONENTS = {", "PARTS = {", "COMPONENTS is missing; define COMPONENTS = dict(...)"),
        ('{"mine/first": Half}', '{"first": Half}', "COMPONENTS names 'first': begin it with the system's name, mine/"),
        (
            '{"mine/first": Half}',
            '{"mine/frist": Half}',
            "'mine/first': did you mean 'mine/frist'",
        ),
        ('{"mine/first": Half}', '{"mine/first": 3}', "unknown selection rule 'mine/first'"),
        ("class Half(TopK)", "class Half(Topk)", "NameError: name 'Topk' is not defined"),
    ],
)
def test_wrong_code_is_named(command: Command, system: Path, old: str, new: str, message: str) -> None:
    (system / "system.py").write_text(CODE.replace(old, new))
    assert message in command.fails("systems", "check", "mine", "--trust")


def test_code_outside_of_a_workspace_is_not_run(command: Command, system: Path, tmp_path: Path) -> None:
    (tmp_path / "lmkbc.toml").unlink()
    other = tmp_path / "other" / "mine"
    system.rename(other.parent.mkdir() or other)
    system.parent.rmdir()
    told = command.fails("systems", "check", other / "recipe.toml")
    assert "system.py is not run, since it lies in no workspace" in told
    (other / "recipe.toml").rename(tmp_path / "alone.toml")
    assert "unknown selection rule 'mine/first'" in command.fails("systems", "check", tmp_path / "alone.toml")


def test_components_of_bundled_systems_are_for_all_recipes() -> None:
    assert build({"rule": "mdv26/ball", "support": 0.5}).to_table() == {"rule": "mdv26/ball", "support": 0.5}
