"""The shape of the engine, which `tests/budgets.toml` bounds; then the call path of `predict`.

The path has the modules that a run enters from the command to the zip, and those that it loads. It is traced at run
time. `predict` runs twice on the bundled edition with the given system. The first run imports everything. In the
second, every call between two modules of the engine is recorded. Construction lasts until the first query is answered.
A module is "entered again" if another one calls it while it waits for an answer itself: the path goes back and forth. A
later call from a loop over rows does not count.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import lmkbc
from eval.bench import parsed, parser_of
from eval.bench._shape import measured
from lmkbc.cli import build
from lmkbc.web_client import WebClient

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


class CallPath:
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


def predict(options: Sequence[str], folder: Path) -> None:
    """Run a system on the bundled edition."""
    command = ["predict", "--split", "val", "--edition", "mini", *options, "--out", str(folder / "run")]
    build()(command, standalone_mode=False)


def trace(options: Sequence[str]) -> CallPath:
    """Run `predict` twice, and record the calls of the second run."""
    path = CallPath()
    with tempfile.TemporaryDirectory() as folder:
        predict(options, Path(folder))
        sys.setprofile(path.note)
        try:
            predict(options, Path(folder))
        finally:
            sys.setprofile(None)
    return path


def loaded(options: str) -> str:
    """Return the number of the engine's modules that `predict` has loaded at its end, or why it is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["predict", *options.split(), "--out", str(Path(folder) / "run")]
        done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=False)
    said = (done.stderr if done.returncode else done.stdout).splitlines() or [""]
    return f"not counted, since the run failed: {said[-1].partition(': ')[2]}" if done.returncode else said[-1]


def frames() -> int:
    """Return the most frames of the engine that stand between a question and a request, by `ask` of a server."""
    from loopback import Loopback

    deepest, send = [0], WebClient.send

    def counted(client: WebClient, *given: Any, **named: Any) -> Any:
        own = (frame.frame for frame in inspect.stack(context=0))
        deepest[0] = max(deepest[0], 1 + sum(module_of(frame) is not None for frame in own))
        return send(client, *given, **named)

    system = {"generate": [{"component": "chat", "model": "m"}], "select": {"rule": "cutoff", "threshold": 0.5}}
    with Loopback() as server, patch.object(WebClient, "send", counted):
        asked: dict[str, Any] = {"system": {"description": "Asks a server.", **system}, "base_url": server.url}
        lmkbc.ask("Peru", "country-borders", edition="mini", fresh=True, **asked)
    return deepest[0]


def main(argv: Sequence[str]) -> None:
    parser = parser_of(__doc__, data=False)
    parser.add_argument("--system", default="prior", help="the system whose path is traced")
    parser.add_argument("--runs", nargs="*", default=RUNS, help="options of `predict` whose modules are counted")
    given = parsed(parser, argv, runs=())
    for name, number in measured().items():
        print(f"{name.replace('_', ' ')}: {number:,}")
    print(f"frames from a question to the request of a server: {frames()}")
    for run in given.runs:
        print(f"modules of the engine that `predict {run}` loads: {loaded(run)}")
    options = ["--system", given.system, *(["--limit", "1", "--no-report", "--untuned"] if given.small else [])]
    for step, entered in trace(options).steps.items():
        again = {module: count for module, count in entered.items() if count}
        print(f"{step}: {len(entered)} modules, {len(again)} of them entered again while they wait")
        for module in entered:
            print(f"  {module}" + (f", again x {again[module]}" if module in again else ""))
