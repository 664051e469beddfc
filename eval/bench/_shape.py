"""Shape of the engine: chain of imports, single modules among the layers, settings, inner names in tests, statements.

`tests/budgets.toml` bounds these numbers, and `python -m eval.bench house` prints them. They are read from the source
of this checkout; nothing of it is run.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from eval.bench import ROOT

WINGS = ("kb", "probe", "train", "domain", "report", "systems", "testing")
"""Folders outside of the core. `testing` is for the tests of plug-ins, and nothing of the engine imports it."""
PUBLIC = "lmkbc.testing"
"""Module whose names are for the authors of plug-ins, so that tests may import them freely."""
_LAYERS = re.compile(r'LAYERS = """(.*?)"""', re.DOTALL)
_ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return name -> path of the engine's modules; a package has the name of its folder."""
    paths = sorted((root / "lmkbc").rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def statements_of(path: Path) -> list[ast.stmt]:
    """Return the statements of a file, inner ones included. Expressions hold none, and are not looked through."""
    found: list[ast.stmt] = []
    open_ones: list[ast.AST] = [tree_of(path)]
    while open_ones:
        for name, value in ast.iter_fields(open_ones.pop()):
            if name in ("body", "orelse", "finalbody", "handlers", "cases") and isinstance(value, list):
                open_ones += value
                found += (node for node in value if isinstance(node, ast.stmt))
    return found


@cache
def imports(path: Path) -> list[str]:
    """Return the names of the modules that a file imports, anywhere in it."""
    found, known = list[str](), modules()
    for node in statements_of(path):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = ((f"{node.module}.{alias.name}", str(node.module)) for alias in node.names)
            found += (full if full in known else module for full, module in names)
    return found


@cache
def graph() -> dict[str, set[str]]:
    """Return the modules of the engine that each of them imports."""
    return {name: {used for used in imports(path) if used in modules()} - {name} for name, path in modules().items()}


def longest_chain(imported: Mapping[str, set[str]]) -> int:
    """Return the number of modules of the longest chain of imports, which has no circle."""

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(used) for used in sorted(imported[name])), default=0)

    return max(map(depth, imported))


def statements(path: Path) -> int:
    """Return the number of statements of a file, without docstrings."""
    return sum(not _is_text(node) for node in statements_of(path))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def inner_names() -> set[str]:
    """Return the names that tests import from modules of the engine other than the public ones."""
    return {
        f"{node.module}.{alias.name}"
        for path in (ROOT / "tests").rglob("*.py")
        for node in statements_of(path)
        if isinstance(node, ast.ImportFrom)
        and str(node.module).startswith("lmkbc.")
        and not str(node.module).startswith(PUBLIC)
        for alias in node.names
    }


def used_settings() -> dict[str, set[str]]:
    """Return setting -> the bundled recipes that use it."""
    used = defaultdict(set)
    for path in (ROOT / "lmkbc" / "systems").rglob("*.toml"):
        for name in _keys(tomllib.loads(path.read_text(encoding="utf-8"))):
            used[name].add(path.parent.name)
    return used


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys(inner)


@cache
def measured() -> dict[str, int]:
    """Return the six numbers that `tests/budgets.toml` bounds, by their names there."""
    house = (ROOT / "tests" / "test_house.py").read_text(encoding="utf-8")
    layers = _LAYERS.search(house)
    rows = _ROW.findall((ROOT / "docs" / "reference" / "recipes.md").read_text(encoding="utf-8"))
    used = used_settings()
    core = [path for path in modules().values() if path.relative_to(ROOT / "lmkbc").parts[0] not in WINGS]
    return {
        "longest_chain_of_imports": longest_chain(graph()),
        "single_modules_among_layers": sum("." in entry for entry in layers[1].split()) if layers else 0,
        "names_of_settings": len({*rows}),
        "rows_of_settings_in_at_most_one_recipe": sum(len(used.get(row, ())) < 2 for row in rows),
        "inner_names_in_tests": len(inner_names()),
        "statements_of_core": sum(map(statements, core)),
    }
