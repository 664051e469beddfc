"""The directory of a run: its name, and the rules for replacing earlier files.

A run is finished, or lacks answers. It asks all queries of a split, or a subset of them. A run of a subset does not
replace a run of all queries. A run that lacks answers does not replace a finished run, but is written beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lmkbc.errors import InputError, LmkbcError
from lmkbc.files.atomic import Kind, check_replaceable, write_directory
from lmkbc.files.buffer import Content
from lmkbc.run import submission
from lmkbc.run.subset import Subset

RUNS = Path("submissions")
_LISTED = {submission.PREDICTIONS, submission.ARCHIVE, submission.CANDIDATES, submission.RETRIEVED}
_LISTED |= {submission.MISSING, submission.WITHHELD, submission.REPLIES}
RUN = Kind("a run", submission.MANIFEST, frozenset(_LISTED), beside=frozenset({submission.TIMING, submission.REPORT}))


def named(edition: str, split: str, system: str, subset: Subset | None = None) -> Path:
    """Return the default directory of a run. A run of a subset has a name of its own."""
    return RUNS / f"{edition}-{split}-{system}{subset.suffix if subset else ''}"


def timings(edition: str, system: str, own: Path) -> list[Path]:
    """Return the timing files of earlier runs of a system. The first is that of the run to be replaced."""
    others = sorted(RUNS.glob(f"{edition}-*-{system}*"))
    return [directory / submission.TIMING for directory in (own, *others)]


def check(directory: Path, subset: Subset | None = None) -> None:
    """Raise InputError if a run must not be written to a directory. Call it before anything is generated."""
    check_replaceable(directory, RUN)
    there = _manifest(directory)
    if subset is not None and there is not None and there.get("limit") is None and not there.get("relations"):
        first = f"the first {subset.limit}" if subset.limit is not None else "some relations"
        raise InputError(
            f"{directory} holds a run of all queries, which one of {first} must not replace: name another "
            "directory, or leave out --out"
        )


def write(directory: Path, files: Mapping[str, Content]) -> Path:
    """Write a run, and return its directory. LmkbcError if it would have to replace a finished run.

    A run that lacks answers is written beside a finished one.
    """
    if submission.PREDICTIONS in files:
        write_directory(directory, files, RUN)
        return directory
    for place in (directory, directory.with_name(f"{directory.name}-unfinished")):
        there = _manifest(place)
        if there is None or submission.PREDICTIONS not in there["outputs"]:
            write_directory(place, files, RUN)
            return place
    raise LmkbcError(
        f"queries failed, and what the others gave is not written, since {directory} and {place} hold finished runs: "
        "name another directory with --out"
    )


def unfinished(failures: str, directory: Path, files: Collection[str]) -> LmkbcError:
    """Return the error for a run that lacks answers, with advice.

    failures: number of failed queries and the first one, as the beginning of a sentence.
    """
    kept = (
        f", and {directory / submission.CANDIDATES} keeps what the others gave"
        if submission.CANDIDATES in files
        else ""
    )
    return LmkbcError(
        f"{failures}; a failed query is no empty answer, so there is no submission yet: "
        f"{directory / submission.MISSING} lists them{kept}; give their answers with one more --from, run the "
        "command again where a model is asked, or submit them as empty with --failed-as-empty"
    )


def _manifest(directory: Path) -> Mapping[str, Any] | None:
    """Return a run's manifest; None if the directory holds no run."""
    if RUN.own(directory) is None:
        return None
    return submission.read_manifest(directory / submission.MANIFEST)
