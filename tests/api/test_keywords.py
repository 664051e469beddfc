"""Keywords of the public functions: a misspelt one is refused, at once by the function and earlier by a type checker.

mypy checks this file, so that an unknown keyword which it accepted would make its `type: ignore` an error.
"""

import inspect
import json
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from loopback import Loopback
from opened import recipe_file

import lmkbc
from lmkbc import InputError
from lmkbc.session.options import Selection, settled

FUNCTIONS = {name: value for name in lmkbc.__all__ if isinstance(value := getattr(lmkbc, name), FunctionType)}


def test_misspelt_keywords_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=r"predict\(\) takes no keyword 'sytem': did you mean 'system'\?; 'precison'"):
        lmkbc.predict(edition="mini", sytem="prior", precison=0.9)  # type: ignore[call-arg]
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"store": "mysql://host/base"}, "no store can lie in mysql://"),
        ({"prices": {2.5, 10.0}}, "prices is "),
        ({"max_cost": float("inf")}, "give a finite number"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_is_asked(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=re.escape(told)):
        lmkbc.predict("val", edition="mini", system="prior", out=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_a_value_of_another_type_is_seen_by_a_type_checker() -> None:
    with pytest.raises(TypeError):
        lmkbc.predict("val", edition="mini", system="prior", max_cost="1")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_names_its_keywords(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = inspect.signature(function).parameters.values()
    assert not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    right = max((one.name for one in parameters), key=len)
    wrong = right.replace(right[-2:], right[-1:])
    with pytest.raises(TypeError, match=rf"{name}\(\) takes no keyword '{wrong}': did you mean '{right}'\?"):
        function(**{wrong: "x"})


def test_settled_options_cannot_be_changed() -> None:
    chosen = settled(Selection, {"precision": "best:0.1"})
    assert (chosen["precision"], chosen["untuned"], chosen["promise"]) == ("best:0.1", False, None)
    with pytest.raises(TypeError):
        chosen["untuned"] = True


def test_a_list_is_a_pair_and_a_text_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = recipe_file(tmp_path / "chat.toml", {"component": "chat", "model": "m"})
    with Loopback() as server:
        asked = {"edition": "mini", "system": str(recipe), "base_url": server.url, "limit": 1}
        run = lmkbc.predict("val", store="answers.sqlite", prices=[2, 10], **asked)  # type: ignore[arg-type]
    assert (tmp_path / "answers.sqlite").is_file()
    usage = json.loads((run.directory / "timing.json").read_text())["usage"]["chat"]
    assert usage["cost"] == pytest.approx((100 * 2 + 10 * 10) / 1e6)
