"""What every generator keeps to, whatever it asks: a new one needs a case here, and passes all of this."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback
from opened import generators, recipe_of
from tiny_causal import model, tokenizer
from tiny_masked import save

from lmkbc.generate.spec import GENERATORS
from lmkbc.models.masked.backbone import load
from lmkbc.models.masked.entities import FILE, Entities
from lmkbc.run import Run, Servers
from lmkbc.train.controls import randomised
from lmkbc.train.facts import of_examples
from lmkbc.types import CandidateSet, Query, State
from lmkbc.workspace import Workspace
from tests.candidates import proposals

SPACE = Workspace()
EDITION = SPACE.edition("mini")
TRAIN = SPACE.examples(EDITION, "train")
QUERIES = [row.query for row in SPACE.examples(EDITION, "val")][::23]
ABSENT = Query("Nowhere at all", QUERIES[0].relation)

Open = Callable[[], tuple[Run, Mapping[str, Any]]]
"""A fresh run and the table of the only generator."""


def _run(**given: Any) -> Run:
    return Run(workspace=SPACE, edition=EDITION, offline=given.pop("offline", True), **given)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models and recorded answers, made once."""
    folder = tmp_path_factory.mktemp("shared")
    words = sorted({word for row in TRAIN for gold in row.objects for word in gold.names[0].split()})
    save(folder / "masked", words)
    model("llama").save_pretrained(folder / "causal")
    tokenizer().save_pretrained(folder / "causal")
    backbone = load(folder / "masked", offline=True)
    facts = list(of_examples(TRAIN, {name: SPACE.relation(name) for name in EDITION.relations}))
    entities = Entities.of(facts, backbone.tokenizer, backbone.model.config.vocab_size, expand=False)
    randomised(backbone.model).save_pretrained(folder / "entities")
    backbone.tokenizer.save_pretrained(folder / "entities")
    (folder / "entities" / FILE).write_bytes(entities.to_json())
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


@pytest.fixture
def opened(request: pytest.FixtureRequest, shared: Path, tmp_path: Path, one_thread: None) -> Iterator[Open]:
    """What opens the generator of a component as in a run of its own; nothing is shared between two openings."""
    component = request.param
    made = iter(range(100))

    def servers(url: str | None = None) -> Servers:
        return Servers(base_url=url, store=tmp_path / f"{next(made)}.sqlite")

    short = {"prompt": {"form": "completion", "style": "triple"}, "shots": {"k": 1}, "sampling": {"max_tokens": 8}}
    if component == "chat":
        with Loopback() as server:
            yield lambda: (_run(offline=False, servers=servers(server.url)), {"model": "m", **short})
        return
    yield {
        "causal": lambda: (_run(model=str(shared / "causal"), servers=servers()), short),
        "embedded": lambda: (_run(cache=shared / "cache"), {"encoder": False}),
        "entity-masked": lambda: (_run(model=str(shared / "entities")), {}),
        "masked": lambda: (_run(model=str(shared / "masked")), {"probe": {"vocabulary": "train"}}),
        "recorded": lambda: (_run(files=(shared / "recorded.jsonl",)), {}),
    }.get(component, lambda: (_run(), {}))


def proposed(component: str, opened: Open, queries: list[Query]) -> list[CandidateSet]:
    run, table = opened()
    ((_, generator),) = generators(run, recipe_of({"component": component, **table}))
    return list(generator.generate(queries))


def by_query(sets: list[CandidateSet]) -> dict[Query, CandidateSet]:
    return {one.query: one for one in sets}


every = pytest.mark.parametrize(("component", "opened"), [(name, name) for name in GENERATORS], indirect=["opened"])


@every
def test_each_distinct_query_comes_back_once_in_any_order(component: str, opened: Open) -> None:
    straight = proposed(component, opened, QUERIES)
    assert sorted(map(repr, (one.query for one in straight))) == sorted(map(repr, dict.fromkeys(QUERIES)))
    mixed = proposed(component, opened, [*QUERIES[::-1], *QUERIES[:2], QUERIES[0]])
    assert len(mixed) == len(straight)
    assert by_query(mixed) == by_query(straight)


@every
def test_a_batch_is_no_other_than_its_queries_alone(component: str, opened: Open) -> None:
    together = by_query(proposed(component, opened, QUERIES[:3]))
    alone = by_query([one for query in QUERIES[:3] for one in proposed(component, opened, [query])])
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


@pytest.mark.parametrize("component", ["recorded", "chat"])
def test_what_cannot_be_answered_is_failed_and_not_empty(component: str, shared: Path, tmp_path: Path) -> None:
    run = _run(files=(shared / "recorded.jsonl",), servers=Servers(store=tmp_path / "store.sqlite"))
    table = {"recorded": {}, "chat": {"model": "m", "base_url": "http://127.0.0.1:9/v1"}}[component]
    ((_, generator),) = generators(run, recipe_of({"component": component, **table}))
    (one,) = generator.generate([ABSENT])
    assert one.failed
    assert not one.candidates


@pytest.mark.parametrize("component", list(GENERATORS))
def test_every_table_takes_a_name_relations_and_variants(component: str) -> None:
    one, other = recipe_of(
        {"component": component, "only": [QUERIES[0].relation], "each": [{}, {"name": "b"}]}
    ).generate
    assert [one.name, other.name] == ["voice 1", "b"]
    assert one.only == other.only == (QUERIES[0].relation,)
