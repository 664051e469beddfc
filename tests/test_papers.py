"""The page of the papers' items: every command that it names is one that this program takes."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from checkout import ROOT

from lmkbc.cli import build

PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"lmkbc [^`\n]+(?:\n  [^`\n]+)*", "\n".join(re.findall(r"`+([^`]+)`+", PAGE)))
PAPERS = ("LM-KBC 2022", "LM-KBC 2023", "KAMEL", "KMIR", "OptiPrompt and LAMA")


def cells() -> Iterator[list[str]]:
    """Yield the cells of each row of the page's tables."""
    for line in PAGE.splitlines():
        if line.startswith("| ") and not line.startswith("| item"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_a_command_is_one_that_the_program_takes(line: str) -> None:
    command: Any = typer.main.get_command(build())
    words = shlex.split(line.replace("\\\n", " "))[1:]
    while hasattr(command, "get_command"):
        name = words.pop(0)
        command = command.get_command(None, name)
        assert command is not None, f"no command {name!r}"
    command.make_context("lmkbc", words, help_option_names=["-h", "--help"])  # which commands keep, as for the program


def test_every_paper_has_a_table_and_every_row_an_outcome() -> None:
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == list(PAPERS)
    rows = list(cells())
    assert len(rows) > len(PAPERS)
    for item, *others in rows:
        assert others[0], item
        assert any(others[1:3]), item
