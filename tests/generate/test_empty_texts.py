"""Empty texts among recorded answers: said first, no agreement with anything, or an answer if the user says so."""

import gzip
import json
from pathlib import Path

import pytest
from command import Command
from rows import jsonl
from space import MINI, SPACE

from lmkbc.testing import State

SUBJECTS = [query for query in SPACE.queries(MINI, "val") if query.relation == "CountryBordersCountry"][:4]
RUN = "predict --edition mini --split val --relation country-borders --limit 4 --untuned --from said.jsonl --out run"
CUT = "I would rather\x1b[31m not say anything about this, since it is late and the"


@pytest.fixture
def said(command: Command) -> Command:
    """A run over texts: of the four queries, one has an answer beside an empty text, two are empty, one is cut off."""
    texts = (['["Peru"]', ""], ["", " \u200b"], [""], [CUT])
    rows = [
        {"SubjectEntity": query.subject, "Relation": query.relation, "completions": some}
        for query, some in zip(SUBJECTS, texts, strict=True)
    ]
    Path("said.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return command.under(*RUN.split())


def states() -> dict[str, int]:
    counts: dict[str, int] = json.loads(Path("run/manifest.json").read_text())["counts"]["draws"]
    return counts


def test_empty_texts_are_named_first_with_what_helps(said: Command) -> None:
    _, told = said.done()
    first, *_ = told.splitlines()
    assert "said.jsonl: 5 of 6 answers cannot be read, 4 are empty strings: --empty none counts them as" in first
    assert "1 truncated, such as 'I would rather\\x1b[31m not say" in first
    assert "'lmkbc report RUN --from FILE' shows all" in first
    assert "--fresh" not in told
    assert states() == {State.ANSWERED: 1, State.EMPTY: 4, State.TRUNCATED: 1}
    rows = [json.loads(line) for line in Path("run/missing.jsonl").read_text().splitlines()]
    assert [row["reason"] for row in rows] == ["empty", "empty", "truncated"]


def test_empty_texts_may_count_as_an_answer_which_is_another_run(said: Command) -> None:
    said.done()
    assert "holds another run, which is not replaced" in said.fails("--empty", "none")
    command = said.under("--empty", "none", "--out", "none")
    _, told = command.done()
    assert "1 of 6 answers cannot be read; 1 truncated" in told
    assert json.loads(Path("none/manifest.json").read_text())["empty"] == "none"
    rows = [json.loads(line) for line in Path("none/predictions.jsonl").read_text().splitlines()]
    assert [row["SubjectEntity"] for row in rows] == [query.subject for query in SUBJECTS[:3]]


def test_a_call_that_failed_is_counted_with_the_texts_that_are_not_read(said: Command) -> None:
    rows = [
        {"SubjectEntity": query.subject, "Relation": query.relation, "completions": some}
        for query, some in zip(SUBJECTS, ([None], [None, '["Chile"]'], ["", None, None], ['["Peru"]']), strict=True)
    ]
    jsonl(Path("said.jsonl"), rows)
    told = said.fails(status=1)
    assert "said.jsonl: 5 of 7 answers cannot be read, 1 is an empty string" in told
    assert "; 4 missing\n" in told


@pytest.mark.parametrize("of", ["answers", "replies"])
def test_an_empty_text_is_no_agreement_and_no_disagreement(of: str, said: Command) -> None:
    Path("own.toml").write_text(
        f'''description = "Answers."
pool = {{ of = "{of}" }}

[[generate]]
component = "recorded"

[select]
rule = "cutoff"
threshold = 0.1
'''
    )
    scores = {}
    for empty in ("unread", "none"):
        said.done("--system", "own.toml", "--empty", empty, "--out", empty, "--search-table", _table())
        scores[empty] = _score(Path(empty))
    assert scores == {"unread": 1.0, "none": 0.5}


def _table() -> Path:
    path = Path("search.json")
    path.write_text(json.dumps({"Peru": "Q419"}))
    return path


def _score(run: Path) -> float:
    """Return the score of the first query's object."""
    first = json.loads(gzip.decompress((run / "candidates.jsonl.gz").read_bytes()).splitlines()[0])
    return max(float(one["score"]) for one in first["candidates"] if one["object"] == "Peru")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--empty", "nothing", "--from", "said.jsonl"), "--empty is 'nothing': give unread or none"),
        (("--empty", "none", "--system", "naive-bayes"), "give unread or none, and recorded answers with --from"),
    ],
)
def test_a_meaning_that_makes_no_sense_is_refused(words: tuple[str, ...], told: str, command: Command) -> None:
    assert told in command.fails("predict", "--edition", "mini", "--split", "val", *words)
