"""Share of planted mutants that the tests catch, in the packages that decide what is read, kept, linked and scored.

    python -m eval.bench mutants [--count 200] [--seed 0] [--processes 2] [--tests PATH ...] [PACKAGE ...]

A mutant is a copy of the sources with one change, drawn from all places where Cosmic Ray can make one: first a place,
then one of its changes. Changes of annotations and of flags of dataclasses are left out. One run of the tests records
which of them reach which line, and their duration. A mutant is tried by those that reach its line, the shortest first,
up to the first failure. Then all tests of its package try it: some start processes, in which no line is recorded. The
tests that read declarations try it too, such as the comparison of the reference with the code.
Mutants that no test can catch are listed in eval/bench/equivalent.toml; they are shown, and not counted.
"""

from __future__ import annotations

import ast
import json
import os
import queue
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from coverage import Coverage, CoverageData

from eval.bench import ROOT, parsed, parser_of
from eval.bench.figures import Table

PACKAGES = ("select", "tune", "scoring", "answer", "link")
LEFT_OUT = ("Variable", "_Eq_Is", "_NotEq_Is")
"""Changes that need settings, and tests of identity in place of equality, which hold for all short values."""
FLAGS = ("frozen", "slots", "kw_only", "eq", "repr")
UNMEASURED = "kill or ray or server"
"""Tests that take minutes or processes of their own; none of them is about these packages."""
DECLARED = ("tests/conformance/test_every_rule.py", "tests/test_docs.py")
"""Tests of declarations, whose lines are run by imports alone and thus recorded for no test."""
NO_TESTS = int(pytest.ExitCode.NO_TESTS_COLLECTED)
TESTS_SECONDS = 60
"""Most time of the tests that try one mutant, by the record."""


class Mutant(NamedTuple):
    """One change. path: of the source below the checkout. lines: of its statement, first and last."""

    path: str
    line: int
    lines: tuple[int, int]
    operator: str
    occurrence: int
    before: str
    after: str
    source: str


def drawn(packages: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return mutants, at most one for a place."""
    files = [path for name in packages for path in sorted((ROOT / "lmkbc" / name).rglob("*.py"))]
    places = [(path, *place) for path in files for place in sorted(_places(path).items())]
    chance = random.Random(seed)
    chance.shuffle(places)
    found: list[Mutant] = []
    for path, _, changes in places:
        chance.shuffle(changes)
        mutant = next((one for change in changes if (one := _mutant(path, *change))), None)
        found += [mutant] if mutant else []
        if len(found) == count:
            break
    return found


def _places(path: Path) -> Mapping[tuple[int, int], list[tuple[str, int, int]]]:
    """Return line and column -> changes that Cosmic Ray can make there: operator, occurrence and line."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    places = defaultdict(list)
    for name in sorted(operator_names()):
        if not any(part in name for part in LEFT_OUT):
            operator = get_operator(name)()
            starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            for occurrence, start in enumerate(starts):
                places[start].append((name, occurrence, start[0]))
    return places


def _mutant(path: Path, operator: str, occurrence: int, line: int) -> Mutant | None:
    """Return a mutant, or None if the change has no meaning, or is no Python."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = path.read_text(encoding="utf-8")
    try:
        changed = mutate_code(source, get_operator(operator)(), occurrence)
        if changed is None or _meaning(changed) == _meaning(source):
            return None
    except (SyntaxError, AttributeError):  # Cosmic Ray replaces only names in `except`, and fails at others as in `a.B`
        return None
    texts = list(zip(source.splitlines(), changed.splitlines(), strict=False))
    before, after = next((one for one in texts if one[0] != one[1]), ("", ""))
    below = path.relative_to(ROOT).as_posix()
    return Mutant(below, line, _statement(source, line), operator, occurrence, before.strip(), after.strip(), changed)


def _meaning(source: str) -> str:
    """Return a source's syntax tree without annotations, flags of dataclasses, and imports for type checks."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.test = ast.Constant(None)
        elif isinstance(node, ast.ClassDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call):
                    decorator.keywords = [one for one in decorator.keywords if one.arg not in FLAGS]
    return ast.dump(tree)


def _statement(source: str, line: int) -> tuple[int, int]:
    """Return the first and last line of the smallest statement at a line; of a compound one, of its head."""
    best = (1, len(source.splitlines()))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.end_lineno and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if body and body[0].lineno > line else node.end_lineno
            best = (node.lineno, end) if end - node.lineno <= best[1] - best[0] else best
    return best


def recorded(packages: Sequence[str], processes: int, tests: Sequence[str]) -> tuple[CoverageData, dict[str, float]]:
    """Run the tests once. Return which test reaches which line, and the seconds of each test.

    tests: files and folders of the tests; all of them if empty.
    """
    with tempfile.TemporaryDirectory() as folder:
        given = {"MUTANTS_RECORD": folder, "MUTANTS_PACKAGES": " ".join(packages)}
        words = ["--numprocesses", str(processes), "-p", "eval.bench.mutants", "-m", f"not ({UNMEASURED})", *tests]
        _pytest(ROOT, words, given)
        coverage = CoverageData(basename=f"{folder}/all")
        for path in sorted(Path(folder).glob("lines.*")):
            part = CoverageData(basename=str(path))
            part.read()
            coverage.update(part)
        seconds: dict[str, float] = {}
        for path in sorted(Path(folder).glob("seconds.*")):
            seconds |= json.loads(path.read_text(encoding="utf-8"))
        kept = CoverageData(no_disk=True)
        kept.update(coverage)
    return kept, seconds


def _pytest(checkout: Path, words: Sequence[str], given: Mapping[str, str], most: int = resource.RLIM_INFINITY) -> int:
    """Return the exit status of the tests. most: CPU-seconds, after which a loop without end is stopped."""
    from checkout import DATA

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    env = {**os.environ, "PYTHONPATH": str(checkout), "LMKBC_DATA": DATA, "PYTHONDONTWRITEBYTECODE": "1", **given}
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (most, most))
    return subprocess.run(command, cwd=checkout, env=env, preexec_fn=limit, capture_output=True, check=False).returncode


def chosen(mutant: Mutant, coverage: CoverageData, seconds: Mapping[str, float]) -> list[str]:
    """Return the tests that try a mutant, the shortest first: those that reach its statement, else its file."""
    by_line = coverage.contexts_by_lineno(str(ROOT / mutant.path))
    first, last = mutant.lines
    tests = {test for line in range(first, last + 1) for test in by_line.get(line, ()) if test}
    tests = tests or {test for reached in by_line.values() for test in reached if test}
    left, found = float(TESTS_SECONDS), list[str]()
    for test in sorted(tests, key=lambda one: (seconds.get(one, 1.0), one)):
        left -= seconds.get(test, 1.0)
        found += [test] if left > 0 or not found else []
    return found


def caught(mutant: Mutant, copy: Path, tests: Sequence[str]) -> bool:
    """Plant a mutant in a copy of the checkout, run tests up to the first failure, and take it out again."""
    path = copy / mutant.path
    kept = path.read_text(encoding="utf-8")
    try:
        path.write_text(mutant.source, encoding="utf-8")
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
            listed.write("\n".join(tests))
            listed.flush()
            status = _pytest(copy, ["-x", f"@{listed.name}"], {}, 5 * TESTS_SECONDS)
            return bool(tests) and status not in (0, NO_TESTS)
    finally:
        path.write_text(kept, encoding="utf-8")


def copies(folder: Path, count: int) -> Iterator[Path]:
    """Copy the files that git knows, so that the checkout is left alone."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True
    )
    for number in range(count):
        for name in names.stdout.decode().split("\0"):
            if name and (ROOT / name).is_file():
                (folder / str(number) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / str(number) / name)
        yield folder / str(number)


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, *PACKAGES, data=False)
    parser.add_argument("--count", type=int, default=200, help="mutants to plant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tests", nargs="*", default=(), help="files and folders of tests to record (default: all)")
    given = parsed(parser, argv, rows=("scoring",), count=3)
    mutants = drawn(given.rows, given.count, given.seed)
    if given.small:  # what is planted, without the tests' run
        print("\n".join(f"{one.path}:{one.line}: {one.before}  ->  {one.after}" for one in mutants))
        return
    coverage, seconds = recorded(given.rows, given.processes, given.tests)
    same = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text(encoding="utf-8"))["mutants"]
    equivalent = {(one["before"], one["after"]) for one in same}
    planted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.processes) as pool:
        free: queue.Queue[Path] = queue.Queue()
        for copy in copies(Path(folder), given.processes):
            free.put(copy)

        def tried(mutant: Mutant) -> tuple[Mutant, int, bool]:
            tests = chosen(mutant, coverage, seconds)
            copy = free.get()
            try:
                beside = [f"tests/{mutant.path.split('/')[1]}", *DECLARED]
                was_caught = caught(mutant, copy, tests) or caught(mutant, copy, beside)
                return mutant, len(tests), was_caught
            finally:
                free.put(copy)

        for number, (mutant, tests, was_caught) in enumerate(pool.map(tried, mutants), start=1):
            package = mutant.path.split("/")[1]
            left_out = (mutant.before, mutant.after) in equivalent
            planted[package] += not left_out
            found[package] += was_caught and not left_out
            word = "caught" if was_caught else "equivalent" if left_out else "survives"
            change = f"{mutant.path}:{mutant.line}: {mutant.before}  ->  {mutant.after}"
            print(f"{number:3} {word} ({tests} tests) {change}", flush=True)
    table = Table("mutants", "package")
    for package, count in [*planted.items(), ("all", planted.total())]:
        of = found.total() if package == "all" else found[package]
        table.add(package, {"planted": str(count), "caught": f"{of} ({of / max(1, count):.1%})"})


_running: dict[str, Any] = {}


def pytest_configure(config: Any) -> None:
    """Record lines from here on, if this is the run that records."""
    folder = os.environ.get("MUTANTS_RECORD")
    if folder and (hasattr(config, "workerinput") or not config.option.numprocesses):
        include = [f"{config.rootpath}/lmkbc/{name}/*" for name in os.environ["MUTANTS_PACKAGES"].split()]
        coverage = Coverage(data_file=f"{folder}/lines.{os.getpid()}", include=include, config_file=False)
        coverage.start()
        _running.update(coverage=coverage, seconds={}, file=Path(folder) / f"seconds.{os.getpid()}")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the lines of each test under its name."""
    if _running:
        _running["coverage"].switch_context(nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    """Note the seconds of each test."""
    if _running:
        seconds = _running["seconds"]
        seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration


def pytest_unconfigure() -> None:
    """Write what was recorded."""
    if _running:
        _running["coverage"].stop()
        _running["coverage"].save()
        _running["file"].write_text(json.dumps(_running["seconds"]), encoding="utf-8")
