"""CONTRIBUTING's own examples: the rule and the generator do what it says when they are saved as told."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from checkout import CONTRIBUTING, printed
from opened import generators, recipe_of

from lmkbc import Workspace, registry
from lmkbc.answer.parse import parse
from lmkbc.testing import Candidate, CandidateSet, Query, Run, build
from tests.small import small_relation

QUERY = Query("Ada", "CountryBordersCountry")


def saved(heading: str, folder: Path, name: str) -> ModuleType:
    """The example under a heading, saved and loaded."""
    path = folder / f"{name}.py"
    path.write_text(printed(CONTRIBUTING, heading), encoding="utf-8")
    found = importlib.util.spec_from_file_location(name, path)
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    for name in ("printed_half", "printed_colour", "printed_echo", "printed_parrot"):
        sys.modules.pop(name, None)


def test_the_printed_rule_selects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved("Adding a rule", tmp_path, "printed_half")
    monkeypatch.setitem(registry.RULES.own, "half", "printed_half:Half")
    found = CandidateSet(QUERY, tuple(Candidate(name, score) for name, score in (("a", 0.9), ("b", 0.5), ("c", 0.1))))
    rule = build({"rule": "half", "share": 0.6})
    assert [one.text for one in rule.select(found).objects] == ["a", "b"]


def test_the_printed_kind_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved("Adding a kind of objects", tmp_path, "printed_colour")
    monkeypatch.setitem(registry.KINDS.own, "colour", "printed_colour:COLOUR")
    relation = small_relation(kind="colour")
    assert parse("It is #ff8800, or **#00FF00**.", relation, "Ada").objects == ("#ff8800", "#00FF00")
    kind = registry.KINDS.get(relation.kind)
    assert kind.meaning("#ff8800", relation) == kind.meaning(" #FF8800", relation)


def test_the_printed_generator_is_a_recipe_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved("Adding a generator", tmp_path, "printed_echo")
    monkeypatch.setitem(registry.GENERATORS.own, "echo", "printed_echo:Echo")
    space = Workspace()
    recipe = recipe_of({"component": "echo", "each": [{"score": 0.5}, {"name": "loud"}]})
    run = Run(workspace=space, edition=space.edition("mini"), offline=True)
    made = {name: [*generator.generate([QUERY, QUERY])] for name, generator in generators(run, recipe)}
    assert {name: [one.candidates[0].score for one in sets] for name, sets in made.items()} == {
        "source 1": [0.5],
        "loud": [1.0],
    }


def test_the_printed_back_end_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved("Adding a back end", tmp_path, "printed_parrot")
    monkeypatch.setitem(registry.BACK_ENDS.own, "parrot", "printed_parrot:Parrot")
    space = Workspace()
    run = Run(workspace=space, edition=space.edition("mini"), servers={"store": tmp_path / "s.sqlite"})
    ask = 'Of {{ subject }}, say:\n["Chad"]'
    table = {"component": "chat", "model": {"name": "m", "backend": "parrot"}, "prompt": {"ask": ask}}
    ((_, generator),) = generators(run, recipe_of(table))
    (found,) = generator.generate([QUERY])
    assert [one.text for one in found.candidates] == ["Chad"]
