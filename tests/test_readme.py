"""The README's own examples: the relation, the edition and the recipe, saved as told, are as good as any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT, copied, passed

from lmkbc.cli import COMMANDS
from lmkbc.recipe import read_recipe
from lmkbc.workspace import Workspace

README = (ROOT / "README.md").read_text(encoding="utf-8")
META = (
    "tests/conformance/test_relations.py",
    "tests/conformance/test_editions.py",
    "tests/test_workspace.py",
    "tests/test_mini.py",
    "tests/cli/test_cli.py::test_relations_are_those_of_the_workspace",
)
"""The tests that read what the folders of plug-ins hold ..."""
OFFICIAL = "not splits_that_are_here"
"""... but for those that read official splits alone, as long as the splits are."""


def block(heading: str) -> str:
    section = README.split(f"## {heading}\n", 1)[1]
    return re.findall(r"```\w+\n(.*?)```", section, flags=re.DOTALL)[0]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which the printed relation and edition are saved as told."""
    copy = copied(tmp_path_factory.mktemp("checkout"))
    (copy / "relations" / "composer_operas.py").write_text(block("Adding a relation"), encoding="utf-8")
    (copy / "eval" / "lmkbc2031.py").write_text(block("Adding an edition"), encoding="utf-8")
    return copy


def test_the_printed_relation_edition_and_recipe_load(checkout: Path) -> None:
    (checkout / "my.toml").write_text(block("Adding a system"), encoding="utf-8")
    space = Workspace(checkout)
    assert space.edition("2031").relations == ("composerHasOpera", "hasArea")
    assert space.relation("composerHasOpera").name == "composer-operas"
    assert [part.component for part in read_recipe(space, str(checkout / "my.toml")).generate] == [
        "recorded",
        "embedded",
    ]


def test_the_printed_relation_and_edition_pass_what_every_other_passes_and_change_nothing_else(checkout: Path) -> None:
    said = passed(checkout, *META, "-k", OFFICIAL)
    for name in ("composer_operas", "2031"):
        assert re.search(rf"\[{name}\] PASSED", said), f"no test was about {name}"


def test_every_command_and_every_benchmark_has_its_page() -> None:
    commands = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`lmkbc {name}" not in commands] == []
    benchmarks = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    names = [path.name for path in (ROOT / "eval" / "bench").glob("*.py")]
    assert [name for name in names if f"eval/bench/{name}" not in benchmarks] == []


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^):]+)\)", page.read_text(encoding="utf-8"))]
    assert links
    assert [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()] == []
