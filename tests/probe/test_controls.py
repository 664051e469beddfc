"""The controls table: official scores side by side, and what makes a query hard."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_causal
import tiny_masked
import torch
from opened import recipe_of
from safetensors.torch import load_file
from space import MINI, SPACE

from lmkbc.local.checkpoint import identity, load
from lmkbc.probe.controls import compare, controls, learned, with_random_weights
from lmkbc.recipe import read_recipe
from lmkbc.select.selector import PerRelation
from lmkbc.testing import Candidate, Example, Prediction, Run
from lmkbc.tune.tuning_set import TuningOptions
from tests.rules import rule_of
from tests.tuned import First

RANDOM = "random"


CONTEXT = Run(workspace=SPACE, edition=MINI, offline=True)
VAL = SPACE.examples(MINI, MINI.held_out)[::3]


def right(example: Example) -> Prediction:
    return Prediction(
        example.query, tuple(Candidate(gold.names[0] if gold.names else "", id=gold.id) for gold in example.objects)
    )


def wrong(example: Example) -> Prediction:
    return Prediction(example.query, (Candidate("no such thing", id="Q0"),))


def test_a_query_is_hard_when_no_control_answers_it() -> None:
    half = len(VAL) // 2
    knows_first = [right(x) if i < half else wrong(x) for i, x in enumerate(VAL)]
    knows_last = [wrong(x) if i < half else right(x) for i, x in enumerate(VAL)]
    table = compare(CONTEXT, "s", VAL, knows_last, {"a": knows_first})
    assert table.overall.hard == sum(row.hard for row in table.relations.values()) == len(VAL) - half
    assert table.overall.hard_f1 == 1.0
    table = compare(CONTEXT, "s", VAL, knows_first, {"a": knows_first})
    assert table.overall.hard_f1 == pytest.approx(0.0)
    assert table.overall.system == table.overall.controls["a"]
    table = compare(CONTEXT, "s", VAL, knows_first, {"a": knows_first, "b": knows_last})
    assert (table.overall.hard, table.overall.hard_f1) == (0, None)
    assert all(row.hard_f1 is None for row in table.relations.values())


def test_a_failed_query_is_wrong_even_where_nothing_is_to_be_found() -> None:
    failed = [Prediction(x.query, failed=True) for x in VAL]
    assert any(not MINI.gold_column(x) for x in VAL)
    table = compare(CONTEXT, "s", VAL, failed, {})
    assert (table.failed, table.overall.system) == (len(VAL), 0.0)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Fits the embedded default once for all tests."""
    return replace(CONTEXT, cache=tmp_path_factory.mktemp("embedded"))


@pytest.mark.parametrize("how", [None, TuningOptions(trials=0, folds=2, rules=("top-k",))], ids=["rule", "tuned"])
def test_controls_keep_what_their_runs_keep(
    how: TuningOptions | None, context: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmkbc.recipe._selector", lambda *_: PerRelation(rule_of("top-k", k=3)).narrowed(First()))
    (made,) = learned(context, VAL, how, ["prior"]).values()
    assert {len(one.objects) for one in made} <= {0, 1}


@pytest.mark.whole
@pytest.mark.parametrize("tuned", [pytest.param(True, marks=pytest.mark.whole), False])
def test_a_system_is_no_control_of_itself(tuned: bool, context: Run) -> None:
    table = controls(
        context, read_recipe(SPACE, "prior"), VAL, TuningOptions(trials=1) if tuned else None, random=False
    )
    assert set(table.overall.controls) == {"naive-bayes", "embedded"}
    assert table.overall.queries == len(VAL)
    assert set(table.relations) == {x.query.relation for x in VAL}


def test_a_recipe_of_ones_own_that_bears_a_controls_name_is_asked_itself() -> None:
    mine = replace(read_recipe(SPACE, "bl22-empty"), name="prior")
    known = learned(CONTEXT, VAL, None, ["prior"])
    table = controls(CONTEXT, mine, VAL, None, known=known, random=False)
    assert set(table.overall.controls) == {"prior"}
    assert table.overall.system == pytest.approx(sum(not MINI.gold_column(x) for x in VAL) / len(VAL), abs=0.2)
    assert table.overall.system != table.overall.controls["prior"]


def test_sources_that_name_their_own_models_are_drawn_anew_too(tmp_path: Path) -> None:
    one, two = (str(tiny_causal.save(tmp_path / name, "gpt2", seed=3)) for name in ("one", "two"))
    sources = [{"prompt": {"form": "completion"}}, {"model": two}, {}]
    recipe = {"component": "causal", "model": one, "each": sources}
    system = recipe_of(recipe, name="local", select={"rule": "top-k", "k": 1})
    with with_random_weights(CONTEXT, system) as drawn:
        assert drawn is not None
        models = [spec.model for spec in drawn[1].generate]
        assert not {one, two} & set(models)
        assert (models[0] == models[2], models[0] == models[1]) == (True, False)
    with with_random_weights(replace(CONTEXT, model=one), system) as drawn:
        assert drawn is not None
        assert len({spec.model for spec in drawn[1].generate} - {one, two}) == 1


def test_the_models_of_a_stacks_features_and_hidden_states_are_drawn_anew(tmp_path: Path) -> None:
    own = str(tiny_causal.save(tmp_path / "model", "gpt2", seed=3))
    sources = {"component": "causal", "model": own, "each": [{"name": "one"}, {"name": "two"}]}
    served = {"component": "chat", "model": "gpt-4"}
    recipe: dict[str, Any] = {"component": "embedded", "hidden_states": {"model": own}}
    recipe["features"] = [sources, served, {"component": "prior"}]
    with with_random_weights(CONTEXT, recipe_of(recipe)) as drawn:
        assert drawn is not None
        (spec,) = drawn[1].generate
        assert spec.hidden_states is not None
        one, two, chat, prior = spec.features
        assert one["model"] == two["model"] == spec.hidden_states["model"] != own
        assert (one["name"], two["name"], chat["model"], "model" in prior) == ("one", "two", "gpt-4", False)
        assert Path(one["model"]).is_dir()


def test_the_twin_is_the_same_each_time_so_that_its_answers_are_kept(tmp_path: Path) -> None:
    recipe = {"component": "causal", "model": str(tiny_causal.save(tmp_path / "model", "gpt2", seed=3))}
    system = recipe_of(recipe, name="local", select={"rule": "top-k", "k": 1})
    seen = []
    for _ in range(2):
        with with_random_weights(CONTEXT, system, seed=5) as drawn:
            assert drawn is not None
            twin = str(drawn[1].generate[0].model)
            seen.append((Path(twin).name, identity(twin, load(twin)[0])))
    assert seen[0] == seen[1]


def test_controls_made_once_serve_every_system(context: Run) -> None:
    known = learned(context, VAL, None)
    for name in ("bl22-empty", "prior"):
        system = read_recipe(SPACE, name)
        assert controls(context, system, VAL, None, known=known) == controls(context, system, VAL, None)


def test_a_system_without_a_local_model_has_no_random_twin() -> None:
    with with_random_weights(replace(CONTEXT, model="gpt-4"), read_recipe(SPACE, "bl24")) as drawn:
        assert drawn is None
    table = controls(CONTEXT, read_recipe(SPACE, "prior"), VAL, None, known={})
    assert table.overall.controls == {RANDOM: None}


@pytest.mark.whole(but=["masked"])
@pytest.mark.parametrize(
    ("save", "recipe"),
    [
        (
            lambda folder: tiny_causal.save(folder, "gpt2", seed=3),
            {"component": "causal", "sampling": {"max_tokens": 3}, "prompt": {"form": "completion"}},
        ),
        (
            lambda folder: tiny_masked.save(folder, ["France", "Spain"], seed=3),
            {"component": "masked", "probe": {"clozes": 1, "vocabulary": "train"}},
        ),
    ],
    ids=["causal", "masked"],
)
def test_a_local_model_is_asked_again_with_random_weights(
    save: Callable[[Path], Path], recipe: dict[str, Any], tmp_path: Path
) -> None:
    root = save(tmp_path / "model").parent
    system = recipe_of(recipe, {"component": "prior"}, name="local", select={"rule": "top-k", "k": 1})
    context = replace(CONTEXT, model=str(root / "model"), servers={"store": root / "store.sqlite"})
    with with_random_weights(context, system, seed=1) as drawn:
        assert drawn is not None
        twin = Path(drawn[1].generate[0].model)
        fresh, own = (load_file(one / "model.safetensors") for one in (twin, root / "model"))
        assert {name: value.shape for name, value in fresh.items()} == {n: v.shape for n, v in own.items()}
        assert any(not torch.equal(value, own[name]) for name, value in fresh.items())
    assert not twin.exists()
    table = controls(context, system, VAL[:5], None, known={})
    assert table.overall.controls[RANDOM] is not None
