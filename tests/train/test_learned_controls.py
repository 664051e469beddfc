"""The controls of training against the textbook, in fractions."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lmkbc.names import folded_key
from lmkbc.train.controls import LearnedControls

NAMES = st.lists(st.sampled_from(["Jan", "jan", "Wei", "x-y", "Novak"]), max_size=3).map(" ".join)
FACTS = st.lists(st.tuples(NAMES, st.sampled_from("rs"), st.sampled_from("abcd")), max_size=12)


def by_hand(facts: list[tuple[str, str, str]], subject: str, answer: str) -> Fraction:
    """P(answer) times the product of P(word | answer), add-one smoothing, with room for a word that was not seen."""
    said = [(folded_key(name).split(), one) for name, _, one in facts]
    size = len({word for words, _ in said for word in words}) + 1
    own = [word for words, one in said if one == answer for word in words]
    score = Fraction(sum(one == answer for _, one in said), len(said))
    for word in folded_key(subject).split():
        score *= Fraction(own.count(word) + 1, len(own) + size)
    return score


@given(FACTS, NAMES)
def test_naive_bayes_answers_what_is_likeliest(facts: list[tuple[str, str, str]], subject: str) -> None:
    model = LearnedControls(facts)
    for relation in "rst":
        own = [fact for fact in facts if fact[1] == relation]
        scores = {answer: by_hand(own, subject, answer) for _, _, answer in own}
        found = model.naive_bayes(subject, relation)
        assert float(scores[found]) >= float(max(scores.values())) * (1 - 1e-12) if scores else not found


@given(FACTS)
def test_majority_answers_what_is_most_frequent_and_first_by_name(facts: list[tuple[str, str, str]]) -> None:
    model = LearnedControls(facts)
    for relation in "rst":
        own = [answer for _, name, answer in facts if name == relation]
        wanted = min(own, key=lambda one: (-own.count(one), one), default="")
        assert model.majority("anyone", relation) == wanted
