"""The directory of a run: its name, and which files it may replace.

A run is finished, or lacks answers. It asks all queries of a split, or a subset of them. A run of a subset does not
replace a run of all queries. A run that lacks answers does not replace a finished run, but goes beside it.
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
    """Return the default directory of a run. A run of a subset of the queries has a name of its own."""
    return RUNS / f"{edition}-{split}-{system}{subset.suffix if subset else ''}"


def timings(edition: str, system: str, own: Path) -> list[Path]:
    """Return the timing files of earlier runs of a system: first that of the run which is to be replaced."""
    others = sorted(RUNS.glob(f"{edition}-*-{system}*"))
    return [directory / submission.TIMING for directory in (own, *others)]


def check(directory: Path, subset: Subset | None = None) -> None:
    """InputError where a run must not be written, before anything is generated."""
    check_replaceable(directory, RUN)
    there = _manifest(directory)
    if subset is not None and there is not None and there.get("limit") is None and not there.get("relations"):
        first = f"the first {subset.limit}" if subset.limit is not None else "some relations"
        raise InputError(
            f"{directory} holds a run of all queries, which one of {first} must not replace: name another "
            "directory, or leave out --out"
        )


def write(directory: Path, files: Mapping[str, Content]) -> Path:
    """Write a run, and tell where: one that lacks answers stays beside a finished one. LmkbcError without a place."""
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
    """Return the error of a run that lacks answers, with how to go on.

    failures: how many there are, and the first, as a sentence begins.
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
    """Return what a run's manifest says; None where there is none of ours."""
    if RUN.own(directory) is None:
        return None
    return submission.read_manifest(directory / submission.MANIFEST)
