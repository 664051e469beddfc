"""The directory of a run: its files and manifest, its name, and the rules for replacing earlier files.

A run is finished, or lacks answers. A finished run is replaced only by a finished run of the same recipe, inputs and
options (`ASKED`); every other run is written beside it.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from lmkbc.ask.context import lines as lines_of
from lmkbc.edition import Edition
from lmkbc.errors import InputError, LmkbcError, counted
from lmkbc.files.atomic import Buffer, Content, DirectoryKind, check_replaceable, digest, versions, write_directory
from lmkbc.plan import Plan
from lmkbc.run import submission
from lmkbc.run.pipeline import Block
from lmkbc.run.saved import ASKED, differences, is_subset
from lmkbc.select.selector import PerRelation
from lmkbc.session.statements import Statements
from lmkbc.session.subset import Subset
from lmkbc.types import CandidateSet, Prediction, Query, State

log = logging.getLogger(__name__)

GROWING = (
    submission.PREDICTIONS,
    submission.MISSING,
    submission.WITHHELD,
    submission.CANDIDATES,
    submission.RETRIEVED,
    submission.REPLIES,
)
"""Files that grow with each block."""
PACKAGES = ("lmkbc", "numpy", "scikit-learn", "torch", "transformers")


class RunFiles:
    """The files of a run directory. They grow block by block, and are deleted when this object is closed.

    If queries failed, there is a list of them. Queries whose answers could not be parsed have no row among the
    predictions, and there is no zip. If queries got no answer at all, or no answer could be parsed, there are only
    candidates and no predictions. as_empty: whether failed queries count as empty answers. statements: what labelled
    rows state; None if this is not counted.
    """

    def __init__(self, edition: Edition, *, as_empty: bool = False, statements: Statements | None = None) -> None:
        self._edition, self._as_empty = edition, as_empty
        self._open = ExitStack()
        self._buffers = {
            name: self._open.enter_context(closing(Buffer(packed=name.endswith(".gz")))) for name in GROWING
        }
        self.tally = RunCounts(edition, as_empty=as_empty, statements=statements)

    def add(self, block: Block, predictions: Sequence[Prediction]) -> None:
        """Add a block, and its selected predictions."""
        self.tally.add(block.sets, predictions)
        answered = predictions if self._as_empty else [one for one in predictions if not one.failed]
        unasked = {one.query for one in block.sets if State.UNASKED in one.draws}
        replies = {query: its for query, its in block.replies.items() if query not in unasked}
        written = {
            submission.PREDICTIONS: submission.prediction_lines(self._edition, answered),
            submission.MISSING: submission.missing_lines(block.sets),
            submission.WITHHELD: submission.withheld_lines(predictions),
            submission.CANDIDATES: submission.candidate_rows(block.sets),
            submission.RETRIEVED: lines_of(block.passages),
            submission.REPLIES: submission.reply_rows(replies),
        }
        for name, lines in written.items():
            if lines:
                self._buffers[name].write(lines)

    def finished(self, about: Mapping[str, Any], note: str | None = None) -> dict[str, Content]:
        """Return the files, without a zip if the run asked a subset of the split.

        about: the fields `ASKED` of the manifest. note: the user's remark.
        """
        files: dict[str, Content] = {name: buffer for name, buffer in self._buffers.items() if buffer.pieces}
        predictions = self._buffers[submission.PREDICTIONS]
        files.pop(submission.PREDICTIONS, None)
        if self.tally.is_finished:
            whole = not is_subset(about) and not self.tally.unreadable
            archive = {submission.ARCHIVE: submission.archive(predictions)} if whole else {}
            files = {submission.PREDICTIONS: predictions, **archive, **files}
        manifest = {
            **about,
            **({"note": note} if note else {}),
            "counts": self.tally.counts,
            "outputs": {name: digest(content) for name, content in files.items()},
            "versions": versions(*PACKAGES),
        }
        files[submission.MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=2) + "\n").encode()
        return files

    def close(self) -> None:
        """Close and delete the files."""
        self._open.close()


class RunCounts:
    """Counts of a run. first_failed: the first query without an answer.

    withheld: number of empty answers that do not mean "no object". unreadable: failed queries, if all of them got an
    answer that could not be parsed, and they do not count as empty. stated_by_labels: number of kept objects that
    labelled rows state from the other side; 0 if this is not counted. left_out, none_kept: number of objects
    that could be submitted and that the rule did not keep; queries of which it kept none.
    """

    def __init__(self, edition: Edition, *, as_empty: bool = False, statements: Statements | None = None) -> None:
        self._edition, self._as_empty, self._unread = edition, as_empty, set[Query]()
        self._statements = statements
        self.queries = self.objects = self.failed = self.empty = self.dropped = self.withheld = 0
        self.stated_by_labels = self.left_out = self.none_kept = 0
        self.first_failed: Query | None = None
        self._lacking = 0
        self._rules: Counter[str] = Counter()
        self._draws: Counter[str] = Counter()

    def add(self, sets: Sequence[CandidateSet], predictions: Sequence[Prediction]) -> None:
        """Count some queries' candidates and predictions."""
        for candidates, prediction in zip(sets, predictions, strict=True):
            size = len(submission.answers(self._edition, prediction))
            self.queries += 1
            self.objects += size
            if self._statements and size:
                stated = (one for one in prediction.objects if self._statements.from_other_side(prediction.query, one))
                self.stated_by_labels += len(submission.answers(self._edition, replace(prediction, objects=(*stated,))))
            self.failed += prediction.failed
            self.empty += not size and not prediction.failed
            self.withheld += bool(prediction.withheld)
            if prediction.failed:
                self.first_failed = self.first_failed or prediction.query
                self._lacking += candidates.lacks_replies or not candidates.draws
                self._unread.add(prediction.query)
            lost = submission.losses(self._edition, candidates)
            if not prediction.failed:
                able = sum(bool(self._edition.value(one)) for one in candidates.candidates)
                self.dropped += bool(lost) and not able
                self.left_out += max(0, able - size)
                self.none_kept += able > 0 == size
            self._rules.update(loss.rule for loss in lost)
            self._draws.update(map(str, candidates.draws))

    @property
    def is_finished(self) -> bool:
        """Return whether the run can be written: no query needs another request, and some answers could be parsed."""
        return self._as_empty or not self.failed or (not self._lacking and self.failed < self.queries)

    @property
    def unreadable(self) -> Set[Query]:
        """Return the queries of a finished run that have no row."""
        return self._unread if self.is_finished and not self._as_empty else frozenset()

    @property
    def failures(self) -> str:
        """Return the number of failed queries and the first one, as the beginning of a sentence."""
        first = self.first_failed or Query("", "")
        return (
            f"{self.failed} of {counted(self.queries, 'query')} failed, first ({first.subject!r}, {first.relation!r})"
        )

    @property
    def rules(self) -> dict[str, int]:
        """Return rule -> number of objects that it dropped."""
        return dict(sorted(self._rules.items()))

    @property
    def counts(self) -> dict[str, Any]:
        """Return the counts by name.

        stated_by_labels: number of objects that labelled rows state from the other side.
        dropped: number of empty answers whose named objects were all dropped. dropped_objects: rule -> number of
        objects. draws: state of a draw -> number. as_empty: whether failed queries count as empty answers.
        """
        names = [
            "queries",
            "objects",
            "stated_by_labels",
            "failed",
            "empty",
            "dropped",
            *(["withheld"] if self.withheld else []),
        ]
        return {name: getattr(self, name) for name in names} | {
            "dropped_objects": self.rules,
            "draws": dict(sorted(self._draws.items())),
            **({"as_empty": True} if self._as_empty and self.failed else {}),
        }


def identity(plan: Plan, provenance: Mapping[str, Any], subset: Subset | None = None) -> dict[str, Any]:
    """Return the part of a manifest that is known before the run: the fields `ASKED`, as JSON values."""
    run = plan.run
    about = {
        **plan.about,
        "split": run.split,
        "learn_from": list(run.labelled_splits if run.learn_from is None else run.learn_from),
        **({"limit": subset.limit} if subset and subset.limit is not None else {}),
        **({"relations": sorted(subset.relations)} if subset and subset.relations else {}),
        "selection": provenance,
        "inputs": plan.inputs | plan.code,
    }
    return dict(json.loads(json.dumps({name: about[name] for name in ASKED if name in about}, default=dict)))


RUNS = Path("submissions")
RUN = DirectoryKind(
    "a run",
    submission.MANIFEST,
    frozenset((*GROWING, submission.ARCHIVE)),
    beside=frozenset({submission.TIMING, submission.REPORT}),
)


def named(
    edition: str, split: str, system: str, subset: Subset | None = None, selector: PerRelation | None = None
) -> Path:
    """Return the default directory of a run. A run of a subset, or one that keeps less, has a name of its own."""
    less = "".join(narrowing.suffix for narrowing in selector.narrowings) if selector else ""
    return RUNS / f"{edition}-{split}-{system}{subset.suffix if subset else ''}{less}"


def timings(edition: str, system: str, own: Path) -> list[Path]:
    """Return the timing files of earlier runs of a system. The first is that of the run to be replaced."""
    return [directory / submission.TIMING for directory in (own, *sorted(RUNS.glob(f"{edition}-*-{system}*")))]


def check(directory: Path, about: Mapping[str, Any]) -> None:
    """Raise InputError if a run must not be written to a directory. Call it before anything is generated."""
    check_replaceable(directory, RUN)
    if other := _difference(directory, about):
        raise InputError(
            f"{directory} holds another run, which is not replaced: other {other}; name another directory, or remove it"
        )


def free(directory: Path, about: Mapping[str, Any], known: Path | None = None) -> Path:
    """Return the first of NAME, NAME-2, NAME-3 and so on that holds no finished run of another recipe or input.

    A message says why it is not the first. known: place that the user knows already.
    """
    places = (directory.with_name(f"{directory.name}-{number}") if number > 1 else directory for number in count(1))
    place = next(place for place in places if not _difference(place, about))
    if place not in (directory, known):
        why = f" (other {_difference(directory, about)})" if about else ""
        log.info("%s keeps another run%s: this one is %s", directory, why, place)
    return place


def _difference(directory: Path, about: Mapping[str, Any]) -> str:
    """Return what was asked otherwise by the finished run in a directory, in words; "" if there is none."""
    there = earlier(directory)
    if there is None or submission.PREDICTIONS not in there["outputs"]:
        return ""
    paths = differences(there, about, [name for name in ASKED if name != "models" or name in about])
    found = [
        *dict.fromkeys(path if path.startswith(("recipe", "inputs")) else path.partition(".")[0] for path in paths)
    ]
    return f"{', '.join(found[:3])}{', ...' if len(found) > 3 else ''}"


def write(directory: Path, files: Mapping[str, Content], first: Path, about: Mapping[str, Any]) -> Path:
    """Write a run, and return its directory. No finished run is replaced, except by the same run.

    first: directory whose name gets a number if another run is there. about: the fields `ASKED` of the manifest, with
    the models that gave answers. A run that lacks answers is written beside a finished one, and so is a run of other
    models than were known before.
    """
    if submission.PREDICTIONS in files:
        place = free(first, about, directory)
    elif _difference(directory, {}):
        place = free(directory.with_name(f"{directory.name}-unfinished"), {})
    else:
        place = directory
    write_directory(place, files, RUN)
    return place


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


def earlier(directory: Path) -> Mapping[str, Any] | None:
    """Return a run's manifest; None if the directory holds no run."""
    if RUN.own(directory) is None:
        return None
    return submission.read_manifest(directory / submission.MANIFEST)
