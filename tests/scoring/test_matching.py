"""Maximum matching: the size that trying every choice finds, whatever the order and however long the chains."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc import MatchingScorer


def tried(matches: list[list[int]], used: frozenset[int] = frozenset()) -> int:
    """The most pairs, by every choice of every answer."""
    if not matches:
        return 0
    first, *rest = matches
    return max([tried(rest, used), *(1 + tried(rest, used | {index}) for index in first if index not in used)])


@given(st.lists(st.lists(st.integers(0, 4), unique=True, max_size=4), max_size=5))
def test_no_choice_finds_more(matches: list[list[int]]) -> None:
    answers = [f"name {place}" for place in range(len(matches))]
    gold = [[name for name, own in zip(answers, matches, strict=True) if index in own] or ["-"] for index in range(5)]
    assert MatchingScorer(frozenset()).score(answers, gold, "r")[0] == tried(matches)


@pytest.mark.parametrize("seed", range(2))
def test_a_chain_of_thousands_has_a_size_in_any_order(seed: int) -> None:
    """Each answer finds two objects that its neighbours find too; the last finds one."""
    count = 5000
    gold = [[f"name {number}", f"name {number + 1}"] for number in range(count)]
    random.Random(seed).shuffle(gold)
    answers = [f"name {number}" for number in range(count + 1)]
    assert MatchingScorer(frozenset()).score(answers, gold, "r") == (count, count + 1, count)
