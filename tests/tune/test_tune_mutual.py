"""Both sides of a pair count where that helps, chosen out of fold; the gold of the other side is never read."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from space import SPACE

from lmkbc.relation import Relation
from lmkbc.select import tuned_rules
from lmkbc.select.mutual import Mutual
from lmkbc.select.origin import Origin
from lmkbc.tune.learn import Tuned
from lmkbc.types import Candidate, CandidateSet, Example, GoldObject, Query
from tests.candidates import sources
from tests.tuned import tuned as tune_all

EDITION = SPACE.edition("2023")
BORDERS = "CountryBordersCountry"
SUBJECTS = [f"Q{place}" for place in range(1, 41)]
Pairs = list[tuple[CandidateSet, Example]]


def pairs(*, mutual: bool = True, relation: str = BORDERS) -> Pairs:
    """A ring of countries: each names its neighbours and three others, alike; a wrong one never names it back.

    mutual: otherwise all are wrong where both name each other.
    """
    rng = random.Random(0)
    made = []
    size = len(SUBJECTS)
    for place, subject in enumerate(SUBJECTS):
        near = [SUBJECTS[place - 1], SUBJECTS[(place + 1) % size]]
        far = [SUBJECTS[(place + step) % size] for step in (4, 6, 9)]
        found = [Candidate(name, rng.uniform(0.4, 0.9), sources("m#0"), name) for name in near + far]
        found.sort(key=lambda one: -one.score)
        gold = tuple(GoldObject((name,), name) for name in (near if mutual else far))
        query = Query(subject, relation, subject)
        made.append((CandidateSet(query, tuple(found)), Example(query, gold)))
    return made


def tuned(some: Pairs, relations: Mapping[str, Relation] = SPACE.relations, **options: Any) -> Tuned:
    sets, examples = [found for found, _ in some], [example for _, example in some]
    return tune_all(
        sets,
        examples,
        EDITION,
        relations=relations,
        both_sides=True,
        **{"trials": 0, "rules": ["top-k", "cutoff"], **options},
    )


def one_sided(names: Sequence[str]) -> dict[str, Relation]:
    return {name: replace(SPACE.relation(name), symmetric=False) for name in names}


def test_the_other_side_decides_where_it_helps() -> None:
    chosen, alone = tuned(pairs()), tuned(pairs(), one_sided([BORDERS]))
    rule = chosen.relations[BORDERS].rule
    assert isinstance(rule, Mutual)
    assert not rule.inverse
    assert chosen.cv_macro_f1 > alone.cv_macro_f1 + 0.2
    assert not isinstance(alone.relations[BORDERS].rule, Mutual)


def test_it_is_left_out_where_it_hurts_and_where_a_relation_has_no_other_side() -> None:
    hurt, alone = tuned(pairs(mutual=False)), tuned(pairs(mutual=False), one_sided([BORDERS]))
    assert hurt.cv_macro_f1 >= alone.cv_macro_f1 - 0.02
    other = "PersonPlaysInstrument"
    assert not isinstance(tuned(pairs(relation=other)).relations[other].rule, Mutual)


def test_the_gold_of_a_query_changes_nothing_that_is_predicted_for_it() -> None:
    some = pairs()
    before = tuned(some)
    found, example = some[0]
    some[0] = found, replace(example, objects=(GoldObject((found.candidates[4].text,), found.candidates[4].text),))
    assert tuned(some).predictions[0] == before.predictions[0]


def test_a_file_keeps_the_choice_and_selects_as_tuning_did(tmp_path: Path) -> None:
    some = pairs()
    chosen = tuned(some, folds=2)
    origin = Origin()
    about = tuned_rules.Provenance.of(
        chosen, origin, edition="2023", system="s", data_sha256="0" * 64, candidates_sha256="0" * 64
    )
    tuned_rules.write(tmp_path / "s.toml", chosen, about)
    selector = tuned_rules.read(tmp_path / "s.toml").selector
    assert selector.rules[BORDERS] == chosen.relations[BORDERS].rule
    assert selector.reads_others
    kept = selector.select_all([found for found, _ in some])
    assert (
        sum(
            {one.id for one in made.objects} == {gold.id for gold in x.objects}
            for made, (_, x) in zip(kept, some, strict=True)
        )
        > 35
    )


def test_the_workspace_has_relations_whose_other_side_is_their_own() -> None:
    assert {r.name for r in SPACE.relations.values() if r.other_side()} >= {
        "country-borders",
        "state-borders",
        "spouse",
    }
