"""The house: layers of imports, no circle, no import without a declared dependency, nothing above its budget.

Imports in functions and under TYPE_CHECKING count too.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = """
    errors progress settings names http answer.units answer.dates
    types
    notes
    relation
    plugins
    scoring.matchers scoring.table scoring
    edition
    files
    workspace
    run.subset
    scoring.official
    models
    answer
    ask
    answer.reply
    run.statements
    run.options run.run
    select.pool select.rule select.ranking select
    generate
    link
    domain
    recipe ask.authors
    tune run.submission
    run run.saved
    scoring.comparison
    select.origin select.tuned_rules run.pipeline
    run.directory run.estimate
    kb.build
    kb.export
    train probe report kb.pages
    kb.audit
    kb
    api
    cli __main__
"""
"""From the ground up: a module imports from its own line or from one before it."""
LAYER = {name: layer for layer, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()}
OPTIONAL = {"peft", "bitsandbytes", "psycopg", "pyarrow", "ray", "zstandard"}
"""Imported by name where an extra brings them."""
BUDGETS = tomllib.loads((ROOT / "tests" / "budgets.toml").read_text(encoding="utf-8"))


def _modules() -> dict[str, Path]:
    found = {}
    for path in sorted((ROOT / "lmkbc").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = _modules()


class _Read(NamedTuple):
    """A file as it was read: what it imports, how many statements it has, and its public classes.

    imports: modules of ours by their full names. outer: classes that stand in no other.
    """

    imports: tuple[str, ...]
    statements: int
    classes: int
    outer: tuple[str, ...]


@cache
def _read(path: Path) -> _Read:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return _Read(
        tuple(_imported(nodes, path)),
        sum(isinstance(node, ast.stmt) and not _is_text(node) for node in nodes),
        sum(map(_is_public, nodes)),
        tuple(node.name for node in tree.body if isinstance(node, ast.ClassDef) and _is_public(node)),
    )


def _imported(nodes: Iterable[ast.AST], path: Path) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} imports relatively: write the whole name"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in MODULES else str(node.module)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_public(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and not node.name.startswith("_")


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules of ours that each of them imports."""
    return {name: {used for used in _read(path).imports if used in MODULES} - {name} for name, path in MODULES.items()}


def _listed(module: str) -> str:
    """Return the name under which a module is listed: its own, as `run.base`, else its package's."""
    name = module.partition(".")[2]
    return name if name in LAYER else name.split(".")[0]


def test_imports_point_upwards(graph: dict[str, set[str]]) -> None:
    listed = {module: _listed(module) for module in MODULES if _listed(module)}
    assert set(listed.values()) == set(LAYER), "the list of layers and the modules differ"
    layers = {module: LAYER[name] for module, name in listed.items()}
    below = {
        module: [used for used in graph[module] if layers.get(used, 0) > layer] for module, layer in layers.items()
    }
    assert {module: used for module, used in below.items() if used} == {}, "imports from further down"


def test_the_core_imports_nothing_of_bases_benchmarks_and_training(graph: dict[str, set[str]]) -> None:
    outside, doors = ("kb", "domain", "probe", "train"), ("api", "cli")
    package = {module: module.split(".")[1] for module in MODULES if "." in module}
    core = [module for module, name in package.items() if name not in (*outside, *doors)]
    assert {module: used for module in core for used in graph[module] if package.get(used) in outside} == {}


def test_no_circle_is_left(graph: dict[str, set[str]]) -> None:
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        if module in way:
            circle = [*way[way.index(module) :], module]
            pytest.fail("a circle: " + " -> ".join(circle))
        if module not in done:
            for used in sorted(graph[module]):
                visit(used, (*way, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def test_every_import_is_of_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    declared = {re.split(r"[\[<>=!~; ]", one)[0].lower().replace("_", "-") for one in listed} | {"lmkbc"}
    owners = packages_distributions()
    ours = {path.stem for path in (ROOT / "tests").rglob("*.py")} | {"eval"}  # benchmarks use the tests' own servers
    files = [path for folder in ("lmkbc", "relations", "eval") for path in sorted((ROOT / folder).rglob("*.py"))]
    outside = {}
    for path in [*files, ROOT / "hatch_build.py"]:
        for used in _read(path).imports:
            top = used.split(".")[0]
            names = {one.lower().replace("_", "-") for one in owners.get(top, [top])}
            if top not in sys.stdlib_module_names | OPTIONAL | ours and not names & declared:
                outside[top] = path.name
    assert not outside, f"imported but not declared: {outside}"


def test_the_formatter_wins() -> None:
    files = [path for folder in ("lmkbc", "relations", "eval") for path in (ROOT / folder).rglob("*.py")]
    switched = [path.name for path in files if "# fmt:" in path.read_text(encoding="utf-8")]
    assert not switched, f"'# fmt:' in {switched}"


def test_names_of_are_listed_once() -> None:
    lines = [line.split() for line in LAYERS.strip().splitlines()]
    names = sorted(name for line in lines for name in line)
    assert all(one != other for one, other in pairwise(names))


def _size(place: str) -> dict[str, int]:
    """Return the size of a folder or page, by what is counted."""
    path = ROOT / place
    pages = [path] if path.is_file() else path.glob("*.md")
    files = [*map(_read, path.rglob("*.py"))]
    return {
        "statements": sum(file.statements for file in files),
        "files": len(files),
        "classes": sum(file.classes for file in files),
        "words": sum(len(page.read_text(encoding="utf-8").split()) for page in pages),
    }


@pytest.mark.parametrize("place", sorted({place for places in BUDGETS.values() for place in places}))
def test_nothing_outgrows_its_budget(place: str) -> None:
    size = _size(place)
    for what, most in ((what, places[place]) for what, places in BUDGETS.items() if place in places):
        assert size[what] <= most, (
            f"{place} has {size[what]:,} {what}, and tests/budgets.toml grants {most:,}: take out as much elsewhere, "
            "or raise the number in the same commit and write the reason beside it"
        )


def test_tests_lie_where_what_they_test_lies() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    own = {Path("attack"), Path("conformance")}  # whole commands, and what all of a kind share
    assert [one for one in folders - own if not (ROOT / "lmkbc" / one / "__init__.py").is_file()] == []


def test_two_files_or_classes_have_two_names() -> None:
    files = [path.name for path in MODULES.values() if path.name != "__init__.py"]
    names = [*files, *(name for path in MODULES.values() for name in _read(path).outer)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_each_file_of_tests_has_a_name_of_its_own() -> None:
    """Folders of tests are no packages: two files of one name are one module, which pytest refuses to collect."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert [name for name in {*names} if names.count(name) > 1] == []
