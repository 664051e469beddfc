"""Quotas that are spent end a run in whatever words; those of a minute are waited for."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import Body, Loopback, response
from opened import part
from test_server_odd import BORDERS, Make, one

from lmkbc import LmkbcError
from lmkbc.models.server.address import Server
from lmkbc.models.server.refusal import refusal
from lmkbc.testing import Query


def m(text: str, **more: Any) -> Body:
    return {"error": {"message": text, **more}}


SPENT: list[tuple[int, Any]] = [
    (429, m("You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota")),
    (400, m("Billing hard limit has been reached", code="billing_hard_limit_reached")),
    (
        400,
        m(
            "Your credit balance is too low to access the Anthropic API.",
            type="invalid_request_error",
        ),
    ),
    (400, m("You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.")),
    (429, m("This request would exceed your organization's rate limit of 5,000,000 input tokens per day")),
    (403, {"statusCode": 403, "message": "Out of call volume quota. Quota will be replenished in 2.12:00:00."}),
    (
        429,
        m(
            "Requests have exceeded token rate limit of your current pricing tier. Please retry after 86400 seconds.",
            code="429",
        ),
    ),
    (
        429,
        [
            m(
                "You exceeded your current quota, please check your plan and billing details. Please retry in 35.5s.",
                status="RESOURCE_EXHAUSTED",
                details=[
                    {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
                    {"retryDelay": "35s"},
                ],
            )
        ],
    ),
    (429, {"object": "error", "message": "You have exceeded your monthly quota", "type": "quota"}),
    (
        429,
        m("Rate limit reached for model `x` on tokens per day (TPD): Limit 100000. try again in 12m3.456s."),
    ),
    (
        429,
        m("Rate limit reached for gpt-4 on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s."),
    ),
    (402, m("Insufficient credits. Add more")),
    (
        429,
        m(
            "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day",
            code=429,
        ),
    ),
    (403, m("Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys")),
    (402, m("Credit limit exceeded, please navigate to https://api.together.xyz/settings/billing")),
    (402, m("Insufficient Balance", type="unknown_error")),
    (
        429,
        m(
            "Your account org-x is suspended, please check your plan and billing details",
            type="exceeded_current_quota_error",
        ),
    ),
    (429, m("余额不足或无可用资源包,请充值。", code="1113")),
    (429, m("已达到 5 小时的使用上限。您的限额将在 2026-12-01 重置。", code="1308")),
    (429, m("week allocated quota exceeded. The quota will reset at 2026-12-01 00:00:00.", code="Throttling")),
    (
        403,
        {
            "code": "AllocationQuota.FreeTierOnly",
            "message": "The free tier of the model has been exhausted.",
        },
    ),
    (400, {"code": "Arrearage", "message": "Access denied, please make sure your account is in good standing."}),
    (
        429,
        {"message": "You are using a Trial key, which is limited to 1000 API calls / month."},
    ),
    (402, {"error": "You have exceeded your monthly included credits for Inference Providers."}),
    (
        401,
        m(
            "You exceeded your current quota, please check your plan and billing details",
            type="insufficient_quota",
            code=401,
        ),
    ),
    (
        412,
        m("Account x is suspended, possibly due to reaching the monthly spending limit."),
    ),
    (
        403,
        {
            "code": "x",
            "error": "Your team has either used all available credits or reached its monthly spending limit.",
        },
    ),
    (
        429,
        {
            "message": "Tokens per day limit exceeded - too many tokens processed.",
            "type": "too_many_tokens_error",
            "code": "token_quota_exceeded",
        },
    ),
    (400, m("Budget has been exceeded! Current cost: 0.02, Max budget: 0.01", type="budget_exceeded")),
    (429, m("Too many tokens per day, please wait before trying again.")),
    (
        429,
        {
            "errors": [{"message": "you have used up your daily free allocation of 10,000 neurons", "code": 4006}],
            "success": False,
        },
    ),
    (429, m("Rate limit of 150 per 86400s exceeded for UserByModelByDay. Please wait 40223 seconds before retrying.")),
    (
        429,
        m("You've reached kimi monthly usage limit for this billing cycle. Your quota will be refreshed."),
    ),
    (429, m("Rate limit. Try again in 2 hours.")),
    (402, m("Cloud credits expired - Please contact NVIDIA representatives")),
]

WAITED: list[tuple[int, Any, float | None]] = [
    (
        429,
        m(
            "Rate limit reached for m on tokens per min (TPM): Limit 10. Please try again in 4.2s. See https://x/billing"
        ),
        4.2,
    ),
    (
        429,
        [
            m(
                "You exceeded your current quota, please check your plan and billing details.",
                details=[
                    {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
                    {"retryDelay": "35.5s"},
                ],
            )
        ],
        35.5,
    ),
    (429, m("Rate limit exceeded: free-models-per-min."), None),
    (429, {"message": "Requests rate limit exceeded"}, None),
    (429, {"message": "Service tier capacity exceeded for this model.", "code": "3505"}, None),
    (429, m("Requests have exceeded call rate limit. Please retry after 2 seconds."), 2.0),
    (429, {"message": "You are using a Trial key, which is limited to 10 API calls / minute."}, None),
    (429, {"message": "Tokens per minute limit exceeded", "code": "token_quota_exceeded"}, None),
    (429, m("This request would exceed your organization's rate limit of 40,000 input tokens per minute"), None),
    (429, m("Engine is overloaded; try again later"), None),
    (503, m("Model is loading, estimated_time 20"), None),
    (429, m("Too many requests in 1m"), None),
    (429, m("Rate limit, wait 1m30s"), 90.0),
    (429, m("try again in 500 ms"), 0.5),
]


@pytest.mark.parametrize(("status", "body"), SPENT)
def test_a_spent_quota_ends_the_run_by_one_request_in_the_server_s_words(chat: Make, status: int, body: Any) -> None:
    with Loopback(fault=lambda _: response(json.dumps(body).encode(), status)) as server:
        with pytest.raises(LmkbcError, match=r"has no quota left|asks to wait [\d,]+ s") as error:
            list(
                chat(server, limits=part("limits", concurrency=1)).generate([Query("a", BORDERS), Query("b", BORDERS)])
            )
        assert server.served == 1
    said = body[0] if isinstance(body, list) else body
    said = said.get("error", said)
    words = [said, *(said.values() if isinstance(said, dict) else ())]
    assert "errors" in said or any(str(text)[:30] in str(error.value) for text in words)
    assert "can resume" in str(error.value)


@pytest.mark.parametrize(("status", "body", "wait"), WAITED)
def test_a_quota_of_a_minute_is_waited_for(status: int, body: Any, wait: float | None) -> None:
    error: Any = refusal(Server("https://x/v1", "m"), status, json.dumps(body).encode())
    assert (error.transient, error.wait) == (True, wait)


def test_a_wait_above_ten_minutes_ends_the_run(chat: Make) -> None:
    fault = lambda _: response(m("slow down"), 429, "Retry-After: 3600")  # noqa: E731
    with Loopback(fault=fault) as server, pytest.raises(LmkbcError, match=r"asks to wait 3,600 s \(429: slow down\)"):
        list(chat(server).generate([Query("a", BORDERS)]))
    assert server.served == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "The prompt about a monthly budget is not valid"),
        (400, "Invalid value: 'daily'"),
        (500, "billing service"),
    ],
)
def test_other_errors_end_no_run(chat: Make, status: int, said: str) -> None:
    with Loopback(change=lambda *_: (status, said)) as server:
        assert one(chat(server, limits=part("limits", total_wait=0.0))).failed


def asked_to_wait(value: str | None) -> float | None:
    """Return the seconds that a server's Retry-After comes to."""
    error: Any = refusal(Server("https://x/v1", "m"), 503, b"{}", {} if value is None else {"retry-after": value})
    wait: float | None = error.wait
    return wait


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
    assert asked_to_wait(value) == seconds


@given(
    st.text(max_size=40) | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,9} (Jan|Feb) [0-9]{1,9} [0-9:]{5,12} [+-][0-9]{1,12}")
)
def test_what_is_found_is_finite_or_none(value: str) -> None:
    found = asked_to_wait(value)
    assert found is None or 0 <= found < math.inf
