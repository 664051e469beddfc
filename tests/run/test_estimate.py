"""A dry run against the run that it foretells: the same is asked, nothing before, and what is stored is not again."""

import json
from dataclasses import replace
from functools import cached_property
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_gguf
from command import Command
from loopback import Loopback
from opened import recipe_of
from space import MINI, SPACE

from lmkbc import InputError
from lmkbc.local import decode as decode_module
from lmkbc.local.checkpoint import identity, load
from lmkbc.models.answers import CallCounter, DryStore, Store
from lmkbc.models.store_place import Database
from lmkbc.models.store_rows import Rows
from lmkbc.plan import Plan
from lmkbc.run.estimate import estimate
from lmkbc.run.pipeline import Block, propose
from lmkbc.testing import Example, Query, Run

pytestmark = pytest.mark.model
QUERIES = SPACE.queries(MINI, "val")[:12]
ASKED = {"shots": {"k": 2}, "prompt": {"form": "completion", "block": "{{ subject }}, {{ phrase }}:"}}
DRAWN = {"max_tokens": 5, "samples": 2, "temperature": 1.0}
CLOSED = {"ranking": {"max": 3, "calibration": "neutral"}}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(
        workspace=SPACE,
        edition=MINI,
        cache=tmp_path / "cache",
        servers={"store": tmp_path / "store.sqlite", "prices": (2.0, 10.0)},
    )


def estimated(run: Run, recipe: Any, tmp_path: Path) -> Any:
    """The forecast, for which nothing is written."""

    def there() -> list[tuple[str, bytes]]:
        store = run.servers["store"]
        kept = [("answer", line) for line in Store(store).export()] if store and store.exists() else []
        files = (path for path in sorted(tmp_path.rglob("*")) if path.is_file() and "store.sqlite" not in path.name)
        return [*kept, *((str(path), path.read_bytes()) for path in files)]

    before = there()
    found = estimate(Plan.of(run, recipe), QUERIES)
    assert there() == before
    return found


def used(proposals: Block, *names: str) -> tuple[int, ...]:
    return tuple(sum(its.get(name, 0) for its in proposals.usage.values()) for name in names)


@pytest.mark.parametrize("sampling", [{**DRAWN, "seed": 1}, DRAWN, {**DRAWN, "samples": 1}])
def test_what_a_server_is_asked_is_foretold(run: Run, tmp_path: Path, sampling: dict[str, Any]) -> None:
    with Loopback() as server:
        table = {"component": "chat", "model": "m", "base_url": server.url, "sampling": sampling, **ASKED}
        recipe = recipe_of(table)
        unknown = estimated(run, recipe, tmp_path)
        assert server.served == 0
        assert not (tmp_path / "store.sqlite").exists()
        assert unknown.total("requests") == len(QUERIES) * sampling["samples"]
        Store(run.servers["store"]).set_note(f"several answers of m at {server.url}", True)
        first = estimated(run, recipe, tmp_path)
        propose(Plan.of(run, recipe), QUERIES[:5])
        part = estimated(run, recipe, tmp_path)
        assert first.total("requests") - part.total("requests") == server.served
        propose(Plan.of(run, recipe), QUERIES)
        assert server.served == first.total("requests") == first.total("estimated")
        last = estimated(run, recipe, tmp_path)
    assert (last.total("requests"), last.total("stored")) == (0, len(QUERIES) * sampling["samples"])
    assert first.total("stored") == 0
    assert part.total("stored") == 5 * sampling["samples"]
    assert first.total("answer_tokens") == len(QUERIES) * sampling["samples"] * 5
    cost = (first.total("prompt_tokens") * 2 + first.total("answer_tokens") * 10) / 1e6
    assert (first.cost, last.cost) == (pytest.approx(cost), None)


def test_shorter_prompts_are_looked_up_where_the_store_has_them_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asking(k: int) -> Any:
        shots = {"k": k, "method": "fixed", "fit": True}
        return recipe_of({**table, "sampling": DRAWN, "prompt": ASKED["prompt"], "shots": shots})

    with Loopback() as server:
        table = {"component": "chat", "model": "m", "base_url": server.url}
        propose(Plan.of(run, asking(2)), QUERIES[:5])  # as if the server had no room for more examples
        answers, looked_up = run.servers["store"], list[str]()
        get = Rows.get
        monkeypatch.setattr(Rows, "get", lambda its, table, key: looked_up.append(table.name) or get(its, table, key))
        found = estimate(Plan.of(run, asking(9)), QUERIES)
    assert answers.exists()
    assert (found.total("requests"), found.total("stored")) == (len(QUERIES) - 5, 5 * DRAWN["samples"])
    assert looked_up.count("answers") == 5 * DRAWN["samples"]
    assert looked_up.count("prompts") == 5 * 8 + (len(QUERIES) - 5) * 10


@pytest.mark.parametrize("how", [{"sampling": DRAWN}, CLOSED], ids=["written", "ranked"])
def test_what_a_local_model_is_asked_is_foretold_in_its_own_tokens(
    run: Run, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    script = tiny_causal.tokenizer()(' ["a"] and so')["input_ids"]
    monkeypatch.setattr(decode_module, "_pick", lambda _, rows, __: [script[len(row.tokens)] for row in rows])
    recipe = recipe_of({"component": "causal", "model": str(tiny), **ASKED, **how})
    first = estimated(run, recipe, tmp_path)
    assert (first.cost, first.total("estimated"), first.total("stored")) == (None, 0, 0)
    real = propose(Plan.of(run, recipe), QUERIES)
    assert used(real, "calls", "from_store") == (first.total("requests"), 0)
    if "ranking" not in how:  # there, those of the options are beside the prompts'
        assert used(real, "prompt_tokens") == (first.total("prompt_tokens"),)
        assert first.total("answer_tokens") == len(QUERIES) * 2 * 5
    last = estimated(run, recipe, tmp_path)
    assert last.total("requests") == 0
    assert last.total("stored") >= len(QUERIES)


def signal(model: Path) -> dict[str, Any]:
    return {"component": "causal", "model": str(model), "name": "signal", **ASKED, **CLOSED}


def embedded(model: Path) -> Any:
    """The statistics of train with a model's signal and its states."""
    states = {"model": str(model), **ASKED}
    table = {"component": "embedded", "evidence": ["train"], "features": (signal(model),), "hidden_states": states}
    return recipe_of(table)


def test_signals_are_foretold_of_train_too(run: Run, tiny: Path, tmp_path: Path) -> None:
    whole = estimated(run, embedded(tiny), tmp_path)
    everybody = [*(row.query for row in run.train), *QUERIES]
    alone = estimate(Plan.of(run, recipe_of(signal(tiny))), everybody)
    counts = {part.name: part.asked and part.asked.requests for part in whole.generators}
    assert counts == {"signal": alone.total("requests")}
    assert [part.asked for part in estimate(Plan.of(run, recipe_of({"component": "prior"})), QUERIES).generators] == [
        None
    ]


class LongRun(Run):
    """A run with a train split of 600 rows, from which alone features learn."""

    @cached_property
    def train(self) -> list[Example]:
        rows = SPACE.examples(MINI, "train")
        again = (replace(row, query=Query(f"New {row.query.subject}", row.query.relation)) for row in cycle(rows))
        return [*rows, *islice(again, 600 - len(rows))]


@pytest.mark.parametrize("kind", [Run, LongRun])
def test_after_a_run_of_val_features_ask_again_about_labelled_rows_unless_train_is_long(
    kind: type[Run], run: Run, tiny: Path
) -> None:
    shared: Any = {"workspace": SPACE, "edition": MINI, "cache": run.cache, "servers": run.servers}
    val, test = (kind(**shared, split=split) for split in ("val", "test"))
    propose(Plan.of(val, embedded(tiny)), val.queries)
    new = test.queries[:4]
    foretold = estimate(Plan.of(test, embedded(tiny)), new).total("requests")
    assert used(propose(Plan.of(test, embedded(tiny)), new), "calls") == (foretold,)
    assert (foretold == len(new)) is (kind is LongRun)


@pytest.mark.parametrize("kind", ["directory", "gguf"])
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_a_model_without_weights_is_known_by_the_same_name(tiny: Path, tmp_path: Path, kind: str, dtype: str) -> None:
    place = str(tiny if kind == "directory" else tiny_gguf.write(tmp_path / "m.gguf"))
    hollow, tokenizer = load(place, dtype=dtype, weights=False)
    assert {parameter.device.type for parameter in hollow.parameters()} == {"meta"}
    whole, known = load(place, dtype=dtype)
    assert identity(place, hollow) == identity(place, whole)
    text = "Æ town, 12 <end>"
    assert tokenizer(text)["input_ids"] == known(text)["input_ids"]
    assert tokenizer.chat_template == known.chat_template


def test_the_rate_of_an_earlier_run_tells_the_time(run: Run, tmp_path: Path) -> None:
    timing = tmp_path / "timing.json"
    timings = [tmp_path / "none.json", timing]
    asks_twice = {"component": "llmke23/prompt", "follow_up": "Sure?"}
    table = {"component": "chat", "model": "m", "base_url": "http://localhost:1", "prompt": asks_twice}
    recipe = recipe_of(table)
    assert estimate(Plan.of(run, recipe), QUERIES, timings).seconds is None
    for written, seconds in (
        ({"seconds": 30, "usage": {"a": {"requests": 40}, "b": {"calls": 20}}}, 30 / 60 * len(QUERIES)),
        ({"seconds": 30, "usage": [{"a": {"requests": 40}}, {"a": {"requests": 20}}]}, 30 / 60 * len(QUERIES)),
        ({"seconds": 30, "usage": {"a": {"requests": 0, "from_store": 40}}}, None),
        ({"seconds": "x"}, None),
    ):
        timing.write_text(json.dumps(written))
        found = estimate(Plan.of(run, recipe), QUERIES, timings)
        assert found.seconds == seconds
        assert found.timed == (timing if seconds else None)
        assert found.rated == (60 if seconds else 0)
    assert (found.total("further"), found.is_bound) == (len(QUERIES), False)


def test_a_shared_store_is_looked_into_unless_no_socket_may_be_opened(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []

    def opened(store: DryStore, place: Any, counter: CallCounter, *, fresh: bool) -> None:
        looked.append(place)
        store.counter, store.blank, store.place = counter, True, place

    monkeypatch.setattr(DryStore, "__init__", opened)
    shared = replace(run, servers={"store": Database("postgresql://me@localhost:1/answers")})
    recipe = recipe_of({"component": "chat", "model": "m", "base_url": "http://localhost:1"})
    assert estimate(Plan.of(shared, recipe), QUERIES).total("requests") == len(QUERIES)
    assert looked == [shared.servers["store"]]
    with pytest.raises(InputError, match="--offline opens no socket"):
        estimate(Plan.of(replace(shared, offline=True), recipe), QUERIES)


def test_the_command_tells_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    common = ["--edition", "mini", "--split", "val", "--system", "minimal23", "--model", "m"]
    common += ["--base-url", "http://localhost:1", "--prices", "2,10", "--store", "store.sqlite", "--dry-run"]
    shown, told = command.done("predict", *common, "--limit", "12")
    assert shown.splitlines()[1].split()[:3] == ["chat", "12", "0"]
    assert "12 queries; nothing was asked, and nothing written" in told
    assert "neither submissions/ nor --out holds an earlier run of this system that asked anything" in told
    assert "are a bound, one for 2.5 bytes" in told
    assert json.loads(command.done("tune", *common, "--json")[0])["requests"] == 160
    assert not list(tmp_path.iterdir())
