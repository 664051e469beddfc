"""Objects that models named and that were not kept: counted by the rule that dropped them, and no abstention."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command import Command
from space import MINI, SPACE

from lmkbc.answer.clean import sifted
from lmkbc.files.places import RecordedFile
from lmkbc.generate.recorded import Recorded
from lmkbc.run.submission import candidate_lines
from lmkbc.select.pool import Pool
from lmkbc.testing import Candidate, Dropped, Query, Ranking, State
from tests.answer.test_clean import AREA, CLOSED, COUNT, OPEN, SUBJECT
from tests.candidates import candidate_set, sources

RULES = [
    (OPEN, "Acme Motors, Inc.", "subject"),
    (OPEN, "Public", "stop"),
    (OPEN, "Organisation 2", "placeholder"),
    (OPEN, "##ing", "no name"),
    (OPEN, "x" * 400, "no name"),
    (CLOSED, "Beta", "closed"),
    (CLOSED, "...", "no name"),
    (AREA, "0.1", "minimum"),
    (COUNT, "501", "maximum"),
    (COUNT, "2.5", "integer"),
    (COUNT, "many", "no number"),
    (COUNT, "1e30", "no number"),
]


@pytest.mark.parametrize(("relation", "text", "rule"), RULES, ids=[f"{text[:9]} {rule}" for _, text, rule in RULES])
def test_what_is_dropped_is_named_with_its_rule(relation: Any, text: str, rule: str) -> None:
    assert sifted([text], relation, SUBJECT) == ((), (Dropped(text[:300], rule),))


def test_pooling_keeps_what_was_dropped_and_counts_its_source() -> None:
    query = Query("a", MINI.relations[0])
    gone = candidate_set(query, (), (State.DROPPED,), (Dropped("b", "stop"),))
    named = candidate_set(query, (Candidate("c", 1.0, sources("m#0")),), (State.ANSWERED,))
    (pooled,) = Pool(edition=MINI).merge([[gone], [named]])
    assert (pooled.dropped, pooled.draws) == ((Dropped("b", "stop"),), (State.DROPPED, State.ANSWERED))
    assert pooled.candidates[0].score == 0.5
    assert not gone.failed
    assert Ranking.of([gone]).abstained.tolist() == [0.0]


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    queries = SPACE.queries(MINI, "val")
    kinds = [SPACE.relation(query.relation).kind for query in queries]
    named = ["[101, 2.5]" if kind == "number" else '["{}", "##x", "##X"]' for kind in kinds]
    said = [text.format(query.subject) for text, query in zip(named, queries, strict=True)]
    said[1] = "[]"
    rows = [
        {"SubjectEntity": query.subject, "Relation": query.relation, "completions": [text]}
        for query, text in zip(queries, said, strict=True)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_predict_counts_and_shows_them(command: Command, answers: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["predict", "--edition", "mini", "--split", "val", "--from", answers, "--out", out]
    _, told = command.done(*arguments)
    counts = json.loads((out / "manifest.json").read_bytes())["counts"]
    assert counts["dropped"] == counts["empty"] - 1 == counts["queries"] - 1
    assert sum(counts["dropped_objects"].values()) == 2 * counts["dropped"]
    assert f"{2 * counts['dropped']} objects dropped (" in told
    assert all(rule in told for rule in ("no name", "too large", "not whole", "the subject itself"))
    assert f"{counts['dropped']} queries lost all named objects so" in told
    assert f"replies of models: {', '.join(f'{count} {state}' for state, count in counts['draws'].items())}" in told
    assert counts["draws"] == {"abstained": 1, "answered": 1, "dropped": counts["dropped"] - 1}
    rows = [json.loads(line) for line in gzip.decompress((out / "candidates.jsonl.gz").read_bytes()).splitlines()]
    silent = [row for row in rows if not any(one["object"] for one in row["candidates"])]
    assert sum(bool(row.get("dropped")) for row in rows) == len(silent) - 1 > 100
    assert "dropped" not in rows[1]
    each_once = [{(name.casefold(), rule) for name, rule in row.get("dropped_objects", ())} for row in rows]
    listed = Counter(rule for some in each_once for _, rule in some)
    listed["link"] = sum(bool(one["object"]) and "id" not in one for row in rows for one in row["candidates"])
    assert +listed == counts["dropped_objects"]


def test_a_run_s_own_candidates_say_so_too(answers: Path, tmp_path: Path) -> None:
    queries = SPACE.queries(MINI, "val")
    sets = list(Recorded([RecordedFile(answers)], MINI, SPACE.relations).generate(queries))
    path = tmp_path / "candidates.jsonl.gz"
    path.write_bytes(candidate_lines(Pool(edition=MINI).merge([sets])))
    again = list(Recorded([RecordedFile(path)], MINI, SPACE.relations).generate(queries))
    assert [one.draws for one in again] == [one.draws for one in sets]
    assert again[0].draws == (State.DROPPED,)
    assert again[1].draws == (State.ABSTAINED,)
