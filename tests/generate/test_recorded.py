"""Recorded answers: both formats, matching, failures that stay failures, scores of any scale, errors with fields."""

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from command import Command
from opened import recipe_file
from space import SPACE

from lmkbc import InputError, Workspace
from lmkbc.files.places import RecordedFile
from lmkbc.generate.recorded import Recorded
from lmkbc.run.submission import candidate_lines
from lmkbc.select.pool import Pool
from lmkbc.testing import Candidate, CandidateSet, Dropped, Nil, Query, State
from tests.candidates import candidate_set, sources

EDITION = SPACE.edition("2023")
BAND, COUNT = "BandHasMember", "PersonHasNumberOfChildren"
QUERY = Query("The Clash", BAND)


def write(path: Path, *rows: dict[str, Any] | str) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def row(subject: str = "The Clash", relation: str = BAND, **fields: Any) -> dict[str, Any]:
    return {"SubjectEntity": subject, "Relation": relation, **fields}


def replay(path: Path, *queries: Query) -> list[CandidateSet]:
    return list(Recorded([RecordedFile(path)], EDITION, SPACE.relations).generate(queries or (QUERY,)))


def test_each_draw_is_a_source(tmp_path: Path) -> None:
    texts = ["['Joe Strummer', 'Mick Jones']", "None", "Joe Strummer", "", '["Joe', None]
    path = write(tmp_path / "a.jsonl", row(model="gpt", completions=texts, usage={"n": 1}, prompt="?"))
    (found,) = replay(path)
    assert found.draws == (
        State.ANSWERED,
        State.ABSTAINED,
        State.ANSWERED,
        State.EMPTY,
        State.TRUNCATED,
        State.MISSING,
    )
    assert found.candidates == (
        Candidate("Joe Strummer", 1.0, sources("gpt#0")),
        Candidate("Mick Jones", 1.0, sources("gpt#0")),
        Candidate("Joe Strummer", 1.0, sources("gpt#2")),
    )
    assert found.nothing == (Nil(1.0, sources("gpt#1")),)
    assert not found.failed


def test_an_answer_cleaned_to_nothing_is_still_an_answer(tmp_path: Path) -> None:
    (found,) = replay(write(tmp_path / "a.jsonl", row(completions=['["The Clash"]'])))
    assert (found.candidates, found.draws, found.failed) == ((), (State.DROPPED,), False)
    assert found.dropped == (Dropped("The Clash", "subject"),)


def test_existence_probabilities_are_a_source_of_their_own(tmp_path: Path) -> None:
    given = {"YES": 0.6, "NO": 0.2, "UNKNOWN": 0.2}
    rows = row(model="gpt", completions=["Ann Lee"], existence_probabilities=given), row("B", completions=["None"])
    found = replay(write(tmp_path / "a.jsonl", *rows))[0]
    assert found.nil_probabilities == (Nil(pytest.approx(0.25), sources("gpt")),)  # type: ignore[arg-type]
    assert found.draws == (State.ANSWERED,)
    per_draw = row(completions=["x", "y"], existence_probabilities=[0.5, 1.0])
    assert replay(write(tmp_path / "b.jsonl", per_draw))[0].nil_probabilities[0].score == pytest.approx(0.25)


def test_a_lacking_query_is_failed_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "a.jsonl", row(completions=["Ann Lee"]))
    recorded = Recorded([RecordedFile(path)], EDITION, SPACE.relations)
    with caplog.at_level(logging.INFO, logger="lmkbc"):
        (there,) = recorded.generate([QUERY])
        (lacking,) = recorded.generate([Query("Blur", BAND)])
        assert "lacks" not in caplog.text
        recorded.ended()
    assert lacking == candidate_set(Query("Blur", BAND), (), (State.MISSING,))
    assert lacking.failed
    assert not there.failed
    assert "lacks 1 of 2 queries" in caplog.text


def test_identifiers_tell_namesakes_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl",
        row(SubjectEntityID="Q1", completions=["Ann Lee"]),
        row(SubjectEntityID="Q2", completions=["Bo Day"]),
    )
    queries = [Query("The Clash", BAND, qid) for qid in ("Q2", "Q1", "Q3", None)]
    found = [[candidate.text for candidate in one.candidates] for one in replay(path, *queries)]
    assert found == [["Bo Day"], ["Ann Lee"], [], ["Ann Lee", "Bo Day"]]


def test_repeated_rows_are_further_draws(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row(completions=["Ann Lee"]), row(completions=["Bo Day"]))
    namesakes = replay(path, Query("The Clash", BAND, "Q1"), Query("The Clash", BAND, "Q2"))
    for found in namesakes:
        assert [candidate.sources for candidate in found.candidates] == [sources("a#0"), sources("a#1")]


def test_candidates_keep_scores_and_ids(tmp_path: Path) -> None:
    given = [
        {"object": "Joe Strummer", "score": 0.7, "id": "Q1"},
        {"object": "", "score": 0.2, "id": ""},
        {"object": "##ing", "score": 0.05},
        {"object": "Mick Jones.", "score": 0.04},
        {"object": "mick jones", "score": 0.1},
    ]
    (found,) = replay(write(tmp_path / "bert.candidates.jsonl", row(candidates=given)))
    assert found.candidates == (
        Candidate("Joe Strummer", 0.7, sources("bert"), "Q1"),
        Candidate("mick jones", 0.1, sources("bert")),
    )
    assert found.nothing == (Nil(0.2, sources("bert")),)
    assert found.draws == (State.ANSWERED,)


def test_a_number_is_its_own_id(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row("Ann", COUNT, candidates=[{"object": "4", "score": 0.5, "id": "Q202"}]))
    assert replay(path, Query("Ann", COUNT))[0].candidates == (Candidate("4", 0.5, sources("a")),)


def test_sources_are_sources(tmp_path: Path) -> None:
    given = [{"object": "Ann Lee", "score": 0.5, "source": "p1"}, {"object": "Ann Lee", "score": 0.3, "source": "p2"}]
    (found,) = replay(write(tmp_path / "a.jsonl", row(candidates=given)))
    assert [candidate.sources for candidate in found.candidates] == [sources("a#p1"), sources("a#p2")]
    assert len(found.draws) == 2


def test_no_candidates_is_an_empty_answer(tmp_path: Path) -> None:
    (found,) = replay(write(tmp_path / "a.jsonl", row(candidates=[])))
    assert (found.candidates, found.nothing, found.draws) == ((), (Nil(1.0, sources("a")),), (State.ABSTAINED,))


def test_an_id_that_no_submission_could_name_is_none(tmp_path: Path) -> None:
    given = [{"object": "Joe Strummer", "score": 0.7, "id": "[UNK]"}]
    for pooled in (False, True):
        (found,) = replay(write(tmp_path / "a.jsonl", row(candidates=given, pooled=pooled)))
        assert found.candidates == (Candidate("Joe Strummer", 0.7, sources("a")),)


def test_candidates_of_a_run_come_back_as_they_were_pooled(tmp_path: Path) -> None:
    pooled = candidate_set(
        QUERY,
        (
            Candidate("Joe Strummer", 0.9, sources("gpt#0", "gpt#1", "llama#0"), verification=0.75),
            Candidate("Mick Jones", 0.4, sources("llama#0"), "Q2", verification=0.0),
            Nil(0.1, sources("gpt#2")),
        ),
        nil_probabilities=(Nil(0.2, sources("gpt")),),
    )
    failed, empty = candidate_set(Query("Blur", BAND), (), (State.MISSING,)), candidate_set(Query("Bis", BAND))
    path = tmp_path / "candidates.jsonl.gz"
    path.write_bytes(candidate_lines([pooled, failed, empty]))
    found = replay(path, QUERY, failed.query, empty.query)
    assert found == [pooled, failed, candidate_set(empty.query, (), (State.ABSTAINED,))]
    (again, *_rest) = Pool(edition=EDITION).merge([found])
    assert [(c.text, c.score, c.sources, c.verification) for c in again.candidates] == [
        (c.text, c.score, c.sources, c.verification) for c in pooled.candidates
    ]
    for now, before in ((again.nothing, pooled.nothing), (again.nil_probabilities, pooled.nil_probabilities)):
        assert [(one.score, one.sources) for one in now] == [(one.score, one.sources) for one in before]


def test_files_speak_apart_and_together(tmp_path: Path) -> None:
    first = write(tmp_path / "one.jsonl", row(model="gpt", completions=["Ann Lee"]))
    second = write(tmp_path / "two.candidates.jsonl", row(model="gpt", candidates=[{"object": "Bo Day", "score": 0.5}]))
    packed = tmp_path / "three.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(row(model="llama", completions=["None"])).encode()))
    recorded = Recorded([RecordedFile(first), RecordedFile(second), RecordedFile(packed)], EDITION, SPACE.relations)
    apart = recorded.sources([QUERY])
    assert {name: sets[0].draws for name, sets in apart.items()} == {
        "one": (State.ANSWERED,),
        "two": (State.ANSWERED,),
        "llama": (State.ABSTAINED,),
    }
    (whole,) = recorded.generate([QUERY])
    assert [candidate.sources for candidate in whole.candidates] == [sources("one#0"), sources("two")]
    assert [nil.sources for nil in whole.nothing] == [sources("llama#0")]
    assert len(whole.draws) == 3


@pytest.mark.parametrize(
    ("name", "model", "manifest", "called"),
    [
        ("gpt-train.jsonl", None, None, "gpt"),
        ("my_model_val.jsonl", None, None, "my_model"),
        ("test.gpt.jsonl", None, None, "gpt"),
        ("val.jsonl", None, None, "val"),  # no other name is left
        ("a-train.jsonl", "gpt", {"model": "other"}, "gpt"),
        ("a-train.jsonl", None, {"model": "gpt"}, "gpt"),
        ("a-train.jsonl", None, {"models": ["gpt"], "model": "chat", "outputs": {"a-train.jsonl": "0"}}, "gpt"),
        ("a-train.jsonl", None, {"models": ["gpt"], "outputs": {"predictions.jsonl": "0"}}, "a"),  # of another run
        ("a-train.jsonl", None, {"models": 7}, "a"),
        ("a-train.jsonl", None, [], "a"),
    ],
)
def test_a_source_is_called_as_its_rows_say_else_the_manifest_beside_it_else_the_file(
    tmp_path: Path, name: str, model: str | None, manifest: Any, called: str
) -> None:
    path = write(tmp_path / name, row(completions=["Ann Lee"]) | ({"model": model} if model else {}))
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert list(Recorded([RecordedFile(path)], EDITION, SPACE.relations).sources([QUERY])) == [called]


def test_a_rule_of_a_recipe_finds_a_source_by_its_model(command: Command, tmp_path: Path) -> None:
    rows = [
        {"SubjectEntity": "Bosnia and Herzegovina", "Relation": "CountryBordersCountry", "completions": ["Croatia"]}
    ]
    write(tmp_path / "gpt-val.jsonl", *rows)
    write(tmp_path / "plain.jsonl", rows[0] | {"completions": ["Serbia"]})
    rule = {"rule": "source-filter", "source": ["gpt"], "inner": {"rule": "cutoff", "threshold": 0.1}}
    recipe = recipe_file(tmp_path / "mine.toml", {"component": "recorded"}, select=rule)
    files = ("--from", tmp_path / "gpt-val.jsonl", "--from", tmp_path / "plain.jsonl")
    asked = ("--edition", "mini", "--split", "val", "--failed-as-empty", "--no-report", "--untuned")
    command.done("predict", *asked, "--system", recipe, *files, "--out", tmp_path / "run")
    made = map(json.loads, (tmp_path / "run" / "predictions.jsonl").read_text().splitlines())
    kept = [one["ObjectEntitiesID"] for one in made if one["SubjectEntity"] == rows[0]["SubjectEntity"]]
    assert sorted(kept) == [[], ["Q224"]]  # Croatia alone, and nothing of another relation


def test_one_file_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", row(completions=["x"]))
    with pytest.raises(InputError, match="given twice"):
        Recorded([RecordedFile(path), RecordedFile(path)], EDITION, SPACE.relations)
    other = write(tmp_path / "a.candidates.jsonl", row(completions=["x"]))
    names = Recorded([RecordedFile(path), RecordedFile(other)], EDITION, SPACE.relations).sources([QUERY])
    assert list(names) == [f"{tmp_path.name}/a.jsonl", f"{tmp_path.name}/a.candidates.jsonl"]
    with pytest.raises(InputError, match="no recorded file"):
        Recorded([], EDITION, SPACE.relations)


def test_a_text_in_place_of_a_list_is_one_completion(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps(row(completions="Ann Lee")))
    (found,) = Recorded([RecordedFile(path)], EDITION, SPACE.relations).generate([QUERY])
    assert [one.text for one in found.candidates] == ["Ann Lee"]


GOOD = row(completions=["Ann Lee"])
BAD: list[tuple[dict[str, Any] | str, str]] = [
    (row(completions=["a", "b", "c"], parts=2), "line 2, field parts: 2 parts cannot be made of 3 completions"),
    (row(completions=["a", "b"], finish=["stop"]), "line 2, field finish: 1 values for 2 completions"),
    (row(completions=["a"], verification={"a": 2}), "line 2, field verification: 2 is out of range"),
    (row(relation="BandHasMembers", completions=[]), "line 2, field Relation: .*did you mean 'BandHasMember'"),
    (row(), "line 2, field completions: .*either"),
    (row(completions=["x"], candidates=[]), "line 2, field completions: .*either"),
    (row(completions=5), "line 2, field completions"),
    (row(completions=[1]), r"line 2, field completions\[0\]"),
    (row(candidates=[{"object": "x", "score": "high"}]), r"line 2, field candidates\[0\]\.score"),
    (row(candidates=[{"score": 1.0}]), r"line 2, field candidates\[0\].*object"),
    (json.dumps(row(candidates=[{"object": "x", "score": float("nan")}])), "line 2, field score: not a finite number"),
    (json.dumps(row(candidates=[{"object": "x", "score": float("-inf")}])), "line 2, field score: not a finite number"),
    (
        row(candidates=[{"object": "y", "score": 0.4}, {"object": "x", "score": -0.1}]),
        r"line 2, field candidates\[1\]\.score: -0.1 is out of range; give a number in \[0, 1\]",
    ),
    (
        row(candidates=[{"object": "\u0120Oslo", "score": 0.5}]),
        r"line 2, field candidates\[0\]\.object: '\u0120Oslo' is a token of a model's",
    ),
    (row(candidates=[{"object": "x", "score": 5}]), r"line 2, field candidates\[0\]\.score: 5 is out of range"),
    (row(candidates=[{"object": "", "score": 1.01}], pooled=True), r"line 2, field candidates\[0\]\.score: 1.01 is"),
    (row(candidates=[{"object": "x", "score": True}]), r"line 2, field candidates\[0\]\.score: Expected `float`, got"),
    (row(candidates=[{"object": "x", "score": None}]), r"line 2, field candidates\[0\]\.score: Expected `float`, got"),
    (json.dumps(row(candidates=[{"object": "x", "score": 7}])).replace("7", "1e999"), r"line 2, field .*out of range"),
    (row(candidates=[{"object": "x"}]), r"line 2, field candidates\[0\]: Object missing required field `score`"),
    (
        row(candidates=[{"object": "x", "score": 1, "verification": 1.5}]),
        r"line 2, field candidates\[0\]\.verification: 1.5 is out of range",
    ),
    (row(completions=["x"], existence_probabilities={"YES": 1.5}), "line 2, field existence_probabilities: 1.5"),
    ("{", "line 2: not valid JSON"),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_errors_name_file_line_and_field(tmp_path: Path, bad: dict[str, Any] | str, message: str) -> None:
    with pytest.raises(InputError, match=f"a.jsonl, {message}"):
        replay(write(tmp_path / "a.jsonl", GOOD, bad))


def test_a_text_that_mentions_nan_is_no_score(tmp_path: Path) -> None:
    assert replay(write(tmp_path / "a.jsonl", row(completions=['{"score": NaN, "answer": "Ann Lee"}'])))[0].candidates


RECORDED = [
    ("2023", "val", "2023-val/gpt4_n_0_m_0_c_0.jsonl.gz", 0.99),
    ("2023", "val", "2023-val/gpt3.5-turbo_n_0_m_0_c_0.jsonl.gz", 0.98),
    ("2026", "val", "2026-val/qwen__self_consistency.jsonl.gz", 0.95),
]


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.whole), 40])
@pytest.mark.parametrize(("edition", "split", "file", "share"), RECORDED)
def test_real_answers_are_nearly_all_read(
    data_dir: Path, edition: str, split: str, file: str, share: float, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = data_dir / "recorded" / file
    if not path.exists():
        pytest.skip(f"recorded answers absent: {file} is not in the data directory")
    space = Workspace(data=data_dir)
    recorded = Recorded([RecordedFile(path)], space.edition(edition), space.relations)
    sets = list(recorded.generate(space.queries(space.edition(edition), split)[::every]))
    states = [state for one in sets for state in one.draws]
    assert sum(state.is_answer for state in states) / len(states) >= share
    recorded.ended()
    assert "lacks" not in caplog.text
    assert not any(one.failed and State.MISSING in one.draws for one in sets)


def test_a_draw_that_never_came_to_its_answer_names_nothing(tmp_path: Path) -> None:
    thought = "The Clash were a band from London, whose members were Joe Strummer, Mick Jones and, for a while, "
    texts = [f"{thought} others.\nANSWER: Mick Jones", f"{thought} Terry Chimes, Topper", "Joe Strummer"]
    (found,) = replay(write(tmp_path / "a.jsonl", row(completions=texts)))
    assert found.draws == (State.ANSWERED, State.TRUNCATED, State.ANSWERED)
    assert [candidate.text for candidate in found.candidates] == ["Mick Jones", "Joe Strummer"]
    (alone,) = replay(write(tmp_path / "b.jsonl", row(completions=["ANSWER: Mick Jones", "A, B, C, D, E, " * 9])))
    assert alone.draws == (State.ANSWERED, State.ANSWERED)  # an answer without its reasoning is nothing to go by


@pytest.mark.parametrize("spelled", ["Rhone\u0302", " Rhonê", "Rhonê\xa0"])
def test_subjects_in_another_unicode_form_are_answered(
    tmp_path: Path, spelled: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [row(name, "RiverBasinsCountry", completions=["France"]) for name in ("x", spelled)]
    recorded = Recorded([RecordedFile(write(tmp_path / "a.jsonl", *rows))], EDITION, SPACE.relations)
    (found,) = recorded.generate([Query("Rhonê", "RiverBasinsCountry")])
    assert [one.text for one in found.candidates] == ["France"]
    recorded.ended(SPACE)
    assert "a.jsonl: 1 row is matched by Unicode form (NFC) and blanks, first" in caplog.text


def test_answers_of_another_split_are_named_as_such(tmp_path: Path, data_dir: Path) -> None:
    space = Workspace(data=data_dir)
    rows = [row(one.subject, one.relation, completions=["None"]) for one in space.queries(EDITION, "val")[:99]]
    recorded = Recorded([RecordedFile(write(tmp_path / "a.jsonl", *rows))], EDITION, space.relations)
    list(recorded.generate(space.queries(EDITION, "test")))
    with pytest.raises(InputError, match=r"answers none of the .* its answers are of val of edition 2023; name one"):
        recorded.ended(space)


THOUGHT = ("hasArea", "hasCapacity", "personHasCityOfDeath", "companyTradesAtStockExchange")


def _objects(path: Path) -> dict[tuple[str, str], list[str]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(row["SubjectEntity"], row["Relation"]): sorted(row["ObjectEntities"]) for row in rows}


@pytest.mark.whole
def test_twelve_draws_with_reasoning_give_what_their_authors_keep(
    command: Command, data_dir: Path, tmp_path: Path
) -> None:
    recorded = data_dir / "recorded" / "2026-test"
    files = [word for path in sorted(recorded.glob("muse__*.jsonl.gz")) for word in ("--from", path)]
    asked = [word for name in THOUGHT for word in ("--relation", name)]
    out = tmp_path / "run"
    options = ("--untuned", "--offline", "--no-report", "--failed-as-empty", "--data", data_dir, "--out", out)
    command.done(
        "predict", "--edition", "2026", "--split", "test", "--system", "duke26-plain", *files, *asked, *options
    )
    expected, kept = _objects(recorded / "muse__direct12.expected.jsonl"), _objects(out / "predictions.jsonl")
    equal = [query for query, objects in expected.items() if kept[query] == objects]
    assert (len(expected), len(equal)) == (398, 398)
