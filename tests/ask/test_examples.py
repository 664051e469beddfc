from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from opened import part

from lmkbc import InputError
from lmkbc.ask.examples import ExampleSelector
from lmkbc.testing import Example, GoldObject, Query

R, N = "borders", "area"


def example(subject: str, count: int = 1, relation: str = R, identifier: str | None = None) -> Example:
    objects = tuple(GoldObject((f"{subject} {place}",)) for place in range(count))
    return Example(Query(subject, relation, identifier), objects)


TRAIN = [example(f"s{place}", place % 4, identifier=f"Q{place}") for place in range(40)]
NUMBERS = [Example(Query(f"n{place}", N), (GoldObject((str(10**place),)),)) for place in range(10)]


def select(train: Sequence[Example] = TRAIN, query: Query | None = None, **settings: Any) -> tuple[Example, ...]:
    return ExampleSelector(part("shots", **settings), train).select(query or Query("elsewhere", R))


def sizes(shots: Sequence[Example]) -> list[int]:
    return [len(shot.objects) for shot in shots]


def test_fixed_takes_the_first_rows_after_those_skipped() -> None:
    assert [shot.query.subject for shot in select(k=3)] == ["s0", "s1", "s2"]
    assert [shot.query.subject for shot in select(component="llmke23/shots", k=2, rows=[3, 9])] == ["s2", "s3"]


def test_by_cardinality() -> None:
    assert sizes(select(method="longest", k=3)) == [3, 3, 3]
    assert sizes(select(method="cardinality", k=5))[:2] == [0, 3]


@pytest.mark.parametrize(("empty", "count"), [(0.5, 4), (0.0, 0), (1.0, 8), ("train", 2), (0.25, 2)])
def test_balanced_holds_the_share_of_empty_ones(empty: Any, count: int) -> None:
    assert sizes(select(method="balanced", k=8, empty=empty)).count(0) == count


def test_balanced_makes_up_for_what_there_is_not() -> None:
    full = [example(f"s{place}") for place in range(10)]
    assert len(select(full, method="balanced", k=6)) == 6


def test_log_spreads_over_the_sizes() -> None:
    shots = select(NUMBERS, Query("elsewhere", N), method="log", k=5)
    assert sorted(len(shot.objects[0].names[0]) for shot in shots) == [2, 4, 6, 8, 10]
    assert len(select(method="log", k=5)) == 5


def test_drawn_once_per_run_or_anew_per_query() -> None:
    one, other = Query("one", R), Query("other", R)
    run = ExampleSelector(part("shots", method="random"), TRAIN)
    each = ExampleSelector(part("shots", method="random", per="query"), TRAIN)
    assert run.select(one) == run.select(other)
    assert each.select(one) != each.select(other)
    assert each.select(one) == ExampleSelector(part("shots", method="random", per="query"), TRAIN).select(one)
    assert run.select(one) != ExampleSelector(part("shots", method="random", seed=1), TRAIN).select(one)
    drawn = ExampleSelector(part("shots", method="random", per="draw", fit=True), TRAIN)
    hands = {drawn.select(one, draw=draw) for draw in range(3)}
    assert len(hands) == 3
    assert drawn.select(one, draw=2) in hands
    assert next(drawn.fewer(one, 2)) == drawn.select(one, draw=2)[:-1]


def test_whom_the_first_hand_tells_of_is_shown_the_second() -> None:
    selector = ExampleSelector(part("shots", method="random", k=5), TRAIN)
    first = selector.select(Query("elsewhere", R))
    (second,) = {selector.select(shot.query) for shot in first}
    assert len(second) == 5
    assert not {shot.query for shot in first} & {shot.query for shot in second}
    assert selector.select(Query("elsewhere", R), unseen=first[0].query) == second
    assert not {first[0].query, second[0].query} & {
        shot.query for shot in selector.select(first[0].query, unseen=second[0].query)
    }


def test_where_train_has_no_second_hand_the_own_subject_alone_is_left_out() -> None:
    selector = ExampleSelector(part("shots", method="random", k=5), TRAIN[:8])
    shots = selector.select(Query("elsewhere", R))
    without = selector.select(shots[2].query)
    assert without[:4] == (*shots[:2], *shots[3:])


def test_a_row_whose_name_is_an_id_is_no_example() -> None:
    known, lost = GoldObject(("Tufts University",), "Q49120"), GoldObject((), "Q168756")
    train = [Example(Query(f"s{n}", R), objects) for n, objects in enumerate([(lost,), (known, lost), (known,)])]
    assert [shot.query.subject for shot in select(train)] == ["s2"]


def test_all_relations_in_turn() -> None:
    train = [example(f"{relation}{place}", relation=relation) for relation in "abcd" for place in range(5)]
    shots = select(train, Query("elsewhere", "a"), relations="all", k=4)
    assert {shot.query.relation for shot in shots} == set("abcd")
    assert {shot.query.relation for shot in select(train, Query("elsewhere", "a"), k=4)} == {"a"}


ALIASES = [
    example("Federated States of Utopia"),
    example("UTÓPIA"),
    example("Utopia (island)"),
    example("Utopia Ltd."),
    example("Land of Thomas", identifier="Q7"),
    Example(Query("Nowhere", R), (GoldObject(("Utopia", "Federated States of Utopia", "Utopia Co."), "Q9"),)),
    example("Erewhon"),
]


@pytest.mark.parametrize("method", ["fixed", "random", "cardinality", "longest", "balanced", "log"])
def test_the_own_subject_is_never_shown_under_any_name(method: str) -> None:
    shots = select(ALIASES, Query("Utopia", R, "Q7"), method=method, k=50)
    assert {shot.query.subject for shot in shots} == {"Nowhere", "Erewhon"}


def test_the_own_subject_is_known_by_what_an_object_with_its_identifier_is_called() -> None:
    shots = select(ALIASES, Query("Another Name", R, "Q9"), k=50)
    assert "UTÓPIA" not in {shot.query.subject for shot in shots}
    assert "Land of Thomas" in {shot.query.subject for shot in shots}


def test_an_example_tells_of_so_many_objects_at_most() -> None:
    long = replace(TRAIN[0], objects=tuple(GoldObject((f"name {place}",)) for place in range(30)))
    (shown,) = ExampleSelector(part("shots", k=1, names=4), [long]).select(Query("someone else", long.query.relation))
    assert shown.names == ("name 0", "name 1", "name 2", "name 3")
    with pytest.raises(InputError, match="names is 0"):
        part("shots", names=0)


def test_a_draw_by_hash_is_the_same_everywhere_and_tells_of_nobody_twice() -> None:
    twice = [one for one in TRAIN for _ in range(2)]
    shots = select(twice, component="chironk26/shots", per="query", seed=7, k=4)
    # random.Random(first 8 bytes of SHA-256 of "shots", seed, subject and relation, parted by U+001F).shuffle
    assert [shot.query.subject for shot in shots] == ["s15", "s22", "s16", "s27"]
    own = select(twice, query=TRAIN[3].query, component="chironk26/shots", per="query", seed=7, k=40)
    assert len(own) == 39
