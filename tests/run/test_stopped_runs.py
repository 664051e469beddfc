"""Runs over a slow server: ended by a limit, which is no answer; going on where they were; and as they are foretold."""

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command
from loopback import Loopback, response
from opened import recipe_file

LIMITS = {"concurrency": 1, "total_wait": 1.0}
TWICE = {"max_tokens": 10, "samples": 2, "temperature": 0.7}

TABLE = {"component": "chat", "model": "m", "shots": {"k": 0}, "sampling": TWICE, "limits": LIMITS}


@pytest.fixture
def server() -> Iterator[Loopback]:
    """One that gives an answer a request, however many are asked for."""
    with Loopback(ignores=("n",)) as running:
        yield running


@pytest.fixture
def predict(command: Command, server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A run of six queries of a split, each asked twice."""
    monkeypatch.chdir(tmp_path)
    recipe_file(tmp_path / "twice.toml", TABLE)
    (tmp_path / "t.json").write_text("{}")
    words = ("--edition", "mini", "--split", "val", "--limit", 6, "--store", "store", "--search-table", "t.json")
    return command.under(
        "predict", *words, "--no-report", "--system", "twice.toml", "--base-url", server.url, "--out", "run"
    )


def test_a_run_that_a_budget_ends_between_two_draws_is_not_finished(
    predict: Command, server: Loopback, tmp_path: Path
) -> None:
    told = predict.fails("--max-tokens", 400, status=1)
    assert server.served == 3
    assert "5 queries lack answers (--max-tokens 400 is reached)" in told
    assert "5 of 6 queries failed" in told
    run = tmp_path / "run"
    reasons = [json.loads(line)["reason"] for line in (run / "missing.jsonl").read_text().splitlines()]
    assert reasons == ["answered, not asked", *["not asked"] * 4]
    assert not (run / "predictions.jsonl").exists()
    for name in ("candidates", "replies"):  # which --from would take for whole
        assert len(gzip.decompress((run / f"{name}.jsonl.gz").read_bytes()).splitlines()) == 1
    assert "5 of 6 queries failed" in predict.fails("--offline", status=1)
    predict.done()
    assert server.served == 12
    assert not (run / "missing.jsonl").exists()


def test_what_a_stopped_run_has_is_submitted_if_the_user_wants(predict: Command, tmp_path: Path) -> None:
    _, told = predict.done("--max-tokens", 400, "--failed-as-empty")
    assert "4 of 6 queries failed" in told
    counts = json.loads((tmp_path / "run" / "manifest.json").read_text())["counts"]
    assert (counts["failed"], counts["draws"]) == (4, {"answered": 3, "missing": 9})


def test_a_draw_on_which_the_server_failed_counts_as_missing_beside_another(
    predict: Command, tmp_path: Path, server: Loopback
) -> None:
    refused = iter([False, True])
    server.fault = lambda good: response({"error": {"message": "no"}}, 400) if next(refused, False) else response(good)
    _, told = predict.done()
    assert "1 query lacks some draws" in told
    assert "queries lack answers" not in told
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["counts"]["draws"]["missing"] == 1


@pytest.mark.parametrize("by", ["text", "probability"])
def test_a_run_that_a_budget_ends_before_its_facts_are_verified_is_not_finished(
    predict: Command, tmp_path: Path, by: str
) -> None:
    table = {"component": "chat", "model": "m", "shots": {"k": 0}, "sampling": {"max_tokens": 10}}
    rule = {"rule": "verified", "inner": {"rule": "cutoff", "threshold": 0.1}}
    recipe_file(tmp_path / "twice.toml", table | {"verify": {"by": by}}, select=rule)
    told = predict.fails("--max-tokens", 900, status=1)
    assert "6 of 6 queries failed" in told


def requests(shown: str) -> int:
    """The requests of all generators, as a dry run shows them."""
    total = next(line for line in shown.splitlines() if line.startswith("*** Sum ***"))
    return int(total.split()[3])


@pytest.mark.parametrize("found_by", ["a run", "a check"])
def test_a_dry_run_knows_how_many_answers_a_request_gets(predict: Command, command: Command, found_by: str) -> None:
    """Once they are known; before, each counts as a request of its own."""
    for ignored, together in ((("n",), 12), ((), 6)):
        with Loopback(ignores=ignored) as other:
            words = ("--base-url", other.url, "--store", "own.sqlite")
            assert requests(predict.done("--dry-run", *words)[0]) == 12
            if found_by == "a run":
                predict.done(*words, "--limit", 1)
                assert requests(predict.done("--dry-run", *words)[0]) == together * 5 // 6
            else:
                command.done("systems", "check", "twice.toml", *words)
                assert requests(predict.done("--dry-run", *words)[0]) == together


def test_the_time_that_is_foretold_counts_an_earlier_run_s_retries(
    predict: Command, server: Loopback, tmp_path: Path
) -> None:
    turns = itertools.count()
    server.fault = lambda good: response({}, 503) if next(turns) % 2 == 0 else response(json.loads(good))
    predict.done()
    assert server.served == 24
    timing = tmp_path / "run" / "timing.json"
    used = json.loads(timing.read_text())
    timing.write_text(json.dumps(used | {"seconds": 120.0}))
    for _ in range(2):
        _, told = predict.done("--dry-run", "--fresh")
        assert "about 2.0 minutes for what is certain, at the rate of 12 requests of run" in told
        assert "0 requests" in predict.done()[1]  # which leaves what is known of the first run


@pytest.mark.parametrize("verify", [{}, {"verify": {"by": "probability"}}], ids=["answers", "verdicts"])
def test_a_run_costs_what_its_answers_cost_whenever_they_were_paid_for(
    predict: Command, command: Command, tmp_path: Path, verify: Any
) -> None:
    if verify:
        rule = {"rule": "verified", "inner": {"rule": "cutoff", "threshold": 0.1}}
        recipe_file(tmp_path / "twice.toml", {**TABLE, **verify}, select=rule)

    def cost() -> tuple[float, float]:
        (used,) = json.loads((tmp_path / "run" / "timing.json").read_text())["usage"].values()
        return round(used["cost"], 9), round(used["spent_cost"], 9)

    priced = predict.under("--prices", "1,10")
    priced.done()
    whole, spent = cost()
    assert whole == spent > 0
    _, told = priced.done()
    assert "0 requests" in told
    assert cost() == (whole, spent)
    predict.done()  # without prices
    assert cost() == (whole, spent)
    (row,) = json.loads(command.done("runs", tmp_path, "--json")[0])
    assert row["cost"] == pytest.approx(whole)
    priced.fails("--fresh", "--max-tokens", 400, "--out", "run", "--store", "other", status=1)
    priced.done("--store", "other")
    assert cost()[0] == whole > cost()[1] > 0


def test_replies_that_are_not_kept_were_paid_for(predict: Command, tmp_path: Path) -> None:
    """Those that end within their thoughts, however often the same draw does."""
    cut = {"content": "<think>Maybe Wakanda, or Nar", "finish_reason": "length"}
    said = itertools.chain(
        itertools.islice(itertools.cycle(('["Spain"]', cut, cut)), 24), itertools.repeat('["Spain"]')
    )
    spent, served = 0.0, 0
    with Loopback(lambda _: next(said), ignores=("n",)) as other:
        for _ in range(6):
            predict.done("--base-url", other.url, "--prices", "1,10", "--failed-as-empty")
            (used,) = json.loads((tmp_path / "run" / "timing.json").read_text())["usage"].values()
            spent += used["spent_cost"] if other.served > served else 0  # it is of the last command that asked
            is_done, served = other.served == served, other.served
            tokens = used["prompt_tokens"], used["completion_tokens"]
            assert tokens == (100 * other.served, 10 * other.served)
            assert used["cost"] == pytest.approx(spent)
    assert is_done


def test_a_server_that_is_down_is_not_needed_for_what_it_has_answered(predict: Command) -> None:
    with Loopback() as down:
        down.tells = {"models": {"object": "list", "data": [{"id": "m", "object": "model"}]}}
        asked = predict.under("--any-model", "--base-url", down.url)
        asked.done()
    told = asked.fails(status=1)
    assert "cannot be reached" in told
    assert "; --offline takes what it has answered already" in told
    assert "12 answers from the store" in asked.done("--offline")[1]
    told = predict.fails("--any-model", "--base-url", "http://127.0.0.1:9/v1", status=1)
    assert "cannot be reached" in told
    assert "--offline" not in told


def test_a_draw_that_cannot_be_read_is_no_vote_live_or_recorded(
    predict: Command, server: Loopback, tmp_path: Path
) -> None:
    """Two draws of five name Spain, and three end within their thoughts: Spain has all votes."""
    few = {"max_tokens": 10, "samples": 5, "temperature": 0.7}
    recipe_file(tmp_path / "twice.toml", TABLE | {"sampling": few}, select={"rule": "cutoff", "threshold": 0.5})
    cut = {"content": "<think>Maybe Wakanda, or Nar", "finish_reason": "length"}
    said = itertools.cycle(('["Spain"]', cut, cut, '["Spain"]', cut))
    with Loopback(lambda _: next(said), ignores=("n",)) as other:
        _, told = predict.done("--base-url", other.url)
    assert "6 queries have 18 draws without any text, or cut off within thoughts (18 ended with 'length')" in told
    first, files = (tmp_path / "run"), ("predictions.jsonl", "candidates.jsonl.gz")
    objects = [json.loads(line)["ObjectEntitiesID"] for line in (first / files[0]).read_text().splitlines()]
    assert objects == [["Q29"]] * 6
    scores = [json.loads(line)["candidates"] for line in gzip.decompress((first / files[1]).read_bytes()).splitlines()]
    assert {one["score"] for row in scores for one in row} == {1.0}
    predict.done("--from", first / "replies.jsonl.gz", "--out", "again", "--offline")
    again = tmp_path / "again"
    assert (again / files[0]).read_bytes() == (first / files[0]).read_bytes()
    predict.done("--system", "recorded", "--from", first / "replies.jsonl.gz", "--out", "plain", "--untuned")
    assert (tmp_path / "plain" / files[0]).read_bytes() == (first / files[0]).read_bytes()


def test_a_fresh_run_that_ends_early_says_how_its_answers_are_used(
    predict: Command, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command with --fresh pays again, so it must not promise to go on."""
    way = "the same command asks all again, because of --fresh; without it, it goes on from the store"
    assert way in predict.fails("--fresh", "--max-tokens", 400, status=1)
    assert way not in predict.fails("--max-tokens", 0, status=1)
    before = server.served
    predict.done()
    assert (before, server.served) == (3, 12)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lmkbc.run.pipeline.Steps.over", interrupted)
    told = predict.fails("--fresh", status=130)
    assert f"interrupted; nothing half-written is left behind; {way}" in told
    assert "kept in the store, from which the same command goes on" in predict.fails(status=130)


def test_a_dry_run_refuses_the_models_that_the_run_refuses(predict: Command, tmp_path: Path) -> None:
    with Loopback() as other:
        other.tells["models"] = {"data": [{"id": "a"}, {"id": "b"}]}
        asked = predict.under("--any-model", "--base-url", other.url)
        refused = asked.fails()
        assert "serves 2 models (a, b): name one" in refused
        assert asked.fails("--dry-run") == refused
        other.tells["models"] = {"data": [{"id": "a"}]}
        (tmp_path / "store").unlink()
        assert requests(asked.done("--dry-run")[0]) == 12
        assert (other.served, (tmp_path / "store").exists()) == (0, False)
    assert requests(asked.done("--dry-run")[0]) == 12  # a server that is not up yet
