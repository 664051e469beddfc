"""The steps of a chain are checked when a recipe is read: one sentence for what makes no sense."""

from typing import Any

import pytest
from opened import asks

from lmkbc import InputError

ACCOUNT = {"name": "account", "ask": "Tell what is known of {{ subject }}."}
SPAN = {"name": "span", "ask": "From when to when was {{ subject }} awarded?", "parse_as": "span", "each": True}


def read(*steps: dict[str, Any], ask: str = "{{ question }}", **tables: Any) -> None:
    asks({"prompt": {"ask": ask, "steps": steps}, **tables})


@pytest.mark.parametrize(
    ("steps", "ask", "said"),
    [
        ([{**ACCOUNT, "ask": "{{ x }}"}], "{{ account }}", "step 'account' reads {{ x }}: known are"),
        (
            [ACCOUNT, {"name": "city", "ask": "{{ acount }}"}],
            "{{ city }}",
            "reads {{ acount }}: did you mean 'account'",
        ),
        ([{**ACCOUNT, "ask": "{{ account }}"}], "{{ account }}", "the chain loops: step 'account' reads {{ account }}"),
        (
            [{**ACCOUNT, "ask": "{{ city }}"}, {"name": "city", "ask": "{{ account }}"}],
            "{{ city }}",
            "loops: step 'account' reads {{ ci",
        ),
        ([ACCOUNT], "{{ question }}", "nothing reads what step 'account' fills: write {{ account }} in a later step"),
        ([ACCOUNT, ACCOUNT], "{{ account }}", "step 'account' is called as another value is"),
        ([{**ACCOUNT, "name": "subject"}], "{{ subject }}", "step 'subject' is called as another value is"),
        ([{**ACCOUNT, "name": "An account"}], "", "name is 'An account': give a word"),
        ([{"name": "a"}], "{{ a }}", "step 'a' needs something to ask, or a list of items"),
        ([{"name": "a", "ask": "?", "items": ["b"]}], "{{ a }}", "give one of the two"),
        ([{**ACCOUNT, "each": True}], "{{ account }}", "goes on with each item, but is parsed as text"),
        ([{**SPAN, "max": 0}], "{{ span }}", "max of step 'span' is 0: give 1 to 256"),
        ([{**SPAN, "max": 257}], "{{ span }}", "max of step 'span' is 257: give 1 to 256"),
        ([{**ACCOUNT, "longest": 10**6}], "{{ account }}", "longest of step 'account' is 1000000: give 1 to 20000"),
        ([{**SPAN, "until": 99}], "{{ span }}", "until of step 'span' is 99: give a year"),
        ([{**SPAN, "samples": 0}], "{{ span }}", "samples of step 'span' is 0: give at least 1"),
        ([{**SPAN, "samples": 2}], "{{ span }}", "step 'span' has 2 samples, and what follows has 3"),
        (
            [{**SPAN, "max": 32}, {"name": "a", "items": ["b"] * 9}],
            "{{ span }}{{ a }}",
            "makes up to 288 questions of one",
        ),
        ([{"name": "a", "items": ["b"] * 257}], "{{ a }}", "step 'a' has 257 items: give 256 at most"),
        ([{"name": f"s{n}", "ask": "?"} for n in range(9)], "{{ s8 }}", "a chain of 9 steps: give 8 at most"),
        ([{"name": "dead", "ask": "?", "parse_as": "gate"}], "{{ dead }}", "ask reads {{ dead }}"),
        (
            [ACCOUNT, {"name": "b", "ask": "{{ account }}", "parse_as": "existence"}],
            "{{ account }}",
            "step 'b' reads {{ account }}",
        ),
        (
            [{"name": name, "ask": "?", "parse_as": "existence"} for name in "ab"],
            "",
            "a chain has one step of existence",
        ),
    ],
)
def test_a_chain_that_makes_no_sense_is_refused_in_one_sentence(steps: list[Any], ask: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        read(*steps, ask=ask, sampling={"samples": 3})
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_relation_s_own_draws_are_checked_too() -> None:
    read({**SPAN, "samples": 3}, ask="{{ span }}", sampling={"samples": 3})
    with pytest.raises(InputError, match="step 'span' has 3 samples, and what follows has 5"):
        read(
            {**SPAN, "samples": 3},
            ask="{{ span }}",
            sampling={"samples": 3},
            relations={"area": {"sampling": {"samples": 5}}},
        )
