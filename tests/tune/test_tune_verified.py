"""Verification is switched on where it helps and off where it hurts, and chosen out of fold."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from space import SPACE

from lmkbc.select.composed import with_verification
from lmkbc.testing import Candidate, CandidateSet, Example, GoldObject, Query
from tests.candidates import sources
from tests.tuned import tuned as tune_all

EDITION = SPACE.edition("2023")
HELPED, HURT, UNASKED = "CountryBordersCountry", "PersonPlaysInstrument", "PersonSpeaksLanguage"
ROWS = 60


def rows(relation: str, seed: int) -> list[tuple[CandidateSet, Example]]:
    """Helped: scores tell little and verdicts much; hurt: the other way round."""
    rng = random.Random(seed)
    made = []
    for row in range(ROWS):
        names = [f"Q{row}{place}" for place in range(1, 6)]
        gold = tuple(GoldObject((name,), name) for name in names[: rng.choice((1, 1, 2))])
        found = []
        for name in names:
            right = name in [one.id for one in gold]
            tells, silent = rng.betavariate(5, 2) if right else rng.betavariate(2, 5), rng.betavariate(2, 2)
            score, truth = (silent, tells) if relation == HELPED else (tells, silent)
            found.append(
                Candidate(name, score, sources("m#0"), name, verification=None if relation == UNASKED else truth)
            )
        query = Query(f"{relation} {row}", relation)
        rng.shuffle(found)
        made.append((CandidateSet(query, tuple(found)), Example(query, gold)))
    return made


def tuned(pairs: Sequence[tuple[CandidateSet, Example]], **options: Any) -> Any:
    sets, examples = [found for found, _ in pairs], [example for _, example in pairs]
    return tune_all(sets, examples, EDITION, relations=SPACE.relations, **{"trials": 0, **options})


def unjudged(found: CandidateSet) -> CandidateSet:
    return replace(found, candidates=tuple(structs.replace(one, verification=None) for one in found.candidates))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.whole)])
def test_on_where_it_helps_off_where_it_hurts(seed: int) -> None:
    pairs = [pair for place, name in enumerate((HELPED, HURT, UNASKED)) for pair in rows(name, 10 * seed + place)]
    chosen = tuned(pairs)
    assert chosen.relations[HELPED].rule.name == "verified"
    assert chosen.relations[HURT].rule.name != "verified"
    assert chosen.relations[UNASKED].rule.name != "verified"
    off = tuned([(unjudged(found), example) for found, example in pairs])
    assert chosen.cv_macro_f1 > off.cv_macro_f1 + 0.02
    for way in ("veto", "product"):
        on = tuned([(unjudged(with_verification(found, way)), example) for found, example in pairs])
        assert chosen.cv_macro_f1 > on.cv_macro_f1 + 0.02
    assert chosen.relations[UNASKED] == off.relations[UNASKED]


def test_the_switch_is_chosen_without_the_fold_it_is_scored_on() -> None:
    pairs = rows(HELPED, 3)
    before = tuned(pairs)
    found, example = pairs[0]
    pairs[0] = found, replace(example, objects=(GoldObject((found.candidates[4].text,), found.candidates[4].text),))
    assert tuned(pairs).predictions[0] == before.predictions[0]


def test_a_search_has_studies_of_its_own_for_each_way() -> None:
    pairs = rows(HELPED, 4)[:20]
    assert tuned(pairs, trials=2, folds=2) == tuned(pairs, trials=2, folds=2)
