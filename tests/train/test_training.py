from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lmkbc.errors import InputError
from lmkbc.generate.masked.backbone import Backbone, load
from lmkbc.train.entities import Entities
from lmkbc.train.facts import Fact
from lmkbc.train.finetune import finetune
from lmkbc.train.loop import Plan
from lmkbc.train.mlm import IGNORED, Masking, train_mlm, verbalised
from lmkbc.train.soft_prompt import SoftPrompt, mask_logits, precision, read, train_soft_prompt, write
from lmkbc.train.wording import masked


def state(backbone: Backbone) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in backbone.model.state_dict().items()}


def test_loss_falls_on_a_toy_relation(backbone: Backbone, facts: list[Fact]) -> None:
    trained = train_mlm(backbone, facts, [], Plan(rate=1e-2, epochs=15, batch=4), Masking())
    assert trained.losses[-1] < 0.5 * trained.losses[0]


def test_early_stopping_keeps_the_best_weights_and_stops(backbone: Backbone, facts: list[Fact]) -> None:
    wrong = [Fact(one.subject, "home", one.clozes, (facts[n - 1].objects[0],), ("",)) for n, one in enumerate(facts)]
    plan = Plan(rate=3e-2, epochs=30, batch=4, patience=2)
    trained = train_mlm(backbone, facts, wrong, plan, Masking())
    lowest = trained.held_out.index(min(trained.held_out))
    assert len(trained.losses) == lowest + 2 < 30
    again = train_mlm(backbone, facts, wrong, Plan(rate=1e-9, epochs=1, batch=4), Masking())
    assert again.held_out[0] == pytest.approx(min(trained.held_out), rel=1e-3)


@pytest.mark.parametrize(("policy", "window"), [("object", 0), ("object+1", 1), ("object+2", 2)])
def test_the_object_and_a_window_around_it_are_masked(backbone: Backbone, policy: str, window: int) -> None:
    fact = Fact("ada", "home", ("the home of {subject} is in {mask} lives of",), ("new york",), ("",))
    (row,) = verbalised([fact], backbone.tokenizer, Masking.of(policy))
    hidden = backbone.tokenizer.convert_ids_to_tokens([label for label in row.labels if label != IGNORED])
    sentence = "the home of ada is in new york lives of".split()
    assert hidden == sentence[6 - window : 8 + window]
    assert all(
        (token == backbone.mask_id) == (label != IGNORED) for token, label in zip(row.ids, row.labels, strict=True)
    )


def test_masked_apart_leaves_the_rest_of_the_object_in_sight(backbone: Backbone) -> None:
    fact = Fact("ada", "home", ("{subject} lives in {mask}.",), ("new york",), ("",))
    rows = list(verbalised([fact], backbone.tokenizer, Masking.of("object", apart=True)))
    assert [row.ids.count(backbone.mask_id) for row in rows] == [1, 1]


def test_random_masking_always_masks_something(backbone: Backbone, facts: list[Fact]) -> None:
    assert all(backbone.mask_id in row.ids for row in verbalised(facts * 10, backbone.tokenizer, Masking.of("random")))


@pytest.mark.parametrize("text", ["subject", "object+x", "random+1", ""])
def test_unknown_mask_policies_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="mask policy"):
        Masking.of(text)


@pytest.mark.parametrize("manual", [True, False])
def test_only_prompt_vectors_change_in_soft_prompt_training(
    backbone: Backbone, facts: list[Fact], manual: bool, tmp_path: Path
) -> None:
    entities = Entities.of(facts, backbone.tokenizer, len(backbone.tokenizer), expand=False)
    columns, golds = torch.tensor(entities.rows), entities.numbers(facts)
    subjects = [fact.subject for fact in facts]
    start = SoftPrompt.manual(backbone, facts[0].clozes[1]) if manual else SoftPrompt.random(backbone, 5)
    before = state(backbone)
    after, trained = train_soft_prompt(
        backbone, start, subjects, golds, columns, Plan(rate=5e-2, epochs=40, batch=4), held_out=(subjects, golds)
    )
    assert all(torch.equal(value, before[name]) for name, value in backbone.model.state_dict().items())
    assert not torch.equal(after.vectors, start.vectors)
    assert trained.losses[-1] < trained.losses[0]
    assert trained.held_out[0] > min(trained.held_out)
    assert 0 <= precision(backbone, after, subjects, golds, columns) <= 1
    write(tmp_path / "prompts.safetensors", {"home": after}, "tiny")
    again = read(tmp_path / "prompts.safetensors")["home"]
    assert again.layout == after.layout
    assert torch.equal(again.vectors, after.vectors)


def test_a_manual_soft_prompt_starts_as_its_cloze(backbone: Backbone, facts: list[Fact]) -> None:
    columns = torch.arange(len(backbone.tokenizer))
    soft = SoftPrompt.manual(backbone, facts[0].clozes[1])
    ids = masked(backbone.tokenizer, [facts[0].clozes[1]], ["ada"])
    with torch.inference_mode():
        plain = backbone.model(input_ids=torch.tensor(ids)).logits[0][ids[0].index(backbone.mask_id)]
        assert torch.allclose(mask_logits(backbone, soft, ["ada"], columns)[0], plain, atol=1e-5)


def test_fine_tuning_learns_to_answer(backbone: Backbone, facts: list[Fact]) -> None:
    entities = Entities.of(facts, backbone.tokenizer, len(backbone.tokenizer), expand=False)
    prompts = masked(backbone.tokenizer, [fact.clozes[0] for fact in facts], [fact.subject for fact in facts])
    plan = Plan(rate=2e-2, epochs=40, batch=4, decay=0.01)
    trained = finetune(backbone, prompts, entities.numbers(facts), torch.tensor(entities.rows), plan)
    assert trained.losses[-1] < 0.5 * trained.losses[0]


def test_special_tokens_in_a_name_are_taken_out(backbone: Backbone) -> None:
    (ids,) = masked(backbone.tokenizer, ["{subject} lives in {mask}."], ["ada [MASK] [SEP] " + "bob " * 600])
    assert ids.count(backbone.mask_id) == 1
    assert len(ids) < 40


@pytest.mark.parametrize("bad", [{"rate": 0.0}, {"epochs": 0}, {"batch": 0}, {"warm_up": 1.0}])
def test_plans_that_cannot_train_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError, match="cannot train"):
        Plan(**{"rate": 1e-3, "epochs": 1, **bad})  # type: ignore[arg-type]


def test_the_rate_rises_and_falls_to_zero() -> None:
    shares = [Plan(rate=1.0, epochs=1).share(step, 100) for step in range(100)]
    assert max(shares) == 1.0 == shares[9]
    assert shares[:10] == sorted(shares[:10])
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert 0 < shares[-1] < 0.02


def test_nothing_to_train_on_is_said(backbone: Backbone) -> None:
    with pytest.raises(InputError, match="no example"):
        train_mlm(backbone, [], [], Plan(rate=1e-3, epochs=1), Masking())


def test_a_trained_model_is_an_ordinary_directory_without_a_pickle(
    another: Callable[[int], Backbone], facts: list[Fact], tmp_path: Path
) -> None:
    from lmkbc.train.head import write as write_model

    backbone = another(3)
    write_model(tmp_path / "model", backbone.model, backbone.tokenizer, None, {"seed": 3})
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert "model.safetensors" in names
    assert not [name for name in names if name.endswith((".bin", ".pt", ".pkl", ".pth"))]
    again = load(tmp_path / "model", offline=True)
    assert all(
        torch.equal(value, again.model.state_dict()[name]) for name, value in backbone.model.state_dict().items()
    )
