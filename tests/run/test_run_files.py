"""A run's files grow block by block, and are those of the whole: however its queries are parted, the same bytes."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from opened import recipe_of
from space import MINI, SPACE

from lmkbc.ask.context import lines as passage_lines
from lmkbc.files.atomic import pieces
from lmkbc.plan import Plan
from lmkbc.run import submission
from lmkbc.run.directory import RunFiles, identity
from lmkbc.run.pipeline import Block
from lmkbc.testing import Candidate, CandidateSet, Dropped, Nil, Passage, Prediction, Query, Run, Source, State

PLAN = Plan.of(Run(workspace=SPACE, edition=MINI, split="val"), recipe_of({"component": "prior"}))
ABOUT = identity(PLAN, {"how": "so"})
Row = tuple[CandidateSet, Prediction, list[Passage]]

texts = st.text(max_size=4)
shares = st.floats(0, 1)
sources = st.lists(st.builds(Source, st.sampled_from(["m", "n"]), st.sampled_from(["", "0", "1"])), max_size=2).map(
    tuple
)
objects = st.builds(
    Candidate, texts, shares, sources, st.sampled_from(["Q1", "Q2", "Q3"]), verification=st.none() | shares
)
nils = st.lists(st.builds(Nil, shares, sources), max_size=1).map(tuple)
losses = st.lists(st.builds(Dropped, texts, st.sampled_from(["subject", "link"])), max_size=1).map(tuple)
passages = st.lists(st.builds(Passage, texts, texts, shares), max_size=1)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Queries with candidates, what is kept of them, and what their prompts held; some failed, some withheld."""
    made: list[Row] = []
    for place in range(draw(st.integers(1, 6))):
        query = Query(f"{draw(texts)} {place}", draw(st.sampled_from(MINI.relations[:3])))
        found = passages if draw(st.booleans()) else st.just([])
        if draw(st.integers(0, 3)) == 0:
            state = draw(st.sampled_from([State.MISSING, State.UNPARSED, State.UNPARSED]))
            made.append((CandidateSet(query, draws=(state,)), Prediction(query, failed=True), draw(found)))
            continue
        held = draw(st.lists(objects, max_size=3, unique_by=lambda one: one.id))
        one = CandidateSet(query, tuple(held), (State.ANSWERED,), draw(losses), draw(nils), draw(nils))
        kept = tuple(held[: draw(st.integers(0, len(held)))])
        made.append(
            (one, Prediction(query, kept, withheld="" if kept else draw(st.sampled_from(["", "x"]))), draw(found))
        )
    return made


def written(rows: Sequence[Row], cuts: Sequence[int], *, failed_as_empty: bool) -> dict[str, bytes]:
    """The files of a run whose blocks end where it is cut."""
    with closing(RunFiles(MINI, as_empty=failed_as_empty)) as files:
        for start, end in pairwise([0, *cuts, len(rows)]):
            sets, predictions, found = zip(*rows[start:end], strict=True)
            queries = tuple(one.query for one in sets)
            held = {query: some for query, some in zip(queries, found, strict=True) if some}
            files.add(Block(queries, sets, held), predictions)
        made = files.finished(ABOUT)
        return {name: b"".join(pieces(content)) for name, content in made.items()}


@given(rows(), st.data(), st.booleans())
def test_blocks_make_the_files_of_the_whole(rows: list[Row], data: st.DataObject, failed_as_empty: bool) -> None:
    places = st.lists(st.integers(1, len(rows) - 1), unique=True) if len(rows) > 1 else st.just([])
    files = written(rows, sorted(data.draw(places)), failed_as_empty=failed_as_empty)
    sets, predictions, found = zip(*rows, strict=True)
    answered = [one for one in predictions if failed_as_empty or not one.failed]
    lines = submission.prediction_lines(MINI, answered)
    whole = {
        submission.MISSING: submission.missing_lines(sets),
        submission.WITHHELD: submission.withheld_lines(predictions),
        submission.RETRIEVED: passage_lines({one.query: some for one, some in zip(sets, found, strict=True) if some}),
        submission.CANDIDATES: submission.candidate_lines(sets) if submission.candidate_rows(sets) else b"",
    }
    if failed_as_empty or not whole[submission.MISSING]:
        whole |= {submission.PREDICTIONS: lines, submission.ARCHIVE: submission.archive(lines)}
    elif answered and all(State.MISSING not in one.draws for one in sets):  # replies that nobody can read
        whole |= {submission.PREDICTIONS: lines}
    manifest = files.pop(submission.MANIFEST)
    assert files == {name: content for name, content in whole.items() if content}
    assert manifest == written(rows, [], failed_as_empty=failed_as_empty)[submission.MANIFEST]
    listed = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    assert json.loads(manifest)["outputs"] == listed
