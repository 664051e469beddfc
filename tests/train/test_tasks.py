import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from command import Command

from lmkbc import InputError, LmkbcError, Relation
from lmkbc.masked.backbone import Backbone, load
from lmkbc.masked.entity_masked import EntityMasked
from lmkbc.masked.forward import masked
from lmkbc.masked.heads import Entities, Top, assemble, fold_model
from lmkbc.masked.soft_prompts import read
from lmkbc.masked.vocabulary import Words
from lmkbc.train import tasks, upper_layers
from lmkbc.train.corpus import Corpus, HeldOut
from lmkbc.train.random_controls import randomised
from lmkbc.train.tasks import fold_of, prepare, teach, train_top
from lmkbc.train.training import Masking, Training, TrainingPlan, write
from lmkbc.types import Fact, Query
from tests.candidates import proposals

PLAN = TrainingPlan(rate=1e-2, epochs=2, batch=4)


@pytest.fixture
def task(backbone: Backbone, tmp_path: Path) -> Training:
    write(tmp_path / "tiny", backbone.model, backbone.tokenizer, None, {})
    return Training(backbone=str(tmp_path / "tiny"), out=tmp_path / "out", apart=0.3, offline=True)


@pytest.fixture
def corpus(facts: list[Fact]) -> Corpus:
    return Corpus(tuple(facts), (), {"toy": (8, 0)}, HeldOut(frozenset({"somebody else"}), ("toy/val",)))


def saved(task: Training) -> dict[str, object]:
    load(task.out, offline=True)
    assert not list(task.out.parent.glob(".*checkpoint*"))
    record: dict[str, object] = json.loads((task.out / "training.json").read_bytes())
    return record


def test_every_kind_of_training_leaves_a_model_that_loads(task: Training, corpus: Corpus) -> None:
    assert len(tasks.mlm(task, PLAN, corpus, Masking()).losses) == 2
    assert "overlap of subjects to train on with held-out names: 0" in saved(task)["proof"]  # type: ignore[operator]
    tasks.finetuned(task, PLAN, corpus)
    assert saved(task)["steps"] == 4
    assert "paris" in Entities.read(task.out).names
    scores = tasks.soft_prompts(task, PLAN, corpus, length=3)
    saved(task)
    assert set(scores) == {"home"}
    assert read(task.out / "soft_prompts.safetensors")["home"].vectors.shape == (3, 16)


def test_a_taught_model_answers_train_subjects_with_heads_that_never_saw_them(
    task: Training, corpus: Corpus, facts: list[Fact], home: Relation
) -> None:
    more = [replace(fact, subject=f"{fact.subject} {letter}") for fact in facts for letter in "abcde"]
    taught = Corpus(tuple(facts), tuple(more), corpus.removed, corpus.held_out)
    teach(task, TrainingPlan(rate=1e-2, rates={"layers": 3e-3}, epochs=20, batch=8), taught)
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


def test_a_control_is_saved_with_the_weights_it_was_trained_with(task: Training, corpus: Corpus) -> None:
    control = replace(task, random="all")
    tasks.soft_prompts(control, PLAN, corpus, loss="ranking")
    first = (task.out / "model.safetensors").read_bytes()
    tasks.soft_prompts(control, PLAN, corpus)
    assert (task.out / "model.safetensors").read_bytes() == first


def test_a_relation_without_facts_is_named(task: Training, corpus: Corpus) -> None:
    with pytest.raises(InputError, match="no fact of relation 'birth'"):
        tasks.mlm(replace(task, relation="birth"), PLAN, corpus, Masking())


def test_held_out_subjects_stop_the_run(task: Training, facts: list[Fact]) -> None:
    leaking = Corpus(tuple(facts), (), {}, HeldOut(frozenset({"ada"}), ()))
    with pytest.raises(LmkbcError, match="held-out subjects"):
        tasks.mlm(task, PLAN, leaking, Masking())


def test_the_command_says_what_it_held_out(command: Command, task: Training, tmp_path: Path) -> None:
    arguments = ["train", "mlm", "--backbone", task.backbone, "--out", "cli", "--epochs", "1"]
    words = ("--edition", "mini", "--offline", "--json")
    shown, told = command.done(*arguments, "--all-weights", "--relation", "CountryBordersCountry", *words)
    assert "overlap of subjects to train on with held-out names: 0" in told
    assert len(json.loads(shown)["losses"]) == 1
    load(tmp_path / "cli", offline=True)


@pytest.mark.parametrize("name", ["P999", "CountryLandBordersCountry"])
def test_a_relation_is_known_by_any_of_its_names(command: Command, task: Training, name: str) -> None:
    arguments = ["train", "mlm", "--backbone", task.backbone, "--out", "cli", "--edition", "mini", "--offline"]
    assert f"no fact of relation '{name}'" in command.fails(*arguments, "--relation", name)


def test_facts_too_few_to_stop_early_by_are_all_learned(task: Training, corpus: Corpus, facts: list[Fact]) -> None:
    few = Corpus(tuple(facts), (replace(facts[0], subject="ada e"),), corpus.removed, corpus.held_out)
    teach(replace(task, apart=0.1), PLAN, few)
    assert "overlap" in str(saved(task)["proof"])


def test_a_relation_without_objects_of_one_token_does_not_stop_the_others(
    task: Training, corpus: Corpus, facts: list[Fact], caplog: pytest.LogCaptureFixture
) -> None:
    long = [Fact(fact.subject, "origin", fact.clozes, ("new york",), ("",)) for fact in facts]
    both = replace(corpus, challenge=(*facts, *long))
    assert set(tasks.soft_prompts(task, PLAN, both)) == {"home"}
    assert "no soft prompt for origin" in caplog.text
    with pytest.raises(InputError, match="no relation has objects of one token"):
        tasks.soft_prompts(replace(task, relation="origin"), PLAN, both)


def test_expanded_objects_are_learned_as_one_token_and_found_again(
    task: Training, corpus: Corpus, facts: list[Fact]
) -> None:
    facts = [*facts, Fact("a b", "home", facts[0].clozes, ("New York",), ("",)), Fact("c", "home", facts[0].clozes, ())]
    before = load(task.backbone, offline=True)
    small, plan = replace(task, apart=0.0), replace(PLAN, epochs=20)
    tasks.mlm(small, plan, replace(corpus, challenge=tuple(facts)), Masking(nothing="none"), expand=True)
    after = load(task.out, offline=True)
    row = Words(after.tokenizer).single("New York")
    assert row is not None
    assert row >= len(before.tokenizer)
    (ids,) = masked(after, [facts[0].clozes[0]], ["a b"])
    with torch.inference_mode():
        logits = after.model(input_ids=torch.tensor([ids])).logits[0, ids.index(after.mask_id)]
    assert int(logits.argmax()) == row


def test_sentences_take_the_place_of_facts(task: Training, corpus: Corpus) -> None:
    told = replace(corpus, sentences=("ada lives in paris .", "bob lives in rome .") * 10)
    trained = tasks.mlm(replace(task, apart=0.1), PLAN, told, Masking(policy="random"))
    assert (trained.steps, len(trained.held_out)) == (2 * 5, 3)  # 18 of 20, four at a time
    assert "20 sentences, none of which holds a held-out name" in saved(task)["proof"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--mask", "random"], "add --all-weights"),
        (["--apart"], "add --all-weights"),
        (["--all-weights", "--mask", "subject"], "mask policy"),
    ],
)
def test_options_without_an_effect_are_refused(
    command: Command, task: Training, options: list[str], reason: str
) -> None:
    arguments = ["train", "mlm", "--backbone", task.backbone, "--out", "x", "-e", "mini", "--offline"]
    assert reason in command.fails(*arguments, *options)


def test_a_directory_that_was_not_taught_is_told_apart(
    task: Training, corpus: Corpus, home: Relation, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"holds no entities\.json: name a directory"):
        EntityMasked.read(Path(task.backbone), {"Home": home})
    teach(task, PLAN, corpus)
    known = json.loads((task.out / "entities.json").read_bytes())
    (task.out / "training.json").unlink()
    (task.out / "entities.json").write_text(json.dumps(known | {"rows": [10**6, *known["rows"][1:]]}))
    with pytest.raises(InputError, match="not of the model beside it"):
        EntityMasked.read(task.out, {"Home": home})
    (task.out / "entities.json").write_bytes(b'{"names": 1}')
    with pytest.raises(InputError, match="no list of objects"):
        EntityMasked.read(task.out, {"Home": home})


def test_a_file_in_the_models_place_is_refused_before_anything_is_learned(task: Training) -> None:
    task.out.write_text("mine")
    with pytest.raises(InputError, match="is a file: name a directory"):
        replace(task, most=1)


def learnt(backbone: Backbone, facts: list[Fact], *, expand: bool, top: int = 1) -> tuple[Top, Entities]:
    entities = upper_layers.entities_of(facts, backbone.tokenizer, backbone.model.config.vocab_size, expand=expand)
    head = Top(backbone.model, entities, top)
    trained = train_top(head, prepare(backbone, facts, entities, top), TrainingPlan(rate=1e-2, epochs=40, batch=8))
    assert trained.losses[-1] < 0.5 * trained.losses[0]
    return head, entities


@pytest.mark.whole(but=["1-False"])
@pytest.mark.parametrize(
    ("top", "expand"),
    [(1, False), (2, True), *(pytest.param(*case, marks=pytest.mark.whole) for case in ((1, True), (2, False)))],
)
def test_the_saved_model_answers_as_the_trained_head(
    backbone: Backbone, facts: list[Fact], home: Relation, tmp_path: Path, expand: bool, top: int
) -> None:
    facts = [
        *facts,
        Fact("a b", "home", facts[0].clozes, ()),
        Fact("c d", "home", facts[0].clozes, ("New York",), ("Q60",)),
    ]
    before = backbone.model.get_input_embeddings().weight.detach().clone()
    head, entities = learnt(backbone, facts, expand=expand, top=top)
    assert ("New York" in entities.names) is expand
    write(tmp_path / "m", assemble(backbone, head, entities), backbone.tokenizer, entities, {})
    saved = load(tmp_path / "m", offline=True)
    words = saved.model.get_input_embeddings().weight
    assert torch.equal(words[: len(before)], before)
    assert words.data_ptr() == saved.model.get_output_embeddings().weight.data_ptr()
    generator = EntityMasked.read(tmp_path / "m", {"Home": home})
    found = {one.query.subject: one for one in generator.generate([Query(fact.subject, "Home") for fact in facts])}
    assert found["a b"].nothing[0].score > found["a b"].candidates[0].score
    assert found["ada"].candidates[0].text == "paris"
    assert sum(one.score for one in proposals(found["ada"])) == pytest.approx(1.0, abs=1e-3)
    if expand:
        assert (found["c d"].candidates[0].text, found["c d"].candidates[0].id) == ("New York", "Q60")


def test_new_rows_start_as_the_mean_of_their_pieces(backbone: Backbone) -> None:
    fact = Fact("ada", "home", ("{subject} lives in {mask}.",), ("new york", "paris"), ("", ""))
    size = backbone.model.config.vocab_size
    entities = upper_layers.entities_of([fact], backbone.tokenizer, size, expand=True)
    assert entities.rows == (size, size + 1, size + 2)
    words = backbone.model.get_input_embeddings().weight
    ids = backbone.tokenizer("new york", add_special_tokens=False)["input_ids"]
    head = Top(backbone.model, entities, 1)
    assert torch.allclose(head.rows[entities.names.index("new york")], words[ids].mean(0))


@pytest.mark.parametrize("what", ["all", "embeddings"])
def test_a_random_control_keeps_its_weights_on_disk(
    another: Callable[[int], Backbone], tmp_path: Path, what: str
) -> None:
    backbone = another(1)
    control = randomised(backbone.model, what, seed=5)  # type: ignore[arg-type]
    torch.manual_seed(99)
    write(tmp_path / "control", control, backbone.tokenizer, None, {})
    again = load(tmp_path / "control", offline=True).model.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in control.state_dict().items())
    old, new = backbone.model.state_dict(), control.state_dict()
    changed = {name for name in old if old[name].ndim > 1 and not torch.equal(old[name], new[name])}
    words = {name for name in old if "word_embeddings" in name or name.endswith("decoder.weight")}
    assert changed == (words if what == "embeddings" else {name for name in old if old[name].ndim > 1} - set())


def test_all_that_learns_lies_where_the_model_lies(backbone: Backbone, facts: list[Fact]) -> None:
    entities = upper_layers.entities_of(facts, backbone.tokenizer, 99, expand=True)
    elsewhere = Top(backbone.model.to("meta"), entities, 1)
    assert {value.device.type for value in elsewhere.parameters() if value.requires_grad} == {"meta"}
