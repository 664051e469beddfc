from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmkbc.cli import build
from lmkbc.errors import InputError
from lmkbc.generate.entity_masked import EntityMasked
from lmkbc.generate.masked.backbone import Backbone, load
from lmkbc.train import tasks
from lmkbc.train.corpus import Corpus
from lmkbc.train.entities import Entities
from lmkbc.train.facts import Fact
from lmkbc.train.head import fold_model, write
from lmkbc.train.held_out import HeldOut
from lmkbc.train.loop import Plan
from lmkbc.train.mlm import Masking
from lmkbc.train.soft_prompt import FILE, read
from lmkbc.train.teach import fold_of, teach
from lmkbc.types import Query, Relation


@pytest.fixture
def task(backbone: Backbone, tmp_path: Path) -> tasks.Task:
    write(tmp_path / "tiny", backbone.model, backbone.tokenizer, None, {})
    plan = Plan(rate=1e-2, epochs=2, batch=4)
    return tasks.Task(backbone=str(tmp_path / "tiny"), out=tmp_path / "out", plan=plan, apart=0.3, offline=True)


@pytest.fixture
def corpus(facts: list[Fact]) -> Corpus:
    return Corpus(tuple(facts), (), {"toy": (8, 0)}, HeldOut(frozenset({"somebody else"}), ("toy/val",)))


def saved(task: tasks.Task) -> dict[str, object]:
    load(task.out, offline=True)
    assert not list(task.out.parent.glob(".*checkpoint*"))
    record: dict[str, object] = json.loads((task.out / "training.json").read_bytes())
    return record


def test_every_kind_of_training_leaves_a_model_that_loads(task: tasks.Task, corpus: Corpus) -> None:
    assert len(tasks.mlm(task, corpus, Masking()).losses) == 2
    assert "overlap of subjects to train on with held-out names: 0" in saved(task)["proof"]  # type: ignore[operator]
    tasks.finetuned(task, corpus)
    assert saved(task)["steps"] == 4
    assert "paris" in Entities.read(task.out).names
    scores = tasks.soft_prompts(task, corpus, length=3)
    saved(task)
    assert set(scores) == {"home"}
    assert read(task.out / FILE)["home"].vectors.shape == (3, 16)


def test_a_taught_model_answers_train_subjects_with_heads_that_never_saw_them(
    task: tasks.Task, corpus: Corpus, facts: list[Fact], home: Relation
) -> None:
    more = [replace(fact, subject=f"{fact.subject} {letter}") for fact in facts for letter in "abcde"]
    taught = Corpus(tuple(facts), tuple(more), corpus.removed, corpus.held_out)
    task = replace(task, plan=Plan(rate=1e-2, rates={"layers": 3e-3}, epochs=20, batch=8))
    teach(task, taught)
    saved(task)
    entities = Entities.read(task.out)
    assert entities.expanded
    assert entities.folds == {fact.subject: fold_of(fact.subject) for fact in facts}
    asked = [Query(name, "Home") for name in ("ada", "somebody else")]
    seen, own = EntityMasked.read(task.out, {"Home": home}), load(task.out, offline=True)
    answers = {one.query.subject: one.candidates for one in seen.generate(asked)}
    whole = {one.query.subject: one.candidates for one in EntityMasked(own, entities, {"Home": home}).generate(asked)}
    assert answers["somebody else"] == whole["somebody else"]
    assert answers["ada"] != whole["ada"]
    fold = fold_model(task.out, fold_of("ada"), own, entities)
    alone = EntityMasked(fold, entities, {"Home": home}).generate(asked[:1])
    assert next(alone).candidates == answers["ada"]


def test_teaching_resumes_where_it_was_stopped(task: tasks.Task, corpus: Corpus) -> None:
    teach(task, corpus)
    whole = {path.name: path.read_bytes() for path in task.out.iterdir()}

    def stop(step: str, done: int, total: int | None) -> None:
        if step.startswith("fold 1") and done == 2:
            raise KeyboardInterrupt

    other = replace(task, out=task.out.with_name("other"))
    with pytest.raises(KeyboardInterrupt):
        teach(other, corpus, report=stop)
    assert not other.out.exists()
    steps: list[str] = []
    teach(other, corpus, report=lambda step, done, total: steps.append(step))
    assert not any(step.startswith("fold 0") for step in steps)
    assert {path.name: path.read_bytes() for path in other.out.iterdir()} == whole
    assert not list(other.out.parent.glob(".other*"))


def test_a_control_is_saved_with_the_weights_it_was_trained_with(task: tasks.Task, corpus: Corpus) -> None:
    control = replace(task, random="all")
    tasks.soft_prompts(control, corpus)
    first = (task.out / "model.safetensors").read_bytes()
    tasks.soft_prompts(control, corpus)
    assert (task.out / "model.safetensors").read_bytes() == first
    with pytest.raises(InputError, match="random is"):
        tasks.soft_prompts(replace(task, random="some"), corpus)


def test_a_relation_without_facts_is_named(task: tasks.Task, corpus: Corpus) -> None:
    with pytest.raises(InputError, match="no fact of relation 'birth'"):
        tasks.mlm(task, corpus, Masking(), relation="birth")


def test_held_out_subjects_stop_the_run(task: tasks.Task, facts: list[Fact]) -> None:
    leaking = Corpus(tuple(facts), (), {}, HeldOut(frozenset({"ada"}), ()))
    with pytest.raises(Exception, match="held-out subjects"):
        tasks.mlm(task, leaking, Masking())


def test_the_command_says_what_it_held_out(task: tasks.Task, tmp_path: Path) -> None:
    arguments = ["train", "mlm", "--backbone", task.backbone, "--out", str(tmp_path / "cli"), "--epochs", "1"]
    result = CliRunner().invoke(build(), [*arguments, "--all-weights", "--edition", "mini", "--offline", "--json"])
    assert result.exit_code == 0, result.output
    assert "overlap of subjects to train on with held-out names: 0" in result.stderr
    assert len(json.loads(result.stdout)["losses"]) == 1
    load(tmp_path / "cli", offline=True)


def test_facts_too_few_to_stop_early_by_are_all_learned(task: tasks.Task, corpus: Corpus, facts: list[Fact]) -> None:
    few = Corpus(tuple(facts), (replace(facts[0], subject="ada e"),), corpus.removed, corpus.held_out)
    teach(replace(task, apart=0.1), few)
    saved(task)
