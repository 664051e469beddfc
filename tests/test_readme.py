"""The README's own examples: the relation, the edition and the recipe load as they are printed there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from lmkbc.cli import COMMANDS
from lmkbc.recipe import read_recipe
from lmkbc.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(heading: str) -> str:
    section = README.split(f"## {heading}\n", 1)[1]
    return re.findall(r"```\w+\n(.*?)```", section, flags=re.DOTALL)[0]


def test_the_printed_relation_edition_and_recipe_load(tmp_path: Path) -> None:
    for folder in ("relations", "eval"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("bench", "__pycache__"))
    examples = {
        "relations/composer_operas.py": block("Adding a relation"),
        "eval/lmkbc2031.py": block("Adding an edition"),
    }
    for name, content in examples.items():
        assert len(content.splitlines()) < 40
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "my.toml").write_text(block("Adding a system"), encoding="utf-8")
    space = Workspace(tmp_path)
    assert space.edition("2031").relations == ("composerHasOpera", "hasArea")
    assert space.relation("composerHasOpera").name == "composer-operas"
    assert [part.component for part in read_recipe(space, str(tmp_path / "my.toml")).generate] == [
        "recorded",
        "embedded",
    ]


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
