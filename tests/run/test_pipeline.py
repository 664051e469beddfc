"""A run's steps tell of its whole, though its queries pass through them in blocks."""

import json
import logging
import re
from pathlib import Path

import pytest
from loopback import Loopback
from opened import recipe_of
from space import SPACE

from lmkbc import InputError
from lmkbc.plan import Plan
from lmkbc.run.pipeline import Steps
from lmkbc.testing import Query, Run

RELATION = "CountryBordersCountry"
QUERIES = [Query(name, RELATION) for name in ("Chad", "Mali", "Niger", "Peru", "Togo")]


def recorded(path: Path, *answered: str) -> Path:
    """A file of recorded answers to some subjects."""
    rows = [{"SubjectEntity": name, "Relation": RELATION, "completions": ["None"]} for name in answered]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def over(*files: Path) -> Steps:
    """The steps over recorded answers."""
    run = Run(workspace=SPACE, edition=SPACE.edition("mini"), files=files)
    return Steps(Plan.of(run, recipe_of({"component": "recorded"})))


def steps(path: Path, *answered: str) -> Steps:
    """The steps over recorded answers to some subjects."""
    return over(recorded(path, *answered))


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
@pytest.mark.parametrize(
    ("files", "told"),
    [
        ((("Chad", "Mali", "Niger"), ("Niger", "Peru", "Togo")), []),
        ((("Chad", "Mali", "Niger"), ("Peru",)), ["no file answers 1 of 5 queries", "1.jsonl answers 1 of 5 queries"]),
        ((("Chad",), ("Chad",)), ["0.jsonl answers 1", "no file answers 4 of 5 queries", "1.jsonl answers 1"]),
    ],
)
def test_of_several_files_what_none_answers_is_counted(
    files: tuple[tuple[str, ...], ...], told: list[str], block: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened = over(*(recorded(tmp_path / f"{at}.jsonl", *answered) for at, answered in enumerate(files)))
    assert sum(len(some.sets) for some in opened.over(QUERIES, block=block)) == 5
    with caplog.at_level(logging.INFO, logger="lmkbc"):
        opened.ended()
    assert len(caplog.messages) == len(told)
    assert all(part in message for part, message in zip(told, caplog.messages, strict=True)), caplog.messages


@pytest.mark.parametrize("block", [1, 2, 5, 9])
def test_a_file_that_answers_no_query_of_any_block_ends_the_run(block: int, tmp_path: Path) -> None:
    opened = steps(tmp_path / "a.jsonl", "Atlantis")
    assert all(one.failed for some in opened.over(QUERIES, block=block) for one in some.sets)
    with pytest.raises(InputError, match="answers none of the 5 queries of edition mini, first"):
        opened.ended()


def test_progress_counts_new_answers_while_checks_hold_the_queries_back(tmp_path: Path) -> None:
    table = {"component": "chat", "model": "m", "sampling": {"samples": 3}, "verify": {"by": "text"}}
    recipe = recipe_of(table, select={"rule": "verified", "inner": {"rule": "cutoff", "threshold": 0.1}})
    made = list[list[tuple[str, int]]]()
    heard = list[tuple[str, str]]()
    with Loopback(lambda body: "True" if "True or False" in str(body) else '["Peru"]') as server:
        servers = {"base_url": server.url, "store": tmp_path / "s.sqlite", "prices": (1.0, 1000.0), "concurrency": 1}
        for _ in range(2):  # the second time, the store has all answers
            seen = list[tuple[str, int]]()
            run = Run(workspace=SPACE, edition=SPACE.edition("mini"), servers=servers)
            given = Steps(
                Plan.of(run, recipe),
                lambda step, done, _, seen=seen: seen.append((step, done)),  # type: ignore[misc]
                lambda query, text: heard.append((query.subject, text)),
            )
            list(given.over(QUERIES[:2]))
            made.append([(re.sub(r"[\d.]+ tokens", "N tokens", step), at) for step, at in seen if "chat" in step])
    counts = ((3, 0.0301), (6, 0.0602), (7, 0.0703), (8, 0.0804))
    answered = [f"chat (queries, {count} answers, N tokens/s, cost {cost:.4f})" for count, cost in counts]
    done = [(answered[-1], 1), (answered[-1], 2)]
    expected = [("chat (queries)", 0), *((step, 0) for step in answered), *done]
    assert [entry for entry in dict.fromkeys(made[0]) if entry in expected] == expected  # others: of calls that wait
    assert made[1] == [("chat (queries)", at) for at in range(3)]
    assert heard == [(one.subject, '["Peru"]') for one in QUERIES[:2] for _ in range(3)] * 2
