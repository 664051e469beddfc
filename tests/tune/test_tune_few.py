"""Tuning on few rows: nothing is chosen that no row has tested, and no confidence is sure."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Command
from rows import jsonl
from space import MINI, SPACE

from lmkbc.plan import Origin
from lmkbc.select.selector import PerRelation, confidences
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Query, Source, State
from lmkbc.tune import tuned_rules
from tests.rules import rule_of
from tests.tuned import tuned

EDITION = SPACE.edition("2023")
BORDERS, SPOUSE, DEATH = "CountryBordersCountry", "PersonHasSpouse", "PersonHasPlaceOfDeath"
OWN = PerRelation(rule_of("cutoff", threshold=0.5))


def rows(relation: str, *given: tuple[str, dict[str, float]]) -> tuple[list[CandidateSet], list[Example]]:
    """Queries, each with its gold objects, one letter each, and its candidates with their share of five draws."""
    sets, examples = [], []
    for number, (gold, scores) in enumerate(given):
        query = Query(f"s{number}", relation)
        found = [Candidate(name, score, (Source("m", "0"),), id=name) for name, score in scores.items()]
        sets.append(CandidateSet(query, tuple(found), (State.ANSWERED,) * 5))
        examples.append(Example(query, tuple(GoldObject((name,), name) for name in gold)))
    return sets, examples


def run(sets: list[CandidateSet], examples: list[Example]) -> Any:
    return tuned(sets, examples, EDITION, relations=SPACE.relations, selector=OWN, trials=0)


def read_again(made: Any, tmp_path: Path) -> tuned_rules.Thresholds:
    about = tuned_rules.Provenance.of(made, Origin(), edition="2023", system="s", data_sha256="", candidates_sha256="")
    tuned_rules.write(tmp_path / "t.toml", made, about)
    return tuned_rules.read(tmp_path / "t.toml", OWN)


@pytest.mark.parametrize(
    ("given", "empty"),
    [
        ([("", {})] * 68 + [("A", {})] * 32, True),  # no candidate at all
        ([("", {})] * 7 + [("A", {})] * 3, False),  # ten rows do not show that most gold is empty
        ([("", {})] * 3 + [("A", {})] * 7, False),
        ([("", {})], False),  # one row is no evidence
        ([("", {"B": 0.6})] * 2, False),
        ([("", {"B": 0.6})] * 2 + [("A", {})], False),
        ([("", {"B": 0.6})] * 5, False),
        ([("", {"B": 0.6}), ("A", {})], False),
        ([("", {"B": 0.6})] * 2 + [("A", {"A": 0.6})], False),  # a candidate is right
        ([("A", {"A": 0.6})], False),
        ([("A", {"A": 0.4})], False),  # one row, on which a tuned rule would be right
        ([("", {"B": 0.2})] * 6, True),  # all gold empty
        ([("", {"B": 0.2})] * 12 + [("A", {"B": 0.2})], True),  # every candidate wrong, one distinct score
        ([("A", {"B": 0.2})] * 6, False),
        ([("A", {"A": 0.6})] * 6, False),  # all right, one distinct score
        ([("A", {"A": 0.6}), ("B", {"B": 0.9})] * 4, False),
    ],
)
def test_where_rules_tie_the_surest_is_chosen(given: list[tuple[str, dict[str, float]]], empty: bool) -> None:
    relation = run(*rows(SPOUSE, *given)).relations[SPOUSE]
    assert relation.rule == (rule_of("cutoff", threshold=2.0) if empty else OWN.general)
    why = "fewer than 6 labelled rows are answered" if len(given) < 6 else "no tuned one is clearly better"
    assert relation.reason.startswith("nothing is kept" if empty else f"by the recipe's own rule, since {why}")


def test_a_rule_is_tuned_where_this_is_clearly_better_and_the_figure_out_of_fold_says_so() -> None:
    low = [(chr(65 + number), {chr(65 + number): 0.2, "Z": 0.05}) for number in range(20)]
    sets, examples = rows(BORDERS, *low)
    made = run(sets, examples)
    assert made.relations[BORDERS].reason == ""
    assert made.untuned_macro_f1 == 0
    assert made.cv_macro_f1 == 1
    few = run(sets[:1] + [replace(one, candidates=()) for one in sets[1:]], examples)
    assert few.relations[BORDERS].rule == OWN.general  # one row is no evidence
    assert few.cv_macro_f1 == few.untuned_macro_f1


def test_one_object_where_a_relation_declares_it_and_it_pays(tmp_path: Path) -> None:
    both = {"A": 0.9, "B": 0.8}
    made = run(*rows(DEATH, *[("A", both)] * 8))
    assert made.relations[DEATH].most == 1
    assert made.cv_macro_f1 == 1 > made.untuned_macro_f1
    again = read_again(made, tmp_path).selector
    assert [one.text for one in again.select_all(rows(DEATH, ("A", both))[0])[0].objects] == ["A"]
    assert run(*rows(DEATH, *[("AB", both)] * 8)).relations[DEATH].most is None
    assert run(*rows(SPOUSE, *[("A", both)] * 8)).relations[SPOUSE].most is None  # declares no limit


@pytest.mark.parametrize("number", [3, 6])
def test_few_rows_make_no_sure_confidence(number: int, tmp_path: Path) -> None:
    given = [(name, {name: 0.2 + 0.2 * (place % 2)}) for place, name in enumerate("ABCDEF"[:number])]
    sets, examples = rows(BORDERS, *given)
    read = read_again(run(sets, examples), tmp_path)
    sure = [p for one in confidences(read.selector, sets) for p in one.p]
    assert 0.1 < min(sure) <= max(sure) < 0.9
    assert read.few == {BORDERS: number}


def test_a_relation_of_which_no_answer_was_read_is_a_row_that_says_so(command: Command) -> None:
    said = {BORDERS: ['["Peru"]'], "PersonHasNumberOfChildren": [None]}
    queries = [query for query in SPACE.queries(MINI, "val") if query.relation in said]
    jsonl(
        Path("a.jsonl"),
        [
            {"SubjectEntity": one.subject, "Relation": one.relation, "completions": said[one.relation]}
            for one in queries
        ],
    )
    jsonl(Path("search.json"), ['{"Peru": "Q419"}'])
    words = "--edition mini --split val --relation country-borders --relation children --trials 0 --offline"
    shown, told = command.done(
        "tune", "--from", "a.jsonl", "--search-table", "search.json", "--no-write", *words.split()
    )
    rows = [line.split() for line in shown.splitlines() if line.startswith("PersonHasNumberOfChildren")]
    assert rows == ["PersonHasNumberOfChildren 20 0 0.000 0.000 0.000 - not tuned: no answer was read".split()]
    assert "not tuned: no answer was read: PersonHasNumberOfChildren" in told
    assert "20 of 40 queries have no answer: they count as wrong, not as empty" in told
    assert "most of the split" not in told


def test_rows_without_an_answer_are_counted_and_teach_nothing(command: Command, tmp_path: Path) -> None:
    queries = [query for query in SPACE.queries(MINI, "val") if query.relation == BORDERS]
    answered = [one for one in queries if one.subject not in {query.subject for query in queries[7:]}]
    jsonl(
        tmp_path / "a.jsonl",
        [{"SubjectEntity": one.subject, "Relation": BORDERS, "completions": ['["Peru"]']} for one in answered],
    )
    jsonl(tmp_path / "search.json", ['{"Peru": "Q419"}'])
    (tmp_path / "lmkbc.toml").write_text("")
    asked = "--edition mini --split val --trials 0 --offline --from a.jsonl --search-table search.json".split()
    shown, told = command.done("tune", *asked)
    every = len(SPACE.queries(MINI, "val"))
    assert f"{every - 7} of {every} queries have no answer" in told
    assert "rules are learned from the other 7, so most of the split is not answered" in told
    assert f"fewer than 20 answered rows: {BORDERS} (7)" in told
    assert next(line.split()[1:3] for line in shown.splitlines() if line.startswith(BORDERS)) == ["20", "7"]
    (path,) = tmp_path.glob("thresholds/mini/*.toml")
    assert tuned_rules.read(path).few == {BORDERS: 7}  # runs with these rules say so


def test_without_a_workspace_nothing_is_written_into_the_checkout(command: Command, tmp_path: Path) -> None:
    tune = ("tune", "--edition", "mini", "--system", "prior", "--trials", "0", "--rules", "cutoff")
    told = command.fails(*tune)
    assert "there is no workspace here to write thresholds/ to: an empty file lmkbc.toml makes this folder one" in told
    command.done(*tune, "--no-write")
    command.done(*tune, "--relation", "country-borders")  # of a part, nothing is written
    (tmp_path / "lmkbc.toml").write_text("")
    assert f"wrote {tmp_path / 'thresholds' / 'mini' / 'prior.toml'}\n" in command.done(*tune)[1]
    command.patch.chdir(tmp_path.parent)
    told = command.done(*tune, "--overwrite", "--workspace", tmp_path.name)[1]
    assert f"wrote {tmp_path / 'thresholds' / 'mini' / 'prior.toml'}\n" in told


def test_many_rows_are_not_marked(tmp_path: Path) -> None:
    assert not read_again(run(*rows(BORDERS, *[("A", {"A": 0.9})] * 20)), tmp_path).few


def test_a_calibration_that_is_worse_than_the_share_is_not_used() -> None:
    """Of ten draws, one always names what is right in one row of ten: no fit on other rows is better."""
    rng = np.random.default_rng(1)
    noise = [("A" if rng.random() < share else "B", {"A": share}) for share in rng.random(24).round(2)]
    sets, examples = rows(SPOUSE, *noise)
    sets = [replace(one, draws=(State.ANSWERED,) * 1000) for one in sets]
    found = run(sets, examples).confidences
    assert found.relations[SPOUSE].calibration.weights == {"share": 1.0}
