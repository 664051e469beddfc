"""ProP: facts of its own choice before the bare fact, and only one word denies it."""

import pytest
from opened import part
from space import SPACE
from writing import Writing

from lmkbc import InputError
from lmkbc.testing import Candidate, Query
from tests.candidates import candidate_set

NAME = "CountryBordersCountry"
RELATIONS = {NAME: SPACE.relation(NAME)}


class Replying(Writing):
    """A model with a reply for each object."""

    def drawn(self, prompt: str) -> list[str | None]:
        replies = {"Spain": " False\n", "Italy": "False, I think", "Andorra": "Hm", "Monaco": None}
        return [next(text for name, text in replies.items() if name in prompt.rpartition("\n\n")[2])]


def test_only_a_reply_that_is_nothing_but_the_word_denies() -> None:
    scorer, how = Replying(), {"by": "text", "facts": {NAME: [["Peru", "Chile", True], ["FRANCE", "Chad", False]]}}
    names = ("Spain", "Italy", "Andorra", "Monaco")
    given = candidate_set(Query("France", NAME), tuple(Candidate(name, 0.8) for name in names))
    (found,) = part("verify", component="prop22/facts", **how).open(scorer, RELATIONS, []).verify([given])
    truths = {one.text: one.verification for one in found.candidates}
    assert truths == {"Spain": 0.0, "Italy": 1.0, "Andorra": 1.0, "Monaco": None}
    statement = RELATIONS[NAME].statement
    shown = statement.format(subject="Peru", object="Chile"), statement.format(subject="France", object="Spain")
    assert scorer.asked[-1] == f"{shown[0]}\nTrue\n\n{shown[1]}\n"  # facts are asked in alphabetical order


def test_a_check_that_reads_no_whole_reply_is_refused() -> None:
    for wrong in ({}, {"by": "text", "samples": 2}):
        with pytest.raises(InputError, match="one greedy reply"):
            part("verify", component="prop22/facts", **wrong)
