from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lmkbc.errors import InputError
from lmkbc.generate.entity_masked import EntityMasked
from lmkbc.models.masked.backbone import Backbone, load
from lmkbc.models.masked.entities import Entities
from lmkbc.models.masked.heads import Top, assemble
from lmkbc.relation import Relation
from lmkbc.train.controls import randomised
from lmkbc.train.directory import write
from lmkbc.train.settings import TrainingPlan
from lmkbc.train.teach import prepare, train_top
from lmkbc.types import Fact, Query
from tests.candidates import proposals


def learnt(backbone: Backbone, facts: list[Fact], *, expand: bool, top: int = 1) -> tuple[Top, Entities]:
    entities = Entities.of(facts, backbone.tokenizer, backbone.model.config.vocab_size, expand=expand)
    head = Top(backbone.model, entities, top)
    trained = train_top(head, prepare(backbone, facts, entities, top), TrainingPlan(rate=1e-2, epochs=40, batch=8))
    assert trained.losses[-1] < 0.5 * trained.losses[0]
    return head, entities


@pytest.mark.parametrize("expand", [True, False])
@pytest.mark.parametrize("top", [1, 2])
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
    entities = Entities.of([fact], backbone.tokenizer, size, expand=True)
    assert entities.rows == (size, size + 1, size + 2)
    words = backbone.model.get_input_embeddings().weight
    ids = backbone.tokenizer("new york", add_special_tokens=False)["input_ids"]
    head = Top(backbone.model, entities, 1)
    assert torch.allclose(head.rows[entities.names.index("new york")], words[ids].mean(0))


def test_objects_survive_their_file_and_a_broken_one_is_named(
    backbone: Backbone, facts: list[Fact], tmp_path: Path
) -> None:
    entities = Entities.of(facts, backbone.tokenizer, 99, expand=True)
    (tmp_path / "entities.json").write_bytes(entities.to_json())
    again = Entities.read(tmp_path)
    assert (again.names, again.rows, again.relations) == (entities.names, entities.rows, entities.relations)
    (tmp_path / "entities.json").write_bytes(b'{"names": 1}')
    with pytest.raises(InputError, match="no list of objects"):
        Entities.read(tmp_path)


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
    entities = Entities.of(facts, backbone.tokenizer, 99, expand=True)
    elsewhere = Top(backbone.model.to("meta"), entities, 1)
    assert {value.device.type for value in elsewhere.parameters() if value.requires_grad} == {"meta"}
