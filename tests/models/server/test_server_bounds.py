"""A server's costs are bounded: time, money, and the prompts that it would pass on to another host."""

import gzip
import math
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import OK, Body, Loopback, Sent, response
from opened import generators, part, recipe_of
from space import MINI, SPACE

from lmkbc import InputError, LmkbcError
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.budget import Budget
from lmkbc.testing import Query, Run

BORDERS = "CountryBordersCountry"
SHORT = {"sampling": {"max_tokens": 100}}


def queries(count: int) -> list[Query]:
    return [Query(f"land {place}", BORDERS) for place in range(count)]


Chat = Callable[..., AnswerGenerator]


def test_a_compressed_answer_is_an_answer(chat: Chat) -> None:
    def fault(body: bytes) -> Sent:
        return response(gzip.compress(body), OK, "Content-Encoding: gzip")

    with Loopback(lambda _: '["Spain"]', fault=fault) as server:
        (found,) = chat(server).generate(queries(1))
    assert [one.text for one in found.candidates] == ["Spain"]


def bomb(wbits: int, times: int = 1, size: int = (1 << 25) + 1) -> bytes:
    """Return blanks in a few bytes. wbits: form, as zlib numbers it. times: layers of it."""
    body = b" " * size
    for _ in range(times):
        packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
        body = packer.compress(body) + packer.flush()
    return body


GZIP, ZLIB, RAW = 31, 15, -15
BOMBS: dict[str, tuple[str, Callable[[], bytes], list[str]]] = {
    "gzip": ("longer than 32 MiB", lambda: bomb(GZIP), ["gzip"]),
    "two layers": ("packed more than once", lambda: bomb(GZIP, 2), ["gzip, gzip"]),
    "two fields": ("packed more than once", lambda: bomb(GZIP, 2), ["gzip", "GZip"]),
    "three kinds": ("packed more than once", lambda: bomb(GZIP, 3), ["deflate, identity, zstd"]),
    "deflate": ("longer than 32 MiB", lambda: bomb(ZLIB), ["deflate"]),
    "raw deflate": ("longer than 32 MiB", lambda: bomb(RAW), ["deflate"]),
    "not packed": ("longer than 32 MiB", lambda: b" " * ((1 << 25) + 1), []),
    "events without a line end": ("longer than 32 MiB", lambda: b"data:" + b"a" * (1 << 25), []),
    "no gzip": ("sent what cannot be read", lambda: b"{}", ["gzip"]),
}


@pytest.mark.parametrize(("kind", "status"), [*((kind, 200) for kind in BOMBS), ("gzip", 500), ("two layers", 429)])
def test_a_body_is_bounded_while_it_is_unpacked(chat: Chat, kind: str, status: int) -> None:
    reason, body, encodings = BOMBS[kind]
    bombs = response(body(), status, *(f"Content-Encoding: {encoding}" for encoding in encodings))
    with Loopback() as server:
        server.respond = lambda _: bombs  # type: ignore[method-assign]
        generator = chat(server, limits=part("limits", total_wait=0.5, concurrency=1))
        (found,) = generator.generate(queries(1))
    assert (server.served > 1) == (kind == "no gzip")  # which a fault of the line may be
    assert found.failed
    assert reason in generator.notes.remarks[-1]


def test_memory_does_not_grow_with_what_a_body_unpacks_to(chat: Chat) -> None:
    body = response(bomb(GZIP, size=1 << 28), OK, "Content-Encoding: gzip")
    with Loopback() as server:
        server.respond = lambda _: body  # type: ignore[method-assign]
        generator = chat(server, limits=part("limits", total_wait=0.0, concurrency=1))
        tracemalloc.start()
        (found,) = generator.generate(queries(1))
    assert found.failed
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 27


@pytest.mark.timeout(60)  # the whole would drip for 100 s
def test_a_byte_now_and_then_is_not_waited_for_beyond_the_deadline(chat: Chat) -> None:
    with Loopback(faults=["drip", "drip"]) as server:
        generator = chat(server, limits=part("limits", total_wait=0.0, timeout=0.5, concurrency=1))
        (found,) = generator.generate(queries(1))
    assert found.failed
    assert "no whole answer within 0.5 s" in generator.notes.remarks[-1]


@pytest.mark.parametrize("status", [302, 308])
@pytest.mark.parametrize("there", ["another host", "the same host"])
def test_a_redirect_is_not_followed(chat: Chat, status: int, there: str) -> None:
    with Loopback() as other, Loopback() as server:
        to = other.url if there == "another host" else server.url
        server.fault = lambda _: response(b"", status, f"Location: {to}/more")
        with pytest.raises(LmkbcError, match="where no prompt was sent") as error:
            list(chat(server, limits=part("limits", concurrency=1)).generate(queries(3)))
        assert server.url in str(error.value)
        assert to.removesuffix("/v1") in str(error.value)
        assert (server.served, other.served) == (1, 0)


def dear(times: int) -> Callable[[Body, Body], None]:
    """Reports so many times what one would estimate: four characters a token, and the longest answer."""

    def change(body: Body, answer: Body) -> None:
        prompt = sum(len(turn["content"]) for turn in body["messages"]) // 4 + 1
        answer["usage"] = {"prompt_tokens": times * prompt, "completion_tokens": times * body["max_tokens"]}

    return change


@pytest.mark.parametrize("limit", ["max_cost", "max_tokens"])
@pytest.mark.parametrize("times", [1, 10, 100])
def test_a_server_that_reports_more_than_was_estimated_overspends_by_the_first_request_at_most(
    chat: Chat, limit: str, times: int
) -> None:
    concurrency = 8
    with Loopback(change=dear(times), delay=0.01) as server:
        probe = chat(server, **SHORT, budget=(seen := Budget(prices=(1e6, 1e6))))
        list(probe.generate([Query("probe", BORDERS)]))
        dearest = (seen.prompt_tokens + seen.completion_tokens) * 1.1  # other subjects are as long but for digits
        most = int(25 * dearest / times)
        budget = Budget(**{limit: most}, prices=(1e6, 1e6))
        list(
            chat(server, **SHORT, limits=part("limits", concurrency=concurrency), budget=budget).generate(queries(200))
        )
    spent = budget.prompt_tokens + budget.completion_tokens
    assert budget.requests < 200
    assert spent <= max(most, dearest)
    assert spent >= 0.5 * most


@pytest.mark.parametrize("limit", ["max_cost", "max_tokens"])
def test_what_is_in_flight_takes_no_room_once_it_is_answered(chat: Chat, limit: str) -> None:
    """Requests take 110 tokens of 1,000 and more that are reserved for each: only those that no longer fit are left."""
    with Loopback(delay=0.01) as server:
        budget = Budget(**{limit: 5000}, prices=(1e6, 1e6))
        limits = part("limits", concurrency=8)
        found = list(chat(server, sampling={"max_tokens": 1000}, limits=limits, budget=budget).generate(queries(60)))
    answered = sum(not one.failed for one in found)
    assert answered == budget.requests == server.served
    assert 3600 < budget.prompt_tokens + budget.completion_tokens <= 5000
    assert budget.reached == f"--{limit.replace('_', '-')}"
    with Loopback(delay=0.01) as server:
        roomy = Budget(**{limit: 5000}, prices=(1e6, 1e6))
        again = chat(server, sampling={"max_tokens": 1000}, limits=limits, budget=roomy, store="b.sqlite")
        assert not any(one.failed for one in again.generate(queries(30)))
    assert roomy.reached == ""


@given(st.floats(0.1, 50), st.integers(1, 16), st.lists(st.integers(1, 500), min_size=30, max_size=60), st.randoms())
def test_whatever_the_order_of_reports_only_what_was_in_flight_before_the_first_is_overspent(
    times: float, concurrency: int, sizes: list[int], random: Any
) -> None:
    budget = Budget(max_tokens=3000)
    flying: list[int] = []
    before_first = 0
    for size in sizes:
        if len(flying) == concurrency:
            done = flying.pop(random.randrange(len(flying)))
            budget.settle(done, done, (int(done * times), int(done * times)))
        if budget.exhausted_by(size, size):
            break
        flying.append(size)
        if not budget.requests:
            before_first += 2 * int(size * times)
    for done in flying:
        budget.settle(done, done, (int(done * times), int(done * times)))
    assert budget.prompt_tokens + budget.completion_tokens <= max(3000, before_first)


def test_budgets_of_a_run_are_held_together_at_what_their_own_servers_report() -> None:
    together: list[Budget] = []
    dear, cheap = (Budget(max_tokens=1000, together=together) for _ in range(2))
    assert dear.exhausted_by(10, 10) is None
    dear.settle(10, 10, (100, 100))
    assert cheap.exhausted_by(300, 300) is None  # its own server has not yet reported
    assert dear.exhausted_by(11, 11) == "--max-tokens 1000"
    assert dear.exhausted_by(10, 10) is None
    dear.settle(10, 10, (100, 100))
    assert (Budget().most_at_once, cheap.most_at_once, dear.most_at_once) == (math.inf, 1, 2)


@pytest.mark.parametrize(
    "prices", [[float("nan"), 1.0], [-1.0, 1.0], [float("inf"), 1], [1.0], [1, 2, 3], ["1", "2"], "1,2", 2.5, []]
)
def test_prices_of_a_recipe_are_refused_likewise(prices: Any, tmp_path: Path) -> None:
    table = {"component": "chat", "model": "m", "base_url": "http://127.0.0.1:9/v1", "prices": prices}
    run = Run(workspace=SPACE, edition=MINI, servers={"store": tmp_path / "s"})
    with pytest.raises(InputError, match=r"prices.* is .*: give (two|a list of 2|a) number"):
        list(generators(run, recipe_of(table)))
