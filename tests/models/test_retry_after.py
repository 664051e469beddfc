"""Retry-After, as a number or a date: whatever a server writes, a wait that has an end, or none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmkbc.models.server.retry_after import retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("Wed, 21 Oct 99999 07:28:00 GMT", None),
    ],
)
def test_seconds_that_are_named(value: str | None, seconds: float | None) -> None:
    assert retry_after(value) == seconds


def test_a_date_to_come() -> None:
    assert (retry_after("Wed, 21 Oct 2099 07:28:00 GMT") or 0) > 1e9


@given(
    st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,9} (Jan|Feb) [0-9]{1,9} [0-9:]{5,12} [+-][0-9]{1,12}")
)
def test_what_is_found_is_finite_or_none(value: str) -> None:
    found = retry_after(value)
    assert found is None or 0 <= found < math.inf
