"""A run's steps tell of its whole, though its queries pass through them in blocks."""

import json
import logging
from pathlib import Path

import pytest
from opened import recipe_of
from space import SPACE

from lmkbc.errors import InputError
from lmkbc.run.pipeline import Steps
from lmkbc.run.run import Run
from lmkbc.types import Query

RELATION = "CountryBordersCountry"
QUERIES = [Query(name, RELATION) for name in ("Chad", "Mali", "Niger", "Peru", "Togo")]


def steps(path: Path, *answered: str) -> Steps:
    """The steps over recorded answers to some subjects."""
    rows = [{"SubjectEntity": name, "Relation": RELATION, "completions": ["None"]} for name in answered]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Steps(
        Run(workspace=SPACE, edition=SPACE.edition("mini"), files=(path,)), recipe_of({"component": "recorded"})
    )


@pytest.mark.parametrize("block", [1, 2, 5, 9])
@pytest.mark.parametrize("answered", ["Chad", "Niger", "Togo"])
def test_a_file_may_answer_subjects_of_any_block_alone(
    block: int, answered: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = steps(tmp_path / "a.jsonl", answered)
    sets = [one for some in opened.over(QUERIES, block=block) for one in some.sets]
    assert [one.query.subject for one in sets if not one.failed] == [answered]
    with caplog.at_level(logging.INFO, logger="lmkbc"):
        opened.ended()
        opened.ended()
    assert caplog.text.count("lacks 4 of 5 queries") == 1


@pytest.mark.parametrize("block", [1, 2, 5, 9])
def test_a_file_that_answers_no_query_of_any_block_ends_the_run(block: int, tmp_path: Path) -> None:
    opened = steps(tmp_path / "a.jsonl", "Atlantis")
    assert all(one.failed for some in opened.over(QUERIES, block=block) for one in some.sets)
    with pytest.raises(InputError, match="answers none of the 5 queries of edition mini, first"):
        opened.ended()
