"""Questions asked first: compared words, bounds on what counts, names of a type as answers, and what follows."""

from dataclasses import replace
from typing import Any

import pytest
from opened import part
from small import small_relation
from tiny_families import probabilities

from lmkbc import EntityType, Precondition, Relation
from lmkbc.masked.backbone import Clozes
from lmkbc.masked.forward import Forward
from lmkbc.masked.masked import names_of_type
from lmkbc.masked.preconditions import Asker, rewritten
from lmkbc.masked.vocabulary import Words
from lmkbc.testing import Example, GoldObject, Query

COUNTRIES = ["France", "Papua New Guinea", "Italy", "Peru"]
DIED = Precondition(cloze="{subject} has {mask}.", answers=("died",), top_k=200, min_prob=1e-9, vetoes=frozenset({""}))


def weighed(**settings: Any) -> Any:
    """Return a precondition of li22's code."""
    return part("probe", preconditions={"*": [{"component": "li22/precondition", **settings}]}).preconditions["*"][0]


def typed(qid: str, top_k: int) -> Any:
    """Return a precondition of fang22's code."""
    slot = {"cloze": "{subject} is in {mask}.", "clozes": ["in {answer}, {subject} borders {mask}."]}
    table = {"component": "fang22/precondition", "type": qid, "top_k": top_k, **slot}
    return part("probe", preconditions={"*": [table]}).preconditions["*"][0]


SLOT = typed("Q6256", 10_000)


def asker(backbone: Any) -> Asker:
    names = {"Q6256": COUNTRIES}
    return Asker(Forward(backbone), Clozes(backbone), Words(backbone.tokenizer), lambda qid: names.get(qid, []))


def test_without_an_answer_the_usual_clozes_are_asked(backbone: Any) -> None:
    prepared = asker(backbone).prepare([typed("Q1", 5)], ["oslo", "lima"])
    assert [(one.clozes, one.vetoed) for one in prepared] == [((), 0.0)] * 2


@pytest.mark.parametrize("bound", ["top_k", "min_prob"])
def test_an_answer_counts_only_within_bounds(backbone: Any, bound: str) -> None:
    """The bounds are those of the whole vocabulary, whatever the answers share among themselves."""
    found = probabilities(backbone, "oslo has [MASK].")
    died = float(found[Words(backbone.tokenizer).single("died")])
    rank = int((found > died).sum())
    inside: Any = {"top_k": rank + 1} if bound == "top_k" else {"min_prob": died * 0.99}
    outside: Any = {"top_k": rank} if bound == "top_k" else {"min_prob": died * 1.01}
    for settings, counted in ((inside, {"died": pytest.approx(1)}), (outside, {})):
        one = Precondition(cloze=DIED.cloze, answers=("died",), vetoes=frozenset({""}), **settings)
        assert asker(backbone).answers(one, ["oslo"]) == [counted]
        assert asker(backbone).prepare([one], ["oslo"])[0].vetoed == pytest.approx(0 if counted else 1)


def test_preconditions_add_up(backbone: Any) -> None:
    kind = Precondition(cloze="{subject} is a {mask}.", answers=("dead", "alive"), vetoes=frozenset({"alive"}))
    one = asker(backbone).prepare([kind], ["oslo"])[0].vetoed
    both = asker(backbone).prepare([kind, SLOT, kind], ["oslo"])[0]
    assert both.vetoed == pytest.approx(1 - (1 - one) ** 2)
    assert both.clozes


def test_a_name_of_a_type_within_the_subject_says_nothing() -> None:
    kinds = Precondition(
        cloze="{subject} is a {mask}.", answers=("state", "city"), clozes=("the {answer} {subject} {mask}",)
    )
    assert rewritten(kinds, "Kansas City", {"state": 0.9, "city": 0.1}) == ("the city {subject} {mask}",)
    formed = weighed(
        cloze=kinds.cloze,
        answers=kinds.answers,
        clozes=["{subject} {mask}"],
        forms={"city": "the city of {subject}"},
    )
    assert rewritten(formed, "Topeka", {"city": 0.9}) == ("the city of {subject} {mask}",)
    assert rewritten(formed, "Topeka", {"state": 0.9}) == ("{subject} {mask}",)
    assert rewritten(SLOT, "New Peru", {"Italy": 0.9, "Peru": 0.1}) == ("in Italy, {subject} borders {mask}.",)


def test_names_of_a_type_are_subjects_and_objects() -> None:
    def relation(name: str, subject: str, thing: str) -> Relation:
        return small_relation(name, subject_type=EntityType("s", subject), object_type=EntityType("o", thing))

    relations = {"rivers": relation("rivers", "Q4022", "Q6256"), "borders": relation("borders", "Q6256", "Q6256")}
    rows = [
        Example(Query("Rhine", "rivers"), (GoldObject(("Federal Republic of Germany", "Germany")),)),
        Example(Query("France", "borders"), (GoldObject(("Germany",)), GoldObject(("Spain",)))),
    ]
    assert names_of_type(rows, relations, "Q6256") == ["Federal Republic of Germany", "Germany", "France", "Spain"]


def test_an_answer_may_count_more_than_once(backbone: Any) -> None:
    dead = weighed(cloze="{subject} is {mask}.", answers=["dead", "alive"], vetoes=["alive"])
    (once,) = asker(backbone).answers(dead, ["italy"])
    (twice,) = asker(backbone).answers(replace(dead, times={"dead": 2.0}), ["italy"])
    assert twice["dead"] / twice["alive"] == pytest.approx(2 * once["dead"] / once["alive"], rel=1e-4)
    for times in ({"undead": 2.0}, {"dead": 0.0}):
        with pytest.raises(ValueError, match="times must give"):
            replace(dead, times=times)


def test_where_no_answer_counts_one_may_be_drawn() -> None:
    kinds = ("state", "province", "city")
    kind = weighed(
        cloze="{subject} is a {mask}.", answers=kinds, top_k=1, drawn=True, clozes=["the {answer} {subject}: {mask}."]
    )
    drawn = [rewritten(kind, f"place {number}", {}) for number in range(30)]
    assert {clozes[0].split()[1] for clozes in drawn} == set(kinds)
    assert drawn == [rewritten(kind, f"place {number}", {}) for number in range(30)]
    assert rewritten(kind, "place 1", {"city": 0.1}) == ("the city {subject}: {mask}.",)
    assert rewritten(replace(kind, drawn=False), "place 1", {}) == ()
    with pytest.raises(ValueError, match="drawn asks"):
        replace(kind, top_k=0)


def test_the_likeliest_answer_may_decide_alone(backbone: Any) -> None:
    sure = weighed(cloze="{subject} is {mask}.", answers=["dead", "alive"], vetoes=["alive"], decisive=True)
    for much in ("dead", "alive"):
        (prepared,) = asker(backbone).prepare([replace(sure, times={much: 1e9})], ["italy"])
        assert (prepared.clozes, prepared.vetoed) == ((), float(much == "alive"))
