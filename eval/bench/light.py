"""The light install, `pip install lmkbc` without extras: its megabytes and seconds, and each command's exit status.

    python eval/bench/light.py [--edition 2023] [--limit 100]

A wheel of this checkout is installed into two new environments. The second one counts, since pip's cache is then full.
Megabytes are those of `du`, for all that pip installed. pip and setuptools belong to an environment, and do not count.
Two parts have their own lines. The first is bytecode, which pip writes and uv does not. The second is the libraries
that the engine is built on, with all their requirements.

Then the commands run there on the validation split. Recorded answers are its gold, with every third answer made empty.
The server is that of the tests, and no connection leaves this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from lmkbc.cli.terminal import error_status
from lmkbc.files.jsonl import read_examples
from lmkbc.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
BUILT_ON = ("openai", "httpx2", "tenacity", "rapidfuzz", "optuna", "polars")
RECIPE = """
description = "A server is asked."
[[generate]]
component = "chat"
model = "stand-in"
sampling = { temperature = 0.0 }
[select]
rule = "cutoff"
threshold = 0.5
"""


def install(folder: Path, wheel: Path) -> float:
    """Install a wheel into a new environment; return the seconds."""
    venv.create(folder, with_pip=True)
    start = time.perf_counter()
    pip("install", "--constraint", ROOT / "constraints.txt", wheel, python=folder / "bin" / "python")
    return time.perf_counter() - start


def pip(*words: object, python: object = sys.executable) -> None:
    subprocess.run([str(python), "-m", "pip", "--quiet", *map(str, words)], check=True, stderr=subprocess.DEVNULL)


def disk(paths: Iterable[object]) -> float:
    """Return the megabytes on disk of files and folders."""
    listed = subprocess.run(["du", "-skc", *map(str, paths)], check=True, capture_output=True, text=True).stdout
    return int(listed.splitlines()[-1].split()[0]) / 1024


def sizes(site: Path) -> dict[str, float]:
    """Return name -> megabytes on disk of the content of an environment, the largest first."""
    found = {path.name: disk([path]) for path in site.iterdir() if not path.name.startswith(SEEDS)}
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def folded(name: str) -> str:
    """Return a distribution's name in the form that indexes compare."""
    return re.sub(r"[._-]+", "-", name).lower()


def needed(name: str, there: dict[str, Distribution], known: set[str]) -> Iterator[Distribution]:
    """Yield a distribution and its installed requirements, each once, without those of extras."""
    if folded(name) in known or folded(name) not in there:
        return
    known.add(folded(name))
    yield there[folded(name)]
    for line in there[folded(name)].requires or ():
        name, _, marker = line.partition(";")
        if "extra ==" not in marker and (found := _NAME.match(name)):
            yield from needed(found[0], there, known)


def parts(site: Path) -> Iterator[tuple[str, float]]:
    """Yield name and megabytes on disk of the two parts with their own lines."""
    yield "of it bytecode", disk(path for path in site.rglob("__pycache__") if not set(SEEDS) & set(path.parts))
    there, known = {folded(one.name): one for one in distributions(path=[str(site)])}, set[str]()
    built_on = [one for name in BUILT_ON for one in needed(name, there, known)]
    yield (
        f"of it {', '.join(BUILT_ON)}, and what they require",
        disk(path for one in built_on for path in map(one.locate_file, one.files or ()) if Path(str(path)).is_file()),
    )


def commands(edition: str, limit: int, url: str) -> Iterator[list[str]]:
    """Yield the commands as lists of words."""
    table = ["--search-table", "search.json"]
    of = ["--edition", edition, "--split", "val", "--limit", str(limit), *table]
    yield ["predict", *of, "--from", "answers.jsonl", "--out", "recorded"]
    yield ["predict", *of, "--system", "naive-bayes", "--out", "floor"]
    yield ["tune", *of, "--from", "answers.jsonl", "--trials", "5", "--no-write"]
    yield ["evaluate", "recorded", "--interval"]
    yield ["compare", "floor", "recorded", "--html", "compare.html"]
    yield ["report", "recorded", "--out", "report.html"]
    yield ["link", "recorded/predictions.jsonl", "--edition", edition, *table, "--out", "linked.jsonl"]
    server = ["--edition", edition, "--system", "chat.toml", "--base-url", url, *table]
    yield ["predict", *server, "--split", "val", "--limit", "5", "--out", "asked"]
    yield ["build", *server, "--subjects", "subjects.csv", "--out", "kb"]
    yield ["export", "kb", "--format", "ntriples", "--out", "kb.nt"]
    yield ["report", "kb"]
    yield ["audit", "kb", "--sample", "10", "--out", "audit"]


def write_input(space: Workspace, name: str) -> None:
    """Write the input files: recorded answers, a recipe for a server, subjects, and an empty search table."""
    edition = space.edition(name)
    rows = read_examples(space.split_path(edition, "val"), edition)
    with Path("answers.jsonl").open("w") as file:
        for place, row in enumerate(rows):
            names = [one.names[0] for one in row.objects if one.names] if place % 3 else []
            query = {"SubjectEntity": row.query.subject, "Relation": row.query.relation, "model": "gold"}
            file.write(json.dumps(query | {"completions": [json.dumps(names)]}) + "\n")
    Path("chat.toml").write_text(RECIPE)
    Path("search.json").write_text("{}")
    Path("subjects.csv").write_text(
        "id,name,class\nQ657,Chad,country\nQ736,Ecuador,country\nQ30,United States,country\nQ142,France,country\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edition", default="mini")
    parser.add_argument("--limit", type=int, default=100)
    given = parser.parse_args()
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pip("wheel", "--no-deps", "--wheel-dir", folder, ROOT)
        (wheel,) = Path(folder).glob("*.whl")
        seconds = [install(Path(folder, name), wheel) for name in ("first", "second")][-1]
        (site,) = Path(folder, "second", "lib").glob("*/site-packages")
        found = sizes(site)
        for name, megabytes in [*found.items()][:20]:
            print(f"{megabytes:7.1f} MB  {name}")
        print(f"{sum(found.values()):7.0f} MB  in all; installed in {seconds:.0f} s")
        for name, megabytes in parts(site):
            print(f"{megabytes:7.0f} MB  {name}")
        write_input(Workspace(), given.edition)
        server = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "loopback.py")], stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        try:
            for words in commands(given.edition, given.limit, server.stdout.readline().strip()):
                start = time.perf_counter()
                done = subprocess.run(
                    ["second/bin/lmkbc", *words], check=False, capture_output=True, text=True, env=plain
                )
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                print(
                    f"{time.perf_counter() - start:5.1f} s  status {done.returncode}  {' '.join(words)}",
                    *last,
                    sep="\n         ",
                )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    with error_status():
        main()
