"""Processes that start at once: a parent which has read what is heavy forks a child for every command.

A child is a process of its own in a session of its own, so that SIGKILL ends it as it would any, without the seconds
that Python takes to read torch and the like. `Forge` is the test's end; run as a script, this file is the parent.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 240.0
"""Seconds after which a command counts as hanging; ten times what the slowest takes on a busy machine."""
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON", "POLARS_MAX")}
HEAVY = (
    "openai",
    "httpx2",
    "sqlalchemy.orm",
    "lmkbc.cli",
    "lmkbc.models.server.server_model",
    "lmkbc.generate.recorded",
)
HEAVIEST = (
    "torch",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "optuna",
    "scipy.sparse",
    "sklearn.ensemble",
    "sklearn.feature_extraction.text",
    "lmkbc.local.local_model",
    "lmkbc.masked",
    "lmkbc.generate.embedded",
    "lmkbc.train.tasks",
    "lmkbc.train.lora",
    "lmkbc.tune.learn",
)
"""What models of this machine, training and tuning need: no attack of the suite."""
MAYBE = ("peft", "psycopg")


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: its exit status, the negative number of a signal that ended it. seconds: its time."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Forge:
    """Runs `lmkbc` commands, one at a time, in children of a warm parent."""

    def __init__(self, folder: Path, *, heaviest: bool) -> None:
        self._folder = folder
        own = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}  # servers are here
        self._parent = subprocess.Popen(
            [sys.executable, __file__, *(HEAVIEST if heaviest else ())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**own, **ONE_THREAD, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"},
        )

    def run(
        self,
        argv: Sequence[object],
        env: Mapping[str, str] | None = None,
        *,
        kill_after: float | None = None,
        timeout: float = LONGEST,
        cwd: Path | None = None,
        before: str = "",
    ) -> Ended:
        """Run a command to its end, or SIGKILL it after some seconds. AssertionError when it hangs.

        before: Python code that the child runs first.
        """
        with tempfile.TemporaryDirectory(dir=self._folder) as spot:
            out, err = f"{spot}/out", f"{spot}/err"
            start = time.monotonic()
            where = {"out": out, "err": err, "cwd": str(cwd or spot)}
            child = self._ask(argv=[str(one) for one in argv], env=dict(env or {}), before=before, **where)
            hangs = kill_after is None
            timer = threading.Timer(timeout if kill_after is None else kill_after, _kill, [child])
            timer.start()
            code = int(self._ask(wait=child))
            timer.cancel()
            timer.join()
            ended = Ended(code, _read(out), _read(err), time.monotonic() - start)
        assert not (hangs and ended.killed), f"{argv} still ran after {timeout} s: {ended.err}"
        return ended

    def close(self) -> None:
        """End the parent."""
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        self._parent.wait(30)
        assert self._parent.stdout is not None
        self._parent.stdout.close()

    def _ask(self, **request: Any) -> Any:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(request) + "\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace") if Path(path).exists() else ""


def _serve() -> None:
    for name in (*HEAVY, *sys.argv[1:]):
        import_module(name)
    for name in MAYBE if sys.argv[1:] else ():
        with contextlib.suppress(ImportError):
            import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                _become(request)
        print(json.dumps(answer), flush=True)


def _become(request: dict[str, Any]) -> None:
    """The child's whole life."""
    from lmkbc.cli import main

    code = 1
    try:
        os.setsid()
        for place, number in ((os.devnull, 0), (request["out"], 1), (request["err"], 2)):
            os.dup2(os.open(place, os.O_RDWR | os.O_CREAT), number)
        os.chdir(request["cwd"])
        os.environ.update(request["env"])
        sys.argv = ["lmkbc", *request["argv"]]
        exec(request["before"], {})
        main()
        code = 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else int(stopped.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
