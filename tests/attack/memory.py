"""The memory of a process of its own, as the process reads it: what the system counts for a child begins at the
peak of its parent, which may be larger.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEAK = """
import atexit, os, pathlib, re, resource
def peak():
    own = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())
    return max(int(own[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) // 1024
atexit.register(lambda: pathlib.Path(os.environ["PEAK"]).write_text(str(peak())))
"""


def measured(code: str, *words: object, environment: Mapping[str, str] | None = None) -> tuple[int, str, int]:
    """Run Python code on words. Return its exit status, what it wrote, and its peak in MB or its child's."""
    with tempfile.TemporaryDirectory() as folder:
        told, peak = (Path(folder, name) for name in ("told", "peak"))
        own = {**os.environ, "PYTHONPATH": str(ROOT), "PEAK": str(peak), **(environment or {})}
        argv: Sequence[str] = [sys.executable, "-c", PEAK + code, *map(str, words)]
        with told.open("wb") as out:
            done = subprocess.run(argv, cwd=folder, stdout=out, stderr=out, env=own, check=False)
        return done.returncode, told.read_text("utf-8", "replace"), int(peak.read_text())
