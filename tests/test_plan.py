"""Origins of candidates: the models that are named, and the words in which they are asked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback
from space import MINI, SPACE

from lmkbc import Workspace
from lmkbc.models.store_place import place_of
from lmkbc.plan import Origin, Plan
from lmkbc.recipe import RecipeFile, make_recipe, read_recipe
from lmkbc.session.options import Selection, settled
from lmkbc.testing import Run
from lmkbc.tune.chooser import selector_for

RUN = Run(workspace=SPACE, edition=MINI)
CHAT = {"component": "chat", "model": "owner/m", "prompt": {"ask": "{{ question }}"}, "shots": {"k": 0}}
ROW = {"SubjectEntity": "Chad", "Relation": "CountryBordersCountry"}
ANSWER = {"completions": ["Libya"]}


def asking(**table: Any) -> Origin:
    file = RecipeFile(description="x", generate=({**CHAT, **table},), select={"rule": "cutoff", "threshold": 0.5})
    return Plan.of(RUN, make_recipe("x", file, SPACE.relations)).origin


def answering(path: Path, *rows: dict[str, Any]) -> tuple[str, ...]:
    path.write_text("".join(json.dumps({**ROW, **row}) + "\n" for row in rows))
    return Plan.of(replace(RUN, files=(path,)), read_recipe(SPACE, "recorded")).origin.models


def test_recorded_answers_are_of_the_models_that_their_rows_name(tmp_path: Path) -> None:
    named = [ANSWER | {"model": name} for name in ("gpt-4", "a", "gpt-4")]
    assert answering(tmp_path / "x.jsonl", *named) == ("a", "gpt-4")
    sources = [{"object": "Libya", "score": 1, "source": "gpt-4#1; llama%3B#x"}, {"object": "Niger", "score": 1}]
    assert answering(tmp_path / "x.jsonl", {"candidates": sources, "pooled": True}) == ("gpt-4", "llama;")
    draws = [{"object": "Libya", "score": 1, "source": "cloze 3"}]  # of one model: a draw is none
    assert answering(tmp_path / "bert.candidates.jsonl", {"candidates": draws}) == ("bert",)


@pytest.mark.parametrize(
    ("name", "model"), [("mine-val", "mine"), ("mine.test", "mine"), ("test-mine", "mine"), ("attested", "attested")]
)
def test_answers_that_name_no_model_are_called_as_their_file_less_its_split(
    name: str, model: str, tmp_path: Path
) -> None:
    assert answering(tmp_path / f"{name}.jsonl", ANSWER) == (model,)
    assert answering(tmp_path / "val.jsonl", ANSWER) == ()


def test_who_is_asked_is_no_matter_of_wording_and_what_is_asked_is_none_of_models(tmp_path: Path) -> None:
    usual = asking()
    assert (usual.models, usual.wording) == (("owner/m",), "own")
    elsewhere = asking(model="n", base_url="http://127.0.0.1:9/v1", limits={"concurrency": 3})
    assert elsewhere == replace(usual, models=("n",))
    hashes = {usual.wording_sha256}
    (tmp_path / "f.toml").write_text('["*"]\nask = "Tell me: {{ question }}"\n')
    for table in ({"prompt": {"ask": "{{ question }}?"}}, {"shots": {"k": 2}}, {"frames": str(tmp_path / "f.toml")}):
        changed = asking(**table)
        assert changed.models == usual.models
        hashes.add(changed.wording_sha256)
    (tmp_path / "f.toml").write_text('["*"]\nask = "Say: {{ question }}"\n')
    hashes.add(asking(frames=str(tmp_path / "f.toml")).wording_sha256)
    assert len(hashes) == 5


def test_a_model_that_is_named_for_a_run_counts_and_the_words_of_a_relation_too() -> None:
    recipe = read_recipe(SPACE, "smollm2-embedded")
    usual = Plan.of(RUN, recipe).origin
    assert usual.models == ("SmolLM2-135M-Instruct",)
    assert Plan.of(replace(RUN, model="/models/other.gguf"), recipe).origin == replace(usual, models=("other.gguf",))
    run = replace(RUN)
    name, relation = next(iter(run.relations.items()))
    run.relations[name] = replace(relation, question="Which of {subject}?")
    assert Plan.of(run, recipe).origin.wording_sha256 != usual.wording_sha256
    embedded = read_recipe(SPACE, "embedded")
    steps = Plan.of(RUN, embedded).origin.steps_sha256
    assert Plan.of(RUN, embedded).origin == Origin(steps_sha256=steps)
    weighed = replace(embedded, tables={**embedded.tables, "pool": {"weights": {"m": 5.0}}})
    assert Plan.of(RUN, weighed).origin.steps_sha256 not in ("", steps)


def test_what_a_recipe_says_of_its_own_code_is_of_the_origin_and_of_the_records() -> None:
    embedded = read_recipe(SPACE, "embedded")
    plan = Plan.of(RUN, embedded)
    coded = Plan.of(RUN, replace(embedded, tables={**embedded.tables, "code": {"system.py": "0" * 64}}))
    assert coded.origin != plan.origin
    assert coded.about["recipe"] == {**plan.about["recipe"], "code": {"system.py": "0" * 64}}


def test_a_plan_has_the_files_of_each_generator_and_names_those_without_answers(tmp_path: Path) -> None:
    rows = [ROW | ANSWER | {"model": name} for name in ("a", "b")]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    each = tuple({**CHAT, "name": name} for name in "abc")
    file = RecipeFile(description="x", generate=each, select={"rule": "cutoff", "threshold": 0.5})
    recipe = make_recipe("x", file, SPACE.relations)
    plan = Plan.of(replace(RUN, files=(tmp_path / "x.jsonl",)), recipe)
    found = [
        sorted(model for one in generator.files or () for model in one.models or ()) for generator in plan.generators
    ]
    assert found == [["a"], ["b"], []]
    assert (plan.absent, plan.is_replayed) == (["c"], True)
    alone = Plan.of(RUN, recipe)
    assert ([generator.files for generator in alone.generators], alone.absent, alone.is_replayed) == (
        [None] * 3,
        [],
        False,
    )


def test_the_models_of_single_relations_are_models_of_their_own() -> None:
    masked = {"component": "masked", "model": {"*": "a", "CountryBordersCountry": "b"}}
    file = RecipeFile(description="x", generate=(masked,), select={"rule": "cutoff", "threshold": 0.5})
    plan = Plan.of(RUN, make_recipe("x", file, SPACE.relations))
    assert plan.origin.models == file.models == ("a", "b")
    assert Plan.of(replace(RUN, model="c"), plan.recipe).origin.models == ("c",)


def test_a_server_whose_model_is_taken_whatever_it_is_says_who_answers(tmp_path: Path) -> None:
    file = RecipeFile(description="x", generate=(CHAT,), select={"rule": "cutoff", "threshold": 0.5})
    recipe, store = make_recipe("x", file, SPACE.relations), place_of(str(tmp_path / "store.sqlite"))
    with Loopback() as server:
        server.tells["models"] = {"data": [{"id": "model-b"}]}
        servers = {"base_url": server.url, "any_model": True, "store": store}
        assert Plan.of(replace(RUN, servers=servers), recipe).origin == replace(asking(), models=("model-b",))
        assert not server.served  # no model was asked


def test_a_file_is_called_after_its_origin_whatever_models_are_called() -> None:
    assert Origin(models=("a/b", "c d"), wording="authors").suffix == "--a_b+c_d--authors"
    assert Origin(models=("gpt-4",), wording="own").suffix == "--gpt-4"
    long = [Origin(models=("x" * 200 + end,)).suffix for end in "ab"]
    assert {len(suffix) for suffix in long} == {100}
    assert long[0] != long[1]


def test_the_thresholds_that_come_with_it_are_of_what_their_recipes_ask(data_dir: Path) -> None:
    space = Workspace(data=data_dir)
    bundled = [*space.folders("thresholds")[0].glob("*/smollm2--SmolLM2-135M-Instruct.toml")]
    assert len(bundled) == 5
    for path in bundled:
        run = Run(workspace=space, edition=space.edition(path.parent.name))
        _, how = selector_for(Plan.of(run, read_recipe(space, "smollm2")), settled(Selection, {}))
        called = {relation.name: name for name, relation in run.relations.items()}
        few = ", ".join(f"{called[name]} ({rows})" for name, rows in how["few"].items())
        marked = f", with few answered rows and rough confidences for {few}" if few else ""
        assert how["how"] == f"selected by thresholds/{path.parent.name}/{path.name}{marked}"
        for name in run.relations:
            _, of_one = selector_for(Plan.of(run, read_recipe(space, "smollm2")), settled(Selection, {}), [name])
            assert ("rough confidences" in of_one["how"]) == (name in few)
            assert f"{name} (" in of_one["how"] or name not in few
