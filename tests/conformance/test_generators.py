"""Every generator keeps to this, whatever it asks: a new one needs a case here, and passes all of this."""

import json
import pickle
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from loopback import Body, Loopback, prompt_of
from opened import generators, recipe_of
from space import MINI, SPACE, TRAIN
from telling import Kind, Telling
from tiny_causal import BYTES, model, tokenizer
from tiny_masked import save

from lmkbc import registry
from lmkbc.cli import build
from lmkbc.local.checkpoint import load as load_causal
from lmkbc.local.model import CausalModel
from lmkbc.plan import Plan
from lmkbc.progress import ExpectedStep
from lmkbc.run.pipeline import Steps, propose
from lmkbc.testing import CandidateSet, Query, Run, State
from tests.candidates import proposals

QUERIES = [row.query for row in SPACE.examples(MINI, "val")][::40]
ASKED = QUERIES[0].relation
REPEATED = [*QUERIES[::-1], *QUERIES[:2], QUERIES[0]]
LETTERS = string.ascii_letters
LOST = {
    "causal": Query("x" * 2000, QUERIES[0].relation),  # no room in the window
    "chat": Query("Nowhere at all", QUERIES[0].relation),
    "recorded": Query("Nowhere at all", QUERIES[0].relation),
}
"""Queries whose calls fail, of the generators that something is asked of."""

SERVED_LISTS: dict[str, Kind] = {"closed on llama.cpp": "llama.cpp", "closed on vLLM": "echo"}
"""Closed lists over servers, and the way in which each tells log-probabilities."""

Open = Callable[[], tuple[Run, Mapping[str, Any]]]
"""A fresh run and the table of the only generator."""


def refused(body: Body, _: Body) -> tuple[int, str] | None:
    """Have no answer to what is asked about nowhere."""
    return (500, "no") if LOST["chat"].subject in prompt_of(body) else None


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models and recorded answers, made once."""
    folder = tmp_path_factory.mktemp("shared")
    words = sorted({word for row in TRAIN for gold in row.objects for word in gold.names[0].split()})
    save(folder / "masked", words)
    speller = model("llama")
    with torch.no_grad():  # greedy answers are of letters alone, since these alone have weights above 0
        speller.lm_head.weight[[index for index, byte in enumerate([*BYTES, "<end>"]) if byte not in LETTERS]] = 0
    speller.save_pretrained(folder / "causal")
    tokenizer().save_pretrained(folder / "causal")
    taught = ["train", "finetune", "--backbone", folder / "masked", "--out", folder / "entities", "--device", "cpu"]
    taught += ["--edition", "mini", "--epochs", "1", "--offline", "--batch", "64"]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LMKBC_DATA", raising=False)
        build()([*map(str, taught)], standalone_mode=False)
    rows = [
        {
            "SubjectEntity": query.subject,
            "Relation": query.relation,
            "model": "m",
            "completions": ["['France']", "none"],
        }
        for query in QUERIES
    ]
    (folder / "recorded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def speaks(shared: Path) -> CausalModel:
    """The causal model as servers have it."""
    return CausalModel(*load_causal(str(shared / "causal"), offline=True))


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, shared: Path, speaks: CausalModel, tmp_path: Path, one_thread: None
) -> Iterator[Open]:
    """Give a function that opens a generator as in a run of its own; two openings share nothing."""
    made = iter(range(100))
    (tmp_path / "table.json").write_text("{}")

    def run(url: str | None = None, **given: Any) -> Run:
        servers = {"base_url": url, "store": tmp_path / f"{next(made)}.sqlite"}
        return Run(
            workspace=SPACE,
            edition=MINI,
            offline=url is None,
            servers=servers,
            search_table=tmp_path / "table.json",
            **given,
        )

    sampling = {"max_tokens": 40, "stop": list("aeiouyAEIOUYnrst")}
    short = {
        "prompt": {"form": "completion", "block": "{{ subject }}, {{ phrase }}:"},
        "shots": {"k": 1},
        "sampling": sampling,
    }
    if request.param == "chat":
        limits = {"total_wait": 0.5}
        with Loopback(change=refused) as server:
            yield lambda: (run(server.url), {"model": "m", "limits": limits, **short})
        return
    closed = short | {"ranking": {"max": 8}}
    if request.param in SERVED_LISTS:
        with Telling(SERVED_LISTS[request.param], speaks) as server:
            few = {"ranking": {"max": 2, "rows": 1, "calibration": "neutral"}}  # tokens are bytes, each a request
            yield lambda: (run(server.url), {"model": "m", **short, **few})
        return
    yield {
        "causal": lambda: (run(model=str(shared / "causal")), short),
        "closed": lambda: (run(model=str(shared / "causal")), closed),
        "embedded": lambda: (run(cache=shared / "cache"), {"evidence": ["train"]}),
        "features": lambda: (
            run(cache=shared / "cache"),
            {
                "evidence": ["train"],
                "features": [{"component": "prior"}, {"component": "naive-bayes", "only": [ASKED]}],
            },
        ),
        "entity-masked": lambda: (run(model=str(shared / "entities")), {}),
        "masked": lambda: (run(model=str(shared / "masked")), {"probe": {"vocabulary": "train"}}),
        "recorded": lambda: (run(files=(shared / "recorded.jsonl",)), {}),
    }.get(request.param, lambda: (run(), {}))


def proposed(component: str, opened: Open, queries: Sequence[Query]) -> list[CandidateSet]:
    run, table = opened()
    ((_, generator),) = generators(run, recipe_of({"component": component, **table}))
    return list(generator.generate(queries))


def by_query(sets: list[CandidateSet]) -> dict[Query, CandidateSet]:
    return {one.query: one for one in sets}


CLOSED: list[Any] = [
    ("causal", "closed"),
    *(pytest.param("causal", name, marks=pytest.mark.whole) for name in SERVED_LISTS),  # which are asked token by token
]
CASES = [
    *((name, name) for name in registry.GENERATORS),
    *CLOSED,
    pytest.param("embedded", "features", marks=pytest.mark.whole),
]
"""Component, and the table and run that it is opened with."""

every = pytest.mark.parametrize(("component", "opened"), CASES, indirect=["opened"])
LOSING = [*((name, name) for name in LOST), *CLOSED]
fallible = pytest.mark.parametrize(("component", "opened"), LOSING, indirect=["opened"])


def test_every_generator_that_asks_has_a_query_whose_call_fails() -> None:
    asking = {name for name in registry.GENERATORS if hasattr(registry.GENERATORS.get(name), "asking")}
    assert asking <= LOST.keys()


@every
def test_each_distinct_query_comes_back_once_in_any_order(component: str, opened: Open) -> None:
    straight = proposed(component, opened, QUERIES)
    assert sorted(map(repr, (one.query for one in straight))) == sorted(map(repr, dict.fromkeys(QUERIES)))
    mixed = proposed(component, opened, REPEATED)
    assert len(mixed) == len(straight)
    assert by_query(mixed) == by_query(straight)


@every
def test_the_same_is_proposed_again(component: str, opened: Open) -> None:
    run, table = opened()
    ((_, generator),) = generators(run, recipe_of({"component": component, **table}))
    first = by_query(list(generator.generate(QUERIES)))
    assert by_query(list(generator.generate(QUERIES))) == first
    assert by_query(proposed(component, opened, QUERIES)) == first


@every
def test_a_batch_is_no_other_than_its_queries_alone(component: str, opened: Open) -> None:
    together = by_query(proposed(component, opened, QUERIES[:3]))
    alone = by_query([one for query in QUERIES[:3] for one in proposed(component, opened, [query])])
    assert together.keys() == alone.keys() == set(QUERIES[:3])
    for query, one in together.items():
        assert one.draws == alone[query].draws
        assert [c.text for c in one.candidates] == [c.text for c in alone[query].candidates]
        assert [c.score for c in one.candidates] == pytest.approx([c.score for c in alone[query].candidates], rel=1e-4)


@every
def test_what_is_proposed_is_sound_and_travels(component: str, opened: Open) -> None:
    sets = proposed(component, opened, QUERIES)
    assert pickle.loads(pickle.dumps(sets)) == sets
    for one in sets:
        assert all(0 <= proposal.score <= 1 and proposal.sources for proposal in proposals(one))
        assert all(candidate.text for candidate in one.candidates)
        assert (
            one.failed or proposals(one) or one.dropped or State.ANSWERED in one.draws or State.ABSTAINED in one.draws
        )


@every
def test_no_query_is_no_set_and_the_table_travels(component: str, opened: Open) -> None:
    assert proposed(component, opened, []) == []
    _, table = opened()
    recipe = recipe_of({"component": component, **table})
    assert pickle.loads(pickle.dumps(recipe.generate)) == recipe.generate


@fallible
def test_a_failed_call_is_not_empty_and_takes_no_other_with_it(component: str, opened: Open) -> None:
    sets = by_query(proposed(component, opened, [*QUERIES, LOST[component]]))
    lost = sets.pop(LOST[component])
    assert lost.failed
    assert not lost.candidates
    assert sets == by_query(proposed(component, opened, QUERIES))
    assert not all(one.failed for one in sets.values())


@every
def test_progress_is_reported_from_nothing_to_the_end(component: str, opened: Open) -> None:
    run, table = opened()
    told: dict[str, list[tuple[int, int | None]]] = {}

    def report(step: str, done: int, total: int | None) -> None:
        if isinstance(step, ExpectedStep):  # which only tells what may come
            return
        counts = told.setdefault(step.partition(" (")[0], [])  # the unit tells of answers, speed and cost
        if counts[-1:] != [(done, total)]:
            counts.append((done, total))

    found = propose(Plan.of(run, recipe_of({"component": component, **table})), REPEATED, report)
    assert [one.query for one in found.sets] == REPEATED
    assert told[component] == [(done, len(QUERIES)) for done in range(len(QUERIES) + 1)]
    for step, counts in told.items():
        assert counts[0][0] == 0, step
        assert counts == sorted(counts), step
        assert counts[-1][0] == counts[-1][1], step


@every
@pytest.mark.parametrize("block", [pytest.param(1, marks=pytest.mark.whole), 3])
def test_blocks_are_one_run(component: str, opened: Open, block: int) -> None:
    run, table = opened()
    recipe = recipe_of({"component": component, **table})
    whole = propose(Plan.of(run, recipe), REPEATED)
    counts: dict[str, list[int]] = {}
    steps = Steps(Plan.of(run, recipe), lambda step, done, _: counts.setdefault(step, []).append(done))
    blocks = list(steps.over(REPEATED, block=block))
    assert tuple(one for some in blocks for one in some.sets) == whole.sets
    assert tuple(query for some in blocks for query in some.queries) == whole.queries
    for step in (f"{component} (queries)", "pool (queries)"):
        assert counts[step][-1] == len(QUERIES)
    assert steps.usage.keys() == whole.usage.keys()


@every
def test_a_table_takes_a_name_relations_and_variants(component: str, opened: Open) -> None:
    run, table = opened()
    own = QUERIES[0].relation
    recipe = recipe_of({"component": component, **table, "name": "w", "each": [{"only": [own]}, {"name": "b"}]})
    assert [(spec.name, spec.only) for spec in recipe.generate] == [("w 1", (own,)), ("b", ())]
    found = {name: list(generator.generate(REPEATED)) for name, generator in generators(run, recipe)}
    assert {name: len(sets) for name, sets in found.items()} == {"w 1": len(QUERIES), "b": len(QUERIES)}
    some, everything = by_query(found["w 1"]), by_query(found["b"])
    for query in QUERIES:
        if query.relation != own:
            assert some[query] == CandidateSet(query, draws=())
        else:
            assert some[query].draws == everything[query].draws
            assert [c.text for c in some[query].candidates] == [c.text for c in everything[query].candidates]
    weighed = [one.by_model for pooled in propose(Plan.of(run, recipe), QUERIES).sets for one in proposals(pooled)]
    speaking = {name for name, sets in found.items() if any(proposals(one) for one in sets)}
    assert {model for each in weighed for model, _ in each} == speaking
    assert speaking
