import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from loopback import FAULTS, Body, Loopback
from opened import HASTY, part

from lmkbc import LmkbcError
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.budget import Budget
from lmkbc.testing import CandidateSet, Query, State
from tests.candidates import sources

CANARY = "sk-canary-7f3a91c2"
BORDERS, CHILDREN = "CountryBordersCountry", "PersonHasNumberOfChildren"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


def queries(count: int, relation: str = BORDERS) -> list[Query]:
    return [Query(f"land {place}", relation) for place in range(count)]


Chat = Callable[..., AnswerGenerator]


def run(generator: AnswerGenerator, asked: list[Query]) -> dict[str, CandidateSet]:
    found = list(generator.generate(asked))
    assert sorted(one.query.subject for one in found) == sorted({query.subject for query in asked})
    return {one.query.subject: one for one in found}


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "429-huge"])
def test_a_fault_loses_no_row_and_empties_none(chat: Chat, fault: str) -> None:
    asked = queries(8)
    with Loopback() as server:
        expected = run(chat(server, store="plain.sqlite"), asked)
    turns = [fault, None]
    limits = replace(HASTY, timeout=1.0) if fault == "drip" else HASTY
    if fault in ("wrong-model", "html"):  # a slip, once the server is known to serve the right one
        turns, limits = turns[::-1], replace(limits, concurrency=1)
    if fault in ("no-choices", "no-content", "broken-json"):  # a body that cannot be read is asked for once more
        limits = replace(limits, concurrency=1)
    with Loopback(faults=itertools.islice(itertools.cycle(turns), 10)) as server:
        found = run(chat(server, limits=limits), asked)
    assert found == expected
    assert all(one.draws == (State.ANSWERED,) for one in found.values())


@pytest.mark.timeout(60)
def test_a_huge_wait_is_not_waited_for(chat: Chat) -> None:
    with Loopback(faults=["429-huge"]) as server:
        with pytest.raises(LmkbcError, match="asks to wait 86,400 s"):
            run(chat(server, limits=replace(HASTY, concurrency=1)), queries(6))
        assert server.served == 1
        second = run(chat(server), queries(6))
    assert not any(one.failed for one in second.values())


@pytest.mark.parametrize("fault", ["500", "reset", "no-choices", "429-none"])
def test_a_server_that_stays_broken_is_given_up_in_bounded_time(chat: Chat, fault: str) -> None:
    limits = part("limits", total_wait=0.1, timeout=60.0, concurrency=2)
    with Loopback(faults=itertools.repeat(fault)) as server:
        generator = chat(server, limits=limits)
        found = run(generator, queries(50))
    assert all(one.draws == (State.MISSING,) and not one.candidates for one in found.values())
    assert server.served <= 6 * (20 + 2)
    assert any("50 queries lack answers (20 queries in a row failed)" in remark for remark in generator.notes.remarks)


def test_a_server_that_was_never_there_is_not_waited_for(chat: Chat) -> None:
    limits = part("limits", total_wait=36000.0)
    with pytest.raises(LmkbcError, match=r"^http://127\.0\.0\.1:9/v1 cannot be reached \(.+\): start the server, or"):
        run(chat("http://127.0.0.1:9/v1", limits=limits), queries(20))


def test_a_server_that_goes_away_is_waited_for(chat: Chat) -> None:
    asked = queries(6)
    with Loopback() as server:
        first = chat(server, limits=replace(HASTY, total_wait=0.2, concurrency=1))
        assert not any(one.failed for one in run(first, asked[:3]).values())
    assert all(one.failed for one in run(first, asked[3:]).values())


def test_a_model_by_another_name_ends_the_run_at_the_first_reply(chat: Chat) -> None:
    def renamed(_: Body, answer: Body) -> None:
        answer["model"] = "/home/someone/models/Tiny-1B.Q4_1.gguf"

    with Loopback(change=renamed) as server:
        with pytest.raises(LmkbcError) as error:
            run(chat(server, limits=replace(HASTY, concurrency=1)), queries(5))
        assert str(error.value) == (
            f"asked for model 'stand-in', {server.url} answers as 'Tiny-1B.Q4_1.gguf': say --model Tiny-1B.Q4_1.gguf, "
            "or --any-model to take what it serves"
        )
        asked = len(server.requests)
        assert asked == 1
        found = run(chat(server, any_model=True), queries(5))
        assert not any(one.failed for one in found.values())
        assert len(server.requests) == 6
        assert not any(one.failed for one in run(chat(server, "Tiny-1B.Q4_1.gguf"), queries(5)).values())


def test_many_draws_come_from_one_request(chat: Chat) -> None:
    with Loopback() as server:
        found = run(chat(server, sampling={"samples": 4, "temperature": 1.0}), queries(1))
        assert [body.get("n") for body in server.requests] == [4]
        run(chat(server, sampling={"samples": 6, "temperature": 1.0}), queries(1))
        assert [body.get("n") for body in server.requests] == [4, 2]
    assert found["land 0"].draws == (State.ANSWERED,) * 4
    assert {source for c in found["land 0"].candidates for source in c.sources} == {
        *sources(*(f"stand-in#{k}" for k in range(4)))
    }


@pytest.mark.parametrize("habit", ["ignores", "rejects"])
def test_a_server_without_n_is_asked_draw_by_draw(chat: Chat, habit: str) -> None:
    with Loopback(**{habit: ("n",)}) as server:
        generator = chat(server, sampling={"samples": 3}, limits=part("limits", concurrency=1))
        found = run(generator, queries(2))
    assert all(one.draws == (State.ANSWERED,) * 3 for one in found.values())
    asked = [body.get("n", 1) for body in server.requests]
    assert asked == ([3, 1, 1, 1, 1, 1] if habit == "ignores" else [3, 1, 1, 1, 1, 1, 1])
    assert any("ignores n" in remark or "takes no n" in remark for remark in generator.notes.remarks)


def test_seeds_count_up_over_the_draws(chat: Chat) -> None:
    with Loopback() as server:
        run(chat(server, sampling={"samples": 3, "seed": 40}), queries(1))
    assert [(body["seed"], body.get("n")) for body in server.requests] == [(40, None), (41, None), (42, None)]


def test_of_an_answer_cut_off_only_whole_objects_count(chat: Chat) -> None:
    with Loopback(lambda _: {"content": '["Spain", "Portu', "finish_reason": "length"}) as server:
        generator = chat(server)
        found = run(generator, queries(1))["land 0"]
    assert ([c.text for c in found.candidates], found.draws) == (["Spain"], (State.CUT,))
    assert any(
        "cut off within a list: the objects before the cut count, and they are kept" in remark
        for remark in generator.notes.remarks
    )
    with Loopback(lambda _: {"content": "Portu", "finish_reason": "length"}) as server:
        other = chat(server, store="b.sqlite")
        assert run(other, queries(1))["land 0"].draws == (State.TRUNCATED,)
    with Loopback(lambda _: {"content": "12", "finish_reason": "length"}) as server:
        found = run(chat(server, store="c.sqlite"), queries(1, CHILDREN))["land 0"]
    assert found.draws == (State.TRUNCATED,)
    with Loopback(lambda _: {"content": '["Spain"]', "finish_reason": "length"}) as server:
        whole = chat(server, store="d.sqlite")
        assert run(whole, queries(1))["land 0"].draws == (State.ANSWERED,)
    assert not any("length was limited" in remark for remark in whole.notes.remarks)


@pytest.mark.parametrize(
    ("used", "samples", "advice"),
    [
        (200, 1, "a larger sampling.max_tokens in the recipe leaves room"),
        (20, 1, "sooner than at sampling.max_tokens, so the server has a limit of its own"),
        (0, 1, "a larger sampling.max_tokens in the recipe leaves room"),  # not reported
        (240, 3, "a larger sampling.max_tokens in the recipe leaves room"),  # of draws of which one may be cut at 200
    ],
)
def test_what_leaves_room_for_an_answer_is_told_by_its_tokens(chat: Chat, used: int, samples: int, advice: str) -> None:
    said = iter([{"content": "Portu", "finish_reason": "length"}, *['["Spain"]'] * (samples - 1)])
    report = lambda _, answer: answer.update(usage={"prompt_tokens": 9, "completion_tokens": used})  # noqa: E731
    with Loopback(lambda _: next(said), change=report) as server:
        generator = chat(server, sampling={"max_tokens": 200, "samples": samples})
        run(generator, queries(1))
    (told,) = (remark for remark in generator.notes.remarks if "length was limited" in remark)
    assert f"1 query has 1 draw that ended where the length was limited: {advice}" in told


@pytest.mark.parametrize("form", ["chat", "completion"])
def test_log_probabilities_score_candidates(chat: Chat, form: str) -> None:
    with Loopback(lambda _: '["Spain"]') as server:
        generator = chat(server, sampling={"logprobs": True}, prompt={"form": form})
        (candidate,) = run(generator, queries(1))["land 0"].candidates
    assert candidate.score == pytest.approx(0.5)
    assert server.requests[0]["logprobs"] == (True if form == "chat" else 1)


@pytest.mark.parametrize("limit", [{"requests_per_minute": 300.0}, {"tokens_per_minute": 120_000.0}])
def test_rates_are_kept(chat: Chat, limit: dict[str, float]) -> None:
    sampling = {"max_tokens": 400}
    with Loopback() as server:
        run(chat(server, limits=part("limits", concurrency=8, **limit), sampling=sampling, shots={"k": 0}), queries(7))
    # 300 a minute: 0.2 s apart. 120,000 tokens a minute: about 400 tokens a request at first, 110 once it is known.
    assert server.starts[-1] - server.starts[0] > (0.9 if "requests_per_minute" in limit else 0.25)


@pytest.mark.parametrize(
    "budget", [Budget(max_tokens=900), Budget(max_cost=0.0009, prices=(1.0, 1.0))], ids=["tokens", "cost"]
)
def test_a_budget_stops_cleanly_and_a_second_run_goes_on(chat: Chat, budget: Budget) -> None:
    asked = queries(12)
    tables = {"sampling": {"max_tokens": 10}, "shots": {"k": 0}, "prompt": {"task": "x" * 400}}
    with Loopback() as server:
        first = chat(server, budget=budget, **tables, limits=part("limits", concurrency=3))
        found = run(first, asked)
        answered = sum(not one.failed for one in found.values())
        assert 0 < answered < 12
        assert budget.prompt_tokens + budget.completion_tokens == 110 * answered <= 900
        assert any(f"{12 - answered} queries lack answers (--max" in remark for remark in first.notes.remarks)
        second = chat(server, **tables)
        assert not any(one.failed for one in run(second, asked).values())
    assert server.served == 12
    assert second.notes.usage["from_store"] == answered
    assert second.notes.usage["prompt_tokens"] == 1200
    assert second.notes.usage["spent_prompt_tokens"] == 100 * (12 - answered)
