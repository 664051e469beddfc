"""The command `python -m eval.bench`: a list of the benchmarks, or one of them by its name."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

from lmkbc.commands.terminal import error_status


def benchmarks() -> dict[str, str]:
    """Return name -> first line of the docstring of each benchmark."""
    paths = sorted(path for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("_"))
    texts = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in paths}
    return {name: text.partition("\n")[0] for name, text in texts.items()}


def main(words: list[str]) -> None:
    """Run the benchmark that the first word names, with the other words; without a word, list all."""
    known = benchmarks()
    if words and words[0] in known:
        sys.argv = [f"python -m eval.bench {words[0]}", *words[1:]]
        import_module(f"eval.bench.{words[0]}").main(words[1:])
    elif words and not words[0].startswith("-"):
        sys.exit(f"no benchmark {words[0]!r}: there are {', '.join(known)}")
    else:
        print("python -m eval.bench NAME [--help] [--small]")
        for name, line in known.items():
            print(f"  {name:10} {line}")


if __name__ == "__main__":
    with error_status():
        main(sys.argv[1:])
