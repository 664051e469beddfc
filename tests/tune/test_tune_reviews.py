"""`lmkbc tune --reviews`: subjects that a person decided are learned from, and no figure is of them."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bases import fact, written
from command import Command
from rows import jsonl
from small import give_mini
from space import SPACE

from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Query, Source, State
from lmkbc.tune.learn import tune
from lmkbc.tune.tuning_set import TuningOptions, TuningSet
from tests.rules import rule_of
from tests.tuned import PLAIN

BORDERS = "CountryBordersCountry"
EDITION, MINI = SPACE.edition("2023"), SPACE.edition("mini")


def rows(names: Sequence[str], score: float, *, is_right: bool) -> list[tuple[CandidateSet, Example]]:
    """A row a subject, with one candidate; right or wrong."""
    made = []
    for name in names:
        query = Query(name, BORDERS)
        found = CandidateSet(query, (Candidate("A", score, (Source("m", "0"),), id="A"),), (State.ANSWERED,))
        made.append((found, Example(query, (GoldObject(("A",), "A" if is_right else "B"),))))
    return made


def learned(own: Sequence[Any], reviewed: Sequence[Any]) -> Any:
    sets, examples = zip(*own, *reviewed, strict=True)
    how = TuningOptions(trials=0)
    selector = PLAIN.under({BORDERS: rule_of("cutoff", threshold=0.5)})
    return tune(TuningSet(sets, examples, EDITION, SPACE.relations, selector, how, len(reviewed)))


def test_decided_rows_change_the_rule_and_stand_in_no_figure() -> None:
    own = rows(["s"], 0.2, is_right=True)
    alone = learned(own, [])
    assert alone.relations[BORDERS].reason, "one row is too few to leave the recipe's rule"
    assert alone.cv_macro_f1 == 0
    more = learned(own, rows([f"r{n}" for n in range(30)], 0.2, is_right=True))
    assert more.relations[BORDERS].reason == ""
    assert (more.cv_macro_f1, more.relations[BORDERS].rows) == (1, 1)
    assert [made.query.subject for made in more.predictions] == ["s"]
    worse = learned(own, rows([f"r{n}" for n in range(30)], 0.9, is_right=False))
    assert worse.relations[BORDERS].rule != more.relations[BORDERS].rule
    for made in (alone, more, worse):
        assert sum(one.candidates for one in made.confidences.raw.bins) == 1
        assert sum(one.candidates for one in made.confidences.calibrated.bins) == 1


def recorded(path: str = "own.jsonl") -> str:
    """A file of answers about the rows of val and subject 0."""
    val = [example.query for example in SPACE.examples(MINI, "val") if example.query.relation == BORDERS]
    rows = [Query("subject 0", BORDERS, "Q1"), *val]
    fields = ("SubjectEntity", "SubjectEntityID", "Relation", "completions")
    texts = [(row.subject, row.subject_id, BORDERS, ["Mali"]) for row in rows]
    return str(jsonl(Path(path), [dict(zip(fields, values, strict=True)) for values in texts]))


def reviewed(command: Command, decided: dict[str, str]) -> None:
    facts = [fact(0, "country-borders", name, 0.5, object_id=f"Q{n}") for n, name in enumerate(("Niger", "Mali"), 10)]
    written(Path("kb"), facts)
    cells = "".join(f"country-borders,subject 0,Q1,{name},{word}\n" for name, word in decided.items())
    Path("labels.csv").write_text(f"relation,subject,subject_id,object,label\n{cells}")
    command.done("review", "kb", "labels.csv")


@pytest.mark.whole(but=["decided0-1", "decided2-0"])
@pytest.mark.parametrize(
    ("decided", "count"),
    [
        ({"Niger": "right", "Mali": "right"}, 1),
        ({"Niger": "right", "Mali": "wrong"}, 1),
        ({"Niger": "right"}, 0),  # another fact is undecided
        ({"Niger": "wrong", "Mali": "wrong"}, 0),  # what it lacks is unknown
        ({"Niger": "right", "Mali": "cannot tell"}, 0),
    ],
)
def test_a_subject_counts_once_all_its_facts_are_decided(command: Command, decided: dict[str, str], count: int) -> None:
    reviewed(command, decided)
    options = ["--edition", "mini", "--system", "few-shot", "--relation", BORDERS, "--trials", "0", "--reviews", "kb"]
    _, told = command.done("tune", "--from", recorded(), *options)
    assert f"{count} row" in told
    assert "no figure above is of them" in told


def test_thresholds_say_how_many_decided_rows_they_learned_from(command: Command) -> None:
    reviewed(command, {"Niger": "right", "Mali": "right"})
    give_mini(Path(), BORDERS)
    command.done(
        *("tune", "--from", recorded(), "--edition", "mini", "--system", "few-shot", "--trials", "0"),
        *("--reviews", "kb", "--workspace", "."),
    )
    (path,) = Path("thresholds/mini").glob("*.toml")
    assert tomllib.loads(path.read_text())["provenance"]["reviewed_rows"] == 1
