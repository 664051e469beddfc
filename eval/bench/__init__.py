"""Benchmarks: `python -m eval.bench NAME`, from the root of a checkout.

A module with a `main` is a benchmark, under its own name. Every one knows `--small`: a run of a second or two on little
data, which the tests make, so that no change of the engine breaks a benchmark unseen. Its figures mean nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parents[2]
EDITIONS = ("2022", "2023", "2024", "2025", "2026")
sys.path += [str(ROOT / "tests" / folder) for folder in ("", "link", "evaluation")]  # their own servers and tiny models
Row = TypeVar("Row")


def parser_of(about: str | None, *rows: str, data: bool = True, figures: bool = False) -> argparse.ArgumentParser:
    """Return a parser with the options that benchmarks share.

    about: text of the benchmark. rows: those to choose from. data: whether it reads official splits. figures: whether
    documents show its tables.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="a run of a second or two, to try the benchmark")
    if data:
        parser.add_argument("--data", type=Path, help="directory of the official splits (default: $LMKBC_DATA)")
    if figures:
        parser.add_argument("--figures", type=Path, metavar="FILE", help="keep tables in this file (eval/figures.toml)")
    if rows:
        listed = f"of {', '.join(rows)}; all by default"
        parser.add_argument("rows", nargs="*", type=one_of(rows), default=rows, metavar="ROW", help=listed)
    return parser


def few_of(rows: Sequence[Row], limit: int | None) -> list[Row]:
    """Return at most so many rows, evenly spaced; all without a limit."""
    return list(rows[:: max(1, -(-len(rows) // limit))] if limit else rows)


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """Return a type of argparse that takes these names only."""

    def name(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(names)}")
        return text

    return name


def parsed(parser: argparse.ArgumentParser, argv: Sequence[str], **small: Any) -> argparse.Namespace:
    """Return the given options. small: defaults of the small run."""
    if "--small" in argv:
        parser.set_defaults(**small)
    return parser.parse_args(argv)


@contextmanager
def model_of(given: argparse.Namespace) -> Iterator[str]:
    """Yield the given model; for a small run, a tiny random one, which is a GGUF file."""
    if not given.small:
        yield given.model
        return
    from tiny_gguf import write

    with tempfile.TemporaryDirectory() as folder:
        yield str(write(Path(folder) / "tiny.gguf", fields={"llama.context_length": 65536}))


class Timed(NamedTuple):
    """Result of a call, its CPU-seconds, which hardly depend on the machine's load, and its wall seconds."""

    result: Any
    cpu: float
    wall: float


def timed(work: Callable[..., Any], *given: Any, **named: Any) -> Timed:
    """Call a function, and return its result with its cost."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(*given, **named)
    return Timed(result, time.process_time() - cpu, time.perf_counter() - wall)


def peak_mb() -> int:
    """Return the peak memory of this program in MB. getrusage may include the process that started it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024 // 10**6
