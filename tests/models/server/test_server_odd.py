"""Servers that are odd, hostile or half-broken: what they send ends no run, empties no row and betrays no key."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback import NAMES, Loopback, Request, Sent, prompt_of, response
from opened import HASTY

from lmkbc.errors import LmkbcError
from lmkbc.generate.language_model import AnswerGenerator
from lmkbc.models.server.refusal import ServerError
from lmkbc.types import CandidateSet, Query, State

CANARY = "sk-canary-7f3a91c2"
BORDERS, CHILDREN = "CountryBordersCountry", "PersonHasNumberOfChildren"
Body = dict[str, Any]
Make = Callable[..., AnswerGenerator]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)


def one(generator: AnswerGenerator, *queries: Query) -> CandidateSet:
    (found,) = generator.generate(queries or [Query("land", BORDERS)])
    return found


def spain(_: Body) -> str:
    return '["Spain"]'


@pytest.mark.parametrize("where", ["model", "finish", "message", "cut"])
def test_a_key_that_the_server_echoes_anywhere_is_kept_nowhere(chat: Make, tmp_path: Path, where: str) -> None:
    def edit(_: Body, answer: Body) -> tuple[int, str] | None:
        answer["model"] = CANARY if where == "model" else answer["model"]
        answer["choices"][0]["finish_reason"] = CANARY if where == "finish" else "stop"
        texts = {"message": f"no {CANARY}", "cut": "x" * 189 + f" {CANARY}"}  # the latter across what is passed on
        return (400, texts[where]) if where in texts else None

    with Loopback(spain, change=edit) as server:
        generators = [chat(server), chat(server, any_model=True)]
        found: list[object] = []
        for generator in generators:
            try:
                found.append(one(generator))
            except ServerError as error:
                found.append(str(error))
    shown = repr([found, [generator.notes.remarks for generator in generators]])
    shown += "".join(path.read_bytes().decode("latin-1") for path in tmp_path.iterdir())
    assert "sk-canary" not in shown


def test_subjects_of_one_name_have_one_answer_now_and_ever_after(chat: Make) -> None:
    count = itertools.count()
    pair = [Query("Paris", BORDERS, "Q90"), Query("Paris", BORDERS, "Q830149")]
    with Loopback(lambda _: json.dumps([NAMES[next(count)]]), delay=0.05) as server:
        first, second = (list(chat(server).generate(pair)) for _ in range(2))
    assert server.served == 1
    assert [[c.text for c in one.candidates] for one in (*first, *second)] == [[NAMES[0]]] * 4


def test_no_request_asks_for_more_draws_than_servers_give(chat: Make) -> None:
    with Loopback(spain) as server:
        assert len(one(chat(server, sampling={"samples": 160})).draws) == 160
    assert [body["n"] for body in server.requests] == [128, 32]


def test_an_answer_that_was_taken_from_another_model_is_none_once_that_is_not_allowed(chat: Make) -> None:
    with Loopback(spain, faults=["wrong-model"]) as server:
        assert not one(chat(server, any_model=True)).failed
        assert not one(chat(server)).failed
        assert server.served == 2
        assert not one(chat(server, any_model=True)).failed
    assert server.served == 2


MURKY = "It depends on {subject} and on whom you ask, as it always has."
REPAIR = {"repair": "No list: {answer}\nWrite it like {list}, or {null}."}


def mending(said: str) -> Callable[[Body], str]:
    return lambda body: said if prompt_of(body).startswith("No list: ") else MURKY


def test_a_broken_answer_is_asked_for_as_a_list_once(chat: Make) -> None:
    with Loopback(mending('["Spain"]')) as server:
        found = [one(chat(server, prompt=REPAIR)) for _ in range(2)]
    assert server.served == 2
    assert prompt_of(server.requests[1]) == f'No list: {MURKY}\nWrite it like ["first name", "second name"], or [].'
    assert [[c.text for c in answered.candidates] for answered in found] == [["Spain"]] * 2


def test_a_repair_that_was_not_heard_is_asked_for_again_by_the_next_run(chat: Make) -> None:
    with Loopback(mending('["Spain"]'), faults=[None, "500", "500", "500"]) as server:
        assert one(chat(server, prompt=REPAIR, limits=replace(HASTY, attempts=3))).failed
        assert [c.text for c in one(chat(server, prompt=REPAIR)).candidates] == ["Spain"]
    assert server.served == 5


class Jobs(Loopback):
    """A server whose batch jobs are odd. looks: what the next looks at a job bring: a status, else as usual."""

    def __init__(self, *looks: int, ended: Body | None = None, **how: Any) -> None:
        super().__init__(**how)
        self._looks, self._ended = iter(looks), ended

    def batch(self, request: Request) -> Sent:
        if request.method == "GET" and "/batches/" in request.path and (status := next(self._looks, 0)):
            return response({"error": {"message": "odd"}}, status)
        return super().batch(request)

    def job(self, source: str, status: str) -> Body:
        return super().job(source, status) | (self._ended or {} if status == "completed" else {})


def test_a_server_that_is_busy_while_a_job_is_waited_for_is_asked_again(chat: Make) -> None:
    with Jobs(503, 429) as server:
        assert not one(chat(server, executor="batch")).failed


def test_a_job_that_the_server_forgot_is_sent_anew_by_the_next_run(chat: Make) -> None:
    with Jobs(404) as server:
        with pytest.raises(LmkbcError, match="no longer knows the batch job 'batch-file-0': run again"):
            one(chat(server, executor="batch"))
        assert not one(chat(server, executor="batch")).failed
    assert {"file-0", "file-2"} <= server.files.keys()


def test_a_job_that_failed_says_why(chat: Make) -> None:
    errors = {"data": [{"message": f"line 1 is bad, {CANARY}"}], "object": "list"}
    with Jobs(ended={"status": "failed", "output_file_id": None, "errors": errors}) as server:
        generator = chat(server, executor="batch")
        assert one(generator).draws == (State.MISSING,)
    assert "(the batch left them out: it failed (line 1 is bad, [key]))" in generator.notes.remarks[-1]


def test_a_server_without_a_batch_api_is_told_apart(chat: Make) -> None:
    class Plain(Loopback):
        def batch(self, request: Request) -> Sent:
            return response({"error": {"message": f"no {request.path}"}}, 404)

    with Plain() as server, pytest.raises(LmkbcError, match="offers no Batch API: use executor 'calls'"):
        one(chat(server, executor="batch"))


def test_each_job_holds_requests_of_one_kind(chat: Make) -> None:
    own = {CHILDREN: {"prompt": {"form": "completion", "style": "triple"}}}
    pair = [Query("land", BORDERS), Query("Ada", CHILDREN)]
    with Loopback(lambda _: '["7"]') as server:
        found = list(chat(server, executor="batch", relations=own).generate(pair))
    assert not any(one.failed for one in found)
    urls = [{json.loads(line)["url"] for line in server.files[f"file-{job}"].splitlines()} for job in (0, 2)]
    assert urls == [{"/v1/chat/completions"}, {"/v1/completions"}]
