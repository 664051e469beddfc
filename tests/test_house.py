"""The house: layers of imports, no circle, no undeclared import, no number of its shape above its bound.

Imports in functions and under TYPE_CHECKING count too.
"""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import pytest

from eval.bench._shape import graph as imported
from eval.bench._shape import imports, measured, modules, tree_of

CODE = "system.py"
ROOT = Path(__file__).resolve().parent.parent
LAYERS = """
    errors components progress settings registry names patterns words http web_client
    types
    notes
    relation
    kinds.kind
    scoring
    edition
    files
    workspace
    models
    session
    answer kinds ask
    select
    generate
    link local masked
    domain
    recipe plan
    run
    tune
    evaluation
    systems
    commands
    train probe report
    kb
    api
    testing
    cli __main__
"""
"""From the ground up: a module imports from its own line or from one before it."""
LAYER = {name: layer for layer, line in enumerate(LAYERS.strip().splitlines()) for name in line.split()}
OPTIONAL = {"peft", "bitsandbytes", "psycopg", "pyarrow", "ray", "zstandard"}
"""Imported by name where an extra brings them."""
BUDGETS = tomllib.loads((ROOT / "tests" / "budgets.toml").read_text(encoding="utf-8"))


SLACK = 1.02
"""Share of a bound up to which a commit may go, so that two changes at the same time fit."""
MODULES = modules()


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    """The modules of ours that each of them imports."""
    return imported()


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
    outside, doors = ("kb", "domain", "probe", "train", "masked", "local", "testing"), ("api", "cli", "commands")
    package = {module: module.split(".")[1] for module in MODULES if "." in module}
    core = [module for module, name in package.items() if name not in (*outside, *doors)]
    models = {("systems", "masked"), ("systems", "local")}  # the code of a system that asks such a model
    used = {module: {package[one] for one in graph[module] if package.get(one) in outside} for module in core}
    assert {module: ones for module, ones in used.items() if {(package[module], one) for one in ones} - models} == {}


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
        for used in imports(path):
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


@pytest.mark.parametrize("measure", sorted(BUDGETS))
def test_the_shape_keeps_its_bounds(measure: str) -> None:
    number, bound = measured()[measure], BUDGETS[measure]
    assert number <= bound * SLACK, (
        f"{measure} is {number:,}; tests/budgets.toml bounds it to {bound:,}, which only falls"
    )


def test_each_measure_has_a_bound() -> None:
    assert [*measured()] == [*BUDGETS]


def test_tests_lie_where_what_they_test_lies() -> None:
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    own = {Path("attack"), Path("conformance")}  # whole commands, and what all of a kind share
    assert [one for one in folders - own if not (ROOT / "lmkbc" / one).is_dir()] == []


def _public_classes(path: Path) -> list[str]:
    outer = (node.name for node in tree_of(path).body if isinstance(node, ast.ClassDef))
    return [name for name in outer if not name.startswith("_")]


def test_two_files_or_classes_have_two_names() -> None:
    paths = [path for path in MODULES.values() if path.name not in ("__init__.py", CODE)]
    names = [path.name for path in paths] + [name for path in paths for name in _public_classes(path)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_each_file_of_tests_has_a_name_of_its_own() -> None:
    """Folders of tests are no packages: two files of one name are one module, which pytest refuses to collect."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert [name for name in {*names} if names.count(name) > 1] == []
