"""Documents tell how to add: saved as told, it passes what all others pass, and nothing else changes."""

import re
from pathlib import Path

import pytest
from checkout import ADDING, CONTRIBUTING, copied, passed, printed

from lmkbc import Workspace
from lmkbc.recipe import read_recipe

META = (
    "tests/conformance/test_relations.py",
    "tests/conformance/test_editions.py",
    "tests/test_workspace.py",
    "tests/test_mini.py",
    "tests/cli/test_cli.py::test_relations_are_those_of_the_workspace",
)
"""The tests that read what the folders of plug-ins hold ..."""
OFFICIAL = "splits_that_are_here"
"""... but for those that read official splits alone, as long as the splits are."""
EACH = ("tests/conformance/test_every_rule.py", "tests/conformance/test_generators.py", "tests/test_house.py")
"""The tests of every rule and generator, of which those of the new ones are run, and of every module."""
NEW = ("composer_operas", "2031", "half", "echo-echo")


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the printed relation, edition, rule and generator are saved as told."""
    copy = copied(tmp_path_factory.mktemp("checkout"))
    (copy / "relations" / "composer_operas.py").write_text(printed(ADDING, "Adding a relation"), encoding="utf-8")
    (copy / "eval" / "lmkbc2031.py").write_text(printed(ADDING, "Adding an edition"), encoding="utf-8")
    package = copy / "lmkbc"
    (package / "select" / "half.py").write_text(printed(CONTRIBUTING, "Adding a rule"), encoding="utf-8")
    (package / "generate" / "echo.py").write_text(printed(CONTRIBUTING, "Adding a generator"), encoding="utf-8")
    for first, pattern in (("cutoff", '`("half": "[^`]*")`'), ("causal", '`("echo": "[^`]*")`')):
        (line,) = re.findall(pattern, CONTRIBUTING)
        replaced(package / "registry.py", f'        "{first}":', f'        {line},\n        "{first}":')
    return copy


def test_the_printed_relation_edition_and_recipe_load(checkout: Path) -> None:
    (checkout / "my.toml").write_text(printed(ADDING, "Adding a system"), encoding="utf-8")
    space = Workspace(checkout)
    assert space.edition("2031").relations == ("composerHasOpera", "hasArea")
    assert space.relation("composerHasOpera").name == "composer-operas"
    assert [part.component for part in read_recipe(space, str(checkout / "my.toml")).generate] == [
        "recorded",
        "embedded",
    ]


@pytest.mark.whole
def test_what_is_printed_passes_what_all_others_pass_and_changes_nothing_else(checkout: Path) -> None:
    others = " or ".join((OFFICIAL, *(Path(file).stem for file in EACH)))
    said = passed(checkout, *META, *EACH, "-k", f"half or echo or circle or upwards or not ({others})")
    for name in NEW:
        assert re.search(rf"\[{name}\] PASSED", said), f"no test was about {name}"
