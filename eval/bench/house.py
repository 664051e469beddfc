"""The engine in numbers, and the call path of `predict`: the modules that a run enters from the command to the zip.

    python eval/bench/house.py [--system prior]

The path is traced at run time. `predict` runs twice on the bundled edition with the given system. The first run imports
everything. In the second, every call between two modules of the engine is recorded. Construction lasts until the first
query is answered. A module is "entered again" if another one calls it while it waits for an answer itself: the path
goes back and forth. A later call from a loop over rows does not count.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any

from lmkbc.cli import build
from lmkbc.cli.terminal import error_status
from lmkbc.generate.spec import GENERATORS, declared
from lmkbc.select.registry import RULES

PACKAGE = Path(__file__).resolve().parents[2] / "lmkbc"
LOADED = """
import sys
from lmkbc.cli import build
build()(sys.argv[1:], standalone_mode=False)
print(sum(name.partition(".")[0] == "lmkbc" for name in sys.modules))
"""
RUNS = (
    "--edition mini --split val --system prior",
    "--edition mini --split val",
    "--edition 2023 --split val --system llmke23 --model SmolLM2-135M-Instruct --limit 1 --dry-run",
)
"""Options of `predict` whose modules are counted: a system without a model, the default, and a local model."""


def module_of(frame: FrameType | None) -> str | None:
    """Return the engine's module in which a frame runs; None for other code."""
    name = str(frame.f_globals.get("__name__", "")) if frame else ""
    return name if name.startswith("lmkbc.") else None


def waiting(frame: FrameType | None) -> Iterator[str]:
    """Yield the modules that wait for a call, the caller first."""
    while frame is not None:
        if module := module_of(frame):
            yield module
        frame = frame.f_back


class Way:
    """The modules that are entered, in order, and how often each is entered while it waits itself."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, int]] = {"construction": {}, "answering to zip": {}}
        self._step = "construction"

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Record a call. The parameters are those of sys.setprofile."""
        module = module_of(frame)
        if event != "call" or module is None or frame.f_code.co_name == "<module>":  # an annotation that is read
            return
        if module.startswith("lmkbc.generate.") and frame.f_code.co_name == "generate":
            self._step = "answering to zip"
        callers = list(waiting(frame.f_back))
        if callers[:1] != [module]:
            again = self.steps[self._step]
            again[module] = again.get(module, 0) + (module in callers)


def predict(system: str, folder: Path) -> None:
    """Run a system on the bundled edition."""
    command = ["predict", "--split", "val", "--edition", "mini", "--system", system, "--out", str(folder / "run")]
    build()(command, standalone_mode=False)


def trace(system: str) -> Way:
    """Run `predict` twice, and record the calls of the second run."""
    way = Way()
    with tempfile.TemporaryDirectory() as folder:
        predict(system, Path(folder))
        sys.setprofile(way.note)
        try:
            predict(system, Path(folder))
        finally:
            sys.setprofile(None)
    return way


def imports() -> dict[str, set[str]]:
    """Return module -> modules of the engine that it imports, also within functions."""
    paths = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        used: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                used |= {each if each in modules else node.module for each in full}
        graph[name] = {each for each in used if each in modules} - {name}
    return graph


def in_circles(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules that import themselves through others."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        todo = list(graph[start])
        while todo:
            if (module := todo.pop()) not in seen:
                seen.add(module)
                todo += graph[module]
        return seen

    return sorted(name for name in graph if name in reached(name))


def parameter_lists() -> dict[str, int]:
    """Return component -> number of its parameter lists: its dataclass, and functions with most of its fields."""
    generators = [declared({"component": name}, GENERATORS, "") for name in GENERATORS]
    own = {spec.__name__: {field.name for field in fields(spec)} for spec in (*generators, *RULES.values())}
    signatures = [
        {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)} - {"self", "cls"}
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    return {
        name: 1 + sum(2 * len(names & arguments) > len(names) for arguments in signatures)
        for name, names in own.items()
        if len(names) > 3  # with fewer names, functions match by chance
    }


def statements(text: str) -> int:
    """Return the number of statements of a module, without docstrings."""
    nodes = list(ast.walk(ast.parse(text)))
    values = (node.value for node in nodes if isinstance(node, ast.Expr))
    docstrings = sum(isinstance(value, ast.Constant) and isinstance(value.value, str) for value in values)
    return sum(isinstance(node, ast.stmt) for node in nodes) - docstrings


def loaded(options: str) -> int:
    """Return the number of the engine's modules that `predict` has loaded at its end."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["predict", *options.split(), "--out", str(Path(folder) / "run")]
        done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", default="prior", help="the system whose way is traced")
    system = parser.parse_args().system
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    graph = imports()
    validators = sorted(path.name for path, text in texts.items() if "msgspec.convert" in text)
    print(f"lines of the engine: {sum(len(text.splitlines()) for text in texts.values()):,} in {len(graph)} modules")
    for folder in (PACKAGE, PACKAGE.parent / "tests"):
        count = sum(statements(path.read_text(encoding="utf-8")) for path in folder.rglob("*.py"))
        print(f"statements in {folder.name}/: {count:,}")
    for options in RUNS:
        print(f"modules of the engine that `predict {options}` loads: {loaded(options)}")
    print(f"modules that check tables by type: {len(validators)} ({', '.join(validators)})")
    lists = parameter_lists()
    print(f"parameter lists per component: at most {max(lists.values())} in {len(lists)} components")
    print(f"modules in circles of imports: {len(in_circles(graph))}")
    for step, entered in trace(system).steps.items():
        again = {module: count for module, count in entered.items() if count}
        print(f"{step}: {len(entered)} modules, {len(again)} of them entered again while they wait")
        for module in entered:
            print(f"  {module}" + (f", again x {again[module]}" if module in again else ""))


if __name__ == "__main__":
    with error_status():
        main()
