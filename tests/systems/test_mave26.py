"""MAVE: a model groups names of one object, once for each query with several; several questions decide on a fact."""

import json
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, prompt_of
from opened import part, recipe_of
from space import SPACE
from writing import Writing

from lmkbc import InputError
from lmkbc.plan import Plan
from lmkbc.run.pipeline import propose
from lmkbc.systems.mave26.system import NameGrouper
from lmkbc.testing import Candidate, CandidateSet, Query, Run, State
from tests.candidates import candidate_set, sources

NAME = "companyTradesAtStockExchange"
RELATIONS = {NAME: SPACE.relation(NAME)}
ACME = Query("Acme", NAME)


def named(source: str, *names: str, query: Query = ACME) -> CandidateSet:
    return candidate_set(query, tuple(Candidate(name, 1.0, sources(f"{source}#0")) for name in names))


GIVEN = [
    [named("a", "Milan Bourse", "Nasdaq")],
    [named("b", "Borsa Milano", "NASDAQ")],
    [named("c", "Borsa Milano", "Tokyo")],
]  # shown as 1. Borsa Milano, 2. NASDAQ, 3. Milan Bourse, 4. Tokyo


@pytest.mark.parametrize(
    ("reply", "texts"),
    [
        ("1, 3", [["Borsa Milano", "Nasdaq"], ["Borsa Milano", "NASDAQ"], ["Borsa Milano", "Tokyo"]]),
        (
            "<think>2, 4</think>1 and 3\n3, 4",
            [["Borsa Milano", "Nasdaq"], ["Borsa Milano", "NASDAQ"], ["Borsa Milano", "Tokyo"]],
        ),
        ("2, 4, 99", [["Milan Bourse", "NASDAQ"], ["Borsa Milano", "NASDAQ"], ["Borsa Milano", "NASDAQ"]]),
        ("0", None),
        ("They all differ.", None),
        ("", None),
    ],
)
def test_names_of_a_group_become_the_one_that_most_sources_propose(reply: str, texts: list[list[str]] | None) -> None:
    model = Writing(reply)
    found = NameGrouper(model, RELATIONS).merged(GIVEN)
    (prompt,) = model.asked
    assert "1. Borsa Milano\n2. NASDAQ\n3. Milan Bourse\n4. Tokyo\n" in prompt
    if texts is None:
        assert found == GIVEN
    else:
        assert [[candidate.text for candidate in one.candidates] for (one,) in found] == texts
        assert [one.draws for (one,) in found] == [(State.ANSWERED,)] * 3


def test_a_query_that_the_model_could_not_be_asked_about_is_missing_and_others_are_not() -> None:
    alone = Query("Lone", NAME)
    given = [[*sets, named("x", "Nasdaq", query=alone)] for sets in GIVEN]
    found = NameGrouper(Writing(None), RELATIONS).merged(given)
    assert [[one.failed for one in sets] for sets in found] == [[True, False]] * 3
    assert not any(one.candidates for sets in found for one in sets[:1])


def test_nobody_is_asked_about_one_name_nor_about_other_relations() -> None:
    model = Writing("1, 2")
    assert NameGrouper(model, RELATIONS).merged([[named("a", "NYSE")], [named("b", "nyse")]])
    assert NameGrouper(model, {}).merged(GIVEN) == GIVEN
    assert NameGrouper(model, RELATIONS).merged([[], []]) == [[], []]
    assert model.asked == []


def recipe(**pool: Any) -> Any:
    source = {"component": "chat", "model": "m", "shots": {"k": 0}}
    each = [{"name": "a"}, {"name": "b", "prompt": {"task": "Say."}}]
    select = {"rule": "quorum", "models": 2}
    return recipe_of({**source, "each": each}, select=select, pool=pool)


def test_sources_that_name_one_object_differently_agree(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        text = prompt_of(body)
        return "1, 2" if "Write the numbers" in text else '["Ruritania"]' if "Say." in text else '["Grand Duchy of it"]'

    queries = [Query(name, "CountryBordersCountry") for name in ("Zenda", "Strelsau")]
    with Loopback(answer) as server:
        servers = {"base_url": server.url, "store": tmp_path / "s.sqlite"}
        for served in (6, 0):
            before = server.served
            run = Run(workspace=SPACE, edition=SPACE.edition("mini"), servers=servers)
            group = recipe(component="mave26/names", ask={"component": "chat", "model": "m"})
            made = propose(Plan.of(run, group), queries)
            assert server.served - before == served
            assert [[(one.text, len(one.by_model)) for one in found.candidates] for found in made.sets] == [
                [("Grand Duchy of it", 2)]
            ] * 2
            assert made.usage["group"]["requests"] == served // 3
        run = Run(workspace=SPACE, edition=SPACE.edition("mini"), servers=servers)
        apart = propose(Plan.of(run, recipe()), queries)
    assert [len(found.candidates) for found in apart.sets] == [2, 2]
    path = tmp_path / "a.jsonl"
    row = {"SubjectEntity": "Zenda", "Relation": "CountryBordersCountry", "completions": ['["Ruritania"]']}
    path.write_text("".join(json.dumps(row | {"model": name}) + "\n" for name in "ab"))
    replayed = Run(workspace=SPACE, edition=SPACE.edition("mini"), files=(path,))  # no model is given that could group
    (found,) = propose(Plan.of(replayed, group), queries[:1]).sets
    assert [(one.text, len(one.by_model)) for one in found.candidates] == [("Ruritania", 2)]


BORDERS = {"CountryBordersCountry": SPACE.relation("CountryBordersCountry")}
FRANCE = candidate_set(Query("France", "CountryBordersCountry"), (Candidate("Spain", 0.8),))


def judged(says: tuple[str, ...], **table: Any) -> tuple[list[str], float | None]:
    """What is asked about France and Spain, and its score."""
    scorer = Drawing(says)
    (found,) = part("verify", component="mave26/questions", **table).open(scorer, BORDERS, []).verify([FRANCE])
    return scorer.asked, found.candidates[0].verification


class Drawing(Writing):
    """A model that gives the same replies to all."""

    def __init__(self, says: tuple[str, ...]) -> None:
        super().__init__()
        self._says = says

    def drawn(self, prompt: str) -> list[str | None]:
        return [*self._says]


def test_questions_judge_by_the_word_that_affirms_and_each_has_one_vote() -> None:
    asks = [
        {"ask": "{{ question }} Is {{ object }} of {{ subject }}?"},
        {"ask": "What border has {{ object }}?", "holds": "Land"},
    ]
    asked, score = judged(("Land.", "Sea"), variants=[], questions=asks)
    question = BORDERS["CountryBordersCountry"].question.format(subject="France")
    assert asked == [f"{question} Is Spain of France?", "What border has Spain?"]
    assert score == 0.5
    for wrong in (
        {"ask": "Is it {{ subject }}?"},
        {"ask": "{{ object }} {{ mask }}?"},
        {"ask": "{{ object }}?", "holds": "on land"},
    ):
        with pytest.raises(InputError, match=r"verify"):
            part("verify", component="mave26/questions", **{"questions": [wrong]})
    with pytest.raises(InputError, match="at least one variant"):
        part("verify", component="mave26/questions", **{"variants": []})
